"""Scorers ``(estimator, X, y, sample_weight=None)``: higher is better."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from skbayesnn.estimators import before_final_step, final_step, probabilities
from skbayesnn.metrics._calibration import (
    expected_calibration_error,
    interval_coverage,
    quantile_calibration_error,
)
from skbayesnn.metrics._rules import (
    crps_gaussian,
    interval_score,
    log_density_gaussian,
    mean_over_rows,
)

REACH = 8.0  # standard deviations within which distribution functions are integrated
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS  # on [0, 1]


def log_density_scorer(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Mean log predictive density of regressors, or log probability of the true class.

    Parameters
    ----------
    estimator : object
        A fitted estimator of this package; a `Pipeline` or search that ends in one; or any other
        regressor whose ``predict`` takes ``return_std``, whose predictions are then
        treated as Gaussian.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.

    Returns
    -------
    float
        Score in nats per row, y in its own units, joint over the outputs: higher is better.

    Raises
    ------
    TypeError
        If the estimator gives no predictive distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 2))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(40)
    >>> scoring = {"log_density": log_density_scorer, "neg_crps": neg_crps_scorer}
    >>> found = cross_validate(EvidenceMLPRegressor(()), X, y, scoring=scoring, cv=4)
    >>> found["test_log_density"].shape
    (4,)
    """
    model, X = model_with(estimator, X, "log_predictive_density")
    return mean_over_rows(model.log_predictive_density(X, y), sample_weight)


