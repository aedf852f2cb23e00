"""Whether residuals scatter more at some inputs than at others."""

import numpy as np
from scipy.stats import chi2


def noise_trend(X, scores, sample_weight):
    """Test whether the size of residuals has a linear trend in the inputs.

    The score test of Breusch & Pagan (1979), "A simple test for heteroscedasticity and random
    coefficient variation", Econometrica 47, in the form of Koenker (1981), Journal of Econometrics
    17, which does not need Gaussian residuals: under constant noise the number of rows times
    ``R^2`` of the regression of the scores on the inputs follows a chi-squared distribution.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    scores : ndarray of shape (n, n_outputs)
        Slope of the log evidence by the log precision of every residual, up to a factor:
        ``beta e^2 - gamma`` (MacKay 1992, thesis, chapter 6).
    sample_weight : ndarray of shape (n,)
        Repetitions of the rows.

    Returns
    -------
    float
        The p value: the probability, under constant noise, that any output shows as strong a trend;
        ``nan`` where no input varies or rows are no more than inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import noise_trend
    >>> x, e = np.linspace(0, 1, 100)[:, None], np.random.default_rng(0).standard_normal((100, 1))
    >>> even, uneven = (noise_trend(x, (s * e) ** 2 - 1, np.ones(100)) for s in (1, 2 * x))
    >>> bool(even > 0.1), bool(uneven < 0.001)
    (True, True)
    """
    n, root = sample_weight.sum(), np.sqrt(sample_weight)[:, None]
    inputs = root * (X - sample_weight @ X / n)
    scores = root * (scores - sample_weight @ scores / n)
    fit, _, rank, _ = np.linalg.lstsq(inputs, scores)
    if n <= rank + 1 or rank == 0:
        return np.nan
    total = np.sum(scores**2, axis=0)
    explained = np.sum((inputs @ fit) ** 2, axis=0) / np.where(total > 0.0, total, 1.0)
    return float(min(1.0, len(total) * np.min(chi2.sf(n * explained, rank))))
