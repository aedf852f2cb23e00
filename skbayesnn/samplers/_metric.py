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

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Metric
    >>> metric = Metric.from_precisions(np.diag([100.0, 1.0])[None])
    >>> metric.velocity(np.ones((1, 2)))  # slower where the distribution is narrow
    array([[0.1, 1. ]])
    """

    factor: np.ndarray

    @classmethod
    def identity(cls, n_chains, dimension):
        """No change of coordinates."""
        return cls(np.ones((n_chains, dimension)))

    @classmethod
    def from_precisions(cls, precisions, power=1.0):
        """``F = A^(-power/2)`` from symmetric positive definite ``A`` of shape (n_chains, d, d).

        Power 1 makes a Gaussian of this precision round, 0 changes nothing. What lies between
        suits distributions whose precision differs from place to place: directions that are narrow
        here and wide there are then not held to their narrowest.

        Eigenvalues below `ROUNDING` of the largest, which rounding has spoilt, are raised to that:
        any metric leaves the target as it is.
        """
        values, vectors = np.linalg.eigh(precisions)
        largest = np.max(values, axis=-1, initial=0.0)
        values = np.maximum(values, ROUNDING * largest[:, None])
        scaled = vectors * (values ** (-0.5 * power))[:, None, :]
        return cls(scaled @ np.swapaxes(vectors, -1, -2))

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