def neg_crps_scorer(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Negative mean of the continuous ranked probability score of regressors.

    Gaussian predictions are scored in closed form, mixtures of Gaussians and other predictions by
    integrating their distribution function (Gneiting and Raftery 2007, equation 20) over 96 points
    per target, which takes about a hundred times as long as `predict`.

    Parameters
    ----------
    estimator : object
        Fitted regressor, as for `log_density_scorer`.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.

    Returns
    -------
    float
        Score in units of y, mean over the outputs: higher is better.

    Raises
    ------
    TypeError
        If the estimator gives no predictive distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import neg_crps_scorer
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = 2 * X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = EvidenceMLPRegressor(()).fit(X, y)
    >>> print(round(neg_crps_scorer(model, X, y), 2))
    -0.04
    """
    model, X = model_with(estimator, X, "predictive_cdf")
    return -mean_over_rows(_crps(model, X, y), sample_weight)


def neg_calibration_error_scorer(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Negative calibration error.

    Regressors: `quantile_calibration_error`; classifiers: `expected_calibration_error`.

    Parameters
    ----------
    estimator : object
        Fitted regressor, as for `log_density_scorer`, or any classifier with ``predict_proba``.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.

    Returns
    -------
    float
        Negative mean difference of probabilities: higher is better.

    Raises
    ------
    TypeError
        If the estimator gives no predictive distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import neg_calibration_error_scorer
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = 2 * X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = EvidenceMLPRegressor(()).fit(X, y)
    >>> -0.2 < neg_calibration_error_scorer(model, X, y) <= 0
    True
    """
    if is_classifier(estimator):
        proba, labels = estimator.predict_proba(X), estimator.classes_
        return -expected_calibration_error(y, proba, labels=labels, sample_weight=sample_weight)
    model, X = model_with(estimator, X, "predictive_cdf")
    return -quantile_calibration_error(model.predictive_cdf(X, y), sample_weight=sample_weight)


def make_coverage_scorer(coverage: float = 0.95) -> Callable[..., Any]:
    """Scorer of the coverage of prediction intervals.

    Parameters
    ----------
    coverage : float, default=0.95
        Nominal probability of the intervals, between 0 and 1.

    Returns
    -------
    callable
        Scorer ``(estimator, X, y, sample_weight=None)`` of regressors: minus the distance of
        `interval_coverage` from ``coverage``, higher is better.

    Raises
    ------
    ValueError
        If ``coverage`` does not lie between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import make_coverage_scorer
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = 2 * X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = EvidenceMLPRegressor(()).fit(X, y)
    >>> score = make_coverage_scorer(coverage=0.8)
    >>> -0.2 < score(model, X, y) <= 0
    True
    """
    probabilities(coverage, "coverage")
    return partial(_coverage_score, coverage=coverage)


def make_interval_scorer(coverage: float = 0.95) -> Callable[..., Any]:
    """Scorer of prediction intervals by their negative mean `interval_score`.

    Parameters
    ----------
    coverage : float, default=0.95
        Nominal probability of the intervals, between 0 and 1.

    Returns
    -------
    callable
        Scorer ``(estimator, X, y, sample_weight=None)`` of regressors, in units of y: higher is
        better.

    Raises
    ------
    ValueError
        If ``coverage`` does not lie between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.metrics import make_interval_scorer
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = 2 * X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(40)
    >>> model = EvidenceMLPRegressor(()).fit(X, y)
    >>> score = make_interval_scorer(coverage=0.8)
    >>> score(model, X, y) > score(model, X, y + 1)
    True
    """
    probabilities(coverage, "coverage")
    return partial(_interval_score, coverage=coverage)


def _coverage_score(estimator, X, y, sample_weight=None, *, coverage):
    model, X = model_with(estimator, X, "predict_interval")
    interval = model.predict_interval(X, coverage=coverage)
    return -abs(interval_coverage(y, interval, sample_weight=sample_weight) - coverage)


def _interval_score(estimator, X, y, sample_weight=None, *, coverage):
    model, X = model_with(estimator, X, "predict_interval")
    interval = model.predict_interval(X, coverage=coverage)
    return -mean_over_rows(interval_score(y, interval, coverage=coverage), sample_weight)


def model_with(estimator, X, method):
    """Find the model with the method inside pipelines and searches, and its transformed rows.

    Any other regressor that predicts its standard deviation counts as Gaussian.
    """
    while True:
        if isinstance(estimator, Pipeline):
            X, estimator = before_final_step(estimator, X), final_step(estimator)
        elif not hasattr(estimator, method) and hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    if hasattr(estimator, method):
        return estimator, X
    if is_classifier(estimator):
        raise TypeError(
            f"{type(estimator).__name__} is a classifier without {method}. For the log probability "
            "of the true class use scoring='neg_log_loss'; other scores are for regressors only."
        )
    return GaussianPredictions(estimator), X


class GaussianPredictions:
    """Gaussian predictive distributions of a regressor with means and standard deviations."""

    def __init__(self, regressor):
        self.regressor = regressor

    def predict(self, X, return_std=True):
        try:
            mean, std = self.regressor.predict(X, return_std=True)
        except TypeError as error:
            raise TypeError(
                f"{type(self.regressor).__name__} gives no predictive distribution: its predict "
                "does not take return_std."
            ) from error
        return mean, std if std.ndim == mean.ndim else np.broadcast_to(std[:, None], mean.shape)

    def log_predictive_density(self, X, y):
        density = log_density_gaussian(y, *self.predict(X))
        return density.reshape(len(density), -1).sum(axis=1)

    def predictive_cdf(self, X, y):
        mean, std = self.predict(X)
        if np.size(y) != mean.size:
            raise ValueError(f"y has the shape {np.shape(y)}, the predictions {mean.shape}.")
        return norm.cdf(np.reshape(y, mean.shape), mean, std)

    def predict_interval(self, X, coverage):
        return np.stack(norm.interval(coverage, *self.predict(X)), axis=-1)


def _crps(model, X, y):
    """Continuous ranked probability score of every target."""
    mean, std = model.predict(X, return_std=True)
    y = np.asarray(y, dtype=float).reshape(mean.shape)

    def cdf(z):
        return model.predictive_cdf(X, mean + std * z)

    if all(np.allclose(cdf(z), ndtr(z), rtol=0.0, atol=1e-10) for z in (-1.5, 0.0, 1.5)):
        return crps_gaussian(y, mean, std)
    z = (y - mean) / std
    split = np.clip(z, -REACH, REACH)
    below, above = split + REACH, REACH - split
    score = np.abs(z - split)  # where the distribution function is 0 or 1
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        score = score + weight * below * cdf(split - node * below) ** 2
        score = score + weight * above * (1.0 - cdf(split + node * above)) ** 2
    return std * score
