"""Significance tests of residuals against Gaussian noise of one level per output."""

import numpy as np
from scipy.stats import chi2, norm


def noise_trend(X, residuals, sample_weight):
    """Test whether residuals are larger at some inputs than at others.

    Absolute residuals (Glejser 1969, "A new test for heteroskedasticity", Journal of the American
    Statistical Association 64) are regressed on the inputs and their squares. Under constant noise
    the number of rows times ``R^2`` follows a chi-squared distribution, whatever the law of the
    residuals (Koenker 1981, Journal of Econometrics 17).

    Residuals, of shape (n, n_outputs), are divided by their expected standard deviations
    ``sqrt(gamma_m / beta)`` (MacKay 1992, thesis, chapter 6); ``sample_weight`` (n,) repeats rows.
    Returns the probability under constant noise of as strong a trend in any output; ``nan`` if no
    input varies, or if the rows do not outnumber the inputs and squares.
    """
    n, root = sample_weight.sum(), np.sqrt(sample_weight)[:, None]
    X = X - sample_weight @ X / n
    X = X / np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    regressors, sizes = (
        root * (Z - sample_weight @ Z / n) for Z in (np.hstack([X, X**2]), np.abs(residuals))
    )
    fit, _, rank, _ = np.linalg.lstsq(regressors, sizes)
    if n <= rank + 1 or rank == 0:
        return np.nan
    total = np.sum(sizes**2, axis=0)
    explained = np.sum((regressors @ fit) ** 2, axis=0) / np.where(total > 0.0, total, 1.0)
    return _of_any(chi2.sf(n * explained, rank))


def heavy_tails(residuals, sample_weight):
    """Test whether residuals have heavier tails than a Gaussian.

    The ratio of mean absolute deviation to standard deviation is ``sqrt(2 / pi)`` for a Gaussian
    and smaller for heavy tails (Geary 1935, "The ratio of the mean deviation to the standard
    deviation as a test of normality", Biometrika 27).

    Returns the probability under Gaussian noise of as heavy tails in any output; the arguments are
    those of `noise_trend`.
    """
    n = sample_weight.sum()
    deviation = sample_weight @ np.abs(residuals) / n
    rms = np.sqrt(sample_weight @ residuals**2 / n)
    expected = np.sqrt(2.0 / np.pi) * (1.0 + 0.25 / n)
    ratio = deviation / np.where(rms > 0.0, rms, 1.0)
    ratio = np.where(rms > 0.0, ratio, expected)
    return _of_any(norm.cdf((ratio - expected) * np.sqrt(n / (1.0 - 3.0 / np.pi))))


def _of_any(p_values):
    """Bonferroni-corrected p value of the most significant of several tests."""
    return float(min(1.0, len(p_values) * np.min(p_values)))
