"""Expected information gains of linear models and drawn networks (MacKay 1992, chapters 4 and 5).

Gains need the means ``(n, p)`` and covariances ``S`` ``(n, p, p)`` of the ``p`` outputs at
candidates, ``S_u`` at points of interest, and ``C`` ``(n, p, n_points * p)`` between both, without
noise. For regression outputs are combined so that their noise has the covariance 1, that of targets
is ``S + 1``, see `LinearModel`. For classification they are activations, and gains about points of
interest are those about the class there.

Outputs are linear in a standard normal vector. In these whitened coordinates variances and
covariances are products of vectors: with ``A = L L^T`` the covariance of two outputs of
sensitivities ``g`` and ``h`` is ``g^T A^-1 h = (L^-1 g)^T (L^-1 h)``. The outputs of ``m`` drawn
networks have the same form: their deviations from the mean, divided by ``m^(1/2)``.

Gains of drawn networks about classes need no Gaussian: the joint probabilities of classes at
several rows are averages of products over the networks, as classes are independent given one.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, rel_entr, softmax, xlog1py

from skbayesnn.inference import DensePrecision, DualPrecision
from skbayesnn.network import row_blocks
from skbayesnn.posterior import symmetric_root
from skbayesnn.predictive import (
    Part,
    class_probabilities,
    normal_points,
    softmax_information,
    softmax_slopes,
)

SMALLEST = np.finfo(float).tiny
MAX_OUTCOMES = 128  # of measured rows that are told apart; more are represented by a sample


def expected_gain(question, mean, S, C, interest, has_classes):
    """Gains ``(n,)`` of targets or classes, or ``(n, n_points)`` for the kind ``"marginal"``."""
    if has_classes and question.method == "exact":
        if question.kind != "total":
            return averaged(_exact_marginal(mean, S, C, interest), question)
        if mean.shape[1] == 1:  # the activation of the second class relative to the first
            mean, S = np.pad(mean, ((0, 0), (1, 0))), np.pad(S, ((0, 0), (1, 0), (1, 0)))
        return softmax_information(mean, S)
    if question.kind == "total" and not has_classes:  # 1/2 log det(1 + S) (4.9)
        one = S.shape[-1] == 1
        of_targets = S + np.eye(S.shape[-1])
        return 0.5 * (np.log1p(S[:, 0, 0]) if one else np.linalg.slogdet(of_targets)[1])
    left = responses(mean, S, has_classes)
    if question.kind == "total":  # (5.22) with activations in place of a class
        return 0.5 * np.einsum("nij,njk,nik->n", left, S, left)
    if question.kind == "joint":
        return _shared(left @ C)  # C: with a basis (4.12)
    if question.kind == "q_optimal":  # sum_u P_u (g^T A^-1 g_u)^2 / (nu^2 + s^2)
        return np.sum((left @ C) ** 2, axis=(1, 2))
    R = _two_sided(left, C, interest.right)
    marginal = 0.5 * np.sum(R * R, axis=(2, 3)) if has_classes else _shared(R)  # (5.22), (4.10)
    return averaged(marginal, question)


def responses(mean, S, has_classes, noise=1.0):
    """Matrices ``(n, p, p)`` that scale covariances of outputs to correlations of what is measured.

    These are targets with independent noise of some variance, or classes, see `slopes`.
    """
    if has_classes:
        return slopes(mean, S)
    return np.linalg.inv(np.linalg.cholesky(S + noise * np.eye(S.shape[-1])))


def averaged(marginal, question):
    """Average marginal gains over the points (4.13), unless they are asked for."""
    return marginal if question.kind == "marginal" else marginal @ question.weight


def _two_sided(left, C, right):
    """Products ``left C right^T`` of pairs, from ``(n, p, p)``, ``C`` and ``(m, p, p)``.

    The result has the shape (n, m, p, p).
    """
    C = (left @ C).reshape(*C.shape[:2], *right.shape[:2]).swapaxes(1, 2)
    return C * right if C.shape[2] == 1 else C @ np.swapaxes(right, 1, 2)


def _shared(R):
    """Information ``-1/2 log det(1 - R R^T)`` from correlations of shape (..., p, m)."""
    if R.shape[-2] == 1:
        rest = 1.0 - np.einsum("...m,...m->...", R[..., 0, :], R[..., 0, :])
    else:
        rest = np.linalg.det(np.eye(R.shape[-2]) - R @ np.swapaxes(R, -1, -2))
    return -0.5 * np.log(np.clip(rest, SMALLEST, 1.0))


def slopes(mean, S):
    """Responses of class probabilities to activations, divided by the probabilities' roots.

    To first order in the covariance ``C`` of the activations, that of the probabilities of two
    inputs is ``E[p'] C E[p_u']^T``. With two classes ``E[p'] = kappa f'(kappa a)`` by MacKay's
    approximation of the moderated output, else an average over quasi-random points. The shape is
    (n, p, p).
    """
    if mean.shape[1] == 1:
        kappa = 1.0 / np.sqrt(1.0 + np.pi * S[:, 0, 0] / 8.0)  # (5.8)
        a = kappa * mean[:, 0]
        return (kappa * np.sqrt(expit(a) * expit(-a)))[:, None, None]
    probability, slopes = softmax_slopes(mean, S)
    return slopes / np.sqrt(np.maximum(probability, SMALLEST))[:, :, None]


def _exact_marginal(mean, S, C, interest):
    """Mutual information of two classes, by an average over quasi-random activations."""
    k = mean.shape[1]
    points = normal_points(2 * k)
    factor = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(factor, points.T).T  # unit sample covariance: weak gains are exact
    first, second = points[:, :k], points[:, k:]
    equal = np.full(len(points), 1.0 / len(points))

    def row(mean, S, C):
        """Gains of one candidate, ``(n_points,)``, from conditional activations at the points."""
        values, vectors = np.linalg.eigh(S)
        root = np.sqrt(np.where(values > 1e-12 * values[-1], values, 0.0))
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        follows = C.T.reshape(-1, k, k) @ (vectors * inverse)
        rest = symmetric_root(interest.S - follows @ np.swapaxes(follows, 1, 2))
        a = mean + first @ (vectors * root).T
        a_interest = interest.mean[:, None] + first @ np.swapaxes(follows, 1, 2)
        a_interest += second @ np.swapaxes(rest, 1, 2)
        p, q = class_probabilities(a[:, None]), class_probabilities(a_interest.swapaxes(0, 1))
        return drawn_information(p, q, equal)[0]

    return np.stack([row(*one) for one in zip(mean, S, C, strict=True)])


def drawn_information(p, q, weights):
    """Mutual information of classes ``(n, n_points)``, in nats, over ``m`` drawn activations.

    Given are their probabilities, ``(m, n, n_classes)`` and ``(m, n_points, n_classes)``, and the
    weights ``(m,)`` of the draws. Small values do not cancel.
    """
    mean_p, mean_q = np.tensordot(weights, p, 1), np.tensordot(weights, q, 1)
    weighted = ((p - mean_p) * weights[:, None, None]).reshape(len(p), -1)
    covariance = weighted.T @ (q - mean_q).reshape(len(q), -1)
    covariance = covariance.reshape(*mean_p.shape, *mean_q.shape).swapaxes(1, 2)
    product = np.maximum(mean_p[:, None, :, None] * mean_q[:, None, :], SMALLEST)
    x = np.maximum(covariance / product, -1.0)
    return np.maximum(np.sum(product * (xlog1py(1.0 + x, x) - x), axis=(2, 3)), 0.0)


MIN_CURVATURE = 1e-12  # smaller eigenvalues of the curvature of a class count as zero
MIN_RANK = 1e-10  # singular values, relative to the largest, that count as zero


@dataclass(frozen=True)
class LinearModel:
    """Linear model of outputs, ``f(x) = mean(x) + V(x) z`` with ``z ~ N(0, 1)``.

    Outputs of regressors are multiplied by the inverse of a root of the covariance of the noise at
    each input, so that targets have independent noise of variance 1. Information does not change.
    Outputs of classifiers are activations, or, ``as_targets``, those of `curved`. Outputs of counts
    are log rates; a count of mean ``mu`` and dispersion ``a`` has the noise variance ``1/mu + a``,
    one over the information about its log rate. ``log_rate`` is the logarithm of the rate at which
    outputs are zero; ``None`` for other targets.
    """

    part: Part
    as_targets: bool = False
    log_rate: float | None = None

    @property
    def has_classes(self):
        """True if outputs are activations."""
        return self.part.noise is None and not self.as_targets

    def noise_roots(self, X):
        """Roots ``(n, p, p)`` of the mean noise covariance over the networks at every row."""
        mean = self.part.noise_covariances(X).mean(axis=0)
        if self.log_rate is not None:
            mean = mean + np.exp(-self.part.whitened(X)[0] - self.log_rate)[..., None]
        return np.broadcast_to(np.linalg.cholesky(mean), (len(X), *mean.shape[1:]))

    def expand(self, X):
        """Mean ``(n, n_outputs)`` and ``V`` ``(n, n_outputs, r)`` of rows that fit in memory."""
        mean, V = self.part.whitened(X)
        if self.part.noise is None:
            return mean, curved(mean, V) if self.as_targets else V
        white = np.linalg.inv(self.noise_roots(X))
        return (white @ mean[..., None])[..., 0], white @ V


def prior_model(member, groups, alpha, log_rate=None):
    """Linear model at a minimum with the prior of the weights, given precisions of the groups."""
    k = len(groups.labels)
    precision = DualPrecision(groups.diagonal(alpha), np.zeros((0, k)))
    if groups.coupled:
        matrix = np.zeros((k, k))
        groups.add_to(matrix, alpha)
        precision = DensePrecision(matrix)
    member = replace(member, shift=None, free=slice(None), precision=precision)
    return LinearModel(member, as_targets=True, log_rate=log_rate)


def curved(mean, V):
    """Vectors ``C^(1/2) V`` of unit-noise targets with the same information as the class.

    A class adds the curvature ``C = diag(p) - p p^T`` of its log likelihood (Bishop 4.110) at the
    most probable activations ``(n, n_outputs)``, whatever the label.
    """
    if mean.shape[-1] == 1:
        return np.sqrt(expit(mean) * expit(-mean))[..., None] * V
    p = softmax(mean, axis=-1)
    curvature = p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])
    values, vectors = np.linalg.eigh(curvature)
    root = np.sqrt(np.where(values > MIN_CURVATURE, values, 0.0))
    return (root[..., None] * np.swapaxes(vectors, -1, -2)) @ V


def observed(V, targets):
    """Vectors ``V`` ``(n, p, r)`` after unit-noise targets ``(m, r)`` were measured.

    Measuring ``t = v^T z + noise`` of variance 1 changes the precision of ``z`` from 1 to ``1 + v
    v^T``, whatever the measured value. The inverse root of this matrix is ``1 - v v^T / (rho (1 +
    rho))`` with ``rho^2 = 1 + v^T v``. Each ``v`` is in the coordinates after the measurements
    before it, see `measured`.
    """
    for v in targets:
        rho = np.sqrt(1.0 + v @ v)
        V = V - (V @ v / (rho * (1.0 + rho)))[..., None] * v
    return V


def measured(V):
    """List the vectors ``(m, r)`` of unit-noise targets that are measured in turn."""
    targets = []
    for v in V:
        targets.append(observed(v, targets))
    return targets


class Interest(NamedTuple):
    """Moments of the outputs at points of interest, ``(n_points, p)`` and ``(n_points, p, p)``.

    ``directions`` ``(m, r)`` are vectors whose products with those of candidates are covariances;
    ``right`` ``(n_points, p, p)`` scales these to correlations for gains at single points.
    """

    mean: np.ndarray
    S: np.ndarray
    directions: np.ndarray
    right: np.ndarray | None


class Candidates:
    """Gains of standardised rows under one linear model, as if some had been measured.

    Vectors ``V`` of all rows are made in blocks each time, or kept if they are ``keep`` doubles at
    most.
    """

    def __init__(self, question, linear, X, keep=0):
        self._question, self._linear, self._X = question, linear, X
        n_points = 0 if question.X_interest is None else len(question.X_interest)
        own = linear.part.network.n_outputs * linear.part.n_unknowns  # doubles of a row
        width = max(own, linear.part.network.n_outputs**2 * n_points)
        self._rows = list(row_blocks(len(X), width))
        self._targets = []
        self._kept = list(self._expanded(X, self._rows)) if len(X) * own <= keep else None
        self._interest = None
        if n_points:
            rows = row_blocks(n_points, own)
            parts = zip(*self._expanded(question.X_interest, rows), strict=True)
            self._interest = tuple(np.concatenate(part) for part in parts)

    def gains(self):
        """Gains of all rows: ``(n,)``, or ``(n, n_points)`` for the kind ``"marginal"``."""
        interest = None if self._interest is None else self._moments_of_interest()
        blocks = self._expanded(self._X, self._rows) if self._kept is None else self._kept
        gains = []
        for mean, V in blocks:
            between = None
            if interest is not None:  # covariances with outputs there, (n, p, n_points * p)
                n, p, r = V.shape
                between = (V.reshape(n * p, r) @ interest.directions.T).reshape(n, p, -1)
            moments = mean, _covariance(V), between, interest
            gains.append(expected_gain(self._question, *moments, self._linear.has_classes))
        return np.concatenate(gains)

    def observe(self, row):
        """Update everything as if the target of a row had been measured."""
        ((mean, V),) = self._expanded(self._X, [slice(row, row + 1)])
        targets = measured((curved(mean, V) if self._linear.has_classes else V)[0])
        self._targets += targets
        if self._kept is not None:
            self._kept = [(mean, observed(V, targets)) for mean, V in self._kept]
        if self._interest is not None:
            mean, V = self._interest
            self._interest = mean, observed(V, targets)

    def _expanded(self, X, blocks):
        """Yield mean and ``V`` of blocks of rows, given the measurements so far."""
        for rows in blocks:
            mean, V = self._linear.expand(X[rows])
            yield mean, observed(V, self._targets)

    def _moments_of_interest(self):
        (mean, V), kind = self._interest, self._question.kind
        S, directions, right = _covariance(V), V.reshape(-1, V.shape[-1]), None
        if kind == "joint":
            _, sizes, directions = np.linalg.svd(directions, full_matrices=False)
            directions = directions[sizes > MIN_RANK * sizes[0]]
        elif kind == "q_optimal":
            V = self._linear.noise_roots(self._question.X_interest) @ V  # of the outputs again
            weight = np.sqrt(self._question.weight)[:, None, None]
            directions = (weight * self._question.y_scale[:, None] * V).reshape(directions.shape)
        else:
            right = responses(mean, S, self._linear.has_classes, float(kind == "predicted_target"))
        return Interest(mean, S, directions, right)


def _covariance(V):
    """Covariance ``V V^T`` of every row: ``(n, p, p)``."""
    return V @ np.swapaxes(V, 1, 2)


class DrawnCandidates:
    """Gains of standardised rows by drawn networks, as if classes at some rows had been measured.

    An outcome is a sequence of classes of the measured rows. Given each, the networks have other
    weights, by Bayes' theorem, and gains are averages over the outcomes (Kirsch, van Amersfoort &
    Gal 2019). If there are more than `MAX_OUTCOMES`, a systematic sample of this size takes their
    place after each measurement.
    """

    def __init__(self, question, ensemble, X, keep=0):
        self._question, self._ensemble, self._X = question, ensemble, X
        # of outcomes, and of the networks given each of them
        self._chances, self._weights = np.ones(1), ensemble.member_weights[None]
        points, self._interest = question.X_interest, None
        width = own = max(2, ensemble.n_outputs) * self._weights.size
        if points is not None:
            blocks = row_blocks(len(points), width)
            self._interest = np.concatenate(list(self._probabilities(points, blocks)), axis=1)
            width = max(width, len(points) * self._interest.shape[2] ** 2)
        self._rows = list(row_blocks(len(X), width))
        self._kept = list(self._probabilities(X, self._rows)) if len(X) * own <= keep else None

    def gains(self):
        """Gains of all rows: ``(n,)``, or ``(n, n_points)`` for the kind ``"marginal"``."""
        blocks = self._probabilities(self._X, self._rows) if self._kept is None else self._kept
        of_block = self._about_networks if self._interest is None else self._about_interest
        return np.concatenate([of_block(p) for p in blocks])

    def observe(self, row):
        """Update everything as if the class of a row had been measured."""
        (p,) = self._probabilities(self._X, [slice(row, row + 1)])
        weights = (self._weights[:, None] * p[:, 0].T).reshape(-1, len(p))
        given = weights.sum(axis=1)
        chances = np.repeat(self._chances, p.shape[2]) * given
        possible = np.flatnonzero(given > SMALLEST)
        if len(possible) > MAX_OUTCOMES:
            below = np.cumsum(chances[possible])
            even = (np.arange(MAX_OUTCOMES) + 0.5) * below[-1] / MAX_OUTCOMES
            sample, counts = np.unique(np.searchsorted(below, even), return_counts=True)
            possible, self._chances = possible[sample], counts / MAX_OUTCOMES
        else:
            self._chances = chances[possible]
        self._weights = weights[possible] / given[possible, None]

    def _probabilities(self, X, blocks):
        """Yield class probabilities of all networks at blocks of rows, ``(m, n, n_classes)``."""
        for rows in blocks:
            parts = [class_probabilities(part.outputs(X[rows])) for part in self._ensemble.parts]
            yield np.concatenate(parts)

    def _about_networks(self, p):
        """Mutual information of classes and networks, ``(n,)``, given the measured classes.

        ``H[E p] - E H[p]`` (Houlsby et al. 2011, equation 2) given each outcome, as relative
        entropies to one mean, which do not cancel.
        """
        mean = np.maximum(np.tensordot(self._ensemble.member_weights, p, 1), SMALLEST)
        given = (self._weights @ p.reshape(len(p), -1)).reshape(-1, *mean.shape)
        of_networks, of_outcomes = (np.sum(rel_entr(some, mean), axis=2) for some in (p, given))
        return np.maximum(self._chances @ (self._weights @ of_networks - of_outcomes), 0.0)

    def _about_interest(self, p):
        """Mutual information of the classes of a block of rows and those at points of interest."""
        pairs = zip(self._chances, self._weights, strict=True)
        marginal = sum(share * drawn_information(p, self._interest, w) for share, w in pairs)
        return averaged(marginal, self._question)
