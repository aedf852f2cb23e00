"""Calibration: agreement of predicted probabilities with observed frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.metrics._rules import RULES, ends, finite, mean_over_rows, row_weights


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
