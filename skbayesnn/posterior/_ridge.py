"""Bayesian linear regression on hidden units, in units of the prior, many at once."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

DROWNING = 1e6  # entry of a singular matrix above which adding 1 loses too many digits
HOPELESS = 1e10  # the same for other matrices
MANY, WIDEST_SWEPT = 32, 16  # matrices that are faster inverted all at once, and their width


def ridge(gram, moment, rank):
    """Mean ``B^-1 m``, ``B^-1`` and ``log det B`` for ``B = 1 + G``.

    Where ``G``, whose rank is at most ``rank``, is so large that the 1 would drown in rounding, by
    eigenvalues: fewer rows than units then do no harm while ``beta`` is below some 1e10 ``alpha``.

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

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import ridge
    >>> Z, y = np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1.0, 3.0])
    >>> mean, inverse, log_det = ridge(Z.T @ Z, Z.T @ y, rank=2)
    >>> (np.eye(2) + Z.T @ Z) @ mean, Z.T @ y
    (array([4., 6.]), array([4., 6.]))
    """
    size, lead = gram.shape[-1], gram.shape[:-2]
    system, good = _system(gram, rank)
    inverse, log_det, done = _inverses(system.reshape(-1, size, size), np.ravel(good))
    inverse, log_det = inverse.reshape(system.shape), log_det.reshape(lead)
    mean = (inverse @ moment[..., None])[..., 0]
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


def ridge_mean(gram, moment, rank):
    """The mean of `ridge` alone."""
    system, good = _system(gram, rank)
    if not good.all():
        return ridge(gram, moment, rank)[0]
    return np.linalg.solve(system, moment[..., None])[..., 0]


def _system(gram, rank):
    """``1 + G``, and where the 1 does not drown in rounding."""
    units = np.arange(gram.shape[-1])
    system = gram.copy()
    system[..., units, units] += 1.0
    limit = largest_diagonal(len(units), rank)
    return system, system[..., units, units].max(axis=-1) <= limit


def largest_diagonal(width, rank):
    """Entry of ``1 + G`` up to which adding 1 loses few digits."""
    return DROWNING if rank < width else HOPELESS


def _inverses(matrices, chosen):
    """Inverses and log determinants of positive definite matrices ``(m, d, d)``.

    Returns
    -------
    inverses : ndarray of shape (m, d, d)
    log_det : ndarray of shape (m,)
    done : ndarray of bool, shape (m,)
        Those of the chosen ones that are positive definite.
    """
    count, size = matrices.shape[:2]
    many = count >= MANY and size <= WIDEST_SWEPT
    return (_by_sweeps if many else _by_cholesky)(matrices, chosen)


def _by_cholesky(matrices, chosen):
    """One after the other: a loop over LAPACK is faster than NumPy's general inverses."""
    inverse, roots, done = np.zeros_like(matrices), np.ones(matrices.shape[:-1]), chosen.copy()
    for i in np.flatnonzero(chosen):
        factor, failed = dpotrf(matrices[i].T, lower=1)
        done[i] = not failed
        if not failed:
            roots[i] = factor.diagonal()
            inverse[i] = dpotri(factor, lower=1)[0]  # its lower triangle
    inverse = inverse + inverse.swapaxes(-1, -2)
    units = np.arange(matrices.shape[-1])
    inverse[:, units, units] *= 0.5
    return inverse, 2.0 * np.sum(np.log(roots), axis=-1), done


def _by_sweeps(matrices, chosen):
    """All at once, eliminating one column after the other (Gauss-Jordan, the pivots positive)."""
    work = np.where(chosen[:, None, None], matrices, np.eye(matrices.shape[-1]))
    work = np.ascontiguousarray(work.transpose(1, 2, 0))  # matrices along the last axis: faster
    log_det, done = np.zeros(len(matrices)), chosen.copy()
    for j in range(len(work)):
        pivot = work[j, j].copy()
        done &= pivot > 0.0
        pivot = np.where(done, pivot, 1.0)
        log_det += np.log(pivot)
        row = work[j] / pivot
        column = work[:, j].copy()
        column[j] = 0.0
        work -= column[:, None] * row
        work[:, j] = -column / pivot
        work[j], work[j, j] = row, 1.0 / pivot
    inverse = np.where(done, work, 0.0).transpose(2, 0, 1)
    return 0.5 * (inverse + inverse.swapaxes(-1, -2)), log_det, done


def spectrum(gram, rank):
    """Eigenvalues, those beyond the rank exactly zero, and eigenvectors of ``Z^T Z``."""
    values, vectors = np.linalg.eigh(gram)
    values[..., : max(0, values.shape[-1] - rank)] = 0.0
    return np.maximum(values, 0.0), vectors
