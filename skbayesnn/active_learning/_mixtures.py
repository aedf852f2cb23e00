"""Information in mixtures of Gaussians on the line, by quadrature on an even grid."""

import numpy as np
from scipy.special import entr, rel_entr

STEPS_PER_SD = 2.5  # grid points per smallest standard deviation
REACH = 8.0  # standard deviations beyond which a Gaussian counts as zero
LONGEST = 2**20  # grid points


def noise_entropy(variance):
    """Entropy of Gaussians, in nats."""
    return 0.5 * np.log(2.0 * np.pi * np.e * variance)


def spread_information(means, sds, weights):
    """Mutual information between a number and the mixture component that it is drawn from.

    It is the entropy of the mixture minus the mean entropy of its components. The trapezoidal rule
    is exact to about 1e-9. Where the components lie further apart than `LONGEST` grid points, they
    are widened to fit, and the result is a lower bound close to its limit ``H(weights)``.

    Parameters
    ----------
    means, sds, weights : ndarray of shape (m,)

    Returns
    -------
    float
        Mutual information in nats.
    """
    sds = _resolved(means, sds)
    start, step, size = _grid(means, sds)
    density = _density(means, sds, weights, start, step, size)
    entropy = step * np.sum(entr(density))
    return max(entropy - weights @ noise_entropy(sds**2), 0.0)


def indicator_information(mixtures, probabilities):
    """Mutual information between a number and the mixture that it is drawn from.

    It is ``sum_i P_i KL(p_i || sum_j P_j p_j)``.

    Parameters
    ----------
    mixtures : list of tuple
        ``(means, sds, weights)``, each of shape (m,), for every mixture.
    probabilities : ndarray
        Probabilities ``P_i`` of the mixtures.

    Returns
    -------
    float
        Mutual information in nats.
    """
    means, sds = (np.concatenate([mixture[i] for mixture in mixtures]) for i in (0, 1))
    sds = _resolved(means, sds)
    grid = _grid(means, sds)
    ends = np.cumsum([len(weights) for _, _, weights in mixtures])[:-1]
    parts = zip(np.split(means, ends), np.split(sds, ends), mixtures, strict=True)
    densities = [_density(m, s, mixture[2], *grid) for m, s, mixture in parts]
    together = np.tensordot(probabilities, densities, 1)
    parts = np.array([np.sum(rel_entr(density, together)) for density in densities])
    return max(grid[1] * float(probabilities @ parts), 0.0)


def _resolved(means, sds):
    """Widen standard deviations that a grid of `LONGEST` points could not resolve."""
    return np.maximum(sds, np.ptp(means) * STEPS_PER_SD / LONGEST)


def _grid(means, sds):
    """First point, spacing and number of grid points that cover all components."""
    start, end = np.min(means - REACH * sds), np.max(means + REACH * sds)
    step = np.min(sds) / STEPS_PER_SD
    return start, step, int(np.ceil((end - start) / step)) + 1


def _density(means, sds, weights, start, step, size):
    """Density of a mixture on the grid; every component is evaluated near its mean only."""
    reach = int(np.ceil(REACH * np.max(sds) / step))
    if 2 * reach + 1 >= size:
        points = start + step * np.arange(size)
        z = (points - means[:, None]) / sds[:, None]
        return (weights / sds) @ np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    nearest = np.rint((means - start) / step).astype(int)
    offset = start + step * nearest - means
    z = (offset[:, None] + step * np.arange(-reach, reach + 1)) / sds[:, None]
    values = np.exp(-0.5 * z * z) * (weights / (sds * np.sqrt(2.0 * np.pi)))[:, None]
    places = nearest[:, None] + np.arange(2 * reach + 1)  # shifted: none is negative
    density = np.bincount(places.ravel(), values.ravel(), minlength=size + 2 * reach)
    return density[reach : reach + size]
