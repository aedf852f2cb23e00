"""Bayesian linear regression on hidden units, in units of the prior, many at once."""

import numpy as np

DROWNING = 1e6  # entry of a matrix above which adding 1 loses too many digits


def ridge(gram, moment, rank):
    """Mean ``B^-1 m``, ``B^-1`` and ``log det B`` for ``B = 1 + G``.

    Where ``G``, whose rank is at most ``rank``, is so large that the 1 would drown in rounding, by
    eigenvalues: fewer rows than units then do no harm while ``beta`` is below some 1e10 ``alpha``.
    """
    units = np.arange(gram.shape[-1])
    system = gram.copy()
    system[..., units, units] += 1.0
    large = np.max(system[..., units, units], axis=-1) > DROWNING
    inverse, log_det = np.linalg.inv(system), np.linalg.slogdet(system)[1]
    mean = (inverse @ moment[..., None])[..., 0]
    if np.any(large):
        some = gram[large]
        some = np.where(np.isfinite(some), some, 0.0)  # of trajectories that are given up
        values, vectors = spectrum(some, rank)
        shrunk = vectors / (1.0 + values)[..., None, :]
        along = np.swapaxes(vectors, -1, -2) @ moment[large][..., None]
        mean[large] = (shrunk @ along)[..., 0]
        inverse[large] = shrunk @ np.swapaxes(vectors, -1, -2)
        log_det[large] = np.sum(np.log1p(values), axis=-1)
    return mean, inverse, log_det


def spectrum(gram, rank):
    """Eigenvalues, those beyond the rank exactly zero, and eigenvectors of ``Z^T Z``."""
    values, vectors = np.linalg.eigh(gram)
    values[..., : max(0, values.shape[-1] - rank)] = 0.0
    return np.maximum(values, 0.0), vectors
