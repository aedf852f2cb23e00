"""Sequential Monte Carlo: annealing of particles from a prior to the posterior.

The exponent of the likelihood rises from 0 to 1. At every exponent the particles are resampled with
their importance weights, and moved by Hamiltonian Monte Carlo (Del Moral, Doucet & Jasra 2006). The
sampler is waste-free (Dau & Chopin 2022): few particles are resampled, and all states of their
moves are the particles of the next exponent. At exponent 1 the moves continue as many short chains,
whose states are draws from the posterior.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skbayesnn.samplers._dynamics import Metric, RandomNumbers, start, transition

MIDDLE = 16, 84  # per cent: one standard deviation about the mean of a normal distribution
# step sizes relative to the length scales of the coordinates; the first one is adapted
FIRST_STEP, LONGEST_STEP = 0.3, 1.0
ACCEPTANCE = 0.8  # mean acceptance probability to which step sizes are adapted
MIN_SCALE = 1e-3  # least length scale, where all particles agree in a coordinate
HUGE = np.finfo(float).max ** 0.5  # replaces misfits that are not finite


class Schedule(NamedTuple):
    """Numbers of particles and of their moves."""

    n_chains: int = 16  # particles that are resampled at each exponent below 1
    n_moves: int = 32  # transitions of each resampled particle
    n_steps: int = 20  # leapfrog steps of a transition
    effective: float = 0.5  # relative effective sample size after a change of the exponent
    n_last_chains: int = 64  # particles that are resampled at exponent 1
    n_last_moves: int = 16  # their transitions
    n_last_steps: int = 40  # leapfrog steps of these


class Population(NamedTuple):
    """Particles at the posterior, and an estimate of the evidence."""

    # its exponential would be unbiased if exponents and step sizes did not adapt to the particles
    log_evidence: float
    log_evidence_std: float  # standard error
    # (n_last_chains, n_last_moves, d + n_conditions), draws from the posterior by short chains.
    # Descendants of the same first particle are neighbours
    position: np.ndarray


class Stage(NamedTuple):
    """Particles, energy and further transitions at one exponent."""

    # (n_particles, d + n_conditions), particles, with new draws of the conditions of the energy, if
    # any
    position: np.ndarray
    energy: object  # energy at this exponent
    moves: Sequence = ()  # further transitions for that energy, see `warm_up`


def anneal(path, rng, schedule):
    """Anneal particles to the posterior, and estimate the evidence.

    The standard error is estimated from the genealogy of the particles, of a single run: the
    evidence is a sum over the first particles of the weights of their descendants, and its
    relative variance is the sum of the squares of their shares. Particles that had the same
    ancestor before the first resampling are dependent (Lee & Whiteley 2018, without the terms
    that vanish with many particles).

    Parameters
    ----------
    path : object
        Annealing path with three methods. ``draw(rng, size)`` makes independent draws
        ``(size, d + n_conditions)`` from a normalised first density. ``misfit`` maps positions to
        minus the log ratio ``(n,)`` of the joint density of data and position to the first density
        (the likelihood, if the latter is the prior). ``stage`` maps an exponent, positions and a
        generator for each to a `Stage`, whose transitions leave the first density times
        ``exp(-exponent * misfit)`` invariant.
    rng : numpy.random.Generator
    schedule : Schedule

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Schedule, Stage, anneal
    >>> class OneMeasurement:  # of 1, noise and prior standard normal
    ...     def draw(self, rng, size):
    ...         return rng.standard_normal((size, 1))
    ...     def misfit(self, q):
    ...         return 0.5 * (q[:, 0] - 1) ** 2 + 0.5 * np.log(2 * np.pi)
    ...     def stage(self, exponent, q, rngs):
    ...         def energy(q):
    ...             return 0.5 * q[:, 0] ** 2 + exponent * self.misfit(q), q + exponent * (q - 1)
    ...         return Stage(q, energy)
    >>> found = anneal(OneMeasurement(), np.random.default_rng(0), Schedule(n_chains=500))
    >>> exact = -0.25 - 0.5 * np.log(4 * np.pi)  # the measurement has mean 0 and variance 2
    >>> bool(abs(found.log_evidence - exact) < 0.2)
    True
    """
    exponent, step, log_evidence = 0.0, FIRST_STEP, 0.0
    size = schedule.n_chains * schedule.n_moves  # all states of moves are particles
    position, ancestor = path.draw(rng, size), np.arange(size)
    while exponent < 1.0:
        with np.errstate(all="ignore"):
            misfit = path.misfit(position)
            misfit = np.where(np.isfinite(misfit), misfit, HUGE)
        following = _next_exponent(misfit, exponent, schedule.effective)
        log_weights = (exponent - following) * misfit
        total = logsumexp(log_weights)
        # the mean importance weight estimates the ratio of the normalising constants
        log_evidence += float(total) - np.log(size)
        exponent, weights = following, np.exp(log_weights - total)
        shares = np.bincount(ancestor, weights)
        n_kept = schedule.n_chains if exponent < 1.0 else schedule.n_last_chains
        kept = _systematic(weights, n_kept, rng)
        ancestor = np.repeat(ancestor[kept], schedule.n_moves)
        position, step = _moved(path, exponent, position[kept], position, step, rng, schedule)
    chains = position.reshape(schedule.n_last_chains, schedule.n_last_moves, -1)
    return Population(log_evidence, float(np.sqrt(np.sum(shares**2))), chains)


def _moved(path, exponent, kept, particles, step, rng, schedule):
    """Move the kept particles, and return all states, one particle after the other.

    The spread of all ``particles`` bounds the steps, whose size is adapted from one transition to
    the next.
    """
    n = len(kept)
    rngs, is_last = [rng] * n, exponent == 1.0
    n_moves = schedule.n_last_moves if is_last else schedule.n_moves
    n_steps = np.full(n, schedule.n_last_steps if is_last else schedule.n_steps)
    begin, energy, moves = path.stage(exponent, kept, rngs)
    phase, states = start(energy, begin), []
    metric = Metric(np.tile(length_scales(phase.gradient, particles), (n, 1)))
    for i in range(n_moves):
        noise = RandomNumbers(rng.standard_normal(phase.gradient.shape), rng.random(n))
        # step sizes vary to prevent periodic trajectories (Neal 2011, section 5.4.2.2)
        sizes = step * np.exp(0.4 * (rng.random(n) - 0.5))
        phase, info = transition(energy, phase, noise, sizes, n_steps, metric)
        change = info.acceptance.mean() - ACCEPTANCE
        # adaptation fades at the posterior, where the states are draws
        step = min(step * np.exp(change / np.sqrt(1 + i * is_last)), LONGEST_STEP)
        for move in moves:
            phase = move(energy, phase, rngs)
        states.append(phase.position)
    return np.concatenate(np.stack(states, axis=1)), step


def length_scales(gradient, position):
    """Length scale of every coordinate: by the curvature, at most the spread of the particles.

    The mean of squared gradients is the mean curvature (Fisher's identity), a local property of
    every mode, independent of the distances between modes. Both scales use percentiles of the
    middle two thirds of the particles, as a few with tiny precisions are far from all others.
    """
    gradient = np.where(np.isfinite(gradient), gradient, 0.0)
    with np.errstate(divide="ignore"):
        # half the width of these percentiles estimates a standard deviation
        by_curvature = 2.0 / np.diff(np.percentile(gradient, MIDDLE, axis=0), axis=0)[0]
    position = position[:, : gradient.shape[1]]
    spread = 0.5 * np.diff(np.percentile(position, MIDDLE, axis=0), axis=0)[0]
    return np.clip(by_curvature, MIN_SCALE, np.maximum(spread, MIN_SCALE))


def _next_exponent(misfit, exponent, effective):
    """Exponent, at most 1, at which the relative effective sample size equals ``effective``."""
    low, high = 0.0, 1.0 - exponent
    misfit = misfit - misfit.min()

    def share(rise):
        weights = np.exp(-rise * misfit)  # the largest is 1
        return weights.sum() ** 2 / np.sum(weights**2) / len(misfit)

    if share(high) >= effective:
        return 1.0
    for _ in range(200):  # the first rise may be as small as 1e-12
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= effective else (low, middle)
        if high - low < 1e-3 * high:
            break
    return exponent + 0.5 * (low + high)


def _systematic(weights, n_kept, rng):
    """Resample systematically by weights ``(n,)`` that sum to 1; return sorted indices."""
    places = (np.arange(n_kept) + rng.random()) / n_kept
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
