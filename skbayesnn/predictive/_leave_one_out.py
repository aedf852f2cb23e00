"""Predictive density of every training row, had it not been in the training set."""

import numpy as np

from skbayesnn.network import row_blocks
from skbayesnn.predictive._mixture import log_normal_density
from skbayesnn.predictive._moderation import moderated_sigmoid, moderated_softmax


def leave_one_out(member, likelihood, precisions, X, y):
    """Log predictive densities without one unit of weight of each row, in closed form.

    In the linearised posterior, taking one observation with residual ``r`` and curvature ``L`` away
    changes mean and covariance ``V`` of its own activations to::

        f + V (1 - L V)^-1 r,     V (1 - L V)^-1

    which is exact for linear models with Gaussian noise (Cook 1977; Rasmussen & Williams 2006,
    5.12).

    Parameters
    ----------
    member : Member
        With a Gauss-Newton posterior, in which ``1 - L V`` is positive definite.
    likelihood : Gaussian, Bernoulli or Categorical
    precisions : ndarray of shape (n_levels,)
        ``beta``.
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n, n_outputs)

    Returns
    -------
    ndarray of shape (n,)
    """
    result = np.empty(len(X))
    n_outputs = y.shape[1]
    for rows in row_blocks(len(X), n_outputs * member.network.n_weights):
        f, V = member.mean_and_covariance(X[rows])
        ones = np.ones(len(f))
        r, L = likelihood.derivatives(f, y[rows], ones, precisions)
        if L.ndim == 2:
            L = L[..., None] * np.eye(n_outputs)
        inflated = V @ np.linalg.inv(np.eye(n_outputs) - L @ V)
        mean = f + (inflated @ r[..., None])[..., 0]
        covariance = 0.5 * (inflated + np.swapaxes(inflated, 1, 2))
        result[rows] = log_density(likelihood, mean, covariance, member.noise_variance, y[rows])
    return result


def log_density(likelihood, mean, covariance, noise_variance, y):
    """Log predictive density of targets given Gaussian activations.

    Parameters
    ----------
    likelihood : Gaussian, Bernoulli or Categorical
    mean : ndarray of shape (n, n_outputs)
    covariance : ndarray of shape (n, n_outputs, n_outputs)
        Due to the weights.
    noise_variance : ndarray of shape (n_outputs,)
    y : ndarray of shape (n, n_outputs)
        Classes one-hot (one column of 0 and 1 for two classes).

    Returns
    -------
    ndarray of shape (n,)
    """
    if likelihood.has_noise:
        return log_normal_density(y - mean, covariance + np.diag(noise_variance))
    if mean.shape[1] == 1:
        sign = 2.0 * y[:, 0] - 1.0
        probability = moderated_sigmoid(sign * mean[:, 0], np.maximum(covariance[:, 0, 0], 0.0))
    else:
        probability = np.sum(y * moderated_softmax(mean, covariance)[0], axis=1)
    return np.log(np.maximum(probability, np.finfo(float).tiny))
