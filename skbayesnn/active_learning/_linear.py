"""Posteriors in function space: outputs that are linear in a standard normal vector.

Every gain of this package is a function of variances and covariances of outputs. In whitened
coordinates these are products of vectors: with ``A = L L^T`` the covariance of two outputs of
sensitivities ``g`` and ``h`` is ``g^T A^-1 h = (L^-1 g)^T (L^-1 h)``. The outputs of ``m`` drawn
networks have the same form: their deviations from the mean, divided by ``m^(1/2)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from skbayesnn.inference import DensePrecision, DualPrecision
from skbayesnn.network import row_blocks

LEAST_CURVATURE = 1e-12  # smaller eigenvalues of the curvature of a class count as zero


@dataclass(frozen=True)
class LinearModel:
    """Linear model of outputs, ``f(x) = mean(x) + V(x) z`` with ``z ~ N(0, 1)``.

    Outputs of regressors are in units of the noise at each input, so that targets have unit noise.

    Parameters
    ----------
    expand : callable
        Function from rows ``(n, n_features)`` to ``mean`` ``(n, n_outputs)`` and ``V`` ``(n,
        n_outputs, r)``, for as many rows as fit in memory.
    n_unknowns : int
        Dimension ``r`` of ``z``.
    n_outputs : int
    noise_variances : callable, optional
        Function from rows to the squares of those units, ``(n, n_outputs)``; ``None`` for
        activations of classifiers.
    """

    expand: Callable
    n_unknowns: int
    n_outputs: int
    noise_variances: Callable | None = None

    def expand_all(self, X):
        """Call `expand` in blocks that bound its temporary memory."""
        blocks = row_blocks(len(X), self.n_outputs * self.n_unknowns)
        parts = [self.expand(X[rows]) for rows in blocks]
        return tuple(np.concatenate(some) for some in zip(*parts, strict=True))


def covariance_of(V):
    """Covariance ``V V^T`` of every row: ``(n, n_outputs, n_outputs)``."""
    if V.shape[1] == 1:
        return np.einsum("nor,nor->no", V, V)[..., None]
    return V @ np.swapaxes(V, 1, 2)


class Update(NamedTuple):
    """Update of vectors by a measured target: the matrix ``1 - factor v v^T``.

    Attributes
    ----------
    factor : float
    direction : ndarray of shape (r,)
        Vector ``v``, in the coordinates after earlier updates.
    """

    factor: float
    direction: np.ndarray


def shrink(V, updates):
    """Multiply ``V`` by the matrices of the updates, from the first to the last."""
    for factor, direction in updates:
        V = V - (factor * (V @ direction))[..., None] * direction
    return V


def observation(V):
    """Make the rank-one updates of the inverse Hessian by a target measured at one input.

    Measuring ``t = v^T z + noise`` of variance 1 changes the precision of ``z`` from 1 to ``1 + v
    v^T``, whatever the measured value. The inverse root of this matrix is ``1 - factor v v^T``.
    Outputs are processed in order.

    Parameters
    ----------
    V : ndarray of shape (n_outputs, r)
        Vector ``v^T`` of every output; for classes see `curved`.

    Returns
    -------
    list of Update
    """
    updates = []
    for direction in V:
        direction = shrink(direction, updates)
        root = np.sqrt(1.0 + direction @ direction)
        updates.append(Update(1.0 / (root * (1.0 + root)), direction))
    return updates


def curved(mean, V):
    """Vectors of unit-noise targets with the same information about ``z`` as the class.

    A class adds the curvature ``diag(p) - p p^T`` of its log likelihood (Bishop 4.110) at the most
    probable activations, whatever the label.

    Parameters
    ----------
    mean : ndarray of shape (..., n_outputs)
    V : ndarray of shape (..., n_outputs, r)

    Returns
    -------
    ndarray of shape (..., n_outputs, r)
        Vectors ``C^(1/2) V`` with the curvature ``C`` of the log likelihood.
    """
    if mean.shape[-1] == 1:
        return np.sqrt(expit(mean) * expit(-mean))[..., None] * V
    p = softmax(mean, axis=-1)
    curvature = p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])
    values, vectors = np.linalg.eigh(curvature)
    root = np.sqrt(np.where(values > LEAST_CURVATURE, values, 0.0))
    return (root[..., None] * np.swapaxes(vectors, -1, -2)) @ V


def of_part(part):
    """Make the linear model of predicting networks from the mean and covariances of outputs.

    Parameters
    ----------
    part : Part
        Minimum with its Gaussian posterior, or drawn networks.

    Returns
    -------
    LinearModel
    """
    noise_variances = None if part.noise is None else partial(_mean_noise, part)
    expand = _in_units(part.whitened, noise_variances)
    return LinearModel(expand, part.n_unknowns, part.network.n_outputs, noise_variances)


def of_prior(member, groups, alpha):
    """Make the linear model of the network at its minimum, with the prior of the weights.

    Parameters
    ----------
    member : Member
    groups : WeightGroups
    alpha : ndarray of shape (n_groups,)

    Returns
    -------
    LinearModel
        Linear model; for a classifier, that of the equivalent unit-noise targets, see `curved`.
    """
    k = len(groups.labels)
    precision = DualPrecision(groups.diagonal(alpha), np.zeros((0, k)))
    if groups.coupled:
        matrix = np.zeros((k, k))
        groups.add_to(matrix, alpha)
        precision = DensePrecision(matrix)
    linear = of_part(replace(member, shift=None, free=None, precision=precision))
    if linear.noise_variances is not None:
        return linear

    def expand(X):
        mean, V = linear.expand(X)
        return mean, curved(mean, V)

    return replace(linear, expand=expand, noise_variances=lambda X: np.ones((len(X), 1)))


def _mean_noise(part, X):
    """Mean noise variance over the networks at every row: ``(n, n_outputs)``."""
    mean = part.noise.variances(X).mean(axis=0)
    return np.broadcast_to(mean, (len(X), part.network.n_outputs))


def _in_units(expand, noise_variances):
    """Scale outputs to units of the noise, if there is any."""
    if noise_variances is None:
        return expand

    def scaled(X):
        mean, V = expand(X)
        sd = np.sqrt(noise_variances(X))
        return mean / sd, V / sd[..., None]

    return scaled
