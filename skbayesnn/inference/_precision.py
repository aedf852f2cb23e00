"""Symmetric matrices over the weights: the curvature of the energy, the precision of Gaussians.

One small protocol, `Precision`, in four forms. Algorithms ask for what they need and never for the
form; which one serves is part of the `Method`.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, lapack, solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh

EPS = np.finfo(float).eps
LEAST_PIVOT = 10.0 * EPS  # of an entry of the diagonal, per weight: less of it is mostly rounding
LANCZOS_FROM = 300  # weights from which one eigenvalue costs less than all (measured)


class Precision:
    """Matrix ``A`` of shape (k, k), and the Gaussian of precision ``A`` where it is definite.

    Attributes
    ----------
    diagonal : ndarray of shape (k,)
    definite : bool
        Whether ``A`` is numerically positive definite. It is never repaired: no jitter, no clamped
        eigenvalues. Only then there are a ``log_det`` and the methods from `solve` on.
    """

    definite = True

    def damped(self, damping, metric):
        """``A + damping diag(metric)``, for steps (Marquardt 1963)."""
        raise NotImplementedError

    def dense(self):
        """``A`` itself, shape (k, k)."""
        raise NotImplementedError

    def quadratic(self, vector):
        """``v^T A v``."""
        raise NotImplementedError

    def solve(self, vectors):
        """``A^-1 b`` for ``b`` of shape (k,) or (k, m)."""
        raise NotImplementedError

    def whiten(self, vectors):
        """``A^(-1/2) b`` up to a rotation, ``b`` of shape (k,) or (k, m).

        ``b^T A^-1 b`` is the squared length of the result.
        """
        raise NotImplementedError

    def covariance(self):
        """``A^-1`` of shape (k, k)."""
        return self.solve(np.eye(len(self.diagonal)))

    def variances(self):
        """Diagonal of ``A^-1``, shape (k,)."""
        raise NotImplementedError

    def trace_under(self, other):
        """``Tr(B^-1 A)`` with another precision ``B`` of the same form."""
        raise NotImplementedError

    def project(self, J):
        """``J A^-1 J^T`` per row for ``J`` of shape (n, m, k): shape (n, m, m)."""
        n, m, k = J.shape
        white = self.whiten(J.reshape(n * m, k).T).T.reshape(n, m, -1)
        return white @ np.swapaxes(white, -1, -2)

    def draw(self, rng, size):
        """Deviations from the mean with covariance ``A^-1``, shape (size, k)."""
        raise NotImplementedError

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of ``A``."""
        return 1.0 / float(np.linalg.eigvalsh(self.covariance())[-1])

    def eigenvalues(self, prior):
        """Eigenvalues relative to ``diag(prior)``, shape (k,), largest first; see `spectrum`."""
        return self.spectrum(prior)[0]

    def spectrum(self, prior):
        """Eigenvalues and eigenvectors in coordinates in which the prior is round.

        Parameters
        ----------
        prior : ndarray of shape (k,)
            Precisions, ``D = diag(prior)``.

        Returns
        -------
        values : ndarray of shape (k,)
            ``mu_a`` with ``A u_a = mu_a D u_a``, largest first.
        vectors : ndarray of shape (k, k)
            The columns ``u_a``, with ``u_a^T D u_b = delta_ab``; hence ``A^-1 = U diag(1/mu) U^T``.
        """
        root = np.sqrt(prior)
        values, vectors = np.linalg.eigh(self.dense() / (root[:, None] * root))
        return values[::-1], vectors[:, ::-1] / root[:, None]

    def condensed(self):
        """The same for keeping: without what can be made anew."""
        return self

    def determined(self, groups, alpha):
        """``gamma_c = k_c - alpha_c Tr(R_c A^-1)`` (MacKay 1992, equation 2.23): ``(n_groups,)``.

        The number of well-determined weights of every group, where ``A`` is the data's curvature
        plus the prior's precision, ``alpha_c R_c`` for every group; mostly ``R_c`` is 1.
        """
        return groups.sizes - alpha * groups.traces(self)


