"""Scorers ``(estimator, X, y, sample_weight=None)``: higher is better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRequest

from skbayesnn._docs import documented
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.predictions._distribution import CountDistribution, Distribution
from skbayesnn.metrics._rules import crps_gaussian, mean_over_rows, quantile_calibration_error

REQUESTS = MetadataRequest(owner="scorer")
REQUESTS.score.add_request(param="exposure", alias=True)
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


def _requests():
    return REQUESTS


def with_exposure(scorer):
    """Let a scorer request exposures by scikit-learn's metadata routing."""
    scorer.get_metadata_routing = _requests
    return scorer


@documented(SCORES)
@with_exposure
def log_density_scorer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> float:
    """Mean log predictive density of regressors, or log probability of the true class.

    Returns
    -------
    float
        Score in nats per row, y in its own units, joint over the outputs: higher is better.

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
    model, rows = predictor(estimator, X)
    if is_classifier(model) and hasattr(model, "log_predictive_density"):
        return mean_over_rows(model.log_predictive_density(rows, y), sample_weight)
    at = distribution(model, rows, exposure)
    if isinstance(at, Distribution):
        return mean_over_rows(at.joint_logpdf(y), sample_weight)
    density = at.logpdf(np.reshape(y, at.mean().shape))  # of a Gaussian
    return mean_over_rows(density.reshape(len(density), -1).sum(axis=1), sample_weight)


@documented(SCORES)
@with_exposure
def neg_crps_scorer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> float:
    """Negative mean of the continuous ranked probability score of regressors.

    Gaussian predictions are scored in closed form, mixtures of Gaussians and other predictions by
    integrating their distribution function (Gneiting and Raftery 2007, equation 20) over 96 points
    per target, which takes about a hundred times as long as `predict`.

    Returns
    -------
    float
        Score in units of y, mean over the outputs: higher is better.

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
    return -mean_over_rows(_crps(distribution(estimator, X, exposure), y), sample_weight)


@documented(SCORES)
@with_exposure
def neg_calibration_error_scorer(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> float:
    """Negative `quantile_calibration_error` of regressors.

    Returns
    -------
    float
        Negative mean difference of probabilities: higher is better.

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
    pit = probability_integral(distribution(estimator, X, exposure), y)
    return -quantile_calibration_error(pit, sample_weight=sample_weight)


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


def probability_integral(at, y):
    """Distribution function at the targets; of counts less half of their probability."""
    below = at.cdf(y if isinstance(at, Distribution) else np.reshape(y, at.mean().shape))
    return below - 0.5 * at.pmf(y) if isinstance(at, CountDistribution) else below


def _crps(at, y):
    """Continuous ranked probability score of every target."""
    mean, std = at.mean(), at.std()
    y = np.asarray(y, dtype=float).reshape(mean.shape)

    def cdf(z):
        return at.cdf(mean + std * z)

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
