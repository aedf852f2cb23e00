"""Where two models disagree so that a measurement tells them apart."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, rel_entr
from sklearn.base import is_classifier
from sklearn.utils import check_array

from skbayesnn._typing import Array, Estimator
from skbayesnn.active_learning._inputs import METHODS, resolve
from skbayesnn.active_learning._mixtures import indicator_information
from skbayesnn.network import row_blocks
from skbayesnn.predictive import mixture_moments, normal_points

SMALLEST = np.finfo(float).tiny


def model_discrimination(
    model_1: Estimator,
    model_2: Estimator,
    X_candidates: ArrayLike,
    *,
    probabilities: ArrayLike = (0.5, 0.5),
    method: str = "exact",
) -> Array:
    """Expected information about which of two models is right, for every candidate.

    The mutual information between the target that would be measured and the model, which MacKay
    (1992, equation 4.14) approximates. It is high where the predictions differ by more than their
    error bars.

    Parameters
    ----------
    model_1, model_2 : estimator or Pipeline
        Fitted estimators of this package, or pipelines that end with one, of the same task, with
        the same outputs or classes. They may use different features of ``X_candidates``.
    X_candidates : array-like of shape (n_candidates, n_features)
        Inputs at which a measurement is possible.
    probabilities : array-like of shape (2,), default=(0.5, 0.5)
        Present probabilities of the models, to be normalised. Those given the data are the softmax
        of both ``log_evidence_``.
    method : {"exact", "approximation"}, default="exact"
        ``"exact"``: of the predictive distributions, by quadrature; for several outputs by some
        1000 quasi-random points. ``"approximation"``: for similar Gaussian predictions, whose
        variances ``s_i^2`` include the noise::

            P_1 P_2 / 4 [(1/s_1^2 + 1/s_2^2) (mu_1 - mu_2)^2 + ((s_1^2 - s_2^2) / (s_1 s_2))^2]

        or, for any kind of target, ``P_1 P_2 / 2`` times the symmetrised Kullback-Leibler
        divergence. Equation 4.14 of MacKay (1992) has ``P_1 P_2 / 2`` in the formula, which is
        twice the mutual information. The approximation has no upper limit.

    Returns
    -------
    ndarray of shape (n_candidates,)
        In nats. The exact values are at most the entropy of the probabilities, which is ``log 2``
        if these are equal.

    Raises
    ------
    TypeError
        If an estimator is not one of this package.
    ValueError
        If the models do not predict the same kind of target, if inputs have other features than in
        `fit`, or if the probabilities make no sense.
    sklearn.exceptions.NotFittedError
        If an estimator is not fitted.

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
    if not (isinstance(method, str) and method in METHODS):
        raise ValueError(f"method must be 'exact' or 'approximation'; got {method!r}.")
    P = _normalised(probabilities)
    models, inputs = [], []
    for estimator in (model_1, model_2):
        model, prepare = resolve(estimator)
        models.append(model)
        inputs.append(prepare(X_candidates))
    _check_comparable(*models)
    if is_classifier(models[0]):
        p = [model._ensemble.probabilities(X) for model, X in zip(models, inputs, strict=True)]
        return _of_classes(p, P, method)
    rule = _exactly if method == "exact" else _approximately
    width = sum(model._ensemble.doubles_per_row for model in models)
    blocks = row_blocks(len(inputs[0]), width)
    return np.concatenate(
        [
            rule([_predictive(m, X[rows]) for m, X in zip(models, inputs, strict=True)], P)
            for rows in blocks
        ]
    )


def _normalised(probabilities):
    P = check_array(probabilities, ensure_2d=False, dtype=np.float64, input_name="probabilities")
    if P.shape != (2,) or np.any(P < 0) or not P.sum() > 0:
        raise ValueError(
            "probabilities must be two numbers, not negative and not both zero; got "
            f"{probabilities!r}."
        )
    return P / P.sum()


