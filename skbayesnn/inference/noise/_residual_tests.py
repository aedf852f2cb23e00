"""Tests of constant Gaussian noise by residuals, against each of the other noise models."""

import numpy as np
from scipy.stats import chi2, norm

SIGNIFICANT = 0.01  # p value below which residuals contradict constant Gaussian noise
FEW_ROWS = 500  # rows beyond which the threshold of tests falls in proportion to their inverse
# mean square of residuals, in noise variances, below which the noise is the least possible
NO_NOISE = 0.5
CLOSELY_FITTED = 0.01  # least residual degrees of freedom of a row; below, rounding dominates


def suspected(problem, p_values):
    """Noise models that are allowed and suggested by tests; none if the deadline has passed.

    With more rows a test is more powerful and a trial takes longer, so that the threshold is lower.
    """
    if problem.deadline.passed:
        return []
    strict = min(1.0, FEW_ROWS / len(problem.X))
    allowed = problem.laws or TESTS
    return [
        noise
        for noise, p_value in p_values.items()
        if noise in allowed and p_value < strict * TESTS[noise][1]
    ]


def p_values(posterior, residuals, gamma, beta):
    """P values of tests of constant noise by noise model.

    ``residuals`` and ``gamma``, the remaining degrees of freedom of each, have shape (n,
    n_outputs), the noise precisions ``beta`` (n_outputs,). Targets without noise say nothing about
    its law.
    """
    residuals = residuals * np.sqrt(beta / np.maximum(gamma, CLOSELY_FITTED))
    if np.all(posterior.sample_weight @ residuals**2 < NO_NOISE * posterior.n_rows):
        return {}
    rows = posterior.X, residuals, posterior.sample_weight
    return {noise: test(*rows) for noise, (test, _) in TESTS.items()}


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
    X /= np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
    regressors, sizes = np.hstack([X, X**2]), np.abs(residuals)
    regressors -= sample_weight @ regressors / n
    regressors *= root
    sizes = root * (sizes - sample_weight @ sizes / n)
    fit, _, rank, _ = np.linalg.lstsq(regressors, sizes)
    if n <= rank + 1 or rank == 0:
        return np.nan
    total = np.sum(sizes**2, axis=0)
    explained = np.sum((regressors @ fit) ** 2, axis=0) / np.where(total > 0.0, total, 1.0)
    p_values = chi2.sf(n * explained, rank)
    return float(min(1.0, len(p_values) * np.min(p_values)))  # Bonferroni


def heavy_tails(X, residuals, sample_weight):
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
    p_values = norm.cdf((ratio - expected) * np.sqrt(n / (1.0 - 3.0 / np.pi)))
    return float(min(1.0, len(p_values) * np.min(p_values)))  # Bonferroni


TESTS = {  # of constant noise: the test, and the P value below which the other model is tried
    "input_dependent": (noise_trend, 0.05),  # lenient, as the evidence decides
    "student_t": (heavy_tails, 0.5),  # cheap, and networks that fit outliers hide them
}
