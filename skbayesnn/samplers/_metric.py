"""Linear maps that make a distribution round, one per chain."""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12


class Metric(NamedTuple):
    """Positions move by ``F p`` where momenta ``p`` are standard normal.

    This is a mass matrix ``(F F^T)^-1`` in coordinates that need no solving (Neal 2011, section
    5.4.2.4).

    Attributes
    ----------
    factor : ndarray of shape (n_chains, d, d) or (n_chains, d)
        The latter is the diagonal of diagonal matrices.
    """

    factor: np.ndarray

    @classmethod
    def identity(cls, n_chains, dimension):
        """No change of coordinates."""
        return cls(np.ones((n_chains, dimension)))

    @classmethod
    def from_precisions(cls, precisions):
        """``F = L^-T`` from symmetric positive definite ``L L^T`` of shape (n_chains, d, d).

        A relative `ROUNDING` on the diagonal keeps matrices definite that rounding has spoilt: any
        metric leaves the target as it is.
        """
        precisions = precisions.copy()
        diagonal = np.arange(precisions.shape[-1])
        largest = np.max(precisions[:, diagonal, diagonal], axis=-1, initial=0.0)
        precisions[:, diagonal, diagonal] += ROUNDING * largest[:, None]
        inverse = np.linalg.inv(np.linalg.cholesky(precisions))
        return cls(np.ascontiguousarray(np.swapaxes(inverse, -1, -2)))

    def select(self, chains):
        """The metric of some chains."""
        return Metric(self.factor[chains])

    def velocity(self, momentum):
        """``F p`` of shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * momentum
        return (self.factor @ momentum[..., None])[..., 0]

    def force(self, gradient):
        """``F^T g`` of shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * gradient
        return (gradient[..., None, :] @ self.factor)[..., 0, :]
