"""Symmetric matrices over the weights: curvatures of the energy and precisions of Gaussians.

`Precision` is the common protocol. This module implements it by a dense matrix; `_precision_dual`
and `_precision_kronecker` hold structured forms. Algorithms depend on the protocol alone, and the
`Method` selects the form.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from skbayesnn.network import jacobian, output_covariances

EPS = np.finfo(float).eps
MIN_PIVOT = 10.0 * EPS  # least pivot relative to its diagonal entry, per weight; below: rounding


class Precision:
    """Matrix ``A`` of shape (k, k), and the Gaussian of precision ``A`` if it is definite.

    Attributes are its ``diagonal`` (k,), and ``definite``: whether ``A`` is numerically positive
    definite. An indefinite matrix is never repaired: no jitter, no clamped eigenvalues. It has no
    ``log_det``, and none of the methods from `solve` on.
    """

    definite = True
    forms_jacobians = True  # whether `relative_variances` needs the Jacobian of a block of rows

    def damped(self, damping, metric):
        """Damped matrix ``A + damping diag(metric)`` of a Levenberg-Marquardt step."""
        raise NotImplementedError

    def dense(self):
        """Dense matrix ``A``, shape (k, k)."""
        raise NotImplementedError

    def solve(self, vectors):
        """Solution ``A^-1 b`` for ``b`` of shape (k,) or (k, m)."""
        raise NotImplementedError

    def whiten(self, vectors):
        """Whitened vectors ``A^(-1/2) b`` up to a rotation, ``b`` of shape (k,) or (k, m).

        ``b^T A^-1 b`` is the squared length of the result.
        """
        raise NotImplementedError

    def covariance(self):
        """Covariance matrix ``A^-1``, shape (k, k)."""
        return self.solve(np.eye(len(self.diagonal)))

    def variances(self):
        """Marginal variances, the diagonal of ``A^-1``, shape (k,)."""
        raise NotImplementedError

    def trace_under(self, other):
        """Trace ``Tr(B^-1 A)`` with another precision ``B`` of the same form."""
        raise NotImplementedError

    def project(self, J):
        """Covariance ``J A^-1 J^T`` of every row, (n, m, m), for ``J`` of shape (n, m, k)."""
        n, m, k = J.shape
        white = self.whiten(J.reshape(n * m, k).T).T.reshape(n, m, -1)
        return white @ np.swapaxes(white, -1, -2)

    def output_covariances(self, trace, free=slice(None)):
        """Covariance ``J A^-1 J^T`` of the outputs of every row, ``(n, n_outputs, n_outputs)``.

        The trace is of order 1 at least. Weights other than those in ``free`` are taken to be
        certain.
        """
        return self.project(np.ascontiguousarray(jacobian(trace)[..., free]))

    def relative_variances(self, trace, free=slice(None)):
        """Variances ``(n, n_outputs)`` of the outputs of every row less their mean over outputs."""
        J = jacobian(trace)[..., free]
        J = J - J.mean(axis=1, keepdims=True)
        white = self.whiten(J.reshape(-1, J.shape[-1]).T)
        return np.sum(white**2, axis=0).reshape(J.shape[:2])

    def rough_output_covariances(self, trace):
        """Covariances as by `output_covariances`, with fewer digits where that is faster."""
        return self.output_covariances(trace)

    def draw(self, rng, size):
        """Draw deviations from the mean with covariance ``A^-1``, shape (size, k)."""
        raise NotImplementedError

    def eigenvalues(self, prior):
        """Eigenvalues relative to ``D = diag(prior)``, shape (k,), largest first.

        They are ``mu_a`` with ``A u_a = mu_a D u_a``.
        """
        raise NotImplementedError

    def condensed(self):
        """Compact form for storage, without derived arrays that can be recomputed."""
        return self

    def determined(self, groups, alpha):
        """Effective number of parameters of every group, ``(n_groups,)``.

        ``gamma_c = k_c - alpha_c Tr(R_c A^-1)`` (MacKay 1992, equation 2.23), the number of
        well-determined weights. ``A`` is the curvature of the data misfit plus the prior precision,
        ``alpha_c R_c`` for every group; ``R_c`` is 1 except under an informative prior.
        """
        if groups.coupled:
            traces = groups.sums(np.sum(self.covariance() * groups.shape, axis=1))
        else:
            traces = groups.sums(self.variances() * groups.shape)
        return groups.sizes - alpha * traces


class DensePrecision(Precision):
    """Dense matrix ``(k, k)`` with its Cholesky factor; each is made from the other."""

    def __init__(self, matrix=None, factor=None):
        if matrix is not None:
            self.matrix = matrix
        if factor is not None:
            self.factor = factor

    @classmethod
    def of_roots(cls, prior, roots):
        """Make ``A = diag(prior) + sum_i R_i^T R_i`` from matrices ``R_i`` of shape (m_i, k).

        Orthogonal transformations give the factor. As they do not square the condition number,
        ``A`` is definite where a Cholesky factorisation would fail by rounding.
        """
        sd = prior**-0.5
        triangle = np.eye(len(sd))
        for root in roots:
            triangle = np.linalg.qr(np.concatenate([root * sd, triangle]), mode="r")
        triangle *= np.sign(np.diag(triangle))[:, None]
        return cls(factor=np.asfortranarray((triangle / sd).T))

    @cached_property
    def matrix(self):
        """Matrix ``A = L L^T`` from its factor, where that alone is known."""
        return self.factor @ self.factor.T

    @property
    def diagonal(self):
        """Diagonal of ``A``."""
        return np.diag(self.matrix) if "matrix" in vars(self) else np.sum(self.factor**2, axis=1)

    @cached_property
    def factor(self):
        """Lower Cholesky factor ``L`` with ``A = L L^T``; ``None`` if ``A`` is not definite."""
        factor, status = lapack.dpotrf(self.matrix.T, lower=1, clean=1)
        kept = factor.diagonal() ** 2 > MIN_PIVOT * len(factor) * self.matrix.diagonal()
        return factor if status == 0 and kept.all() else None  # small pivots are rounding, or nan

    @property
    def definite(self):
        """True if the Cholesky factorisation succeeds."""
        return self.factor is not None

    def __getstate__(self):
        """State with one triangle of the factor alone: a quarter of the size."""
        if not self.definite:
            return {"matrix": self.matrix}
        return {"n": len(self.factor), "packed": self.factor[np.tril_indices(len(self.factor))]}

    def __setstate__(self, state):
        if "matrix" in state:
            self.matrix = state["matrix"]
            return
        self.factor = np.zeros((state["n"], state["n"]), order="F")
        self.factor[np.tril_indices(state["n"])] = state["packed"]

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of ``A``."""
        if self.definite:
            return float(np.linalg.svd(self.factor, compute_uv=False)[-1] ** 2)
        return float(np.linalg.eigvalsh(self.matrix)[0])

    def condensed(self):
        """Compact form with the Cholesky factor alone, if there is one."""
        return DensePrecision(factor=self.factor) if self.definite else self

    @property
    def log_det(self):
        """Log determinant ``log det A``."""
        return 2.0 * np.sum(np.log(np.diag(self.factor)))

    def damped(self, damping, metric):
        if not damping:
            return self
        if "matrix" not in vars(self):
            return self.of_roots(damping * metric, [self.factor.T])
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += damping * metric
        return DensePrecision(matrix)

    def dense(self):
        return self.matrix.copy()

    def eigenvalues(self, prior):
        return np.linalg.svd(self.factor.T / np.sqrt(prior), compute_uv=False) ** 2

    def solve(self, vectors):
        return lapack.dpotrs(self.factor, vectors, lower=1)[0]

    def whiten(self, vectors):
        """Whitened vectors ``L^-1 b``, ``b`` of shape (k,) or (k, m)."""
        if not len(self.factor):  # SciPy before 1.14 refuses empty systems
            return vectors
        return solve_triangular(self.factor, vectors, lower=True, check_finite=False)

    def covariance(self):
        return self._covariance

    @cached_property
    def _covariance(self):
        inverse = lapack.dpotri(self.factor, lower=1)[0]  # its upper triangle is zero
        covariance = inverse + inverse.T
        covariance[np.diag_indices(len(inverse))] *= 0.5
        return covariance

    def rough_output_covariances(self, trace):
        return output_covariances(trace, self.covariance())

    def variances(self):
        return self.covariance().diagonal().copy()

    def trace_under(self, other):
        return np.sum(self.matrix * other.covariance())

    def draw(self, rng, size):
        normal = rng.standard_normal((size, len(self.factor)))
        return solve_triangular(self.factor, normal.T, lower=True, trans=1, check_finite=False).T
