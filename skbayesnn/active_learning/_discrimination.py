"""Expected information about which of several models is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, rel_entr, softmax
from scipy.stats import norm

from skbayesnn._typing import Array, Estimator
from skbayesnn.estimators import (
    CategoricalDistribution,
    CountDistribution,
    predictive_distribution,
)
from skbayesnn.estimators.inputs._rows import checked_weights

NORMAL = np.linspace(-6.0, 6.0, 161)  # standard normal quantiles of the targets that are taken
MASS = norm.pdf(NORMAL) / np.sum(norm.pdf(NORMAL))


def discrimination_gain(
    models: Sequence[Estimator],
    X_candidates: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
) -> Array:
    """Expected information gain about which model is right, at every candidate.

    A measurement changes the probabilities ``P_i`` of the models by Bayes' theorem. The gain is the
    mean of the relative entropy of the new to the old probabilities over the targets that the
    models predict, ``sum_i P_i KL(p_i || sum_j P_j p_j)`` with their predictive densities ``p_i``.
    It is at most the entropy of the ``P_i``: ``ln 2`` for two equally probable models. Equation
    4.14 of MacKay (1992) approximates it for Gaussians that are nearly equal.

    Parameters
    ----------
    models : sequence of estimators or pipelines
        Two or more fitted models of the same targets: regressors of one output, or classifiers of
        the same classes.
    X_candidates : array-like of shape (n_candidates, n_features)
        Inputs at which a measurement is possible.
    probabilities : array-like of shape (n_models,), optional
        Probabilities of the models, such as those by `skbayesnn.model_selection.compare`, or
        numbers in proportion to them. By default they are equal.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Gains in nats.

    Raises
    ------
    TypeError
        If a model has no predictive distribution.
    ValueError
        If there is one model only, or if models predict counts, several outputs or different
        classes.

    Notes
    -----
    Classes are summed. Densities are integrated over 161 quantiles of every model, to 0.001 nats if
    the standard deviations of the models differ by less than a factor of 20.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import discrimination_gain
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y = X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> line = EvidenceMLPRegressor((), noise=0.1).fit(X, y)
    >>> cubic = make_pipeline(PolynomialFeatures(3), EvidenceMLPRegressor((), noise=0.1)).fit(X, y)
    >>> discrimination_gain([line, cubic], [[0.0], [1.0], [2.0]]).round(2)
    array([0.  , 0.  , 0.38])
    """
    if len(models) < 2:
        raise ValueError("Give two models or more, in a sequence.")
    weights = checked_weights(probabilities, len(models), "probabilities")
    weights = weights / weights.sum()
    predicted = [predictive_distribution(model, X_candidates) for model in models]
    if all(isinstance(at, CategoricalDistribution) for at in predicted):
        return _over_classes(predicted, weights)
    return _over_targets(predicted, weights)


def _learnt(log_densities, weights):
    """Relative entropy of posterior to prior probabilities of models, given outcomes."""
    with np.errstate(divide="ignore"):  # models of probability zero
        posterior = softmax((log_densities.T + np.log(weights)).T, axis=0)
    return np.sum(rel_entr(posterior.T, weights).T, axis=0)


def _over_classes(predicted, weights):
    if any(not np.array_equal(at.classes, predicted[0].classes) for at in predicted):
        raise ValueError("The models must have the same classes.")
    p = np.stack([at.probabilities for at in predicted])
    learnt = _learnt(np.log(np.maximum(p, np.finfo(float).tiny)), weights)
    return np.sum(np.tensordot(weights, p, 1) * learnt, axis=1)


def _over_targets(predicted, weights):
    if any(isinstance(at, CategoricalDistribution | CountDistribution) for at in predicted):
        raise ValueError("The models must all be regressors, not of counts, or all classifiers.")
    gain, rows = 0.0, np.repeat(np.arange(len(predicted[0])), len(NORMAL))
    for at, weight in zip(predicted, weights, strict=True):
        targets = at.ppf(ndtr(NORMAL))
        if targets.ndim > 2:
            raise ValueError("The models must have one output.")
        densities = np.stack([other[rows].logpdf(targets.ravel()) for other in predicted])
        gain += weight * (_learnt(densities, weights).reshape(targets.shape) @ MASS)
    return gain
