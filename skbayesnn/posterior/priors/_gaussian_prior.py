"""Informative Gaussian prior of any mean and precision (Bishop 2006, 4.140).

In sequential learning the posterior of one batch of data is such a prior for the next one.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from skbayesnn.posterior.priors._priors import WeightGroups


@dataclass(frozen=True)
class GaussianPrior(WeightGroups):
    """Gaussian of mean ``m`` whose precision has a block ``alpha_c R_c`` for every group.

    Its energy is ``1/2 (w - m)^T P (w - m)`` and the Hessian of the posterior gains ``P`` (Bishop
    2006, equations 4.140-4.142).

    Parameters
    ----------
    labels, names
        See `WeightGroups`.
    mean : ndarray of shape (k,)
    shape : ndarray of shape (k,) or (k, k)
        Positive definite ``R``, or its diagonal if ``R`` is diagonal. Groups are independent.
    """

    mean: np.ndarray
    shape: np.ndarray

    one_size = True
    centred = False

    @property
    def coupled(self):
        """True if ``R`` has elements off its diagonal."""
        return self.shape.ndim == 2

    @cached_property
    def _factor(self):
        """Lower Cholesky factor ``L`` with ``R = L L^T``, or the roots of the diagonal."""
        return np.linalg.cholesky(self.shape) if self.coupled else np.sqrt(self.shape)

    @cached_property
    def _log_det(self):
        """Log determinant ``log det R``."""
        diagonal = np.diag(self._factor) if self.coupled else self._factor
        return 2.0 * float(np.sum(np.log(diagonal)))

    def relabelled(self, labels):
        if not np.array_equal(labels, self.labels):
            raise ValueError("A prior with a mean or a precision matrix belongs to one network.")
        return self

    def deviation(self, theta):
        return theta - self.mean

    def applied(self, vectors):
        return vectors @ self.shape if self.coupled else vectors * self.shape

    def energies(self, theta):
        deviation = self.deviation(theta)
        return 0.5 * self.sums(deviation * self.applied(deviation))

    def pull(self, theta, alpha):
        return self.product(self.deviation(theta), alpha)

    def product(self, vectors, alpha):
        return self.expand(alpha) * self.applied(vectors)

    def diagonal(self, alpha):
        return self.expand(alpha) * (np.diag(self.shape) if self.coupled else self.shape)

    def add_to(self, matrices, alpha):
        if self.coupled:
            matrices += self.expand(alpha)[..., :, None] * self.shape
            return
        each = np.arange(len(self.labels))
        matrices[..., each, each] += self.diagonal(alpha)

    @cached_property
    def _least(self):
        """Smallest eigenvalue of every block of ``R``."""
        everywhere = np.full(len(self.names), np.inf)
        if not self.coupled:
            np.minimum.at(everywhere, self.labels, self.shape)
            return everywhere
        for group in np.unique(self.labels):
            members = np.flatnonzero(self.labels == group)
            everywhere[group] = np.linalg.eigvalsh(self.shape[np.ix_(members, members)])[0]
        return everywhere

    def least(self, alpha):
        return np.min(alpha * self._least)

    def traces(self, precision):
        if self.coupled:
            return self.sums(np.sum(precision.covariance() * self.shape, axis=1))
        return self.sums(precision.variances() * self.shape)

    def log_normaliser(self, alpha):
        return super().log_normaliser(alpha) + 0.5 * self._log_det

    def draw(self, alpha, rng):
        alpha = self.expand(alpha)
        return self.coloured(rng.standard_normal(alpha.shape) * alpha**-0.5)

    def start(self, rng, sd):
        """Draw starting weights near the mean, on the scale of the prior where that is narrower."""
        own = self.diagonal(np.ones(len(self.names))) ** -0.5
        return self.mean + super().start(rng, np.minimum(sd, own))

    def within(self, group, covariance, theta):
        members = np.flatnonzero(self.labels == group)
        inside = np.ix_(members, members)
        covariance, deviation = covariance[inside], self.deviation(theta)[members]
        if not self.coupled:
            root = self._factor[members]
            return covariance * np.outer(root, root), deviation * root
        factor = np.linalg.cholesky(self.shape[inside])
        return factor.T @ covariance @ factor, factor.T @ deviation

    def white(self, theta):
        return self._times_factor(self.deviation(theta))

    def coloured(self, white):
        return self.mean + self._over_factor(white, trans=1)

    def white_gradient(self, gradient):
        return self._over_factor(gradient)

    def white_matrix(self, matrix):
        for _ in range(2):  # rows, then columns
            matrix = self._over_factor(np.swapaxes(matrix, -1, -2))
        return matrix

    def _times_factor(self, vectors):
        """Product ``L^T v`` for ``v`` of shape (..., k)."""
        return vectors @ self._factor if self.coupled else vectors * self._factor

    def _over_factor(self, vectors, trans=0):
        """Solution ``L^-1 v``, or ``L^-T v``, for ``v`` of shape (..., k)."""
        if not self.coupled:
            return vectors / self._factor
        columns = vectors.reshape(-1, len(self.mean)).T
        solved = solve_triangular(self._factor, columns, lower=True, trans=trans).T
        return solved.reshape(vectors.shape)

    def conditional(self, part, theta):
        labels = self.labels[part]
        if not self.coupled:
            return replace(self, labels=labels, mean=self.mean[part], shape=self.shape[part])
        shape = self.shape[part, part]
        pull = self.applied(self.deviation(theta))[part]
        return replace(
            self, labels=labels, mean=theta[part] - np.linalg.solve(shape, pull), shape=shape
        )

    def is_invariant(self, images, signs):
        if not super().is_invariant(images, signs):
            return False
        moved = self.shape[images]
        if self.coupled:
            moved = self.shape[np.ix_(images, images)] * np.outer(signs, signs)
        same = np.array_equal(self.mean[images] * signs, self.mean)
        return same and np.array_equal(moved, self.shape)
