"""The evidence by sequential Monte Carlo: particles carried to the posterior step by step."""

from typing import NamedTuple

import numpy as np

from skbayesnn.samplers._dynamics import start
from skbayesnn.samplers._kernels import Noise, transition
from skbayesnn.samplers._log_sum import log_sum_exp
from skbayesnn.samplers._metric import Metric

EFFECTIVE_SHARE = 0.8  # of the particles that a change of temperature leaves effective
TEMPERED_STEPS = 20
MIDDLE = 16, 84  # per cent: one standard deviation about the mean of a normal distribution
FIRST_STEP, LONGEST_STEP = 0.3, 1.0
ACCEPTANCE = 0.8
LEAST_SCALE = 1e-3


class Annealed(NamedTuple):
    """Populations after annealing.

    Attributes
    ----------
    log_evidences : ndarray of shape (n_populations,)
        The exponential of each is an estimate of the evidence that would be unbiased if
        temperatures and steps did not adapt to the particles; the bias is of the order of one over
        their number.
    position : ndarray of shape (n_particles, d)
        Draws from the posterior, those of a population together.
    n_temperatures : int
    n_gradients : int
        Evaluations, all particles counted.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Stage, anneal
    >>> class OneMeasurement:  # of 1, noise and prior standard normal
    ...     def misfit(self, q):
    ...         return 0.5 * (q[:, 0] - 1) ** 2 + 0.5 * np.log(2 * np.pi)
    ...     def stage(self, temperature, q, rngs):
    ...         def energy(q):
    ...             value = 0.5 * q[:, 0] ** 2 + temperature * self.misfit(q)
    ...             return value, q + temperature * (q - 1)
    ...         return Stage(q, energy)
    >>> rng = np.random.default_rng(0)
    >>> annealed = anneal(OneMeasurement(), rng.standard_normal((2000, 1)), rng)
    >>> print(annealed.position.mean().round(1))  # of the posterior
    0.5
    """

    log_evidences: np.ndarray
    position: np.ndarray
    n_temperatures: int
    n_gradients: int


class Stage(NamedTuple):
    """What one temperature needs.

    Attributes
    ----------
    position : ndarray of shape (n_particles, d + n_conditions)
        Particles after draws, if any are needed, of what the energy is conditional on.
    energy : callable
        At this temperature.
    move : callable or None
        Another transition for that energy, as in `warm_up`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Stage
    >>> def half(q):  # energy at temperature 1/2, of a standard normal prior and likelihood
    ...     return 0.75 * q[:, 0] ** 2, 1.5 * q
    >>> stage = Stage(np.zeros((100, 1)), half)
    >>> stage.move is None
    True
    """

    position: np.ndarray
    energy: object
    move: object = None


def anneal(path, position, rng, n_populations=1, n_moves=2, log_share=None):
    """Carry particles to the posterior from where it is easy to draw, adding up the evidence.

    Adaptive tempered sequential Monte Carlo (Neal 2001; Del Moral, Doucet & Jasra 2006): the
    likelihood's exponent rises from 0 to 1 in steps that leave `EFFECTIVE_SHARE` of the particles
    effective; particles are resampled in proportion to what they gained (systematic resampling) and
    moved by Hamiltonian Monte Carlo whose scales are the particles' own. Populations are resampled
    each by itself and share the temperatures.

    Parameters
    ----------
    path : object
        Its ``misfit`` maps positions to minus the log of what the joint density of data and
        position is over the density, normalised, where particles begin (the likelihood, if that is
        the prior), ``(n,)``; ``stage`` maps a temperature, positions and a generator for each to a
        `Stage`. Transitions of the stage leave the density of the beginning times the exponential
        of minus ``temperature * misfit`` as it is.
    position : ndarray of shape (n_particles, d + n_conditions)
        Independent draws from the density where they begin, those of a population together.
    rng : numpy.random.Generator
    n_populations : int, default=1
    n_moves : int, default=2
        Trajectories between two temperatures, each followed by the stage's own transition.
    log_share : callable, optional
        From positions to logs ``(n,)`` of a factor of the density at all temperatures but the
        beginning, which needs no gradient: it is in tests of acceptance only. The stage's own
        transitions must then be reversible.

    Returns
    -------
    Annealed

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Stage, anneal
    >>> class OneMeasurement:  # of 1, noise and prior standard normal
    ...     def misfit(self, q):
    ...         return 0.5 * (q[:, 0] - 1) ** 2 + 0.5 * np.log(2 * np.pi)
    ...     def stage(self, temperature, q, rngs):
    ...         def energy(q):
    ...             value = 0.5 * q[:, 0] ** 2 + temperature * self.misfit(q)
    ...             return value, q + temperature * (q - 1)
    ...         return Stage(q, energy)
    >>> rng = np.random.default_rng(0)
    >>> annealed = anneal(OneMeasurement(), rng.standard_normal((2000, 1)), rng)
    >>> exact = -0.25 - 0.5 * np.log(4 * np.pi)  # the measurement has mean 0 and variance 2
    >>> bool(abs(annealed.log_evidences[0] - exact) < 0.1)
    True
    """
    n, rngs, share = len(position), [rng] * len(position), _Share(log_share, position)
    temperature, step, n_temperatures, n_gradients = 0.0, FIRST_STEP, 0, n
    log_evidences = np.zeros(n_populations)
    with np.errstate(all="ignore"):
        misfit, gains = _finite(path.misfit(position)), share.present
    while temperature < 1.0:
        following = _next_temperature(misfit, gains, temperature, n_populations)
        gains = (gains - (following - temperature) * misfit).reshape(n_populations, -1)
        totals = log_sum_exp(gains, axis=1)
        log_evidences += totals - np.log(gains.shape[1])
        weights = np.exp(gains - totals[:, None])
        kept = _systematic(weights, rng)
        position, share.present = position[kept], share.present[kept]
        temperature = following
        position, energy, move = path.stage(temperature, position, rngs)
        phase = start(energy, position)
        metric = Metric(np.tile(_scale(phase), (n, 1)))
        for _ in range(n_moves):
            noise = Noise(rng.standard_normal(phase.gradient.shape), rng.random(n))
            sizes = step * np.exp(0.4 * (rng.random(n) - 0.5))
            counts = np.full(n, TEMPERED_STEPS)
            ended, info = transition(energy, phase, noise, sizes, counts, metric)
            phase = share.tested(phase, ended, rng)
            step = min(step * np.exp(info.acceptance.mean() - ACCEPTANCE), LONGEST_STEP)
            if move is not None:
                phase = share.tested(phase, move(energy, phase, rngs), rng)
        position = phase.position
        with np.errstate(all="ignore"):
            misfit, gains = _finite(path.misfit(position)), np.zeros(n)
        n_temperatures += 1
        n_gradients += n * (n_moves * TEMPERED_STEPS + 2)
    return Annealed(log_evidences, position, n_temperatures, n_gradients)


