"""Kronecker-factored curvature of large networks, one product per layer."""

from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from skbayesnn.inference.curvature._precision import Precision
from skbayesnn.network import sensitivities


class KroneckerPrecision(Precision):
    """Block-diagonal precision with ``A = D x 1 + F x G`` for every layer (Kronecker products).

    The generalised eigenvectors of ``F`` and ``D`` and the eigenvectors of ``G`` diagonalise the
    matrix of a layer, at no more than the cost of its factors (Ritter, Botev & Barber 2018, who
    take a multiple of 1 for ``D``). The inputs of a layer are assumed independent of the
    derivatives with respect to its summed inputs (Martens & Grosse 2015). The error of log
    determinants is about a nat per weight. Training with these factors is by gradients, so that
    there are no damped matrices and traces.

    The factors of every layer are the diagonal of ``D``, of shape (fan_in + 1,), ``F`` of shape
    (fan_in + 1, fan_in + 1), and ``G`` of shape (fan_out, fan_out).
    """

    forms_jacobians = False

    def __init__(self, factors):
        self.factors = factors

    @cached_property
    def diagonal(self):
        """Diagonal of ``A``."""
        parts = [D[:, None] + np.outer(np.diag(F), np.diag(G)) for D, F, G in self.factors]
        return np.concatenate([part.ravel() for part in parts])

    @cached_property
    def _layers(self):
        """Eigenvectors of both factors and eigenvalues of the product, for every layer."""
        layers = []
        for D, F, G in self.factors:
            root = np.sqrt(D)
            f, U = np.linalg.eigh(F / (root[:, None] * root))
            g, V = np.linalg.eigh(G)
            values = 1.0 + np.maximum(f, 0.0)[:, None] * np.maximum(g, 0.0)
            layers.append((U.T / root, V, values))
        return layers

    def __getstate__(self):
        """State without derived arrays."""
        return {"factors": self.factors}

    @property
    def log_det(self):
        """Log determinant ``log det A``."""
        prior = sum(len(G) * np.sum(np.log(D)) for D, _, G in self.factors)
        return prior + sum(np.sum(np.log(values)) for _, _, values in self._layers)

    def dense(self):
        return block_diag(
            *(np.kron(np.diag(D), np.eye(len(G))) + np.kron(F, G) for D, F, G in self.factors)
        )

    def eigenvalues(self, prior):
        """Eigenvalues relative to ``D`` of every layer, which ``prior`` is assumed to equal."""
        values = np.concatenate([values.ravel() for _, _, values in self._layers])
        return np.sort(values)[::-1]

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

    def output_covariances(self, trace, free=slice(None)):
        """Covariances from both factors of every layer, without a Jacobian, see `Precision`."""
        return sum(
            (outputs * variances[:, None]) @ np.swapaxes(outputs, -1, -2)
            for outputs, variances in self._independent_parts(trace)
        )

    def relative_variances(self, trace, free=slice(None)):
        result = 0.0
        for outputs, variances in self._independent_parts(trace):
            squares = (outputs - outputs.mean(axis=-2, keepdims=True)) ** 2
            if squares.ndim == 2:
                result = result + variances @ squares.T
            else:
                result = result + (squares @ variances[..., None])[..., 0]
        return result

    def _independent_parts(self, trace):
        """Yield for every layer derivatives of outputs, and variances ``(n, fan_out)``.

        The derivatives by independent combinations of the layer's summed inputs, which have these
        variances, are ``(n, n_outputs, fan_out)``, in the output layer those of all rows.
        """
        deltas, n_layers = dict(sensitivities(trace)), len(trace.layers)
        for layer, (left, V, values) in enumerate(self._layers, n_layers - len(self._layers)):
            summed = (trace.inputs[layer] @ left.T) ** 2 @ (1.0 / values)
            yield V if layer == n_layers - 1 else deltas[layer] @ V, summed

    def draw(self, rng, size):
        return self._unwhiten(rng.standard_normal((size, len(self.diagonal))))

    def _unwhiten(self, vectors):
        """Product ``A^(-1/2)^T b`` for ``b`` of shape (k,) or (m, k)."""
        parts = [
            (left.T @ (b / np.sqrt(values)) @ V.T).reshape(len(b), values.size)
            for b, (left, V, values) in zip(self._split(vectors), self._layers, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape(vectors.shape)

    def _split(self, vectors):
        """Split ``(k,)`` or ``(m, k)`` by layer into ``(1 or m, fan_in + 1, fan_out)``."""
        vectors = np.atleast_2d(vectors)
        shapes = [(len(F), len(G)) for _, F, G in self.factors]
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        parts = np.split(vectors, ends, axis=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
