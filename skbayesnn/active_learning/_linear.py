"""Posteriors as seen from inputs: outputs that are linear in a standard normal vector.

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

LEAST_CURVATURE = 1e-12  # eigenvalues of a class's curvature below which a target tells nothing


@dataclass(frozen=True)
class LinearModel:
    """Outputs ``f(x) = mean(x) + V(x) z`` with ``z ~ N(0, 1)``.

    Outputs of regressors are in units of the noise at each input, so that targets have unit noise.

    Parameters
    ----------
    expand : callable
        From rows ``(n, n_features)`` to ``mean`` ``(n, n_outputs)`` and ``V`` ``(n, n_outputs,
        r)``, for as many rows as fit in memory.
    n_unknowns : int
        ``r``.
    n_outputs : int
    noise_variances : callable, optional
        From rows to the squares of those units, ``(n, n_outputs)``; ``None`` for activations of
        classifiers.
    """

    expand: Callable
    n_unknowns: int
    n_outputs: int
    noise_variances: Callable | None = None

    def expand_all(self, X):
        """What `expand` gives, in blocks that bound the memory it takes besides."""
        blocks = row_blocks(len(X), self.n_outputs * self.n_unknowns)
        parts = [self.expand(X[rows]) for rows in blocks]
        return tuple(np.concatenate(some) for some in zip(*parts, strict=True))


def covariance_of(V):
    """``V V^T`` of every row: ``(n, n_outputs, n_outputs)``."""
    if V.shape[1] == 1:
        return np.einsum("nor,nor->no", V, V)[..., None]
    return V @ np.swapaxes(V, 1, 2)


class Update(NamedTuple):
    """What a measured target does to vectors: the matrix ``1 - factor v v^T``.

    Attributes
    ----------
    factor : float
    direction : ndarray of shape (r,)
        ``v``, in the coordinates that earlier updates left.
    """

    factor: float
    direction: np.ndarray


def shrink(V, updates):
    """``V`` times the matrices of the updates, from the first to the last."""
    for factor, direction in updates:
        V = V - (factor * (V @ direction))[..., None] * direction
    return V


def observation(V):
    """Rank-one updates of the inverse Hessian by a target measured at one input.

    Measuring ``t = v^T z + noise`` of variance 1 changes the precision of ``z`` from 1 to ``1 + v
    v^T``, whatever the value found. The inverse root of this matrix is ``1 - factor v v^T``.
    Outputs follow one another.

    Parameters
    ----------
    V : ndarray of shape (n_outputs, r)
        ``v^T`` of every output; of a class see `curved`.

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
    """Vectors of targets of unit noise that tell as much about ``z`` as the class does.

    A class adds the curvature ``diag(p) - p p^T`` of its log likelihood (Bishop 4.110) at the most
    probable activations, whatever the label.

    Parameters
    ----------
    mean : ndarray of shape (..., n_outputs)
    V : ndarray of shape (..., n_outputs, r)

    Returns
    -------
    ndarray of shape (..., n_outputs, r)
        ``C^(1/2) V`` with the curvature ``C`` of the log likelihood.
    """
    if mean.shape[-1] == 1:
        return np.sqrt(expit(mean) * expit(-mean))[..., None] * V
    p = softmax(mean, axis=-1)
    curvature = p[..., None] * (np.eye(p.shape[-1]) - p[..., None, :])
    values, vectors = np.linalg.eigh(curvature)
    root = np.sqrt(np.where(values > LEAST_CURVATURE, values, 0.0))
    return (root[..., None] * np.swapaxes(vectors, -1, -2)) @ V


def of_part(part):
    """Networks that predict, by the mean and the covariances of their outputs.

    Parameters
    ----------
    part : Part
        A minimum with its Gaussian posterior, or drawn networks.

    Returns
    -------
    LinearModel
    """
    noise_variances = None if part.noise is None else partial(_mean_noise, part)
    expand = _in_units(part.whitened, noise_variances)
    return LinearModel(expand, part.n_unknowns, part.network.n_outputs, noise_variances)


def of_prior(member, groups, alpha):
    """The network linearised at its minimum, before any target is known.

    Parameters
    ----------
    member : Member
    groups : WeightGroups
    alpha : ndarray of shape (n_groups,)

    Returns
    -------
    LinearModel
        Of a classifier its targets' equivalents of unit noise, see `curved`.
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
    """Noise variance at every row, mean over the networks: ``(n, n_outputs)``."""
    mean = part.noise.variances(X).mean(axis=0)
    return np.broadcast_to(mean, (len(X), part.network.n_outputs))


def _in_units(expand, noise_variances):
    """Outputs in units of the noise, if there is any."""
    if noise_variances is None:
        return expand

    def scaled(X):
        mean, V = expand(X)
        sd = np.sqrt(noise_variances(X))
        return mean / sd, V / sd[..., None]

    return scaled
