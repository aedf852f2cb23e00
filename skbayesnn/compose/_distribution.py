"""Targets from transformed targets: predictive distributions, and the monotone map."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import probabilities
from skbayesnn.estimators.inputs._rows import targets_of_rows
from skbayesnn.estimators.predictions._distribution import NUMBERS, Distribution

ROUND_TRIP = 1e-6  # round-trip error of a value, relative to the range of the values
ROUNDING = 1e-12  # round-trip error of a value, relative to the value
FIRST_REACH, N_REACHES = 0.25, 60  # reach beyond the training values in ranges, doubled each time
BISECTIONS = 40
FIRST_STEP, N_STEPS = 0.25, 24  # step of differences in ranges, halved each time
NO_SLOPE = 1e-4  # relative disagreement of two steps above which there is no derivative
STENCIL = (672 / 840, -168 / 840, 32 / 840, -3 / 840)  # of eighth order, for 1 to 4 steps


@documented(NUMBERS)
@dataclass(frozen=True, repr=False, eq=False)
class TransformedDistribution(Distribution):
    """Predictive distribution of targets ``y = g(t)``, from that of ``t = T(y)``.

    Quantiles are ``g`` of those of ``t``; the density has the factor ``|dT/dy|`` (Bishop 2006,
    equation 1.27). Moments are computed by Gauss-Hermite quadrature, see
    `PredictiveDistribution.expect`.

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
        """Compute the mean, in units of y."""
        return self.expect(lambda y: y)[0]

    def std(self, kind: str = "total") -> Array:
        """Compute the standard deviation about the mean, of weights and noise together.

        Raises
        ------
        ValueError
            If another ``kind`` is asked for, as the parts do not add up after a transformation; or
            if most networks have Student-t noise, under which it need not exist.
        """
        if kind != "total":
            raise ValueError(f"kind must be 'total' for transformed targets; got {kind!r}.")
        return self.expect(lambda y: y)[1]

    def expect(self, function: Callable[..., Any]) -> tuple[Array, Array]:
        """Compute mean and standard deviation of a function; see `PredictiveDistribution`."""
        return self.inner.expect(lambda t: function(self.map.back(t)))

    def ppf(self, q: ArrayLike) -> Array:
        """Compute quantiles, in units of y; see `PredictiveDistribution`."""
        q = probabilities(q, "q")
        t = self.inner.ppf(q)
        if not self.map.increasing.all():
            increasing = self.map.increasing.reshape(-1, *(1,) * q.ndim)
            increasing = increasing[0] if self.map.one_dimensional else increasing
            t = np.where(increasing, t, self.inner.ppf(1.0 - q))
        return self.map.back(t, axis=1)

    def logpdf(self, y: ArrayLike) -> Array:
        """Compute the log density at targets, for each output by itself, in nats.

        Raises
        ------
        ValueError
            If the transformation is not finite or has no finite slope at some target.
        """
        t, slopes = self._transformed(y)
        return self.inner.logpdf(self.map.shaped(t)) + self.map.shaped(slopes)

    def joint_logpdf(self, y: ArrayLike, censored: ArrayLike | None = None) -> Array:
        """Compute the log density at targets, joint over the outputs, as `logpdf`."""
        sides = self._sides(censored, (len(self), len(self.map.spread)))
        t, slopes = self._transformed(y, sides)
        density = self.inner.joint_logpdf(self.map.shaped(t), self.map.sides(sides))
        return density + slopes.sum(axis=1)

    def _sides(self, censored, shape):
        return self.inner._sides(censored, shape)

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
def _quietly():
    """Suppress warnings of non-finite values, for which callers test."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some transformers enable them
        yield


class MonotoneMap:
    """Monotone transformation ``t = T(y)`` of each output with its inverse ``g``.

    It is used where ``T(g(t)) = t``, an interval from ``lower`` to ``upper``, perhaps infinite,
    that holds the transformed training targets. Values beyond count as its end, so that every ``t``
    has a ``y``: under ``np.sqrt`` negative values map to 0. The targets there are ``smallest`` and
    ``largest``. These arrays, ``increasing`` and ``spread`` have the shape (n_outputs,).

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
        finite = np.isfinite(ends)
        y_ends = self.inverse(np.where(finite, ends, t[0]))
        y_ends = np.where(finite, y_ends, np.where(self.increasing, ends, -ends))
        self.lower, self.upper = ends
        self.smallest, self.largest = y_ends.min(axis=0), y_ends.max(axis=0)

    def forward(self, y):
        """Transform targets to ``T(y)``; raise ``ValueError`` where it is not finite."""
        with _quietly():
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
        taken_back = self.inverse(t)
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
                back = self.forward(y[1:])[0, output]
            except ValueError:  # no target exists there
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
