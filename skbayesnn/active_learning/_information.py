"""Mutual information of discrete variables, and of a number with the mixture it is drawn from."""

import numpy as np
from scipy.special import entr, rel_entr

STEPS_PER_SD = 2.5  # grid points per smallest standard deviation
REACH = 8.0  # standard deviations beyond which a Gaussian counts as zero
LONGEST = 2**20  # grid points


def table_information(table):
    """Mutual information, in nats, of joint probabilities ``(..., C, C)``: shape (...)."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    return np.maximum(np.sum(rel_entr(table, rows * columns), axis=(-2, -1)), 0.0)


def class_information(p, P):
    """Mutual information of a class with its distribution, ``p[i]`` with probability ``P[i]``.

    It is ``H[E p] - E H[p]`` (Houlsby et al. 2011, equation 2), from probabilities of shape
    (m, n, n_classes): shape (n,).
    """
    parts = np.sum(rel_entr(p, np.tensordot(P, p, 1)), axis=2)
    return np.maximum(P @ parts, 0.0)


def noise_entropy(variance):
    """Entropy of Gaussians, in nats."""
    return 0.5 * np.log(2.0 * np.pi * np.e * variance)


def spread_information(means, sds, weights):
    """Mutual information between a number and the component of a mixture that it is drawn from.

    It is the entropy of the mixture minus the mean entropy of its components, each of shape (m,).
    The trapezoidal rule is exact to about 1e-9. Where the components lie further apart than
    `LONGEST` grid points, they are widened to fit, and the result is a lower bound close to its
    limit ``H(weights)``.
    """
    sds, grid = _resolved(means, sds)
    entropy = _entropy(means, sds, weights, *grid)
    return max(entropy - weights @ noise_entropy(sds**2), 0.0)


def indicator_information(mixtures, P):
    """Mutual information between a number and the mixture that it is drawn from.

    It is the entropy of all mixtures together, minus the mean of their entropies. A mixture is
    ``(means, sds, weights)``, each of shape (m,); their probabilities are ``P``.
    """
    means, sds = (np.concatenate([mixture[i] for mixture in mixtures]) for i in (0, 1))
    shares = np.concatenate([p * mixture[2] for p, mixture in zip(P, mixtures, strict=True)])
    sds, grid = _resolved(means, sds)
    information, start = _entropy(means, sds, shares, *grid), 0
    for p, (own_means, _, weights) in zip(P, mixtures, strict=True):
        own_sds = sds[start : start + len(own_means)]
        information -= p * _entropy(own_means, own_sds, weights, *grid)
        start += len(own_means)
    return max(information, 0.0)


def _resolved(means, sds):
    """Standard deviations that a grid can resolve, and its first point, spacing and length."""
    sds = np.maximum(sds, np.ptp(means) * STEPS_PER_SD / LONGEST)
    start, end = np.min(means - REACH * sds), np.max(means + REACH * sds)
    step = np.min(sds) / STEPS_PER_SD
    return sds, (start, step, int(np.ceil((end - start) / step)) + 1)


def _entropy(means, sds, weights, start, step, size):
    """Entropy of a mixture on the grid; every component is evaluated near its mean only."""
    reach = int(np.ceil(REACH * np.max(sds) / step))
    nearest = np.rint((means - start) / step).astype(int)
    offset = start + step * nearest - means
    z = (offset[:, None] + step * np.arange(-reach, reach + 1)) / sds[:, None]
    values = np.exp(-0.5 * z * z) * (weights / (sds * np.sqrt(2.0 * np.pi)))[:, None]
    places = nearest[:, None] + np.arange(2 * reach + 1)  # shifted: none is negative
    density = np.bincount(places.ravel(), values.ravel(), minlength=size + 2 * reach)
    return step * np.sum(entr(density))
