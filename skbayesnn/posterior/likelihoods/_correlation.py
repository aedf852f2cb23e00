"""Uniform prior of correlation matrices, and coordinates that are standard normal under it.

Let ``W`` be a matrix of ``p`` rows and ``p + 1`` columns of independent standard normal numbers.
Then ``W W^T`` has a Wishart distribution of ``p + 1`` degrees of freedom, and its correlation
matrix is uniform over all correlation matrices (Barnard, McCulloch & Meng 2000, section 2.2). The
coordinates are redundant in rotations and lengths of the rows, which only the prior determines.
"""

import numpy as np
from scipy.special import gammaln, multigammaln

WELL_APART = 1e-10  # least eigenvalue of a correlation matrix


def n_coordinates(n_outputs):
    """Number of coordinates of a correlation matrix."""
    return n_outputs * (n_outputs + 1)


def log_prior(n_outputs):
    """Log density of the uniform distribution over correlation matrices."""
    a = 0.5 * (n_outputs + 1)
    return float(n_outputs * gammaln(a) - multigammaln(a, n_outputs))


def correlation_of(covariance):
    """Correlation matrices of covariance matrices, with eigenvalues bounded from below."""
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    correlation = covariance / sd[..., :, None] / sd[..., None, :]
    return correlation + WELL_APART * (np.eye(sd.shape[-1]) - correlation)


def correlation_matrix(z, n_outputs):
    """Map standard normal coordinates to correlation matrices and their derivatives.

    Parameters
    ----------
    z : ndarray of shape (..., m)
    n_outputs : int

    Returns
    -------
    correlation : ndarray of shape (..., n_outputs, n_outputs)
    slopes : ndarray of shape (..., m, n_outputs, n_outputs)
    """
    lead = z.shape[:-1]
    rows = z.reshape(*lead, n_outputs, n_outputs + 1)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit = rows / length
    correlation = correlation_of(unit @ np.swapaxes(unit, -1, -2))
    # d R_ab / d W_ad = (U_bd - R_ab U_ad) / |W_a|
    pull = unit[..., None, :, :] - correlation[..., None] * unit[..., :, None, :]
    pull = (1.0 - WELL_APART) * pull / length[..., None]
    slopes = np.einsum("ac,...abd->...adcb", np.eye(n_outputs), pull)
    slopes = (slopes + np.swapaxes(slopes, -1, -2)).reshape(*z.shape, n_outputs, n_outputs)
    return correlation, slopes


def correlation_coordinates(correlation):
    """Coordinates of typical size that `correlation_matrix` maps to given correlation matrices."""
    p = correlation.shape[-1]
    root = np.linalg.cholesky(correlation)
    rows = np.concatenate([root, np.zeros((*root.shape[:-1], 1))], axis=-1)
    return np.sqrt(p + 1.0) * rows.reshape(*rows.shape[:-2], n_coordinates(p))
