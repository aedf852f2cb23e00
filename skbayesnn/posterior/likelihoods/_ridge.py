"""Batched Bayesian linear regression on hidden units, in units of the prior."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

LEAST_PIVOT = 1e-10  # share of its diagonal entry, below which rounding has decided a pivot
OF_SINGULAR = 1e-6  # the same if `G` is singular, whose zeros are known exactly


def ridge(gram, moment, rank):
    """Solve ridge regressions: ``B^-1 m``, ``B^-1`` and ``log det B`` for ``B = 1 + G``.

    Where a pivot of ``B`` loses too many digits, the eigenvalues of ``G``, whose rank is at most
    ``rank``, are used instead: fewer rows than units then remain accurate while ``beta`` is below
    about 1e10 ``alpha``.

    Parameters
    ----------
    gram : ndarray of shape (..., width, width)
    moment : ndarray of shape (..., width)
    rank : int

    Returns
    -------
    mean : ndarray of shape (..., width)
    inverse : ndarray of shape (..., width, width)
    log_det : ndarray of shape (...)
    """
    size, lead = gram.shape[-1], gram.shape[:-2]
    system = (gram + np.eye(size)).reshape(-1, size, size)
    inverse, log_det, done = _by_cholesky(system, least_pivot(size, rank))
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


def least_pivot(width, rank):
    """Least accurate pivot of ``1 + G``, relative to its diagonal entry."""
    return OF_SINGULAR if rank < width else LEAST_PIVOT


def _by_cholesky(matrices, least):
    """Inverses and log determinants of positive definite matrices ``(m, d, d)`` by Cholesky.

    The matrices are treated in turn: a loop over LAPACK is faster than NumPy's general inverses.

    Returns
    -------
    inverses : ndarray of shape (m, d, d)
    log_det : ndarray of shape (m,)
    done : ndarray of bool, shape (m,)
        Mask of the matrices whose pivots are all at least ``least`` times their diagonal entries.
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
