"""Marginal and complete likelihoods of targets, with noise that may differ between rows.

Given the hidden units the linear output layer is a Bayesian linear regression (Bishop 2006, section
3.5), which can be integrated out. The noise precision of a row is the precision of the output times
a factor of the row.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from skbayesnn.network import vector_jacobian

MIN_PIVOT = 1e-10  # share of its diagonal entry, below which rounding has decided a pivot
OF_SINGULAR = 1e-6  # this tolerance if `G` is singular, whose zeros are known exactly


class Regression(NamedTuple):
    """Data part of an energy without the normalisers of the noise, and its derivatives.

    The value is the energy ``1/2 sum_no s_n F_no tau_o e_no^2``, or, if the output layer is
    integrated out, minus the log of the integral of its negative exponential under the prior. The
    gradient is then that in the hidden units, ``(..., n, width)``, otherwise that in all weights,
    ``(..., k)``.
    """

    value: np.ndarray  # (...)
    gradient: np.ndarray
    log_alpha: np.ndarray  # by those of integrated output weights, (..., width, n_outputs)
    log_precision: np.ndarray  # by ln tau_o, (..., n_outputs)
    log_factors: np.ndarray  # by ln F_no, (..., n, n_outputs)


class Targets(NamedTuple):
    """Targets of some rows, with their weights and noise factors."""

    y: np.ndarray  # (..., n, n_outputs)
    weight: np.ndarray  # (n,), how often every row counts
    # (..., n, n_outputs) or (..., n, 1), factors ``F`` of the misfit of every target: precisions
    # relative to those of the noise levels; ``None``: all 1
    factors: np.ndarray | None = None
    # (n, n_outputs), further number that belongs to every target, by the likelihood: the variance
    # of its measurement error, the exposure of a count, or on which side of a limit the value lies
    known: np.ndarray | None = None
    precision: np.ndarray | None = None  # of Gaussian noise, tau_o, (..., n_outputs)

    @property
    def counts(self):
        """Effective counts ``s_n F_no``, ``(..., n, n_outputs)`` or ``(..., n, 1)``."""
        weight = self.weight[:, None]
        return weight if self.factors is None else weight * self.factors


def regression_system(rows, z, sd):
    """Build the ridge regression of the targets on hidden units ``z``, in units of the prior.

    With ``z`` ``(..., n, width)``, ``sd`` ``(..., n_outputs, width)`` are the prior standard
    deviations ``A^(-1/2)`` of the output layer's weights. With ``W`` weighing the rows, returned
    are ``A^(-1/2) tau Z^T W Z A^(-1/2)`` and ``A^(-1/2) tau Z^T W y``.
    """
    weights, transposed = rows.counts, np.swapaxes(z, -1, -2)
    columns = np.swapaxes(weights, -1, -2)[..., None, :]  # (..., o or 1, 1, n)
    gram = (transposed[..., None, :, :] * columns) @ z[..., None, :, :]
    moment = np.swapaxes(transposed @ (weights * rows.y), -1, -2)
    by_precision = sd * rows.precision[..., None]
    gram = gram * (by_precision[..., :, None] * sd[..., None, :])
    return gram, moment * by_precision


def integrated(rows, z, sd):
    """Integrate the output layer out (Bishop 2006, equation 3.86); see `regression_system`."""
    if z.shape[-1] > z.shape[-2]:
        return _integrated_in_rows(rows, z, sd)
    gram, moment = regression_system(rows, z, sd)
    scaled, inverse, log_det = ridge(gram, moment, z.shape[-2])  # scaled: mean weights
    precision, weights = rows.precision, rows.counts
    mean = (scaled * sd).swapaxes(-1, -2)
    residual = z @ mean - rows.y
    squares = precision * (weights * residual**2).sum(axis=-2)
    scaled_squares = scaled * scaled
    value = 0.5 * (squares + scaled_squares.sum(axis=-1) + log_det).sum(axis=-1)

    # tau times the covariance of output weights, (..., o, width, width), and its products with z
    spread = inverse * ((precision[..., None] * sd)[..., :, None] * sd[..., None, :])
    projected = z[..., None, :, :] @ spread
    pull = np.einsum("...no,...onw->...nw", weights, projected)  # of 1/2 log det
    pull += (weights * residual * precision[..., None, :]) @ np.swapaxes(mean, -1, -2)

    # 1/2 alpha (m^2 + S^-1) - 1/2 of every output weight
    variances = inverse.diagonal(axis1=-2, axis2=-1)
    determined = 0.5 * (scaled_squares + variances - 1.0)
    # tau/2 (residuals^2 + Tr S^-1 Z^T W Z) of every output, and of every row
    by_precision = 0.5 * (squares + variances.shape[-1] - variances.sum(axis=-1))
    variance = np.einsum("...onw,...nw->...no", projected, z)
    by_factors = 0.5 * weights * (precision[..., None, :] * residual**2 + variance)
    return Regression(value, pull, determined.swapaxes(-1, -2), by_precision, by_factors)


def row_system(rows, z, sd):
    """Build the ridge regression in the space of the rows, for fewer rows than units.

    Returned are the design ``(W tau)^(1/2) Z A^(-1/2)``, ``(..., n_outputs, n, width)``, the
    targets ``(W tau)^(1/2) y``, ``(..., n_outputs, n)``, and the square roots ``(W tau)^(1/2)``.
    """
    roots = np.sqrt(rows.precision[..., None] * np.swapaxes(rows.counts, -1, -2))
    design = z[..., None, :, :] * roots[..., None]
    design *= sd[..., None, :]
    return design, roots * np.swapaxes(rows.y, -1, -2), roots


def _integrated_in_rows(rows, z, sd):
    """Integrate the output layer out by the covariance ``B = 1 + Z A^-1 Z^T`` of the targets.

    Noise has unit variance here, see `row_system`. The value is that of a Gaussian process,
    ``1/2 (y^T B^-1 y + log det B)`` (Rasmussen & Williams 2006, equation 2.30), and remains
    accurate where the Gram matrix of the units is singular.
    """
    design, y, roots = row_system(rows, z, sd)
    gram = design @ np.swapaxes(design, -1, -2)
    c, inverse, log_det = ridge(gram, y, z.shape[-2])  # c: minus the residuals
    value = 0.5 * (np.sum(c * y, axis=-1) + log_det).sum(axis=-1)

    pull = (inverse - c[..., :, None] * c[..., None, :]) @ design
    determined = -0.5 * np.einsum("...nk,...nk->...k", design, pull)
    pull *= roots[..., None]
    pull *= sd[..., None, :]
    pull = pull.sum(axis=-3) if pull.shape[-3] > 1 else pull[..., 0, :, :]
    fitted = 1.0 - inverse.diagonal(axis1=-2, axis2=-1)  # variance of the function
    by_factors = 0.5 * np.swapaxes(c**2 + fitted, -1, -2)
    by_precision = 0.5 * np.sum(c**2 + fitted, axis=-1)
    return Regression(value, pull, determined.swapaxes(-1, -2), by_precision, by_factors)


class OutputLayer(NamedTuple):
    """Gaussian posterior of an output layer given the hidden units (Bishop 2006, equation 3.49).

    In units of the prior its covariance is ``1 - K^T K``, the square of ``1 - K^T F K``. ``K`` has
    as many rows ``r`` as there are rows of data or units, whichever are fewer.
    """

    sd: np.ndarray  # of the prior, (..., n_outputs, width)
    mean: np.ndarray  # of the weights, (..., n_outputs, width)
    known: np.ndarray  # K, (..., n_outputs, r, width)
    factors: np.ndarray  # diagonal of F, (..., n_outputs, r)

    @classmethod
    def of(cls, rows, z, sd):
        """Solve the ridge regressions of targets on hidden units ``z``, see `regression_system`."""
        if z.shape[-1] > z.shape[-2]:
            design, y, _ = row_system(rows, z, sd)
            values, vectors = spectrum(design @ np.swapaxes(design, -1, -2), z.shape[-2])
            roots = np.sqrt(1.0 + values)
            to_eigenvectors = np.swapaxes(vectors, -1, -2) / roots[..., None]
            known = to_eigenvectors @ design
            mean = np.swapaxes(known, -1, -2) @ (to_eigenvectors @ y[..., None])
        else:
            gram, moment = regression_system(rows, z, sd)
            values, vectors = spectrum(gram, z.shape[-2])
            roots, to_eigenvectors = np.sqrt(1.0 + values), np.swapaxes(vectors, -1, -2)
            known = to_eigenvectors * (np.sqrt(values) / roots)[..., None]
            along = to_eigenvectors @ moment[..., None]
            mean = vectors @ (along / (1.0 + values)[..., None])
        return cls(sd, sd * mean[..., 0], known, roots / (1.0 + roots))

    def at(self, networks):
        """Select the output layers of some networks by indices of the first axis."""
        return OutputLayer(*(array[networks] for array in self))

    def weights(self, normal):
        """Map standard normal numbers to draws of the weights, both ``(..., n_outputs, width)``."""
        along = self.factors[..., None] * (self.known @ normal[..., None])
        known = np.swapaxes(self.known, -1, -2) @ along
        return self.mean + self.sd * (normal - known[..., 0])

    def roots(self, z):
        """Matrices of the covariance ``P P^T - Q Q^T`` of outputs at hidden units ``z``.

        With ``z`` ``(..., n, width)``, ``P = z A^(-1/2)`` is ``(..., n_outputs, n, width)``, and
        ``Q = P K^T``. A missing last unit is the constant, whose derivatives are zero.
        """
        width = z.shape[-1]
        root = z[..., None, :, :] * self.sd[..., None, :width]
        return root, root @ np.swapaxes(self.known[..., :width], -1, -2)

    def variances(self, z):
        """Variances of the outputs at hidden units, ``(..., n, n_outputs)``."""
        root, known = self.roots(z)
        variance = np.sum(root * root, axis=-1) - np.sum(known * known, axis=-1)
        return np.maximum(variance, 0.0).swapaxes(-1, -2)


def left_out_outputs(rows, z, sd):
    """Mean and variance of every output given the targets of the other rows.

    One unit of weight of each row is left out in turn, with the hidden units given. Leaving out a
    target of precision ``t`` changes mean ``f`` and variance ``V`` of its output, with leverage
    ``t V``, to ``y + (f - y) / (1 - t V)`` and ``V / (1 - t V)`` (Cook 1977). The latter is at most
    the variance ``P`` under the prior, so that ``1 - t V`` is at least ``1 / (1 + t P)``.

    Both are of shape ``(m, n, n_outputs)``, for ``m`` networks with their own ``sd``.
    """
    z = np.broadcast_to(z, (*sd.shape[:-2], *z.shape[-2:]))
    layer = OutputLayer.of(rows, z, sd)
    residual, variance = z @ layer.mean.swapaxes(-1, -2) - rows.y, layer.variances(z)
    prior = np.sum(layer.roots(z)[0] ** 2, axis=-1).swapaxes(-1, -2)
    precision = rows.precision[..., None, :]
    if rows.factors is not None:
        precision = precision * rows.factors
    rest = np.maximum(1.0 - precision * variance, 1.0 / (1.0 + precision * prior))
    return rows.y + residual / rest, np.minimum(variance / rest, prior)


def complete(rows, trace):
    """Evaluate the energy with all weights given."""
    residual = trace.outputs - rows.y
    weighted = rows.precision[..., None, :] * residual * rows.counts
    by_factors = 0.5 * weighted * residual
    by_precision = np.sum(by_factors, axis=-2)
    value = np.sum(by_precision, axis=-1)
    gradient = vector_jacobian(trace, weighted)
    return Regression(value, gradient, np.zeros(0), by_precision, by_factors)


def ridge(gram, moment, rank):
    """Solve ridge regressions: ``B^-1 m``, ``B^-1`` and ``log det B`` for ``B = 1 + G``.

    Where a pivot of ``B`` loses too many digits, the eigenvalues of ``G``, whose rank is at most
    ``rank``, are used instead: fewer rows than units then remain accurate while ``beta`` is below
    about 1e10 ``alpha``.

    The Gram matrix ``G`` is ``(..., width, width)``, the moment ``m`` ``(..., width)``.
    """
    size, lead = gram.shape[-1], gram.shape[:-2]
    system = (gram + np.eye(size)).reshape(-1, size, size)
    inverse, log_det, done = _by_cholesky(system, OF_SINGULAR if rank < size else MIN_PIVOT)
    inverse, log_det = inverse.reshape(gram.shape), log_det.reshape(lead)
    # a product of matrices would round differently for one system than for several
    mean = np.sum(inverse * moment[..., None, :], axis=-1)
    if not done.all():
        rest = ~done.reshape(lead)
        some = gram[rest]
        some = np.where(np.isfinite(some), some, 0.0)  # of trajectories that are given up
        values, vectors = spectrum(some, rank)
        shrunk = vectors / (1.0 + values)[..., None, :]
        along = np.swapaxes(vectors, -1, -2) @ moment[rest][..., None]
        mean[rest] = (shrunk @ along)[..., 0]
        inverse[rest] = shrunk @ np.swapaxes(vectors, -1, -2)
        log_det[rest] = np.sum(np.log1p(values), axis=-1)
    return mean, inverse, log_det


def _by_cholesky(matrices, least):
    """Inverses and log determinants of positive definite matrices ``(m, d, d)`` by Cholesky.

    The matrices are treated in turn: a loop over LAPACK is faster than NumPy's general inverses. A
    mask marks matrices whose pivots are all at least ``least`` times their diagonal entries.
    """
    inverse, roots = np.zeros_like(matrices), np.ones(matrices.shape[:-1])
    done = np.zeros(len(matrices), dtype=bool)
    for i, matrix in enumerate(matrices):
        factor, failed = dpotrf(matrix.T, lower=1)
        pivots = factor.diagonal()
        done[i] = not failed and np.all(pivots * pivots >= least * matrix.diagonal())
        if done[i]:
            roots[i] = pivots
            inverse[i] = dpotri(factor, lower=1)[0]  # its lower triangle
    inverse = inverse + inverse.swapaxes(-1, -2)
    units = np.arange(matrices.shape[-1])
    inverse[:, units, units] *= 0.5
    return inverse, 2.0 * np.sum(np.log(roots), axis=-1), done


def spectrum(gram, rank):
    """Eigenvalues, exactly zero beyond the rank, and eigenvectors of ``Z^T Z``."""
    values, vectors = np.linalg.eigh(gram)
    values[..., : max(0, values.shape[-1] - rank)] = 0.0
    return np.maximum(values, 0.0), vectors


def symmetric_root(matrices):
    """Symmetric roots ``R`` with ``R R`` a semidefinite matrix, ``(..., p, p)``.

    They change little with small changes of the matrices.
    """
    values, vectors = np.linalg.eigh(matrices)
    roots = np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return (vectors * roots) @ np.swapaxes(vectors, -1, -2)
