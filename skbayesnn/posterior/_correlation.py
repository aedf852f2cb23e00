"""Correlation matrices: their prior, and coordinates in which that is standard normal.

The prior is uniform over all correlation matrices (Lewandowski, Kurowicka & Joe 2009, with
``eta = 1``). Partial correlations of every pair of outputs, given those that come before both, are
then independent of each other with symmetric Beta distributions on (-1, 1) (Joe 2006).
"""

import numpy as np
from scipy.special import betainc, betaincinv, betaln, ndtr, ndtri

FARTHEST = 30.0  # coordinate beyond which correlations stay what they are


def n_correlations(n_outputs):
    """Number of pairs of outputs."""
    return n_outputs * (n_outputs - 1) // 2


def log_prior(n_outputs):
    """Log density of the uniform distribution over correlation matrices (Joe 2006).

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import log_prior_of_correlations
    >>> print(np.exp(-log_prior_of_correlations(2)))  # one correlation between -1 and 1
    2.0
    """
    k = np.arange(1, n_outputs)
    a = 0.5 * (n_outputs - k + 1.0)
    power = (n_outputs - k) * ((n_outputs - k) * np.log(2.0) + betaln(a, a))
    return -float(np.sum(power))


def _pairs(n_outputs):
    """Rows and columns of all pairs, and the parameter of the Beta distribution of each."""
    rows, columns = np.tril_indices(n_outputs, -1)
    return rows, columns, 1.0 + 0.5 * (n_outputs - 2 - columns)


def correlation_root(z, n_outputs):
    """Cholesky factor of a correlation matrix, and its derivatives in standard normal coordinates.

    Parameters
    ----------
    z : ndarray of shape (..., m)
        One coordinate for every pair of outputs.
    n_outputs : int

    Returns
    -------
    root : ndarray of shape (..., n_outputs, n_outputs)
    slopes : ndarray of shape (..., m, n_outputs, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import correlation_root
    >>> L, _ = correlation_root(np.array([0.6744897501960817]), 2)  # quartile of the normal
    >>> (L @ L.T).round(6)  # and of the uniform distribution on (-1, 1)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    rows, _, a = _pairs(n_outputs)
    size = np.minimum(np.abs(z), FARTHEST)
    below = betaincinv(a, a, ndtr(-size))  # (1 - |c|) / 2, exact near 0
    rest = 4.0 * below * (1.0 - below)  # 1 - c^2
    partial = np.sign(z) * (1.0 - 2.0 * below)
    log_density = (a - 1.0) * np.log(0.25 * rest) - betaln(a, a)
    slope = 2.0 * np.exp(-0.5 * size**2 - log_density) / np.sqrt(2.0 * np.pi)
    root = np.zeros((*z.shape[:-1], n_outputs, n_outputs))
    slopes = np.zeros((*z.shape[:-1], len(rows), n_outputs, n_outputs))
    root[..., 0, 0] = 1.0
    for i in range(1, n_outputs):
        left = np.ones(z.shape[:-1])  # of the row's length
        mine = np.flatnonzero(rows == i)  # their columns rise from 0
        for j, m in enumerate(mine):
            root[..., i, j] = partial[..., m] * left
            slopes[..., m, i, j] = slope[..., m] * left
            left = left * np.sqrt(rest[..., m])
        root[..., i, i] = left
        for j, m in enumerate(mine):  # later columns have the factor (1 - c^2)^(1/2)
            fall = -partial[..., m] * slope[..., m] / rest[..., m]
            slopes[..., m, i, j + 1 : i + 1] = fall[..., None] * root[..., i, j + 1 : i + 1]
    return root, slopes


def correlation_coordinates(correlation):
    """Coordinates ``(m,)`` of a correlation matrix, the inverse of `correlation_root`."""
    n_outputs = len(correlation)
    rows, columns, a = _pairs(n_outputs)
    root = np.linalg.cholesky(correlation)
    left = np.array([np.sqrt(np.sum(root[i, j:] ** 2)) for i, j in zip(rows, columns, strict=True)])
    partial = root[rows, columns] / left
    below = betainc(a, a, 0.5 * (1.0 - np.abs(partial)))
    return -np.sign(partial) * ndtri(below)
