"""Targets from transformed targets: predictive distributions, and the monotone map."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._rows import targets_of_rows
from skbayesnn.estimators.predictions._distribution import NUMBERS, Distribution, at_targets, told

ROUND_TRIP = 1e-6  # round-trip error of a value, relative to the range of the values
ROUNDING = 1e-12  # round-trip error of a value, relative to the value
FIRST_REACH, N_REACHES = 0.25, 60  # reach beyond the training values in ranges, doubled each time
BISECTIONS = 40
TINY = np.finfo(float).tiny
FIRST_STEP, N_STEPS = 0.25, 24  # step of differences in ranges, halved each time
NO_SLOPE = 1e-4  # relative disagreement of two steps above which there is no derivative
# distances from an end, in ranges, at which a function is compared: from a finite end, an infinite
# one; ratio of successive differences from which it grows without bound; least relative difference
NEAR, AFAR = 0.5 ** np.arange(8, 13), 2.0 ** np.arange(20, 25)
GROWS, DIFFERENT = 0.98, 1e-9
POSSIBLE = 1e-16  # probability beyond an end at which a function grows, above which it has no mean
NODES = np.linspace(-5.0, 5.0, 41)  # normal scores of quantiles, for averages of slopes
SHARES = np.exp(-0.5 * NODES**2) / np.sum(np.exp(-0.5 * NODES**2))
MAX_WITHOUT_SLOPE = 0.05  # probability without a slope up to which there is an entropy
STENCIL = (672 / 840, -168 / 840, 32 / 840, -3 / 840)  # of eighth order, for 1 to 4 steps


@documented(NUMBERS)
@dataclass(frozen=True, repr=False, eq=False)
class TransformedDistribution(Distribution):
    """Predictive distribution of targets ``y = g(t)``, from that of ``t = T(y)``.

    Quantiles are ``g`` of those of ``t``; the density has the factor ``|dT/dy|`` (Bishop 2006,
    equation 1.27). Moments are computed by Gauss-Hermite quadrature, see
    `PredictiveDistribution.expect`. Behind a pole they do not exist: the inverse of a Box-Cox
    transformation of negative power is infinite at a finite ``t``. Moments are then ``nan``, with a
    warning, at rows where ``t`` lies beyond with a probability above 1e-16.

    Parameters
    ----------
    inner : PredictiveDistribution
        Distribution of ``t``.
    map : MonotoneMap
        Transformation ``T`` with its inverse ``g``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.compose import TransformedTargetRegressor
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> functions = {"func": np.log, "inverse_func": np.exp}
    >>> model = TransformedTargetRegressor(EvidenceMLPRegressor(()), **functions)
    >>> at = model.fit(X, np.exp(X[:, 0])).predict_distribution(X)
    >>> bool(np.allclose(at.cdf(at.ppf(0.2)), 0.2))
    True
    """

    inner: Any
    map: Any

    def mean(self) -> Array:
        """Compute the mean, in units of y; ``nan`` where there is none."""
        return told(self._expect(lambda y: y)[0])

    def std(self, kind: str = "total") -> Array:
        """Compute the standard deviation about the mean, of weights and noise together.

        It is ``nan`` where there is none.

        Raises
        ------
        ValueError
            If another ``kind`` is asked for, as the parts do not add up after a transformation; or
            if most networks have Student-t noise, under which it need not exist.
        """
        if kind != "total":
            raise ValueError(f"kind must be 'total' for transformed targets; got {kind!r}.")
        return told(self._expect(lambda y: y)[1])

    def expect(self, function: Callable[..., Any]) -> tuple[Array, Array]:
        """Compute mean and standard deviation of a function; see `PredictiveDistribution`."""
        mean, std = self._expect(function)
        told(mean + std)
        return mean, std

    def _expect(self, function):
        mean, std = self.inner._expect(lambda t: function(self.map.back(t)))
        lower, upper = self.map.growing_ends(function)
        if np.isfinite([lower, upper]).any():

            def beyond(t):
                return ((t < lower) | (t > upper)).astype(float)

            possible = self.inner._expect(beyond)[0] > POSSIBLE
            mean, std = (np.where(possible, np.nan, some) for some in (mean, std))
        return mean, std

    def entropy(self) -> Array:
        """Compute the differential entropy in nats, y in its own units.

        It is that of ``t`` less the mean of ``ln |dT/dy|``, by the trapezoidal rule over normal
        scores of ``t``: accurate to some 0.01 nats where the transformation is smooth, and ``nan``
        where it has no finite slope for more than a twentieth of the probability.
        """
        t = np.moveaxis(self.inner.ppf(ndtr(NODES)), -1, 0)  # (nodes, n) or (nodes, n, n_outputs)
        flat = t.reshape(-1, len(self.map.spread))
        slopes = self.map.log_slope(flat).reshape(t.shape)
        shares = SHARES.reshape(-1, *(1,) * (t.ndim - 1)) * np.isfinite(slopes)
        known = shares.sum(axis=0)
        average = np.sum(shares * np.nan_to_num(slopes), axis=0) / np.maximum(known, TINY)
        return self.inner.entropy() - np.where(known < 1.0 - MAX_WITHOUT_SLOPE, np.nan, average)

    def _quantiles(self, q):
        t = self.inner.ppf(q)
        if not self.map.increasing.all():
            increasing = self.map.increasing.reshape(-1, *(1,) * q.ndim)
            increasing = increasing[0] if self.map.one_dimensional else increasing
            t = np.where(increasing, t, self.inner.ppf(1.0 - q))
        return self.map.back(t, axis=1)

    @at_targets
    def logpdf(self, y: ArrayLike) -> Array:
        """Compute the log density at targets, for each output by itself, in nats.

        Raises
        ------
        ValueError
            If the transformation is not finite or has no finite slope at some target.
        """
        t, slopes = self._transformed(y)
        return self.inner.logpdf(self.map.shaped(t)) + self.map.shaped(slopes)

    @at_targets
    def joint_logpdf(self, y: ArrayLike, censored: ArrayLike | None = None) -> Array:
        """Compute the log density at targets, joint over the outputs, as `logpdf`."""
        sides = self._sides(censored, (len(self), len(self.map.spread)))
        t, slopes = self._transformed(y, sides)
        density = self.inner.joint_logpdf(self.map.shaped(t), self.map.sides(sides))
        return density + slopes.sum(axis=1)

    def _sides(self, censored, shape):
        return self.inner._sides(censored, shape)

    @at_targets
    def cdf(self, y: ArrayLike) -> Array:
        """Compute the probability of a target no larger than ``y``, which may be any numbers."""
        known = self.map
        y = targets_of_rows(y, len(self), len(known.spread))
        inside = (y >= known.smallest) & (y < known.largest)
        t = known.forward(np.where(inside, y, known.example))
        below = self.inner.cdf(known.shaped(t)).reshape(t.shape)
        below = np.where(known.increasing, below, 1.0 - below)
        return known.shaped(np.where(inside, below, np.where(y < known.smallest, 0.0, 1.0)))

    def rvs(self, size: int | None = None, random_state: RandomState = 0) -> Array:
        """Draw targets, noise included; see `PredictiveDistribution`."""
        return self.map.back(self.inner.rvs(size, random_state))

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by a slice, an index array or a mask."""
        return replace(self, inner=self.inner[rows])

    def __len__(self):
        return len(self.inner)

    @property
    def _outputs(self):
        return () if self.map.one_dimensional else self.map.spread.shape

    @property
    def _support(self):
        return self.map.support[:, 0] if self.map.one_dimensional else self.map.support

    def _transformed(self, y, sides=0.0):
        """Transform targets; return ``t`` and log slopes, both ``(n, n_outputs)``; 0 of limits."""
        t = self.map.forward(targets_of_rows(y, len(self), len(self.map.spread)))
        slopes = self.map.log_slope(t, sides)
        wrong = ~np.isfinite(slopes).all(axis=1)
        if np.any(wrong):
            raise ValueError(
                f"The transformation has no finite slope at y = {self.map.inverse(t)[wrong][0]}, "
                "so there is no density."
            )
        return t, slopes


