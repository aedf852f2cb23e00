"""Mixtures of Gaussians: moments, and the weights of several minima."""

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp

TEMPERATURE = 0.05  # fall of the log density in nats per row that divides a weight by e
HERMITE_NODES, HERMITE_WEIGHTS = hermegauss(40)  # averages over the standard normal
HERMITE_WEIGHTS = HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum()
LEAST_SHARE = 0.01  # of the largest weight; smaller tempered weights are zero


def mixture_moments(weights, means, covariances):
    """Mean ``(..., p)`` and covariance ``(..., p, p)`` of a mixture of ``m`` Gaussians.

    The covariance is the mean of the covariances plus the covariance of the means.
    """
    mean = np.tensordot(weights, means, 1)
    apart = means - mean
    spread = apart[..., :, None] * apart[..., None, :]
    return mean, np.tensordot(weights, covariances + spread, 1)


def log_normal_density(residual, covariance):
    """Log density ``ln N(residual; 0, covariance)`` for (..., p) and (..., p, p): shape (...)."""
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, residual[..., None])[..., 0]
    log_det = 2.0 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    dimension = residual.shape[-1]
    return -0.5 * (np.sum(white**2, axis=-1) + log_det + dimension * np.log(2.0 * np.pi))


def stacking_weights(log_densities, sample_weight, pseudo_count=0.0, max_iter=2000, tol=1e-10):
    """Maximise the mean log of mixed leave-one-out densities over the weights of members.

    The concave problem is solved by expectation maximisation (Yao et al. 2018 use the same
    criterion).

    Parameters
    ----------
    log_densities : ndarray of shape (m, n)
        Leave-one-out log predictive density of every member for every row.
    sample_weight : ndarray of shape (n,)
    pseudo_count : float
        Number of rows that are added to those of every member, as by a Dirichlet prior. It keeps
        members whose wide tails no training row needs.
    max_iter : int
    tol : float
        Relative gain of the objective that ends the iteration.

    Returns
    -------
    ndarray of shape (m,)
        Weights, non-negative and summing to 1.
    """
    n_members, total = len(log_densities), sample_weight.sum()
    weights = np.full(n_members, 1.0 / n_members)
    density = np.exp(log_densities - log_densities.max(axis=0))
    value = -np.inf
    for _ in range(max_iter):
        mixed = weights @ density
        previous, value = value, sample_weight @ np.log(mixed)
        if pseudo_count:
            value += pseudo_count * np.log(weights).sum()
        if value - previous < tol * max(1.0, abs(value)):
            break
        counts = weights * (density @ (sample_weight / mixed)) + pseudo_count
        weights = counts / (total + n_members * pseudo_count)
    return weights / weights.sum()


def tempered_weights(log_evidences, sample_weight, log_densities=None):
    """Weights that fall slowly with the expected log predictive density per row.

    The evidence is a product of predictive densities, of every row given those before it. So the
    log evidence per row estimates how well a row is predicted, and so does the mean leave-one-out
    density. A weight is proportional to ``exp(s / 0.05)``, with the mean ``s`` of both estimates.
    Leave-one-out densities are too high for networks of many weights, so none counts for more than
    that of the member of highest evidence. The posterior probabilities of `evidence_weights` differ
    far more between members than the accuracy of Laplace's approximation justifies.

    Parameters
    ----------
    log_evidences : ndarray of shape (m,)
    sample_weight : ndarray of shape (n,)
    log_densities : ndarray of shape (m, n), optional
        Leave-one-out log predictive density of every member for every row; without, ``s`` is the
        log evidence per row.

    Returns
    -------
    ndarray of shape (m,)
        Weights, non-negative and summing to 1; those below 1 % of the largest are zero.
    """
    score = log_evidences / sample_weight.sum()
    if log_densities is not None:
        means = log_densities @ sample_weight / sample_weight.sum()
        score = 0.5 * (score + np.minimum(means, means[np.argmax(score)]))
    weights = np.exp((score - score.max()) / TEMPERATURE)
    weights[weights < LEAST_SHARE] = 0.0
    return weights / weights.sum()


def evidence_weights(log_evidences):
    """Posterior ``P(H_i | D)`` of equally probable models (MacKay 1992, section 2.2)."""
    return np.exp(log_evidences - logsumexp(log_evidences))
