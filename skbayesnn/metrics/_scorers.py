"""Calibration of predictive distributions, and scorers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest

from skbayesnn._docs import documented
from skbayesnn._typing import Array
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.inputs._rows import checked_weights, scored_sides
from skbayesnn.estimators.predictions._distribution import Distribution

REQUESTS = MetadataRequest(owner="scorer")
for name in ("exposure", "censored"):
    REQUESTS.score.add_request(param=name, alias=True)
REACH = 8.0  # standard deviations within which distribution functions are integrated
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS  # on [0, 1]
SCORES = """Scorers.

Parameters
----------
estimator : object
    A fitted estimator of this package; a `Pipeline` or search that ends in one; or any other
    regressor whose ``predict`` takes ``return_std``, whose predictions are then treated as
    Gaussian.

Raises
------
TypeError
    If the estimator gives no predictive distribution.
"""


@documented()
def interval_coverage(
    y_true: ArrayLike, interval: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of the targets that lie in their prediction intervals, ends included.

    Parameters
    ----------
    interval : array-like of shape (n_samples, 2) or (n_samples, n_outputs, 2)
        Lower and upper ends, as `predict_interval` of the regressors gives them.

    Returns
    -------
    float
        Coverage between 0 and 1, over all outputs.

    Raises
    ------
    ValueError
        If arguments are invalid, or their shapes do not fit each other.

    Examples
    --------
    >>> from skbayesnn.metrics import interval_coverage
    >>> interval_coverage([0.0, 3.0], [[-1.0, 1.0], [-1.0, 1.0]])
    0.5
    """
    y, interval = finite(y_true, "y_true"), finite(interval, "interval")
    if interval.shape != (*y.shape, 2):
        raise ValueError(
            f"interval must have shape {(*y.shape, 2)} for y_true of shape {y.shape}; got "
            f"{interval.shape}."
        )
    low, high = np.moveaxis(interval, -1, 0)
    if np.any(low > high):
        raise ValueError("The lower end of an interval lies above its upper end.")
    return mean_over_rows((low <= y) & (y <= high), sample_weight)


def finite(values: ArrayLike, name: str) -> Array:
    """Convert to a finite array of doubles, of one axis or more."""
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must be an array with one entry per row, got {values!r}.")
    return check_array(values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)


def mean_over_rows(values, sample_weight):
    """Weighted mean over the rows, plain mean over further axes."""
    weight = checked_weights(sample_weight, len(values))
    return float(np.mean(np.average(values, axis=0, weights=weight)))


def with_requests(scorer):
    """Let a scorer request exposures and limits by scikit-learn's metadata routing."""
    scorer.get_metadata_routing = lambda: REQUESTS
    return scorer


@documented(SCORES)
@with_requests
def log_density_scorer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    censored: ArrayLike | None = None,
) -> float:
    """Mean log predictive density of regressors, or log probability of the true class.

    Returns
    -------
    float
        Score in nats per row, y in its own units, joint over the outputs: higher is better.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_validate
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
    >>> model, data = EvidenceMLPRegressor((), noise="constant"), load_diabetes(return_X_y=True)
    >>> scoring = {"log_density": log_density_scorer, "neg_crps": neg_crps_scorer}
    >>> cross_validate(model, *data, scoring=scoring, cv=4)["test_log_density"].round(1)
    array([-5.4, -5.4, -5.4, -5.4])
    """
    model, rows = predictor(estimator, X)
    if is_classifier(model) and hasattr(model, "log_predictive_density"):
        return mean_over_rows(model.log_predictive_density(rows, y), sample_weight)
    at = distribution(model, rows, exposure)
    if isinstance(at, Distribution):
        return mean_over_rows(at.joint_logpdf(y, censored), sample_weight)
    y, sides = np.reshape(y, at.mean().shape), sides_of(at, censored)  # of a Gaussian
    beyond = np.where(sides < 0.0, at.logcdf(y), at.logsf(y))
    density = np.where(sides == 0.0, at.logpdf(y), beyond)
    return mean_over_rows(density.reshape(len(density), -1).sum(axis=1), sample_weight)


@documented(SCORES)
@with_requests
def neg_crps_scorer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    censored: ArrayLike | None = None,
) -> float:
    """Negative mean of the continuous ranked probability score of regressors.

    Gaussian predictions are scored in closed form, mixtures of Gaussians and other predictions by
    integrating their distribution function (Gneiting and Raftery 2007, equation 20) over 96 points
    per target, which takes about a hundred times as long as `predict`. A limit counts with the part
    of the integral that it decides: that above it if the value lies below, and the reverse. With
    many limits `log_density_scorer`, whose score is the likelihood, is the better choice.

    Returns
    -------
    float
        Score in units of y, mean over the outputs: higher is better.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import neg_crps_scorer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(round(neg_crps_scorer(EvidenceMLPRegressor((), noise="constant").fit(X, y), X, y)))
    -30
    """
    at = distribution(estimator, X, exposure)
    return -mean_over_rows(_crps(at, y, sides_of(at, censored)), sample_weight)


def distribution(estimator, X, exposure=None):
    """Predict the distribution of the targets.

    Any other regressor that predicts its standard deviation gives SciPy's `norm`.
    """
    model, X = predictor(estimator, X)
    if is_classifier(model):
        raise TypeError(
            f"{type(model).__name__} is a classifier. For the log probability of the true class "
            "use scoring='neg_log_loss', for calibration 'neg_brier_score'; other scores are for "
            "regressors only."
        )
    if not hasattr(model, "predict_distribution"):
        return norm(*moments(model, X))
    if exposure is None:
        return model.predict_distribution(X)
    return model.predict_distribution(X, exposure=exposure)


def sides_of(at, censored):
    """Sides of limits among targets, in the shape of their means."""
    shape = at.mean().shape
    of_all = (shape[0], int(np.prod(shape[1:])))
    known = isinstance(at, Distribution)
    sides = at._sides(censored, of_all) if known else scored_sides(censored, of_all, False)
    return sides.reshape(shape)


def moments(regressor, X):
    """Means and standard deviations, of one shape, by a regressor with ``return_std``."""
    try:
        mean, std = regressor.predict(X, return_std=True)
    except TypeError as error:
        raise TypeError(
            f"{type(regressor).__name__} gives no predictive distribution: its predict does not "
            "take return_std."
        ) from error
    return mean, std if std.ndim == mean.ndim else np.broadcast_to(std[:, None], mean.shape)


def _crps(at, y, sides=0.0):
    mean, std = at.mean(), at.std()
    z = (np.asarray(y, dtype=float).reshape(mean.shape) - mean) / std

    def cdf(z):
        return at.cdf(mean + std * z)

    normal = all(np.allclose(cdf(u), ndtr(u), rtol=0.0, atol=1e-10) for u in (-1.5, 0.0, 1.5))
    if normal and not np.any(sides):
        # Gneiting & Raftery (2007), section 4.2, up to the sign
        return std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    split = np.clip(z, -REACH, REACH)
    below, above = split + REACH, REACH - split
    # where the distribution function is 0 or 1
    of_below, of_above = np.maximum(z - split, 0.0), np.maximum(split - z, 0.0)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        of_below = of_below + weight * below * cdf(split - node * below) ** 2
        of_above = of_above + weight * above * (1.0 - cdf(split + node * above)) ** 2
    return std * (np.where(sides < 0.0, 0.0, of_below) + np.where(sides > 0.0, 0.0, of_above))
