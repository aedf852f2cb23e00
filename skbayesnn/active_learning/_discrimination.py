"""Selection of measurements that discriminate between models."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax
from sklearn.base import is_classifier
from sklearn.utils import check_array

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn._typing import Array, Estimator
from skbayesnn.active_learning._information import class_information, indicator_information
from skbayesnn.active_learning._inputs import EVIDENCE, QUESTION, SAMPLERS, resolve
from skbayesnn.network import row_blocks
from skbayesnn.predictive import Ensemble, normal_points


@documented(QUESTION)
def model_discrimination(
    *models: Estimator | ArrayLike,
    X_candidates: ArrayLike | None = None,
    probabilities: ArrayLike | str | None = None,
) -> Array:
    """Expected information gain about which of several models is right, for every candidate.

    The gain is the mutual information between the target that would be measured and the model, by
    quadrature; for several outputs by about 1000 quasi-random points for each model. (MacKay 1992,
    equation 4.14, approximates twice this information for two models with similar predictions.)
    It is high where the predictions differ by more than their error bars. With a single model the
    gain is about which of its minima is right.

    Parameters
    ----------
    *models : estimator or Pipeline
        Fitted estimators of this package, or pipelines that end with one, for the same task, with
        the same outputs or classes. They may use different features of ``X_candidates``, which may
        be given as the last of these arguments: ``model_discrimination(first, second, third, X)``.
        A single one must be an evidence estimator; its distinct minima take the place of models.
    probabilities : array-like of shape (n_models,) or "evidence", optional
        Present probabilities of the models, to be normalised. By default models are equally
        probable, and minima have their shares in the predictions. ``"evidence"`` takes the
        probabilities given the data: the softmax of the ``log_evidence_`` of models that were
        fitted to the same targets.

    Returns
    -------
    ndarray of shape (n_candidates,)
        Information gain in nats, at most the entropy of the probabilities, which is
        ``log n_models`` if these are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.active_learning import model_discrimination
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> X = np.array([[-1.0], [-0.9], [0.0], [0.1], [0.9], [1.0]])
    >>> y = [1.1, 0.8, 0.1, -0.1, 0.8, 1.0]
    >>> bent = make_pipeline(PolynomialFeatures(2, include_bias=False), EvidenceMLPRegressor(()))
    >>> straight = EvidenceMLPRegressor(())
    >>> gains = model_discrimination(bent.fit(X, y), straight.fit(X, y), [[-3.0], [0.7], [3.0]])
    >>> int(np.argmin(gains))
    1
    """
    if X_candidates is None and models:
        models, X_candidates = models[:-1], models[-1]
    if not models:
        raise TypeError("Pass one or more fitted models, and X_candidates as the last argument.")
    allowed = EVIDENCE if len(models) == 1 else EVIDENCE + SAMPLERS
    found = [resolve(model, allowed) for model in models]
    if any(getattr(model, "_counts", False) for model, _ in found):
        raise ValueError("model_discrimination is not supported for counts: use log_evidence_.")
    _check_comparable([model for model, _ in found])
    views = [
        View(model._ensemble, prepare(X_candidates), model._y_scaling, 1.0, model.log_evidence_)
        for model, prepare in found
    ]
    if len(found) == 1:
        views = _of_minima(found[0][0], views[0].X)
    P = _probabilities(probabilities, views)
    views = [view for view, p in zip(views, P, strict=True) if p > 0]
    return _information(views, P[P > 0], is_classifier(found[0][0]))


class View(NamedTuple):
    """Predictive distribution of one model at standardised candidates ``(n, n_features)``."""

    ensemble: Ensemble
    X: np.ndarray
    y_scaling: Scaling
    probability: float  # by default; not normalised
    log_evidence: float


def _of_minima(model, X):
    """Make the views of the distinct minima of a fit that have a share in its predictions."""
    networks = [network for network in model.networks_ if network.weight > 0]
    views = [
        View(Ensemble((part,), (np.ones(1),)), X, model._y_scaling, net.weight, net.log_evidence)
        for part, net in zip(model._gaussians.parts, networks, strict=True)
    ]
    if len(views) < 2:
        raise ValueError(
            "Only one minimum of this model has a share in its predictions, so there are no "
            "alternatives to compare. Use more n_restarts or another combine, or give several "
            "models."
        )
    return views


def _probabilities(asked, views):
    if isinstance(asked, str) and asked == "evidence":
        evidences = np.array([view.log_evidence for view in views])
        if not np.all(np.isfinite(evidences)):
            raise ValueError(f"probabilities='evidence', but log evidences are {evidences}.")
        return softmax(evidences)
    P = np.array([view.probability for view in views] if asked is None else [])
    if asked is not None and not isinstance(asked, str):
        P = check_array(asked, ensure_2d=False, dtype=np.float64, input_name="probabilities")
    if P.shape != (len(views),) or np.any(P < 0) or not P.sum() > 0:
        raise ValueError(
            f"probabilities must be 'evidence' or {len(views)} numbers, one for each model, not "
            f"negative and not all zero; got {asked!r}."
        )
    return P / P.sum()


def _check_comparable(models):
    first, *others = models
    for other in others:
        if is_classifier(first) != is_classifier(other):
            raise ValueError("The models must all be regressors or all be classifiers.")
        if is_classifier(first):
            if not np.array_equal(first.classes_, other.classes_):
                raise ValueError(
                    f"The models have different classes: {first.classes_} and {other.classes_}."
                )
        elif first.n_outputs_ != other.n_outputs_:
            raise ValueError(
                f"The models have different numbers of outputs: {first.n_outputs_} and "
                f"{other.n_outputs_}."
            )


def _information(views, P, classes):
    """Compute the information gains, for regression in blocks of rows."""
    if classes:
        return class_information(np.stack([v.ensemble.probabilities(v.X) for v in views]), P)
    gains, width = [], sum(view.ensemble.doubles_per_row for view in views)
    for rows in row_blocks(len(views[0].X), width):
        mixtures = [_predictive(view, view.X[rows]) for view in views]
        for i in range(len(mixtures[0][1][0])):
            gains.append(_gain([(w, means[:, i], S[:, i]) for w, means, S in mixtures], P))
    return np.array(gains)


def _predictive(view, X):
    """Weights, means ``(m, n, p)`` and covariances ``(m, n, p, p)`` of a mixture, y units."""
    means, covariances = view.ensemble.member_moments(X)
    scale = view.y_scaling.scale
    covariances = covariances * scale[:, None] * scale
    return view.ensemble.member_weights, view.y_scaling.inverse(means), covariances


def _gain(mixtures, P):
    """Information gain of one row, from weights ``(m,)``, means ``(m, p)`` and covariances."""
    if mixtures[0][1].shape[1] > 1:
        return _by_points(mixtures, P)
    lines = [(mean[:, 0], np.sqrt(S[:, 0, 0]), weights) for weights, mean, S in mixtures]
    return indicator_information(lines, P)


def _by_points(mixtures, P):
    """Mean of ``sum_i P_i log(p_i / sum_j P_j p_j)`` over quasi-random points of mixture i."""
    gain = 0.0
    for index, (weights, means, covariances) in enumerate(mixtures):
        m, p = means.shape
        points = normal_points(p)
        each = -(-len(points) // m)
        chosen = points[np.arange(m * each) % len(points)].reshape(m, each, p)
        y = means[:, None] + chosen @ np.swapaxes(np.linalg.cholesky(covariances), 1, 2)
        log_p = np.stack([_log_density(y.reshape(-1, p), *mixture) for mixture in mixtures])
        together = logsumexp(log_p + np.log(P)[:, None], axis=0)
        gain += P[index] * np.mean((log_p[index] - together).reshape(m, each), axis=1) @ weights
    return max(float(gain), 0.0)


def _log_density(y, weights, means, covariances):
    """Log density of a mixture at points ``(n, p)``: shape (n,)."""
    factors = np.linalg.cholesky(covariances)
    inverses = np.linalg.inv(factors)
    log_norm = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
    log_norm = np.log(weights) - log_norm - 0.5 * y.shape[1] * np.log(2.0 * np.pi)
    density = np.empty(len(y))
    for rows in row_blocks(len(y), means.size):
        white = np.einsum("mpq,nmq->nmp", inverses, y[rows, None] - means)
        density[rows] = logsumexp(log_norm - 0.5 * np.sum(white**2, axis=-1), axis=1)
    return density