@contextmanager
def _quietly(category=Warning):
    """Suppress warnings of a category, and those of NumPy of non-finite values."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", category)  # some transformers enable them
        yield


def _grows(values):
    """Return True where values ``(steps, ...)`` grow without bound, or are no numbers."""
    with np.errstate(all="ignore"):
        steps = np.diff(values, axis=0)
        grows = np.all(steps[1:] / steps[:-1] >= GROWS, axis=0)
        grows &= np.abs(steps[-1]) > DIFFERENT * np.abs(values[-1])
    return grows | ~np.isfinite(values).all(axis=0)


class MonotoneMap:
    """Monotone transformation ``t = T(y)`` of each output with its inverse ``g``.

    It is used where ``T(g(t)) = t``, an interval from ``lower`` to ``upper``, perhaps infinite,
    that holds the transformed training targets. Values beyond count as its end, so that every ``t``
    has a ``y``: under ``np.sqrt`` negative values map to 0. The targets there are ``smallest`` and
    ``largest``. These arrays, ``increasing`` and ``spread`` have the shape (n_outputs,), and the
    limits of possible targets, ``support``, (2, n_outputs).

    ``transformer``, which is fitted, maps arrays ``(m, n_outputs)``. If ``one_dimensional``, users'
    arrays have no axis of outputs. Raises ``ValueError`` if the inverse does not lead back to the
    training targets ``(n, n_outputs)``, or mixes outputs.
    """

    def __init__(self, transformer, y, one_dimensional=False):
        self.transformer, self.one_dimensional = transformer, one_dimensional
        self.lower, self.upper, self.example = -np.inf, np.inf, y[0]  # the ends are found below
        t = self.forward(y)
        low, high = t.min(axis=0), t.max(axis=0)
        self.spread = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
        self._check_inverse(y, t)
        above = np.where(high > low, high, high + ROUND_TRIP * self.spread)
        self.increasing = self.inverse(above[None])[0] >= self.inverse(low[None])[0]
        ends = np.array(
            [
                [self._end(t[0], i, edge[i], reach[i]) for i in range(len(low))]
                for edge, reach in ((low, -self.spread), (high, self.spread))
            ]
        )
        self.typical, (self.lower, self.upper) = np.median(t, axis=0), ends
        self._set_targets_at_ends(ends)

    def growing_ends(self, function):
        """Ends, or infinities, where a function of targets grows without bound: two arrays of t.

        Near a pole or logarithm successive differences do not shrink as distances are halved.
        """
        grows = _grows(self._towards_ends(function))
        finite = np.isfinite([self.lower, self.upper])
        lower, upper = np.where(grows & finite, [self.lower, self.upper], [[-np.inf], [np.inf]])
        return (lower[0], upper[0]) if self.one_dimensional else (lower, upper)

    def _towards_ends(self, function):
        """Values of a function of targets on the way to both ends, ``(steps, 2, n_outputs)``."""
        near, far = (some[:, None, None] * self.spread for some in (NEAR, AFAR))
        ends, sign = np.array([self.lower, self.upper]), np.array([[-1.0], [1.0]])
        t = np.where(np.isfinite(ends), ends - sign * near, self.typical + sign * far)
        y = self.shaped(self.inverse(t.reshape(-1, t.shape[-1])))
        with _quietly():
            return np.asarray(function(y), dtype=float).reshape(t.shape)

    def _set_targets_at_ends(self, ends):
        """Set ``smallest``, ``largest`` and ``support``."""
        finite, values = np.isfinite(ends), self._towards_ends(lambda y: y)
        infinite = np.where(self.increasing, 1.0, -1.0) * np.array([[-np.inf], [np.inf]])
        y = np.where(finite, self.inverse(np.where(finite, ends, self.typical)), values[-1])
        grows, steps = _grows(values), np.diff(values[-3:], axis=0)
        inside = np.sort(np.where(grows & ~finite, infinite, y), axis=0)
        self.smallest, self.largest = inside
        with np.errstate(all="ignore"):  # differences towards infinity shrink by equal factors
            limits = np.where(finite, y, y + steps[1] ** 2 / (steps[0] - steps[1]))
        limits = np.where(grows, infinite, np.where(np.isnan(limits), y, limits))
        try:  # exact limits, such as exp(-inf) = 0
            with _quietly():
                t = np.full_like(ends, np.inf) * [[-1.0], [1.0]]
                at_infinity = np.asarray(self.transformer.inverse_transform(t), dtype=float)
                beyond = np.sign(infinite) * (at_infinity - limits) >= 0.0
            limits = np.where(beyond, at_infinity, limits)
        except Exception:  # some refuse infinity
            pass
        self.support = np.sort(limits, axis=0)

    def forward(self, y):
        """Transform targets to ``T(y)``; raise ``ValueError`` where it is not finite."""
        with _quietly(RuntimeWarning):
            t = np.asarray(self.transformer.transform(y), dtype=float)
        if t.shape != y.shape:
            raise ValueError(
                f"The transformation must keep the shape of the targets, {y.shape}; it returned an "
                f"array of shape {t.shape}."
            )
        if not np.all(np.isfinite(t)):
            wrong = y[~np.isfinite(t).all(axis=1)][0]
            raise ValueError(f"The transformation of the targets is not finite at y = {wrong}.")
        return t

    def inverse(self, t):
        """Map any ``t`` of shape (..., n_outputs) back to ``g(t)``."""
        t = np.clip(t, self.lower, self.upper)
        with _quietly():
            y = self.transformer.inverse_transform(t.reshape(-1, t.shape[-1]))
        return np.asarray(y, dtype=float).reshape(t.shape)

    def back(self, t, axis=-1):
        """Map values, whose ``axis`` is that of the outputs if y has one, back to targets."""
        if self.one_dimensional:
            return self.inverse(t[..., None])[..., 0]
        return np.moveaxis(self.inverse(np.moveaxis(t, axis, -1)), -1, axis)

    def shaped(self, t):
        """Drop the axis of outputs of ``(n, n_outputs)`` if y had none."""
        return t[:, 0] if self.one_dimensional else t

    def sides(self, sides):
        """Sides of limits ``(n, n_outputs)`` among the transformed targets."""
        return np.where(self.increasing, sides, -sides)

    def log_slope(self, t, sides=0.0):
        """Log slope ``ln |dt/dy|``, (n, n_outputs), ``nan`` where there is no finite slope.

        Limits, whose ``sides`` are not 0, have 0: they have a probability, not a density.

        The slope is estimated from central differences of ``g`` of eighth order, with the step
        whose halving changes the result least.
        """
        best, error = np.full(t.shape, np.nan), np.full(t.shape, np.inf)
        previous = best
        for halvings in range(N_STEPS):
            step, total = FIRST_STEP * 0.5**halvings * self.spread, 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                for count, factor in enumerate(STENCIL, 1):
                    ahead, behind = t + count * step, t - count * step
                    total = total + factor * (self.inverse(ahead) - self.inverse(behind))
                inside = (ahead <= self.upper) & (behind >= self.lower)
                slope = np.where(inside, total / step, np.nan)
                change = np.abs(slope - previous)
                better = change < error  # False where nan
            best, error = np.where(better, slope, best), np.where(better, change, error)
            previous = slope
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = (best != 0.0) & (error <= NO_SLOPE * np.abs(best))
            slopes = np.where(smooth, -np.log(np.abs(best)), np.nan)
        return np.where(sides == 0.0, slopes, 0.0)

    def _check_inverse(self, y, t):
        """Raise unless ``g(T(y)) = y`` and ``T(g(t)) = t``, each output by itself."""
        taken_back = np.clip(self.inverse(t), y.min(axis=0), y.max(axis=0))  # no new targets
        apart = np.abs(taken_back - y) > ROUND_TRIP * np.max(np.abs(y), axis=0)
        if np.any(apart | (np.abs(self.forward(taken_back) - t) > ROUND_TRIP * self.spread)):
            raise ValueError(
                "The transformation of the targets and its inverse do not lead back to y: give a "
                "function and its inverse, such as np.log and np.exp."
            )
        if t.shape[1] > 1:
            shifts = np.diag(np.where(t[0] < t.max(axis=0), t.max(axis=0), t.min(axis=0)) - t[0])
            shifted = self.inverse(t[0] + shifts) != self.inverse(t[:1])
            if np.any(shifted & ~np.eye(t.shape[1], dtype=bool)):
                raise ValueError(
                    "The transformation mixes outputs, but it must transform each by itself."
                )

    def _end(self, others, output, edge, spread):
        """Find the farthest value of an output from the edge that can be inverted, or infinity.

        The search goes in the direction of the sign of ``spread``; values ``others`` of the other
        outputs have no influence.
        """

        def leads_back(good, value):
            """Return True if a value can be inverted, in the right order beside a valid one."""
            try:
                t = np.tile(others, (2, 1))
                t[:, output] = good, value
                y = self.inverse(t)
                there, here = y[:, output]
                rises = (here > there) == (value > good)
                if not np.isfinite(here) or rises != self.increasing[output]:
                    return False
                with _quietly():
                    back = self.forward(y[1:])[0, output]
            except Exception:  # no target exists there: functions refuse it by errors of any kind
                return False
            return abs(back - value) <= ROUND_TRIP * abs(spread) + ROUNDING * abs(value)

        good, reach = edge, FIRST_REACH * spread
        for _ in range(N_REACHES):
            bad = edge + reach
            if not leads_back(good, bad):
                break
            good, reach = bad, 2.0 * reach
        else:
            return np.copysign(np.inf, spread)
        for _ in range(BISECTIONS):
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if leads_back(good, middle) else (good, middle)
        return good