class DensePrecision(Precision):
    """The matrix itself, and its Cholesky factor.

    Parameters
    ----------
    matrix : ndarray of shape (k, k)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision
    >>> precision = DensePrecision(np.diag([4.0, 1.0]))
    >>> precision.variances()
    array([0.25, 1.  ])
    >>> precision.project(np.array([[[1.0, 1.0]]]))  # variance of the sum
    array([[[1.25]]])
    """

    def __init__(self, matrix):
        self.matrix = matrix

    @property
    def diagonal(self):
        """Diagonal of ``A``."""
        return np.diag(self.matrix) if "matrix" in vars(self) else np.sum(self.factor**2, axis=1)

    @cached_property
    def factor(self):
        """Lower triangular ``L`` with ``A = L L^T``, or ``None``."""
        factor, status = lapack.dpotrf(self.matrix.T, lower=1, clean=1)
        kept = factor.diagonal() ** 2 > LEAST_PIVOT * len(factor) * self.matrix.diagonal()
        return factor if status == 0 and kept.all() else None  # else pivots are rounding, or nan

    @property
    def definite(self):
        """Whether there is a Cholesky factor."""
        return self.factor is not None

    def __getstate__(self):
        """A triangle of the factor alone: a quarter of the size."""
        if not self.definite:
            return {"matrix": self.matrix}
        return {"n": len(self.factor), "packed": self.factor[np.tril_indices(len(self.factor))]}

    def __setstate__(self, state):
        if "matrix" in state:
            self.matrix = state["matrix"]
            return
        self.factor = np.zeros((state["n"], state["n"]), order="F")
        self.factor[np.tril_indices(state["n"])] = state["packed"]

    def __getattr__(self, name):
        if name == "matrix" and "factor" in vars(self):  # condensed, or after unpickling
            self.matrix = self.factor @ self.factor.T
            return self.matrix
        raise AttributeError(name)

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of ``A``, by inverse Lanczos iterations where that is cheaper."""
        size = len(self.matrix)
        if not self.definite or size < LANCZOS_FROM:
            return float(np.linalg.eigvalsh(self.matrix)[0])
        inverse = LinearOperator((size, size), matvec=self.solve, dtype=float)
        start = np.ones(size)
        return float(1.0 / eigsh(inverse, k=1, v0=start, tol=1e-6, return_eigenvectors=False)[0])

    def condensed(self):
        """The Cholesky factor alone, if there is one."""
        if not self.definite:
            return self
        light = DensePrecision.__new__(DensePrecision)
        light.factor = self.factor
        return light

    @property
    def log_det(self):
        """``log det A``."""
        return 2.0 * np.sum(np.log(np.diag(self.factor)))

    def damped(self, damping, metric):
        if not damping:
            return self
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += damping * metric
        return DensePrecision(matrix)

    def dense(self):
        return self.matrix.copy()

    def quadratic(self, vector):
        return vector @ self.matrix @ vector

    def solve(self, vectors):
        return lapack.dpotrs(self.factor, vectors, lower=1)[0]

    def whiten(self, vectors):
        """``L^-1 b``, ``b`` of shape (k,) or (k, m)."""
        return solve_triangular(self.factor, vectors, lower=True, check_finite=False)

    def covariance(self):
        return self._covariance

    @cached_property
    def _covariance(self):
        inverse = lapack.dpotri(self.factor, lower=1)[0]  # its upper triangle is zero
        covariance = inverse + inverse.T
        covariance[np.diag_indices(len(inverse))] *= 0.5
        return covariance

    def variances(self):
        return self._variances.copy()

    @cached_property
    def _variances(self):
        if "_covariance" in vars(self):
            return self._covariance.diagonal().copy()
        return lapack.dpotri(self.factor, lower=1)[0].diagonal().copy()

    def trace_under(self, other):
        return np.sum(self.matrix * other.covariance())

    def draw(self, rng, size):
        normal = rng.standard_normal((size, len(self.factor)))
        return solve_triangular(self.factor, normal.T, lower=True, trans=1, check_finite=False).T


class DualPrecision(Precision):
    """``A = diag(a) + S^T S`` with fewer rows in ``S`` than weights (Woodbury).

    Parameters
    ----------
    prior : ndarray of shape (k,)
        ``a``.
    S : ndarray of shape (m, k)
        Weighted Jacobian.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision, DualPrecision
    >>> a, S = np.ones(5), np.arange(10.0).reshape(2, 5)
    >>> dense = DensePrecision(np.diag(a) + S.T @ S)
    >>> np.allclose(DualPrecision(a, S).variances(), dense.variances())
    True
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
        """``1 + S diag(a)^-1 S^T``."""
        inner = self._scaled @ self.S.T
        inner[np.diag_indices(len(self.S))] += 1.0
        return DensePrecision(inner)

    def __getstate__(self):
        """Without what can be made anew."""
        return {"prior": self.prior, "S": self.S}

    @property
    def definite(self):
        """Whether the one in the inner matrix, which stands for the prior, outlives rounding."""
        largest = np.max(self._inner.diagonal, initial=1.0)
        return self._inner.definite and bool(EPS * len(self.S) * largest < 1.0)

    @property
    def log_det(self):
        """``log det A`` by the matrix determinant lemma."""
        return np.sum(np.log(self.prior)) + self._inner.log_det

    def damped(self, damping, metric):
        return DualPrecision(self.prior + damping * metric, self.S) if damping else self

    def dense(self):
        return np.diag(self.prior) + self.S.T @ self.S

    def eigenvalues(self, prior):
        """As of any `Precision`; without a matrix of shape (k, k) where the prior is its own."""
        if not np.array_equal(prior, self.prior):
            return super().eigenvalues(prior)
        return self._one_plus(np.linalg.svd(self.S / np.sqrt(prior), compute_uv=False))

    def spectrum(self, prior):
        """As of any `Precision`; from singular values, not their squares, where it can be."""
        if not np.array_equal(prior, self.prior):
            return super().spectrum(prior)
        root = np.sqrt(prior)
        _, singular, vectors = np.linalg.svd(self.S / root)
        return self._one_plus(singular), (vectors / root).T

    def _one_plus(self, singular):
        """Eigenvalues ``(k,)`` of ``1 + T^T T`` from the singular values of ``T``."""
        values = np.ones(len(self.prior))
        values[: len(singular)] += singular**2
        return values

    def quadratic(self, vector):
        return self.prior @ vector**2 + np.sum((self.S @ vector) ** 2)

    def solve(self, vectors):
        prior = (vectors.T / self.prior).T
        return prior - self._scaled.T @ self._inner.solve(self.S @ prior)

    @cached_property
    def _shrinkage(self):
        """``X`` with ``(1 + T^T T)^(-1/2) = 1 + T^T X T``, where ``T = S diag(a)^(-1/2)``."""
        values, vectors = np.linalg.eigh(self._scaled @ self.S.T)
        root = np.sqrt(1.0 + np.maximum(values, 0.0))
        return -(vectors / (root * (1.0 + root))) @ vectors.T

    def whiten(self, vectors):
        root = np.sqrt(self.prior)
        white = (vectors.T / root).T
        T = self.S / root
        return white + T.T @ (self._shrinkage @ (T @ white))

    def covariance(self):
        white = self._inner.whiten(self._scaled)
        return np.diag(1.0 / self.prior) - white.T @ white

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
        """Deviations with covariance ``A^-1``, shape (size, k) (Matheron's rule)."""
        w = rng.standard_normal((size, len(self.prior))) / np.sqrt(self.prior)
        noise = rng.standard_normal((size, len(self.S)))
        return w - (self._scaled.T @ self._inner.solve((w @ self.S.T + noise).T)).T


