"""Scoring rules of predictive distributions, one value per target, and their calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array
from skbayesnn.estimators.inputs._parameters import count, probabilities
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
    samples = like_targets(samples, "samples", y, "n_draws")
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


@documented(RULES)
def interval_coverage(
    y_true: ArrayLike, interval: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the targets that lie in their prediction intervals, ends included.

    Returns
    -------
    float
        Coverage between 0 and 1, over all outputs.

    Examples
    --------
    >>> from skbayesnn.metrics import interval_coverage
    >>> interval_coverage([0.0, 3.0], [[-1.0, 1.0], [-1.0, 1.0]])
    0.5
    """
    y, low, high = ends(y_true, interval)
    return mean_over_rows((low <= y) & (y <= high), sample_weight)


@documented(RULES)
def quantile_calibration_error(pit: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean distance between nominal and actual probability of predictive quantiles.

    For every level ``q`` between 0 and 1 the share of the targets below their predicted
    ``q``-quantile should be ``q``. The error is the mean of ``|share - q|`` over all levels,
    exactly: the area between the calibration curve of Kuleshov et al. (2018) and the diagonal.

    Parameters
    ----------
    pit : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Probability integral transform: the predictive distribution function at the targets, as
        `predictive_cdf` of the regressors gives it.

    Returns
    -------
    float
        Error between 0 and 0.5, mean over the outputs: lower is better. Perfect predictions of
        ``n`` independent targets have about ``0.31 / sqrt(n)``.

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon (2018), "Accurate uncertainties for deep learning using
    calibrated regression", International Conference on Machine Learning.

    Examples
    --------
    >>> from skbayesnn.metrics import quantile_calibration_error
    >>> quantile_calibration_error([0.25, 0.75])
    0.125
    >>> quantile_calibration_error([0.5, 0.5])
    0.25
    """
    pit = finite(pit, "pit")
    if np.any((pit < 0) | (pit > 1)):
        raise ValueError("pit must lie between 0 and 1: it holds probabilities.")
    share = row_weights(sample_weight, len(pit))
    columns = pit.reshape(len(pit), -1).T
    return float(np.mean([_area_from_diagonal(column, share) for column in columns]))


def _area_from_diagonal(pit, share):
    """Area ``integral of |F(q) - q| dq`` for the weighted empirical distribution ``F``."""
    order = np.argsort(pit)
    knots = np.concatenate([[0.0], pit[order], [1.0]])
    height = np.concatenate([[0.0], np.cumsum(share[order])])  # of F between the knots
    left, right = knots[:-1] - height, knots[1:] - height
    return 0.5 * np.sum(right * np.abs(right) - left * np.abs(left))


@documented(RULES)
def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean distance between predicted probabilities and frequencies, over bins of equal width.

    Two classes: the probability of the second class is compared with its frequency. More classes:
    the probability of the most probable class with the accuracy (Naeini et al. 2015; Guo et al.
    2017). Few bins hide errors that cancel within a bin; many bins with few rows each show errors
    that are only noise.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the classes in the order of `labels`; one column alone is that of the
        second of two classes.
    n_bins : int, default=10
        Number of bins between 0 and 1.
    labels : array-like of shape (n_classes,), optional
        The classes; by default those in `y_true`, sorted.

    Returns
    -------
    float
        Error between 0 and 1: lower is better.

    References
    ----------
    M. P. Naeini, G. F. Cooper and M. Hauskrecht (2015), "Obtaining well calibrated probabilities
    using Bayesian binning", AAAI Conference on Artificial Intelligence.

    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017), "On calibration of modern neural
    networks", International Conference on Machine Learning.

    Examples
    --------
    >>> from skbayesnn.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.75, 0.75, 0.75, 0.75])
    0.0
    """
    count(n_bins, "n_bins")
    codes, proba = _classes_and_probabilities(y_true, y_proba, labels)
    if proba.shape[1] == 2:
        predicted, happened = proba[:, 1], codes == 1
    else:
        predicted, happened = proba.max(axis=1), codes == np.argmax(proba, axis=1)
    share = row_weights(sample_weight, len(codes))
    bins = np.maximum(np.ceil(predicted * n_bins).astype(int), 1) - 1  # closed on the right
    gaps = np.bincount(bins, share * (predicted - happened), minlength=n_bins)
    return float(np.sum(np.abs(gaps)))


def _classes_and_probabilities(y_true, y_proba, labels):
    """Positions of the true classes, and one column of probabilities per class."""
    y, proba = np.asarray(y_true), finite(y_proba, "y_proba")
    if y.shape != proba.shape[:1] or proba.ndim > 2:
        raise ValueError(
            "y_true must have shape (n_samples,) and y_proba (n_samples,) or (n_samples, "
            f"n_classes); got {y.shape} and {proba.shape}."
        )
    if np.any((proba < 0) | (proba > 1)):
        raise ValueError("y_proba must lie between 0 and 1.")
    if proba.ndim == 1 or proba.shape[1] == 1:
        proba = np.column_stack([1.0 - proba, proba])
    elif np.any(np.abs(proba.sum(axis=1) - 1.0) > 1e-6):
        raise ValueError("The probabilities of a row must add up to 1.")
    labels = np.unique(y) if labels is None else np.asarray(labels)
    if labels.shape != proba.shape[1:]:
        raise ValueError(
            f"y_proba is for {proba.shape[1]} classes, but there are {len(labels)} labels "
            f"({labels.tolist()}). Give the classes as labels, in the order of the columns."
        )
    hits = y[:, None] == labels
    if not np.all(hits.any(axis=1)):
        raise ValueError(f"y_true holds classes that are not in labels ({labels.tolist()}).")
    return np.argmax(hits, axis=1), proba


def ends(y_true, interval):
    """Check targets and intervals; return targets, lower ends and upper ends."""
    y = finite(y_true, "y_true")
    interval = like_targets(interval, "interval", y, 2)
    low, high = interval[..., 0], interval[..., 1]
    if np.any(low > high):
        raise ValueError("The lower end of an interval lies above its upper end.")
    return y, low, high


def _gaussian(y_true, mean, std):
    y = finite(y_true, "y_true")
    mean, std = (np.full(y.shape, v) if np.ndim(v) == 0 else v for v in (mean, std))
    mean, std = like_targets(mean, "mean", y), like_targets(std, "std", y)
    if np.any(std <= 0):
        raise ValueError("std must be positive everywhere.")
    return y, mean, std


def finite(values, name):
    """Convert to a finite array of doubles, of one axis or more."""
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must be an array with one entry per row, got {values!r}.")
    return check_array(values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)


def like_targets(values, name, y, *last):
    """Convert to a finite array ``(*y.shape, *last)``; a word in ``last`` stands for any length."""
    array, expected = finite(values, name), (*y.shape, *last)
    known = [length for length in expected if not isinstance(length, str)]
    if array.ndim != len(expected) or list(array.shape[: len(known)]) != known:
        raise ValueError(
            f"{name} must have shape {expected} for y_true of shape {y.shape}; got {array.shape}."
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
