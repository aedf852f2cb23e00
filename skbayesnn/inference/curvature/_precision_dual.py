"""Precision matrices of low-rank data curvature, without a matrix over the weights."""

from functools import cached_property

import numpy as np

from skbayesnn.inference.curvature._precision import EPS, DensePrecision, Precision


class DualPrecision(Precision):
    """Precision ``A = diag(a) + S^T S`` with fewer rows in ``S`` than weights (Woodbury).

    The prior precisions ``a`` are (k,), and the weighted Jacobian ``S`` is (m, k).
    """

    def __init__(self, prior, S):
        self.prior, self.S = prior, S

    @cached_property
    def diagonal(self):
        """Diagonal of ``A``."""
        return self.prior + np.sum(self.S**2, axis=0)

    @cached_property
    def _scaled(self):
        return self.S / self.prior

    @cached_property
    def _inner(self):
        """Inner matrix ``1 + S diag(a)^-1 S^T`` of the Woodbury identity."""
        inner = self._scaled @ self.S.T
        inner[np.diag_indices(len(self.S))] += 1.0
        return DensePrecision(inner)

    def __getstate__(self):
        """State without derived arrays."""
        return {"prior": self.prior, "S": self.S}

    @property
    def definite(self):
        """True if the inner matrix ``1 + S diag(a)^-1 S^T`` keeps its 1, the prior, in rounding."""
        largest = np.max(self._inner.diagonal, initial=1.0)
        return self._inner.definite and bool(EPS * len(self.S) * largest < 1.0)

    @property
    def log_det(self):
        """Log determinant ``log det A`` by the matrix determinant lemma."""
        return np.sum(np.log(self.prior)) + self._inner.log_det

    def damped(self, damping, metric):
        return DualPrecision(self.prior + damping * metric, self.S) if damping else self

    def dense(self):
        return np.diag(self.prior) + self.S.T @ self.S

    def eigenvalues(self, prior):
        """Eigenvalues relative to its own prior, without a matrix of shape (k, k)."""
        singular = np.linalg.svd(self.S / np.sqrt(prior), compute_uv=False)
        values = np.ones(len(prior))
        values[: len(singular)] += singular**2
        return values

    def solve(self, vectors):
        prior = (vectors.T / self.prior).T
        return prior - self._scaled.T @ self._inner.solve(self.S @ prior)

    @cached_property
    def _shrinkage(self):
        """Matrix ``X`` with ``(1 + T^T T)^(-1/2) = 1 + T^T X T``, ``T = S diag(a)^(-1/2)``."""
        values, vectors = np.linalg.eigh(self._scaled @ self.S.T)
        root = np.sqrt(1.0 + np.maximum(values, 0.0))
        return -(vectors / (root * (1.0 + root))) @ vectors.T

    def whiten(self, vectors):
        root = np.sqrt(self.prior)
        white = (vectors.T / root).T
        T = self.S / root
        return white + T.T @ (self._shrinkage @ (T @ white))

    def variances(self):
        white = self._inner.whiten(self._scaled)
        return 1.0 / self.prior - np.sum(white**2, axis=0)

    def trace_under(self, other):
        return self.prior @ other.variances() + np.sum(other.project(self.S[:, None]))

    def project(self, J):
        n, m, k = J.shape
        prior = (J / self.prior) @ np.swapaxes(J, -1, -2)
        white = self._inner.whiten(self._scaled @ J.reshape(n * m, k).T).T.reshape(n, m, -1)
        return prior - white @ np.swapaxes(white, -1, -2)

    def draw(self, rng, size):
        """Draw deviations with covariance ``A^-1``, shape (size, k) (Matheron's rule)."""
        w = rng.standard_normal((size, len(self.prior))) / np.sqrt(self.prior)
        noise = rng.standard_normal((size, len(self.S)))
        return w - (self._scaled.T @ self._inner.solve((w @ self.S.T + noise).T)).T
