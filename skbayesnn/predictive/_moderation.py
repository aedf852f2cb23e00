"""Class probabilities averaged over Gaussian activations: moderated outputs.

"Every classifier should have two sets of outputs" (MacKay 1992, section 5.2): the most probable
ones for training, the moderated ones for everything else.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr, ndtri, roots_hermitenorm, softmax
from scipy.stats import qmc

from skbayesnn.network import row_blocks

SOFTMAX_POINTS = 1024


def moderated_sigmoid(mean, variance, method="quadrature"):
    """``psi(a, s^2) = int sigmoid(x) N(x; a, s^2) dx`` (MacKay 1992, equation 5.7).

    Parameters
    ----------
    mean, variance : ndarray of the same shape
    method : {"quadrature", "closed_form"}
        Quadrature is exact to about 1e-12. The closed form ``sigmoid(kappa a)`` with
        ``kappa = (1 + pi s^2 / 8)^(-1/2)`` (equation 5.8; Bishop 4.153) is within 0.02 of it, with
        the largest relative errors for ``|a| >> s``.

    Returns
    -------
    ndarray
    """
    if method == "closed_form":
        return expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
    return _sigmoid_moments(mean, variance)[0]


def sigmoid_variance(mean, variance):
    """Variance of ``sigmoid(x)`` for ``x ~ N(mean, variance)``."""
    first, slope = _sigmoid_moments(mean, variance)
    return np.maximum(first - slope - first**2, 0.0)  # sigmoid^2 = sigmoid - sigmoid'


def _sigmoid_moments(mean, variance):
    """Expectations of ``sigmoid`` and of its derivative under ``N(mean, variance)``."""
    shape = np.shape(mean)
    mean, sd = np.ravel(mean), np.sqrt(np.ravel(variance))
    first, slope = np.empty_like(mean), np.empty_like(mean)
    for rows in row_blocks(len(mean), 200):
        narrow = sd[rows] < 1.0
        for wide, function in ((False, _narrow_moments), (True, _wide_moments)):
            chosen = np.flatnonzero(narrow != wide) + rows.start
            first[chosen], slope[chosen] = function(mean[chosen], sd[chosen])
    return first.reshape(shape), slope.reshape(shape)


@lru_cache(maxsize=1)
def _hermite():
    nodes, weights = roots_hermitenorm(64)
    return nodes, weights / weights.sum()


def _narrow_moments(mean, sd):
    """Gauss-Hermite quadrature: the sigmoid is smooth on the scale of the Gaussian."""
    nodes, weights = _hermite()
    x = mean[:, None] + sd[:, None] * nodes
    p = expit(x)
    return p @ weights, (p * expit(-x)) @ weights


def _wide_moments(mean, sd):
    """Trapezoidal rule over the sigmoid's derivative, which decays like the exponential function.

    ``E sigmoid = int sigmoid'(u) Phi((a - u)/s) du``; for analytic integrands the error falls
    exponentially with the number of points.
    """
    u = np.linspace(-40.0, 40.0, 161)
    density = expit(u) * expit(-u) * (u[1] - u[0])
    z = (mean[:, None] - u) / sd[:, None]
    normal = np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * sd[:, None])
    return ndtr(z) @ density, normal @ density


def moderated_softmax(mean, covariance):
    """Mean and standard deviation of class probabilities under Gaussian activations.

    The integral of the softmax (MacKay 1992, section 5.2, generalised) is a mean over a fixed set
    of `SOFTMAX_POINTS` quasi-random points (a Sobol sequence with its mirror image), so that
    predictions are deterministic. Largest error of a probability against Monte Carlo with 10^6
    draws, 12 random cases each: activations of standard deviation about 2: 0.001 (3 classes),
    0.002 (6), 0.004 (10); about 5: 0.003, 0.004, 0.01. Mean errors are five times smaller.

    Parameters
    ----------
    mean : ndarray of shape (n, n_classes)
    covariance : ndarray of shape (n, n_classes, n_classes)

    Returns
    -------
    probability, sd : ndarray of shape (n, n_classes)
    """
    n, n_classes = mean.shape
    points = _normal_points(n_classes)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    first, second = np.empty((n, n_classes)), np.empty((n, n_classes))
    for rows in row_blocks(n, SOFTMAX_POINTS * n_classes):
        a = mean[rows, None, :] + points @ np.swapaxes(root[rows], 1, 2)
        p = softmax(a, axis=-1)
        first[rows], second[rows] = p.mean(axis=1), np.mean(p * p, axis=1)
    first /= first.sum(axis=1, keepdims=True)
    return first, np.sqrt(np.maximum(second - first**2, 0.0))


@lru_cache(maxsize=16)
def _normal_points(dimension):
    """Standard normal quasi-random points, symmetric about 0: (SOFTMAX_POINTS, dimension)."""
    half = SOFTMAX_POINTS // 2
    uniform = qmc.Sobol(dimension, scramble=False).random(half) + 0.5 / half
    normal = ndtri(uniform)
    return np.concatenate([normal, -normal])
