"""Student-t noise as a scale mixture of Gaussians."""

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from skbayesnn.posterior import FARTHEST

N_SCALES = 80
LEFT_OUT = 40.0  # nats below the largest weight at which a scale is left out


@lru_cache(maxsize=64)
def noise_scales(degrees_of_freedom):
    """Finite scale mixture of Gaussians for Student-t noise.

    Student-t noise is Gaussian noise of variance ``1 / (tau u)`` with ``u`` from a Gamma
    distribution of shape and rate ``nu/2`` (Lange, Little & Taylor 1989). The integral over ``ln
    u`` is done by the trapezoidal rule, which converges exponentially for such functions; added to
    Gaussian outputs the noise stays a mixture of Gaussians, so that densities, probabilities and
    quantiles follow at once.

    Parameters
    ----------
    degrees_of_freedom : float
        Degrees of freedom ``nu``; infinite for Gaussian noise.

    Returns
    -------
    weights : ndarray of shape (m,)
        Weights of the Gaussians, summing to 1.
    factors : ndarray of shape (m,)
        Factors ``1/u`` of the squared scale ``1/tau`` of the noise.
    """
    if np.isinf(degrees_of_freedom):
        return np.ones(1), np.ones(1)
    half = 0.5 * degrees_of_freedom
    low = np.log(degrees_of_freedom) - 2.0 * np.log(FARTHEST) - 6.0
    high = brentq(lambda x: half * (np.expm1(x) - x) - LEFT_OUT, 1e-6, 50.0)
    x, step = np.linspace(low, high, N_SCALES, retstep=True)
    log_weights = half * (x - np.exp(x)) + half * np.log(half) - gammaln(half) + np.log(step)
    return np.exp(log_weights - logsumexp(log_weights)), np.exp(-x)


def log_scale_mixture_density(residual, covariance, variances, degrees_of_freedom):
    """Log density of Gaussian outputs with multivariate Student-t noise.

    Parameters
    ----------
    residual : ndarray of shape (n, p)
        Targets less means.
    covariance : ndarray of shape (n, p, p)
        Covariance of the outputs, without noise.
    variances : ndarray of shape (n, p)
        Squared scales ``1/tau`` of the noise.
    degrees_of_freedom : float

    Returns
    -------
    ndarray of shape (n,)
    """
    weights, factors = noise_scales(degrees_of_freedom)
    scale = np.sqrt(variances)
    white = covariance / (scale[:, :, None] * scale[:, None, :])
    values, vectors = np.linalg.eigh(white)
    along = (np.swapaxes(vectors, 1, 2) @ (residual / scale)[..., None])[..., 0]
    total = np.maximum(values, 0.0) + factors[:, None, None]  # (m, n, p)
    density = -0.5 * np.sum(along**2 / total + np.log(2.0 * np.pi * total), axis=-1)
    return logsumexp(density, axis=0, b=weights[:, None]) - np.sum(np.log(scale), axis=-1)
