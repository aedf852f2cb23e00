"""Predictive density of every training row, had it not been in the training set."""

import numpy as np

from skbayesnn.network import row_blocks
from skbayesnn.predictive._moderation import (
    activation_moments,
    moderated_sigmoid,
    moderated_softmax,
)

LEAST_REST = 1e-9  # of a row's own information: rounding could make it negative


def leave_one_out(member, posterior, beta):
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
    posterior : Posterior
        With the training rows and the likelihood of the member.
    beta : ndarray of shape (n_levels,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Posterior, weight_groups
    >>> from skbayesnn.predictive import Member, Noise, leave_one_out
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [5.0]])
    >>> A = np.eye(2) + np.array([[5.0, 3.0], [3.0, 3.0]])  # noise of standard deviation 1
    >>> theta, network = np.linalg.solve(A, np.array([11.0, 6.0])), Network((1, 1))
    >>> member = Member(network, theta, DensePrecision(A), Noise(np.ones((1, 1))))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(3))
    >>> leave_one_out(member, posterior, np.ones(1)).round(1)
    array([-1.2, -1.7, -4.1])
    """
    X, y = posterior.X, posterior.y
    result = np.empty(len(X))
    n_outputs = member.network.n_outputs
    width = n_outputs * (member.network.n_weights + 4 * member.doubles_per_row)
    for rows in row_blocks(len(X), width):
        f, V = member.mean_and_covariance(X[rows])
        if member.shift is None:
            targets = posterior.targets(rows)._replace(weight=np.ones(len(f)))
            r, L = posterior.likelihood.derivatives(f, targets, beta, exact=False)
        else:  # what this row adds to the closest Gaussian
            probability, L = activation_moments(f, V)
            r = probability - y[rows]
        if L.ndim == 2:
            L = L[..., None] * np.eye(n_outputs)
        inflated = V + _gain_of_uncertainty(V, L)
        mean = f + (inflated @ r[..., None])[..., 0]
        if member.noise is None:
            result[rows] = log_probability(mean, inflated, y[rows])
        else:
            residual = (y[rows] - mean)[None]
            if posterior.variances is not None:
                inflated = inflated + posterior.variances[rows][..., None] * np.eye(n_outputs)
            result[rows] = member.noise.log_density(residual, inflated[None], X[rows])[0]
    return result


def _gain_of_uncertainty(V, L):
    """``V (1 - L V)^-1 - V = V R (1 - R V R)^-1 R V`` with ``R`` the symmetric root of ``L``."""
    values, vectors = np.linalg.eigh(L)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    leverage, directions = np.linalg.eigh(root @ V @ root)
    reach = V @ root @ directions
    rest = np.maximum(1.0 - leverage, LEAST_REST)
    return (reach / rest[:, None, :]) @ np.swapaxes(reach, 1, 2)


def log_probability(mean, covariance, y):
    """Log moderated probability of classes given Gaussian activations.

    Parameters
    ----------
    mean : ndarray of shape (n, n_outputs)
    covariance : ndarray of shape (n, n_outputs, n_outputs)
    y : ndarray of shape (n, n_outputs)
        Classes one-hot (one column of 0 and 1 for two classes).

    Returns
    -------
    ndarray of shape (n,)
    """
    if mean.shape[1] == 1:
        sign = 2.0 * y[:, 0] - 1.0
        probability = moderated_sigmoid(sign * mean[:, 0], np.maximum(covariance[:, 0, 0], 0.0))
    else:
        probability = np.sum(y * moderated_softmax(mean, covariance)[0], axis=1)
    return np.log(np.maximum(probability, np.finfo(float).tiny))
