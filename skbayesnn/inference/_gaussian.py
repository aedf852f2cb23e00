"""Gaussian distributions over weights, given by a precision matrix in one of several forms.

All forms share one interface: ``log_det`` (of the precision), ``solve``, ``variances`` (the
diagonal of the covariance), ``whiten`` (to units of the standard normal distribution), ``project``
(covariance of linear functions of the weights) and ``draw``.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular


class DenseGaussian:
    """Precision matrix held as its Cholesky factor.

    Parameters
    ----------
    factor : ndarray of shape (k, k)
        Lower triangular ``L`` with ``A = L L^T``, Fortran-ordered.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian
    >>> gaussian = DenseGaussian.from_precision(np.diag([4.0, 1.0]))
    >>> gaussian.variances()
    array([0.25, 1.  ])
    >>> gaussian.project(np.array([[[1.0, 1.0]]]))  # variance of the sum
    array([[[1.25]]])
    """

    def __init__(self, factor):
        self.factor = factor

    @classmethod
    def from_precision(cls, precision):
        """Factor a symmetric matrix; ``None`` if it is not positive definite.

        The matrix is never modified: no jitter, no clamped eigenvalues.
        """
        factor, status = lapack.dpotrf(precision.T, lower=1, clean=1)
        return cls(factor) if status == 0 and np.all(np.isfinite(np.diag(factor))) else None

    def __getstate__(self):
        """Only the triangle that is not zero: half the size."""
        return {"n": len(self.factor), "packed": self.factor[np.tril_indices(len(self.factor))]}

    def __setstate__(self, state):
        self.factor = np.zeros((state["n"], state["n"]), order="F")
        self.factor[np.tril_indices(state["n"])] = state["packed"]

    @property
    def log_det(self):
        """``log det A``."""
        return 2.0 * np.sum(np.log(np.diag(self.factor)))

    def solve(self, vectors):
        """``A^-1 b`` for ``b`` of shape (k,) or (k, m)."""
        return lapack.dpotrs(self.factor, vectors, lower=1)[0]

    def whiten(self, vectors):
        """``L^-1 b``, so that ``b^T A^-1 b`` is the squared length; ``b`` is (k,) or (k, m)."""
        return solve_triangular(self.factor, vectors, lower=True, check_finite=False)

    def covariance(self):
        """``A^-1`` of shape (k, k)."""
        inverse = lapack.dpotri(self.factor, lower=1)[0]  # its upper triangle is zero
        covariance = inverse + inverse.T
        covariance[np.diag_indices(len(inverse))] *= 0.5
        return covariance

    def variances(self):
        """Diagonal of ``A^-1``, shape (k,)."""
        return np.diag(lapack.dpotri(self.factor, lower=1)[0]).copy()

    def project(self, J):
        """``J A^-1 J^T`` per row for ``J`` of shape (n, m, k): shape (n, m, m)."""
        n, m, k = J.shape
        white = self.whiten(J.reshape(n * m, k).T).T.reshape(n, m, k)
        return white @ np.swapaxes(white, -1, -2)

    def draw(self, rng, size):
        """Deviations from the mean with covariance ``A^-1``, shape (size, k)."""
        normal = rng.standard_normal((size, len(self.factor)))
        return solve_triangular(self.factor, normal.T, lower=True, trans=1, check_finite=False).T


class DualGaussian:
    """Precision ``A = diag(a) + S^T S`` with fewer rows in ``S`` than weights (Woodbury).

    Parameters
    ----------
    prior_precision : ndarray of shape (k,)
        ``a``.
    S : ndarray of shape (m, k)
        Weighted Jacobian.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian, DualGaussian
    >>> a, S = np.ones(5), np.arange(10.0).reshape(2, 5)
    >>> dense = DenseGaussian.from_precision(np.diag(a) + S.T @ S)
    >>> np.allclose(DualGaussian(a, S).variances(), dense.variances())
    True
    """

    def __init__(self, prior_precision, S):
        self.prior_precision = prior_precision
        self.S = S
        self._scaled = S / prior_precision
        inner = self._scaled @ S.T
        inner[np.diag_indices(len(S))] += 1.0
        self._inner = DenseGaussian.from_precision(inner)

    @property
    def log_det(self):
        """``log det A`` by the matrix determinant lemma."""
        return np.sum(np.log(self.prior_precision)) + self._inner.log_det

    @property
    def determined(self):
        """``Tr(A^-1 S^T S)``, the number of well-determined weights."""
        return len(self.S) - np.sum(self._inner.variances())

    def solve(self, vectors):
        """``A^-1 b`` for ``b`` of shape (k,) or (k, m)."""
        prior = (vectors.T / self.prior_precision).T
        return prior - self._scaled.T @ self._inner.solve(self.S @ prior)

    @cached_property
    def _shrinkage(self):
        """``X`` with ``(1 + T^T T)^(-1/2) = 1 + T^T X T``, where ``T = S diag(a)^(-1/2)``."""
        values, vectors = np.linalg.eigh(self._scaled @ self.S.T)
        root = np.sqrt(1.0 + np.maximum(values, 0.0))
        return -(vectors / (root * (1.0 + root))) @ vectors.T

    def whiten(self, vectors):
        """``A^(-1/2) b`` up to a rotation, ``b`` of shape (k,) or (k, m).

        ``b^T A^-1 b`` is the squared length of the result.
        """
        root = np.sqrt(self.prior_precision)
        white = (vectors.T / root).T
        T = self.S / root
        return white + T.T @ (self._shrinkage @ (T @ white))

    def covariance(self):
        """``A^-1`` of shape (k, k)."""
        white = self._inner.whiten(self._scaled)
        return np.diag(1.0 / self.prior_precision) - white.T @ white

    def variances(self):
        """Diagonal of ``A^-1``, shape (k,)."""
        white = self._inner.whiten(self._scaled)
        return 1.0 / self.prior_precision - np.sum(white**2, axis=0)

    def project(self, J):
        """``J A^-1 J^T`` per row for ``J`` of shape (n, m, k): shape (n, m, m)."""
        n, m, k = J.shape
        prior = (J / self.prior_precision) @ np.swapaxes(J, -1, -2)
        white = self._inner.whiten(self._scaled @ J.reshape(n * m, k).T).T.reshape(n, m, -1)
        return prior - white @ np.swapaxes(white, -1, -2)

    def draw(self, rng, size):
        """Deviations with covariance ``A^-1``, shape (size, k) (Matheron's rule)."""
        w = rng.standard_normal((size, len(self.prior_precision))) / np.sqrt(self.prior_precision)
        noise = rng.standard_normal((size, len(self.S)))
        return w - (self._scaled.T @ self._inner.solve((w @ self.S.T + noise).T)).T


class KroneckerGaussian:
    """Layers independent of each other, each with ``A = D x 1 + F x G`` (Kronecker products).

    Generalised eigenvectors of ``F`` and ``D``, with those of ``G``, make every such matrix
    diagonal, so that a layer costs no more than its factors (Ritter, Botev & Barber 2018, who take
    a multiple of 1 for ``D``).

    Parameters
    ----------
    factors : list of tuple
        Of every layer ``D``, the diagonal alone, of shape (fan_in + 1,), ``F`` of shape
        (fan_in + 1, fan_in + 1), and ``G`` of shape (fan_out, fan_out).

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian, KroneckerGaussian
    >>> D, F, G = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 3.0]]), np.diag([1.0, 4.0])
    >>> dense = DenseGaussian.from_precision(np.kron(np.diag(D), np.eye(2)) + np.kron(F, G))
    >>> np.allclose(KroneckerGaussian([(D, F, G)]).variances(), dense.variances())
    True
    """

    def __init__(self, factors):
        self._layers = []
        for D, F, G in factors:
            root = np.sqrt(D)
            f, U = np.linalg.eigh(F / (root[:, None] * root))
            g, V = np.linalg.eigh(G)
            values = 1.0 + np.maximum(f, 0.0)[:, None] * np.maximum(g, 0.0)
            self._layers.append((U.T / root, V, values))
        self._log_det = sum(len(G) * np.sum(np.log(D)) for D, _, G in factors)

    @property
    def log_det(self):
        """``log det A``."""
        return self._log_det + sum(np.sum(np.log(values)) for _, _, values in self._layers)

    def whiten(self, vectors):
        """``A^(-1/2) b`` up to a rotation, ``b`` of shape (k,) or (k, m).

        ``b^T A^-1 b`` is the squared length of the result.
        """
        parts = [
            (left @ b @ V / np.sqrt(values)).reshape(len(b), -1)
            for b, (left, V, values) in zip(self._split(vectors.T), self._layers, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(vectors.T.shape).T

    def solve(self, vectors):
        """``A^-1 b`` for ``b`` of shape (k,) or (k, m)."""
        return self._unwhiten(self.whiten(vectors).T).T

    def covariance(self):
        """``A^-1`` of shape (k, k)."""
        return self.solve(np.eye(sum(values.size for _, _, values in self._layers)))

    def variances(self):
        """Diagonal of ``A^-1``, shape (k,)."""
        return np.concatenate(
            [(left.T**2 @ (1.0 / values) @ V.T**2).ravel() for left, V, values in self._layers]
        )

    def project(self, J):
        """``J A^-1 J^T`` per row for ``J`` of shape (n, m, k): shape (n, m, m)."""
        n, m, k = J.shape
        white = self.whiten(J.reshape(n * m, k).T).T.reshape(n, m, k)
        return white @ np.swapaxes(white, -1, -2)

    def draw(self, rng, size):
        """Deviations from the mean with covariance ``A^-1``, shape (size, k)."""
        k = sum(values.size for _, _, values in self._layers)
        return self._unwhiten(rng.standard_normal((size, k)))

    def _unwhiten(self, vectors):
        """``A^(-1/2)^T b`` for ``b`` of shape (k,) or (m, k)."""
        parts = [
            (left.T @ (b / np.sqrt(values)) @ V.T).reshape(len(b), -1)
            for b, (left, V, values) in zip(self._split(vectors), self._layers, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(vectors.shape)

    def _split(self, vectors):
        """Layers' parts of ``(k,)`` or ``(m, k)``: each ``(1 or m, fan_in + 1, fan_out)``."""
        vectors = np.atleast_2d(vectors)
        ends = np.cumsum([values.size for _, _, values in self._layers])[:-1]
        parts = np.split(vectors, ends, axis=1)
        return [
            part.reshape(len(vectors), *values.shape)
            for part, (_, _, values) in zip(parts, self._layers, strict=True)
        ]