def _scale(phase):
    """How far every coordinate moves: by the curvature, but not beyond the spread of particles.

    The mean of squared gradients is that of the curvature (Fisher's identity), which modes and
    copies of networks have each for itself, however far they are apart. Of both only the middle two
    thirds of the particles count: a few with tiny precisions are far from all others.
    """
    gradient = np.where(np.isfinite(phase.gradient), phase.gradient, 0.0)
    with np.errstate(divide="ignore"):
        by_curvature = 2.0 / np.diff(np.percentile(gradient, MIDDLE, axis=0), axis=0)[0]
    position = phase.position[:, : gradient.shape[1]]
    spread = 0.5 * np.diff(np.percentile(position, MIDDLE, axis=0), axis=0)[0]
    return np.clip(by_curvature, LEAST_SCALE, np.maximum(spread, LEAST_SCALE))


class _Share:
    """A factor of the density that is in the tests of acceptance only.

    Attributes
    ----------
    present : ndarray of shape (n,)
        Its logarithm where the particles are.
    """

    def __init__(self, log_share, position):
        self.log_share = log_share
        self.present = np.zeros(len(position)) if log_share is None else log_share(position)

    def tested(self, before, after, rng):
        """A reversible transition without the factor becomes one with it by another test."""
        if self.log_share is None:
            return after
        there = self.log_share(after.position)
        back = ~(np.log(rng.random(len(there))) < there - self.present)
        self.present = np.where(back, self.present, there)
        return after.replaced(back, before.select(back))


def _finite(misfit):
    """Particles whose likelihood cannot be evaluated have none."""
    return np.where(np.isfinite(misfit), misfit, np.finfo(float).max ** 0.5)


def _next_temperature(misfit, gains, temperature, n_populations):
    """Exponent at which `EFFECTIVE_SHARE` of the effective particles remain so, at most 1."""
    low, high = 0.0, 1.0 - temperature
    misfit, gains = (some.reshape(n_populations, -1) for some in (misfit, gains))
    misfit = misfit - misfit.min(axis=1, keepdims=True)

    def effective(rise):
        logs = gains - rise * misfit
        return np.mean(np.exp(2.0 * log_sum_exp(logs, axis=1) - log_sum_exp(2.0 * logs, axis=1)))

    least = EFFECTIVE_SHARE * effective(0.0)
    if effective(high) >= least:
        return 1.0
    for _ in range(200):  # the first rise may be as small as 1e-12
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= least else (low, middle)
        if high - low < 1e-3 * high:
            break
    return temperature + 0.5 * (low + high)


def _systematic(weights, rng):
    """Particles kept in every population, in proportion to their weights (systematic resampling).

    Parameters
    ----------
    weights : ndarray of shape (n_populations, n)
    rng : numpy.random.Generator
    """
    size = weights.shape[1]
    kept = [
        first + np.searchsorted(np.cumsum(some), (np.arange(size) + rng.random()) / size)
        for first, some in zip(range(0, weights.size, size), weights, strict=True)
    ]
    return np.concatenate([np.minimum(some, (i + 1) * size - 1) for i, some in enumerate(kept)])


def combine(log_evidences, sizes=1.0):
    """Log of the mean evidence of several populations, with its standard error.

    Parameters
    ----------
    log_evidences : ndarray of shape (n_populations,)
        Of at least 4.
    sizes : float or ndarray of shape (n_populations,), default=1
        Numbers of particles, with which the estimates count.

    Returns
    -------
    log_evidence, standard_error : float
        The error by the delta method from the spread of the estimates; a spread of so few is
        uncertain itself, which the standard deviation of Student's t takes into account.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import combine
    >>> log_evidence, error = combine(np.array([-10.1, -9.9, -10.0, -10.1, -9.9, -10.0]))
    >>> print(round(log_evidence, 1), round(error, 2))
    -10.0 0.05
    """
    n = len(log_evidences)
    few = np.sqrt((n - 1.0) / (n - 3.0))
    shares = np.broadcast_to(sizes, n) / np.sum(np.broadcast_to(sizes, n))
    total = log_sum_exp(log_evidences + np.log(shares), axis=0)
    ratios = np.exp(log_evidences - total)
    return float(total), float(few * np.sqrt(shares @ (ratios - 1.0) ** 2 / (n - 1.0)))