def _check_comparable(first, second):
    if is_classifier(first) != is_classifier(second):
        raise ValueError("The models must both be regressors or both classifiers.")
    if is_classifier(first):
        if not np.array_equal(first.classes_, second.classes_):
            raise ValueError(
                f"The models know different classes: {first.classes_} and {second.classes_}."
            )
    elif first.n_outputs_ != second.n_outputs_:
        raise ValueError(
            f"The models have different numbers of outputs: {first.n_outputs_} and "
            f"{second.n_outputs_}."
        )


def _predictive(model, X):
    """Weights, means ``(m, n, p)`` and covariances ``(m, n, p, p)`` of a mixture, y units."""
    means, covariances = model._ensemble.member_moments(X)
    scale = model._y_scaling.scale
    covariances = covariances * scale[:, None] * scale
    return model._ensemble.member_weights, model._y_scaling.inverse(means), covariances


def _approximately(mixtures, P):
    """``P_1 P_2 / 2`` times the symmetrised divergence of Gaussians with the mixtures' moments."""
    (mu_1, S_1), (mu_2, S_2) = (mixture_moments(*mixture) for mixture in mixtures)
    apart = (mu_1 - mu_2)[..., None]
    inverses = np.linalg.inv(S_1), np.linalg.inv(S_2)
    means = np.swapaxes(apart, 1, 2) @ (inverses[0] + inverses[1]) @ apart
    change = (S_1 - S_2) @ inverses[0] @ (S_1 - S_2) @ inverses[1]  # tr(S1/S2 + S2/S1 - 2)
    divergence = 0.5 * (means[:, 0, 0] + np.trace(change, axis1=1, axis2=2))
    return 0.5 * P[0] * P[1] * divergence


def _exactly(mixtures, P):
    """Row by row."""
    n, n_outputs = mixtures[0][1].shape[1:]
    gains = np.empty(n)
    for row in range(n):
        own = [(w, means[:, row], S[:, row]) for w, means, S in mixtures]
        if n_outputs == 1:
            lines = [(mean[:, 0], np.sqrt(S[:, 0, 0]), w) for w, mean, S in own]
            gains[row] = indicator_information(lines, P)
        else:
            gains[row] = _by_points(own, P)
    return gains


def _by_points(mixtures, P):
    """``sum_i P_i E_i[log(p_i / sum_j P_j p_j)]`` over quasi-random points of every mixture."""
    gain = 0.0
    for index, (weights, means, covariances) in enumerate(mixtures):
        m, p = means.shape
        points = normal_points(p)
        each = -(-len(points) // m)
        chosen = points[np.arange(m * each) % len(points)].reshape(m, each, p)
        y = means[:, None] + chosen @ np.swapaxes(np.linalg.cholesky(covariances), 1, 2)
        log_p = np.stack([_log_density(y.reshape(-1, p), *mixture) for mixture in mixtures])
        together = logsumexp(log_p + np.log(np.maximum(P, SMALLEST))[:, None], axis=0)
        gain += P[index] * np.mean((log_p[index] - together).reshape(m, each), axis=1) @ weights
    return max(float(gain), 0.0)


def _log_density(y, weights, means, covariances):
    """Of a mixture at points ``(n, p)``: shape (n,)."""
    factors = np.linalg.cholesky(covariances)
    inverses = np.linalg.inv(factors)
    log_norm = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
    log_norm = np.log(weights) - log_norm - 0.5 * y.shape[1] * np.log(2.0 * np.pi)
    density = np.empty(len(y))
    for rows in row_blocks(len(y), means.size):
        white = np.einsum("mpq,nmq->nmp", inverses, y[rows, None] - means)
        density[rows] = logsumexp(log_norm - 0.5 * np.sum(white**2, axis=-1), axis=1)
    return density


def _of_classes(p, P, method):
    """From class probabilities ``(n, n_classes)`` of both models."""
    if method == "exact":
        together = P[0] * p[0] + P[1] * p[1]
        parts = [np.sum(rel_entr(one, together), axis=1) for one in p]
        return np.maximum(P[0] * parts[0] + P[1] * parts[1], 0.0)
    logs = [np.log(np.maximum(one, SMALLEST)) for one in p]
    return 0.5 * P[0] * P[1] * np.sum((p[0] - p[1]) * (logs[0] - logs[1]), axis=1)
