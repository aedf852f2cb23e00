"""Scoring rules of predictive distributions, one value per target, and their calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array

RULES = """Scoring rules.

Parameters
----------
mean, std : float or array-like of the shape of `y_true`
    Means and standard deviations of the predictions, in units of y.
interval : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2)
    Lower and upper ends, as `predict_interval` of the regressors gives them.

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
    y = finite(y_true, "y_true")
    mean, std = (np.full(y.shape, v) if np.ndim(v) == 0 else v for v in (mean, std))
    mean, std = like_targets(mean, "mean", y), like_targets(std, "std", y)
    if np.any(std <= 0):
        raise ValueError("std must be positive everywhere.")
    z = (y - mean) / std
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))


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
    y = finite(y_true, "y_true")
    interval = like_targets(interval, "interval", y, 2)
    low, high = interval[..., 0], interval[..., 1]
    if np.any(low > high):
        raise ValueError("The lower end of an interval lies above its upper end.")
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
        Probability integral transform: the predictive distribution function at the targets,
        ``predict_distribution(X).cdf(y)``.

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


def finite(values, name):
    """Convert to a finite array of doubles, of one axis or more."""
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must be an array with one entry per row, got {values!r}.")
    return check_array(values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)


def like_targets(values, name, y, *last):
    """Convert to a finite array ``(*y.shape, *last)``."""
    array, expected = finite(values, name), (*y.shape, *last)
    if array.shape != expected:
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
