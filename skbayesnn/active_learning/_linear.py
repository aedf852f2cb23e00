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

from skbayesnn.network import row_blocks

LEAST_CURVATURE = 1e-12  # eigenvalues of a class's curvature below which a target tells nothing


@dataclass(frozen=True)
class LinearModel:
    """Outputs ``f(x) = mean(x) + V(x) z`` with ``z ~ N(0, 1)``, in standardised units.

    Parameters
    ----------
    expand : callable
        From rows ``(n, n_features)`` to ``mean`` ``(n, n_outputs)`` and ``V`` ``(n, n_outputs,
        r)``, for as many rows as fit in memory.
    n_unknowns : int
        ``r``.
    noise_variance : ndarray of shape (n_outputs,)
        Zeros for classifiers.
    """

    expand: Callable
    n_unknowns: int
    noise_variance: np.ndarray

    @property
    def n_outputs(self):
        """Outputs of the network."""
        return len(self.noise_variance)

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


def observation(mean, V, noise_variance):
    """Rank-one updates of the inverse Hessian by a target measured at one input.

    Measuring ``t = v^T z + noise`` of variance 1 changes the precision of ``z`` from 1 to ``1 + v
    v^T``, whatever the value found. The inverse root of this matrix is ``1 - factor v v^T``.
    Outputs follow one another. A class adds the curvature ``diag(p) - p p^T`` of its log likelihood
    (Bishop 4.110) at the most probable activations, whatever the label.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs,)
    V : ndarray of shape (n_outputs, r)
    noise_variance : ndarray of shape (n_outputs,)
        Zeros for classifiers.

    Returns
    -------
    list of Update
    """
    V = V / np.sqrt(noise_variance)[:, None] if np.any(noise_variance) else curved(mean, V)
    updates = []
    for direction in V:
        direction = shrink(direction, updates)
        root = np.sqrt(1.0 + direction @ direction)
        updates.append(Update(1.0 / (root * (1.0 + root)), direction))
    return updates


def curved(mean, V):
    """Vectors of targets of unit noise that tell as much about ``z`` as the class does.

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


def of_member(member):
    """One minimum with its Gaussian posterior.

    Parameters
    ----------
    member : Member

    Returns
    -------
    LinearModel
    """
    expand = partial(_whitened, member, member.gaussian.whiten)
    return LinearModel(expand, member.network.n_weights, member.noise_variance)


def of_prior(member, precisions):
    """The network linearised at its minimum, before any target is known.

    Parameters
    ----------
    member : Member
    precisions : ndarray of shape (k,)
        ``alpha`` of every weight.

    Returns
    -------
    LinearModel
        Of a classifier its targets' equivalents of unit noise, see `curved`.
    """
    root = np.sqrt(precisions)[:, None]
    expand = partial(_whitened, replace(member, shift=None), lambda J: J / root)
    noise = member.noise_variance
    if np.any(noise):
        return LinearModel(expand, member.network.n_weights, noise)

    def expand_targets(X):
        mean, V = expand(X)
        return mean, curved(mean, V)

    return LinearModel(expand_targets, member.network.n_weights, np.ones_like(noise))


def of_draws(activations, noise_variances, n_draws):
    """Drawn networks, by the mean and the covariances of their outputs.

    Parameters
    ----------
    activations : callable
        From rows to outputs ``(n_draws, n, n_outputs)``.
    noise_variances : ndarray of shape (n_draws, n_outputs)
    n_draws : int

    Returns
    -------
    LinearModel
    """

    def expand(X):
        f = activations(X)
        mean = f.mean(axis=0)
        return mean, np.moveaxis(f - mean, 0, -1) / np.sqrt(n_draws)

    return LinearModel(expand, n_draws, noise_variances.mean(axis=0))


def _whitened(member, whiten, X):
    """Mean outputs and their whitened sensitivities (MacKay 1992, section 2.6)."""
    mean, J = member.linearised(X)
    n, n_outputs, k = J.shape
    return mean, whiten(J.reshape(n * n_outputs, k).T).T.reshape(n, n_outputs, k)