class SpectralPrecision(DualPrecision):
    """``A = diag(a) + S^T S`` by the singular values of ``S diag(a)^(-1/2)``.

    Slower, and for any number of rows; but definite however much directions differ in how well they
    are determined: rounding reaches singular values, not their squares.

    Parameters
    ----------
    prior, S
        As of `DualPrecision`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision, SpectralPrecision
    >>> S = np.array([[1e9, 1e9], [0.0, 0.5]])  # squares lose what tells the columns apart
    >>> DensePrecision(np.eye(2) + S.T @ S).definite
    False
    >>> SpectralPrecision(np.ones(2), S).variances().round(3)
    array([0.444, 0.444])
    """

    @property
    def definite(self):
        """Always."""
        return True

    @cached_property
    def _spectrum(self):
        """Singular values and right singular vectors (r, k), and whether these span everything."""
        T = self.S / np.sqrt(self.prior)
        _, values, vectors = np.linalg.svd(T, full_matrices=False)
        return values, vectors, len(vectors) == T.shape[1]

    @property
    def log_det(self):
        """``log det A``."""
        values = self._spectrum[0]
        with np.errstate(divide="ignore"):
            spread = np.logaddexp(0.0, 2.0 * np.log(values))
        return np.sum(np.log(self.prior)) + np.sum(spread)

    def damped(self, damping, metric):
        return SpectralPrecision(self.prior + damping * metric, self.S) if damping else self

    def whiten(self, vectors):
        """``A^(-1/2) b`` up to a rotation, of more entries than ``b`` if there are few rows."""
        values, basis, complete = self._spectrum
        white = (vectors.T / np.sqrt(self.prior)).T
        along = basis @ white
        inside = (along.T / np.hypot(1.0, values)).T
        return inside if complete else np.concatenate([inside, white - basis.T @ along])

    def solve(self, vectors):
        values, basis, complete = self._spectrum
        root = np.sqrt(self.prior)
        white = (vectors.T / root).T
        along = basis @ white
        result = basis.T @ (along.T / np.hypot(1.0, values) ** 2).T
        if not complete:
            result = result + white - basis.T @ along
        return (result.T / root).T

    def covariance(self):
        return self.solve(np.eye(len(self.prior)))

    def variances(self):
        values, basis, complete = self._spectrum
        variances = (basis**2).T @ (1.0 / np.hypot(1.0, values) ** 2)
        if not complete:
            variances += np.maximum(1.0 - np.sum(basis**2, axis=0), 0.0)
        return variances / self.prior

    def project(self, J):
        return Precision.project(self, J)

    def draw(self, rng, size):
        """Deviations from the mean with covariance ``A^-1``, shape (size, k)."""
        values, basis, complete = self._spectrum
        normal = rng.standard_normal((size, len(self.prior)))
        along = normal @ basis.T
        draws = (along / np.hypot(1.0, values)) @ basis
        return (draws if complete else draws + normal - along @ basis) / np.sqrt(self.prior)


