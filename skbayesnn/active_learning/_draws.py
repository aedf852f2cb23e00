"""Information gains by Monte Carlo over drawn networks."""

import numpy as np
from scipy.special import entr

from skbayesnn.active_learning._classification import table_information
from skbayesnn.active_learning._mixtures import noise_entropy, spread_information


def regression_total(f, noise_variances):
    """Mutual information between a target and the index of the drawn network.

    It is ``H[1/m sum_s N(f_s, nu_s^2)] - 1/m sum_s H[N(f_s, nu_s^2)]``: for one output by
    quadrature; for several the mixture's entropy is replaced by that of the Gaussian of the same
    covariance, which is an upper bound.

    Parameters
    ----------
    f : ndarray of shape (m, n, n_outputs)
        Outputs of the draws.
    noise_variances : ndarray of shape (m, n, n_outputs)

    Returns
    -------
    ndarray of shape (n,)
        Gains, at most ``log m`` for one output.
    """
    m, n, n_outputs = f.shape
    if n_outputs == 1:
        f, sds, weights = f[..., 0], np.sqrt(noise_variances[..., 0]), np.full(m, 1.0 / m)
        return np.array([spread_information(f[:, i], sds[:, i], weights) for i in range(n)])
    apart = np.moveaxis(f - f.mean(axis=0), 0, -1)
    noise = noise_variances.mean(axis=0)[..., None] * np.eye(n_outputs)
    covariance = apart @ np.swapaxes(apart, 1, 2) / m + noise
    entropy = 0.5 * np.linalg.slogdet(2.0 * np.pi * np.e * covariance)[1]
    return entropy - np.mean(np.sum(noise_entropy(noise_variances), axis=-1), axis=0)


def classification_total(p):
    """Mutual information ``H[E p] - E H[p]`` over draws (Houlsby et al. 2011, equation 2).

    Parameters
    ----------
    p : ndarray of shape (m, n, n_classes)

    Returns
    -------
    ndarray of shape (n,)
    """
    of_mean = np.sum(entr(p.mean(axis=0)), axis=-1)
    return np.maximum(of_mean - np.sum(entr(p), axis=-1).mean(axis=0), 0.0)


def classification_marginal(p, p_interest):
    """Mutual information of two classes, from their joint probabilities over the draws.

    Parameters
    ----------
    p : ndarray of shape (m, n, n_classes)
    p_interest : ndarray of shape (m, n_points, n_classes)

    Returns
    -------
    ndarray of shape (n, n_points)
    """
    m, n, n_classes = p.shape
    table = p.reshape(m, -1).T @ p_interest.reshape(m, -1) / m
    return table_information(np.swapaxes(table.reshape(n, n_classes, -1, n_classes), 1, 2))
