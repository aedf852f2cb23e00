"""Mixtures of location-scale laws: the predictive distributions of single targets."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.special import logsumexp, ndtri

BLOCK = 2**16  # components of the rows that are solved together, to fit into a fast cache
CLOSE = 1e-6  # length of a Newton step that is the last, in standard deviations
FINE = 1e-14  # width of a bracket that is not divided further, in standard deviations
MAX_ITER = 200  # steps; bisection alone takes about 60
# cells of entropies: probabilities whose quantiles give their unit of length; number at first, and
# of the parts of one; probability of each component beyond them on either side; errors of the
# probability of a cell up to which it is not divided; most divisions
MIDDLE, N_CELLS, N_PARTS, OUTSIDE = (0.16, 0.84), 8, 3, 1e-9
RELATIVE_ERROR, ABSOLUTE_ERROR, MAX_DIVISIONS = 3e-4, 1e-8, 30
LEGENDRE_NODES, LEGENDRE_WEIGHTS = leggauss(6)
HERMITE_NODES, HERMITE_WEIGHTS = hermegauss(40)  # averages over the standard normal
HERMITE_WEIGHTS = HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum()
FAR, MAX_FAR = 7.0, 0.1  # nodes of a probability of 1e-12, and their largest share in averages
NEGLIGIBLE = 1e-9  # share of a squared mean in a variance that may come from these nodes
SQRT_2PI = np.sqrt(2.0 * np.pi)


class Components(NamedTuple):
    """Components of one law, such as `NormalLaw`, with weights that sum to 1 over all laws."""

    weights: np.ndarray  # (m,)
    means: np.ndarray  # (m, n, ...)
    scales: np.ndarray  # of a shape that broadcasts with that of the means
    law: object


class Mixture(NamedTuple):
    """Predictive distributions of single targets ``(n, ...)``: components of one law or several."""

    components: list

    def cdf(self, *points):
        """Probability below each of several points, which broadcast to the shape (n, ...)."""
        below = np.empty((len(points), *self._shape))
        points = np.broadcast_arrays(*points, below[0])[:-1]
        for rows, laws, _, _ in self._blocks():
            for own, x in zip(below, points, strict=True):
                own[rows] = _cdf(laws, np.ravel(x[rows])).reshape(x[rows].shape)
        return below

    def log_density(self, y, sides=None):
        """Log density at ``y`` of shape (n, ...).

        With ``sides`` of limits, see `CensoredGaussian`, it is joint over the last axis, whose
        targets are independent given a component. A limit has the log probability of the values
        that it allows.
        """
        logs = []
        for weights, means, scales, law in self.components:
            z = (y - means) / scales
            each = law.log_density(z) - np.log(scales)
            if sides is not None:
                each = np.where(sides == 0.0, each, law.log_cdf(-sides * z)).sum(axis=-1)
            logs.append(logsumexp(each, axis=0, b=weights.reshape(-1, *(1,) * (each.ndim - 1))))
        return logsumexp(logs, axis=0)

    def moments_of(self, function):
        """Mean and variance of a function of each target, by Gauss-Hermite quadrature.

        They are ``nan`` where the farthest nodes, of no probability, have a share in them.
        """

        def mean_of(function, negligible=0.0):
            total, size, far = 0.0, negligible, 0.0
            for some in self.components:
                for z, share in zip(HERMITE_NODES, HERMITE_WEIGHTS, strict=True):
                    values = function(some.means + z * some.scales)
                    own = share * np.tensordot(some.weights, values, 1)
                    total, size = total + own, size + np.abs(own)
                    far = far + np.abs(own) * (np.abs(z) > FAR)
            return np.where(far <= MAX_FAR * size, total, np.nan)

        with np.errstate(over="ignore", invalid="ignore"):
            mean = mean_of(function)
            return mean, mean_of(lambda y: (function(y) - mean) ** 2, NEGLIGIBLE * mean**2)

    def quantiles(self, probabilities):
        """Quantiles ``(n, ...)`` for each probability.

        Each row is solved by itself, to some 1e-8 of its standard deviation (where the density does
        not vanish).
        """
        quantiles = tuple(np.empty(self._shape) for _ in probabilities)
        for rows, laws, centre, spread in self._blocks():
            for values, probability in zip(quantiles, probabilities, strict=True):
                solution = _quantile(laws, centre, spread, probability)
                values[rows] = solution.reshape(values[rows].shape)
        return quantiles

    def entropy(self, least=-np.inf, log_slope=np.zeros_like):
        """Differential entropies ``-int p ln p``, ``(n, ...)``, in nats, to some 1e-3.

        The line is divided into cells until a Gauss-Legendre rule finds the probability of each,
        which is known from the distribution function: so no narrow component is overlooked. Targets
        below ``least`` are left out; a function ``log_slope`` is added to ``-ln p``.
        """
        entropies = np.empty(self._shape)
        for rows, laws, centre, spread in self._blocks():
            low, high = (_quantile(laws, centre, spread, p) for p in MIDDLE)
            stretched = _Stretched(laws, 0.5 * (low + high), 0.5 * (high - low), log_slope)
            entropies[rows] = np.reshape(stretched.entropies(least), entropies[rows].shape)
        return entropies

    @property
    def _shape(self):
        return self.components[0].means.shape[1:]

    def _blocks(self):
        """Yield rows that fit into memory, their `_Rows` of every law, and moments of mixtures."""
        n, *others = self._shape
        n_components = sum(len(some.weights) for some in self.components)
        step = max(1, BLOCK // (n_components * int(np.prod(others))))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            laws = _Rows.of(self.components, rows)
            yield rows, laws, *_moments(laws)


class _Rows(NamedTuple):
    """Components of one law at some rows: weights ``(m,)``, means and inverse scales ``(r, m)``."""

    weights: np.ndarray
    means: np.ndarray
    inverse_scales: np.ndarray
    law: object

    @classmethod
    def of(cls, components, rows):
        """Join the components of every law in one item of a list."""
        laws = {}
        for weights, means, scales, law in components:
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

    def cdf(self, x):
        """Distribution function at ``x`` of shape (r,)."""
        return self.law.cdf((x[:, None] - self.means) * self.inverse_scales) @ self.weights

    def density(self, x):
        """Density at ``x`` of shape (r,)."""
        z = (x[:, None] - self.means) * self.inverse_scales
        with np.errstate(over="ignore"):  # squares of points that are far away
            heights = np.exp(self.law.log_density(z))
        return (heights * self.inverse_scales) @ self.weights

    def bracket(self, probability):
        """Bounds ``(r,)`` of the quantiles of all components."""
        score = self.law.quantile(probability)
        extremes = self.inverse_scales.min(axis=1), self.inverse_scales.max(axis=1)
        least, most = np.sort([score / extremes[0], score / extremes[1]], axis=0)
        return self.means.min(axis=1) + least, self.means.max(axis=1) + most


class _Cells(NamedTuple):
    """Intervals of ``u``, each of one row, with the distribution function at the ends, ``(k,)``."""

    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    below_low: np.ndarray
    below_high: np.ndarray

    def of(self, chosen):
        """Select cells."""
        return _Cells(*(array[chosen] for array in self))


class _Stretched(NamedTuple):
    """Mixtures in coordinates ``u`` of ``x = centre + spread sinh(u)``, which shorten tails."""

    laws: list
    centre: np.ndarray  # (r,)
    spread: np.ndarray  # (r,)
    log_slope: object  # function of x

    def entropies(self, least):
        """Entropies ``(r,)``; see `Mixture.entropy`."""
        n, total = len(self.centre), np.zeros(len(self.centre))
        low = np.maximum(_bracket(self.laws, OUTSIDE)[0], least)
        high = np.maximum(_bracket(self.laws, 1.0 - OUTSIDE)[1], low)
        ends = np.arcsinh((np.array([low, high]) - self.centre) / self.spread)
        below = (_cdf(self.laws, x) for x in (low, high))
        cells = self._divided(_Cells(np.arange(n), *ends, *below), N_CELLS)
        step = max(1, BLOCK // sum(len(law.weights) for law in self.laws))
        for division in range(MAX_DIVISIONS):
            parts = []
            for start in range(0, len(cells.row), step):
                some = cells.of(slice(start, start + step))
                found, loss = self._integrals(some)
                exact = some.below_high - some.below_low
                good = np.abs(found - exact) <= RELATIVE_ERROR * exact + ABSOLUTE_ERROR
                good |= division == MAX_DIVISIONS - 1
                own = np.where(good, exact * loss, 0.0)
                total += np.bincount(some.row, own, minlength=n)
                if not good.all():
                    parts.append(self._divided(some.of(~good), N_PARTS))
            if not parts:
                break
            cells = _Cells(*map(np.concatenate, zip(*parts, strict=True)))
        return total

    def _integrals(self, cells):
        """Probabilities of cells by quadrature, and mean losses ``-ln p(x)`` in them, ``(k,)``."""
        half, found, loss = 0.5 * (cells.high - cells.low), 0.0, 0.0
        laws = [law.of_rows(cells.row) for law in self.laws]
        for node, weight in zip(LEGENDRE_NODES, LEGENDRE_WEIGHTS, strict=True):
            u = cells.low + half * (1.0 + node)
            x = self._at(u, cells.row)
            density = _density(laws, x)
            mass = weight * half * self.spread[cells.row] * np.cosh(u) * density
            logs = np.log(density, where=mass > 0, out=np.zeros_like(x))
            found, loss = found + mass, loss + mass * (self.log_slope(x) - logs)
        return found, loss / np.where(found > 0, found, 1.0)

    def _divided(self, cells, n_parts):
        """Divide cells into equal parts."""
        laws = [law.of_rows(cells.row) for law in self.laws]
        edges, below = [cells.low], [cells.below_low]
        for part in range(1, n_parts):
            edges.append(cells.low + part / n_parts * (cells.high - cells.low))
            below.append(_cdf(laws, self._at(edges[-1], cells.row)))
        edges, below = np.array([*edges, cells.high]), np.array([*below, cells.below_high])
        ends = edges[:-1], edges[1:], below[:-1], below[1:]
        return _Cells(np.tile(cells.row, n_parts), *(end.ravel() for end in ends))

    def _at(self, u, row):
        return self.centre[row] + self.spread[row] * np.sinh(u)


def _moments(components):
    """Mean and standard deviation ``(r,)`` of mixtures; scales count as standard deviations."""
    centre, square = sum(component.means @ component.weights for component in components), 0.0
    for weights, means, inverse, _ in components:
        apart = means - centre[:, None]
        square = square + (apart * apart + 1.0 / (inverse * inverse)) @ weights
    return centre, np.sqrt(square)


def _bracket(components, probability):
    """Bounds ``(r,)`` of quantiles of mixtures."""
    low, high = zip(*(component.bracket(probability) for component in components), strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def _quantile(components, centre, spread, probability):
    """Compute quantiles of rows, ``(r,)``: solve ``Phi^-1(F(x)) = Phi^-1(p)``.

    Newton steps inside shrinking brackets start as if mixtures were normal. The left side is linear
    for a Gaussian, and nearly linear for most mixtures; a step squares the distance.
    """
    low, high = _bracket(components, probability)
    x = np.clip(centre + spread * ndtri(probability), low, high)
    narrow, left = FINE * spread, np.arange(len(x))
    for _ in range(MAX_ITER):
        at = x[left]
        F, density = _cdf(components, at), _density(components, at)
        below = probability > F
        low[left], high[left] = np.where(below, at, low[left]), np.where(below, high[left], at)
        with np.errstate(all="ignore"):
            score = ndtri(F)
            missing = ndtri(probability) - score
            new = at + missing * (np.exp(-0.5 * score * score) / SQRT_2PI) / density
            inside = (new >= low[left]) & (new <= high[left])
            solved = inside & (np.abs(new - at) <= CLOSE * spread[left])
        x[left] = np.where(inside, new, 0.5 * (low[left] + high[left]))
        solved |= (high[left] - low[left] <= narrow[left]) | (x[left] == at)
        if solved.all():
            break
        components, left = [component.of_rows(~solved) for component in components], left[~solved]
    return x


def _cdf(components, x):
    """Distribution function of the mixture, ``(r,)``."""
    return sum(component.cdf(x) for component in components)


def _density(components, x):
    """Density of the mixture, ``(r,)``."""
    return sum(component.density(x) for component in components)


def mixture_moments(weights, means, covariances):
    """Mean ``(..., p)`` and covariance ``(..., p, p)`` of a mixture of ``m`` Gaussians.

    The covariance is the mean of the covariances plus the covariance of the means.
    """
    mean = np.tensordot(weights, means, 1)
    apart = means - mean
    spread = apart[..., :, None] * apart[..., None, :]
    return mean, np.tensordot(weights, covariances + spread, 1)
