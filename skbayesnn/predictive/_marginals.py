"""Mixtures: of Gaussians, and of location-scale laws of single targets with their quantiles."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

from skbayesnn.posterior.kernels._compiled import compiled_mixture

RANGE, PER_UNIT = 12.0, 128  # of the table of Student's t distribution, in normal units
BLOCK = 2**16  # components of the rows that are solved together, to fit into a fast cache
CLOSE = 1e-12  # predicted distance of normal scores after a Newton step that is the last
FINE = 1e-14  # width of a bracket that is not divided further, in standard deviations
MAX_ITER = 200  # steps; bisection alone takes about 60
NODE_SPACING = 0.25  # of nodes of entropies, whose distances from the mean are sinh(u) sd
FARTHEST_NODES = {True: 3.5, False: 6.0}  # largest u of normal laws; of laws with heavy tails
SQRT_2PI = np.sqrt(2.0 * np.pi)


class NormalLaw:
    """Standard normal distribution."""

    degrees_of_freedom, log_constant, range = np.inf, -np.log(SQRT_2PI), np.inf
    table = np.empty((0, 4))

    def cdf(self, z):
        """Probability below ``z``."""
        return ndtr(z)

    def log_density(self, z):
        """Log density at ``z``."""
        return -0.5 * z * z + self.log_constant

    def quantile(self, probability):
        """Quantile function, the inverse of `cdf`."""
        return ndtri(probability)


class StudentTLaw:
    """Student's t distribution.

    Its distribution function is read from a table, a spline in ``v = (nu ln(1 + z^2/nu))^(1/2)``,
    in which it is nearly that of the normal distribution (Wallace 1959). The error is below 1e-10.
    """

    range = RANGE

    def __init__(self, degrees_of_freedom):
        nu = self.degrees_of_freedom = degrees_of_freedom
        v = np.linspace(-RANGE, RANGE, round(2 * RANGE * PER_UNIT) + 1)
        z = np.copysign(np.sqrt(nu * np.expm1(v * v / nu)), v)
        self.table = CubicSpline(v, stdtr(nu, z)).c[::-1].T.copy()  # lowest power first
        self.log_constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, degrees_of_freedom):
        """Return the cached law; the normal law for infinite degrees of freedom."""
        return NORMAL if np.isinf(degrees_of_freedom) else cls(degrees_of_freedom)

    def cdf(self, z):
        """Probability below ``z``."""
        nu = self.degrees_of_freedom
        v = np.copysign(np.sqrt(nu * np.log1p(z * z / nu)), z)
        place = (np.clip(v, -RANGE, RANGE) + RANGE) * PER_UNIT
        cell = np.minimum(place.astype(np.intp), len(self.table) - 1)
        rest = (place - cell) / PER_UNIT
        c0, c1, c2, c3 = (column.take(cell) for column in self.table.T)
        return c0 + rest * (c1 + rest * (c2 + rest * c3))

    def log_density(self, z):
        """Log density at ``z``."""
        nu = self.degrees_of_freedom
        return self.log_constant - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)

    def quantile(self, probability):
        """Quantile function, the inverse of `cdf`."""
        return stdtrit(self.degrees_of_freedom, probability)


NORMAL = NormalLaw()


class Marginals(NamedTuple):
    """Predictive distributions of single targets: a location-scale mixture of one law."""

    weights: np.ndarray  # (m,)
    means: np.ndarray  # (m, n, ...)
    scales: np.ndarray  # of a shape that broadcasts with that of the means
    law: object

    def cdf(self, x):
        """Share of the probability below ``x`` of shape (n, ...): as much as the weights sum to."""
        return np.tensordot(self.weights, self.law.cdf((x - self.means) / self.scales), 1)

    def log_density(self, x):
        """Log density at ``x`` of shape (n, ...), weighted as `cdf`."""
        logs = self.law.log_density((x - self.means) / self.scales) - np.log(self.scales)
        weights = self.weights.reshape(-1, *(1,) * np.ndim(x))
        return logsumexp(logs, axis=0, b=weights)


def mixture_quantiles(tables, probabilities):
    """Quantiles of a list of `Marginals`, ``(n, ...)`` for each probability.

    Each row is solved by itself, to some 1e-8 of its standard deviation (where the density does not
    vanish). All weights sum to 1.
    """
    found = tuple(np.empty(tables[0].means.shape[1:]) for _ in probabilities)
    for rows, components, centre, spread in _blocks(tables):
        for values, probability in zip(found, probabilities, strict=True):
            quantiles = _quantile(components, centre, spread, probability)
            values[rows] = quantiles.reshape(values[rows].shape)
    return found


def mixture_entropy(tables):
    """Differential entropies ``-int p ln p`` of a list of `Marginals`, ``(n, ...)``, in nats.

    The integral is a sum over nodes about the mean, whose spacing grows away from it: accurate to
    some 1e-5, if components are not far narrower than the mixture. All weights sum to 1.
    """
    found = np.empty(tables[0].means.shape[1:])
    end = FARTHEST_NODES[all(table.law is NORMAL for table in tables)]
    u = np.arange(-end, end + 0.5 * NODE_SPACING, NODE_SPACING)
    for rows, components, centre, spread in _blocks(tables):
        at = [centre + spread * node for node in np.sinh(u)]
        density = [_cdf_and_density(components, x)[1] for x in at]
        masses = np.cosh(u)[:, None] * density
        entropies = np.sum(masses * -np.log(density, where=masses > 0, out=masses * 0), axis=0)
        found[rows] = np.reshape(entropies / masses.sum(axis=0), found[rows].shape)
    return found


def _blocks(tables):
    """Yield rows that fit into memory, their components, and the moments of their mixtures."""
    n, *others = tables[0].means.shape[1:]
    n_components = sum(len(table.weights) for table in tables)
    step = max(1, BLOCK // (n_components * int(np.prod(others))))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        components = _Components.of(tables, rows)
        yield rows, components, *_moments(components)


class _Components(NamedTuple):
    """Components of one law: weights ``(m,)``, means and inverse scales ``(r, m)`` of rows."""

    weights: np.ndarray
    means: np.ndarray
    inverse_scales: np.ndarray
    law: object

    @classmethod
    def of(cls, tables, rows):
        """Components of some rows, in a list of one item per law."""
        laws = {}
        for weights, means, scales, law in tables:
            arrays = means[:, rows], np.broadcast_to(scales, means.shape)[:, rows]
            flat = (np.reshape(array, (len(weights), -1)) for array in arrays)
            laws.setdefault(law, []).append((weights, *flat))
        joined = []
        for law, parts in laws.items():
            weights, means, scales = map(np.concatenate, zip(*parts, strict=True))
            arrays = np.ascontiguousarray(means.T), np.reciprocal(scales.T, order="C")
            joined.append(cls(weights, *arrays, law))
        return joined

    def of_rows(self, rows):
        """Select the components of some rows."""
        return self._replace(means=self.means[rows], inverse_scales=self.inverse_scales[rows])

    def cdf_and_density(self, x):
        """Distribution function and density at ``x`` of shape (r,)."""
        z = (x[:, None] - self.means) * self.inverse_scales
        below, heights = self.law.cdf(z), np.exp(self.law.log_density(z))
        return below @ self.weights, (heights * self.inverse_scales) @ self.weights

    def bracket(self, probability):
        """Bounds ``(r,)`` of the quantiles of all components."""
        score = self.law.quantile(probability)
        extremes = self.inverse_scales.min(axis=1), self.inverse_scales.max(axis=1)
        least, most = np.sort([score / extremes[0], score / extremes[1]], axis=0)
        return self.means.min(axis=1) + least, self.means.max(axis=1) + most


def _moments(components):
    """Mean and standard deviation ``(r,)`` of mixtures; scales count as standard deviations."""
    centre, square = sum(component.means @ component.weights for component in components), 0.0
    for weights, means, inverse, _ in components:
        apart = means - centre[:, None]
        square = square + (apart * apart + 1.0 / (inverse * inverse)) @ weights
    return centre, np.sqrt(square)


def _quantile(components, centre, spread, probability):
    """Compute quantiles of rows ``(r,)``, starting as if means were normally distributed."""
    brackets = [component.bracket(probability) for component in components]
    low = np.min([start for start, _ in brackets], axis=0)
    high = np.max([end for _, end in brackets], axis=0)
    score, square = ndtri(probability), (spread * ndtri(probability)) ** 2
    for weights, _, inverse, law in components:
        excess = law.quantile(probability) ** 2 - score**2
        square = square + excess * (inverse**-2.0 @ weights) if law is not NORMAL else square
    x = np.clip(centre + np.copysign(np.sqrt(square), score), low, high)
    return _solved(components, probability, x, low, high, FINE * spread)


def _solved(components, probability, x, low, high, narrow):
    """Solve ``Phi^-1(F(x)) = Phi^-1(p)`` by Newton steps inside shrinking brackets.

    The left side is linear for a Gaussian, and nearly linear for most mixtures. A step squares the
    distance ``d``, up to a factor that the last step shows: ``|d|^3 / d_last^2`` remains.
    """
    x, low, high, left = x.copy(), low.copy(), high.copy(), np.arange(len(x))
    last = np.ones(len(x))
    for _ in range(MAX_ITER):
        at = x[left]
        F, density = _cdf_and_density(components, at)
        below = probability > F
        low[left], high[left] = np.where(below, at, low[left]), np.where(below, high[left], at)
        with np.errstate(all="ignore"):
            score = ndtri(F)
            missing = ndtri(probability) - score
            new = at + missing * (np.exp(-0.5 * score * score) / SQRT_2PI) / density
            inside = (new >= low[left]) & (new <= high[left])
            found = inside & (np.abs(missing) ** 3 <= CLOSE * last[left] ** 2)
        last[left] = np.where(inside, np.minimum(np.abs(missing), 1.0), 0.0)
        x[left] = np.where(inside, new, 0.5 * (low[left] + high[left]))
        found |= (high[left] - low[left] <= narrow[left]) | (x[left] == at)
        if found.all():
            break
        components, left = [component.of_rows(~found) for component in components], left[~found]
    return x


def _cdf_and_density(components, x):
    """Distribution function and density of the mixture, ``(r,)``."""
    total = np.zeros((2, len(x)))
    for component in components:
        found = compiled_mixture(x, *component)
        total += component.cdf_and_density(x) if found is None else found
    return total


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
