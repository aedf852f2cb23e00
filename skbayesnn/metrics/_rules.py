"""Scoring rules for predictive distributions of numbers, one value per target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array
from skbayesnn.estimators.inputs._parameters import probabilities
from skbayesnn.network import row_blocks

LOG_2_PI = np.log(2.0 * np.pi)
RULES = """Scoring rules.

Parameters
----------
mean, std : float or array-like of the shape of `y_true`
    Means and standard deviations of the predictions, in units of y.
interval : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2)
    Lower and upper ends, as `predict_interval` of the regressors gives them.
coverage : float, default=0.95
    Nominal probability of the intervals, between 0 and 1.

Returns
-------
ndarray of the shape of `y_true`
    Score in units of y: lower is better.

Raises
------
ValueError
    If arguments are invalid, or their shapes do not fit each other.
"""


@documented(RULES)
def log_density_gaussian(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Log density of targets under Gaussian predictions.

    Returns
    -------
    ndarray of the shape of `y_true`
        Log density in nats, y in its own units: higher is better.

    Examples
    --------
    >>> from skbayesnn.metrics import log_density_gaussian
    >>> log_density_gaussian([0.0, 2.0], mean=[0.0, 0.0], std=[1.0, 1.0]).round(3)
    array([-0.919, -2.919])
    """
    y, mean, std = _gaussian(y_true, mean, std)
    return -0.5 * (((y - mean) / std) ** 2 + LOG_2_PI) - np.log(std)


@documented(RULES)
def crps_gaussian(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Continuous ranked probability score of Gaussian predictions, in closed form.

    The score is ``integral of (F(x) - 1{x >= y})^2 dx`` (Gneiting and Raftery 2007, equation 20, up
    to the sign); ``F`` is the predictive distribution function. For a prediction of zero standard
    deviation it is the absolute error.

    References
    ----------
    T. Gneiting and A. E. Raftery (2007), "Strictly proper scoring rules, prediction, and
    estimation", Journal of the American Statistical Association 102, section 4.2.

    Examples
    --------
    >>> from skbayesnn.metrics import crps_gaussian
    >>> crps_gaussian([0.0, 2.0], mean=[0.0, 0.0], std=[1.0, 1.0]).round(3)
    array([0.234, 1.453])
    """
    y, mean, std = _gaussian(y_true, mean, std)
    z = (y - mean) / std
    density = np.exp(-0.5 * z * z - 0.5 * LOG_2_PI)
    return std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))


@documented(RULES)
def crps_samples(y_true: ArrayLike, samples: ArrayLike, *, fair: bool = False) -> Array:
    """Continuous ranked probability score of predictions given as draws.

    The score is ``E|X - y| - E|X - X'| / 2`` with ``X`` and ``X'`` from the predictive distribution
    (Gneiting and Raftery 2007, equation 21, up to the sign), by sorting the draws of each target.

    Parameters
    ----------
    samples : array-like of shape (n_samples, n_draws) or (n_samples, n_outputs, n_draws)
        Draws of every target, noise included, in units of y.
    fair : bool, default=False
        ``False``: the score of the distribution that has exactly these draws. ``True``: an unbiased
        estimate of the score of the distribution that the draws, at least two and independent, come
        from (Ferro 2014); it can be negative.

    References
    ----------
    T. Gneiting and A. E. Raftery (2007), "Strictly proper scoring rules, prediction, and
    estimation", Journal of the American Statistical Association 102.

    C. A. T. Ferro (2014), "Fair scores for ensemble forecasts", Quarterly Journal of the Royal
    Meteorological Society 140.

    Examples
    --------
    >>> from skbayesnn.metrics import crps_samples
    >>> crps_samples([1.0], [[0.0, 2.0]])
    array([0.5])
    >>> crps_samples([1.0], [[0.0, 2.0]], fair=True)
    array([0.])
    """
    y = finite(y_true, "y_true")
    samples = with_last_axis(samples, "samples", y)
    n_draws = samples.shape[-1]
    if n_draws < 1 + bool(fair):
        raise ValueError(f"samples must hold at least {1 + bool(fair)} draws, got {n_draws}.")
    pairs = n_draws * (n_draws - 1 if fair else n_draws)
    ranks = 2.0 * np.arange(1, n_draws + 1) - n_draws - 1.0
    scores = np.empty(y.shape)
    for rows in row_blocks(len(y), samples[0].size):
        apart = np.sort(samples[rows] - y[rows][..., None], axis=-1)
        scores[rows] = np.mean(np.abs(apart), axis=-1) - apart @ ranks / pairs
    return scores


@documented(RULES)
def interval_score(y_true: ArrayLike, interval: ArrayLike, *, coverage: float = 0.95) -> Array:
    """Score of central prediction intervals: their width, and a penalty for targets outside.

    The score is ``(u - l) + 2/a (l - y) 1{y < l} + 2/a (y - u) 1{y > u}`` with ``a = 1 - coverage``
    (Gneiting and Raftery 2007, equation 43). The true quantiles have the best expected score.

    References
    ----------
    T. Gneiting and A. E. Raftery (2007), "Strictly proper scoring rules, prediction, and
    estimation", Journal of the American Statistical Association 102, section 6.2.

    Examples
    --------
    >>> from skbayesnn.metrics import interval_score
    >>> interval_score([0.0, 3.0], [[-1.0, 1.0], [-1.0, 1.0]], coverage=0.8)
    array([ 2., 22.])
    """
    probabilities(coverage, "coverage")
    y, low, high = ends(y_true, interval)
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return (high - low) + 2.0 / (1.0 - coverage) * outside


def ends(y_true, interval):
    """Check targets and intervals; return targets, lower ends and upper ends."""
    y = finite(y_true, "y_true")
    interval = with_last_axis(interval, "interval", y, length=2)
    low, high = interval[..., 0], interval[..., 1]
    if np.any(low > high):
        raise ValueError("The lower end of an interval lies above its upper end.")
    return y, low, high


def _gaussian(y_true, mean, std):
    y = finite(y_true, "y_true")
    mean, std = as_targets(mean, "mean", y), as_targets(std, "std", y)
    if np.any(std <= 0):
        raise ValueError("std must be positive everywhere.")
    return y, mean, std


def finite(values, name):
    """Convert to a finite array of doubles, of one axis or more."""
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must be an array with one entry per row, got {values!r}.")
    return check_array(values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)


def as_targets(values, name, y):
    """Convert to a finite array of the shape of the targets, or to a single number for all."""
    if np.ndim(values) == 0:
        values = np.full(y.shape, values)
    array = finite(values, name)
    if array.shape != y.shape:
        raise ValueError(f"{name} must have the shape of y_true, {y.shape}; got {array.shape}.")
    return array


def with_last_axis(values, name, y, length=None):
    """Convert to a finite array of the shape of the targets with one more axis at the end."""
    array = finite(values, name)
    if array.shape[:-1] != y.shape or length not in (None, array.shape[-1]):
        raise ValueError(
            f"{name} must have shape {(*y.shape, length or 'n_draws')} for y_true of shape "
            f"{y.shape}; got {array.shape}."
        )
    return array


def row_weights(weight, n_rows, name="sample_weight"):
    """Weights of rows as shares that sum to 1."""
    if weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    weight = finite(weight, name)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), one weight per row; got {weight.shape}."
        )
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError(f"{name} must not be negative, and at least one must be positive.")
    return weight / weight.sum()


def mean_over_rows(values, sample_weight):
    """Weighted mean over the rows, plain mean over further axes."""
    return float(np.mean(np.tensordot(row_weights(sample_weight, len(values)), values, 1)))