class KroneckerPrecision(Precision):
    """Layers independent of each other, each with ``A = D x 1 + F x G`` (Kronecker products).

    Generalised eigenvectors of ``F`` and ``D``, with those of ``G``, make every such matrix
    diagonal, so that a layer costs no more than its factors (Ritter, Botev & Barber 2018, who take
    a multiple of 1 for ``D``). Inputs of a layer are taken to be independent of the derivatives by
    its summed inputs (Martens & Grosse 2015); log determinants are off by a nat or so per weight.

    Parameters
    ----------
    factors : list of tuple
        Of every layer ``D``, the diagonal alone, of shape (fan_in + 1,), ``F`` of shape
        (fan_in + 1, fan_in + 1), and ``G`` of shape (fan_out, fan_out).

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision, KroneckerPrecision
    >>> D, F, G = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 3.0]]), np.diag([1.0, 4.0])
    >>> dense = DensePrecision(np.kron(np.diag(D), np.eye(2)) + np.kron(F, G))
    >>> np.allclose(KroneckerPrecision([(D, F, G)]).variances(), dense.variances())
    True
    """

    def __init__(self, factors):
        self.factors = factors

    @cached_property
    def diagonal(self):
        """Diagonal of ``A``."""
        parts = [D[:, None] + np.outer(np.diag(F), np.diag(G)) for D, F, G in self.factors]
        return np.concatenate([part.ravel() for part in parts])

    @cached_property
    def _layers(self):
        """Of every layer: eigenvectors of both factors, and the eigenvalues of the layer."""
        layers = []
        for D, F, G in self.factors:
            root = np.sqrt(D)
            f, U = np.linalg.eigh(F / (root[:, None] * root))
            g, V = np.linalg.eigh(G)
            values = 1.0 + np.maximum(f, 0.0)[:, None] * np.maximum(g, 0.0)
            layers.append((U.T / root, V, values))
        return layers

    def __getstate__(self):
        """Without what can be made anew."""
        return {"factors": self.factors}

    @property
    def log_det(self):
        """``log det A``."""
        prior = sum(len(G) * np.sum(np.log(D)) for D, _, G in self.factors)
        return prior + sum(np.sum(np.log(values)) for _, _, values in self._layers)

    def damped(self, damping, metric):
        """As of a matrix, but for the mean of the metric over the units of a layer."""
        if not damping:
            return self
        return KroneckerPrecision(
            [
                (D + damping * part[0].mean(axis=1), F, G)
                for part, (D, F, G) in zip(self._split(metric), self.factors, strict=True)
            ]
        )

    def dense(self):
        return block_diag(
            *(np.kron(np.diag(D), np.eye(len(G))) + np.kron(F, G) for D, F, G in self.factors)
        )

    def eigenvalues(self, prior):
        """Relative to ``D`` of every layer, which ``prior`` is taken to agree with."""
        values = np.concatenate([values.ravel() for _, _, values in self._layers])
        return np.sort(values)[::-1]

    def spectrum(self, prior):
        """As of any `Precision`, relative to ``D`` of every layer."""
        values = np.concatenate([values.ravel() for _, _, values in self._layers])
        vectors = block_diag(*(np.kron(left.T, V) for left, V, _ in self._layers))
        order = np.argsort(values)[::-1]
        return values[order], vectors[:, order]

    def quadratic(self, vector):
        total = 0.0
        for (B,), (D, F, G) in zip(self._split(vector), self.factors, strict=True):
            total += np.sum(B * (D[:, None] * B + F @ B @ G))
        return total

    def whiten(self, vectors):
        parts = [
            (left @ b @ V / np.sqrt(values)).reshape(len(b), values.size)
            for b, (left, V, values) in zip(self._split(vectors.T), self._layers, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(vectors.T.shape).T

    def solve(self, vectors):
        return self._unwhiten(self.whiten(vectors).T).T

    def variances(self):
        return np.concatenate(
            [(left.T**2 @ (1.0 / values) @ V.T**2).ravel() for left, V, values in self._layers]
        )

    def trace_under(self, other):
        """``Tr(B^-1 A)``, with ``B`` of Kronecker factors, too."""
        total = 0.0
        for (left, V, values), (D, F, G) in zip(other._layers, self.factors, strict=True):
            inputs = np.sum(left @ F * left, axis=1)[:, None] * np.sum(V * (G @ V), axis=0)
            total += np.sum((inputs + np.sum(left * D * left, axis=1)[:, None]) / values)
        return total

    def draw(self, rng, size):
        return self._unwhiten(rng.standard_normal((size, len(self.diagonal))))

    def _unwhiten(self, vectors):
        """``A^(-1/2)^T b`` for ``b`` of shape (k,) or (m, k)."""
        parts = [
            (left.T @ (b / np.sqrt(values)) @ V.T).reshape(len(b), values.size)
            for b, (left, V, values) in zip(self._split(vectors), self._layers, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(vectors.shape)

    def _split(self, vectors):
        """Layers' parts of ``(k,)`` or ``(m, k)``: each ``(1 or m, fan_in + 1, fan_out)``."""
        vectors = np.atleast_2d(vectors)
        shapes = [(len(F), len(G)) for _, F, G in self.factors]
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        parts = np.split(vectors, ends, axis=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
