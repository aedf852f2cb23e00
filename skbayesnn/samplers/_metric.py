"""Metrics of Hamiltonian dynamics: linear maps that whiten a distribution, one per chain."""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12


class Metric(NamedTuple):
    """Metric by which positions move with velocity ``F p`` for standard normal momenta ``p``.

    This is equivalent to a mass matrix ``(F F^T)^-1``, without linear systems to solve (Neal 2011,
    section 5.4.2.4).

    Attributes
    ----------
    factor : ndarray of shape (n_chains, d, d) or (n_chains, d)
        Matrices ``F``, or the diagonals of diagonal ones.
    """

    factor: np.ndarray

    @classmethod
    def identity(cls, n_chains, dimension):
        """Build identity metrics."""
        return cls(np.ones((n_chains, dimension)))

    @classmethod
    def from_precisions(cls, precisions, power=1.0):
        """Build ``F = A^(-power/2)`` from positive definite ``A`` of shape (n_chains, d, d).

        Power 1 whitens a Gaussian of this precision; power 0 is the identity. Intermediate powers
        suit distributions whose precision varies with the position: directions that are narrow in
        one region and wide in another are then not restricted to the narrowest width.

        Eigenvalues below `ROUNDING` times the largest, which are dominated by rounding, are raised
        to that bound; any metric leaves the target invariant.
        """
        values, vectors = np.linalg.eigh(precisions)
        largest = np.max(values, axis=-1, initial=0.0)
        values = np.maximum(values, ROUNDING * largest[:, None])
        scaled = vectors * (values ** (-0.5 * power))[:, None, :]
        return cls(scaled @ np.swapaxes(vectors, -1, -2))

    def select(self, chains):
        """Select the metrics of some chains."""
        return Metric(self.factor[chains])

    def velocity(self, momentum):
        """Velocity ``F p``, shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * momentum
        return (self.factor @ momentum[..., None])[..., 0]

    def force(self, gradient):
        """Gradient ``F^T g`` in the coordinates of the momenta, shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * gradient
        return (gradient[..., None, :] @ self.factor)[..., 0, :]
