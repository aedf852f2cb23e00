"""Hamiltonian dynamics of many chains at once, and transition kernels.

The dynamics is discretised by the leapfrog method. Hamiltonian Monte Carlo draws new momenta,
follows the dynamics, and accepts or rejects the end point (Duane, Kennedy, Pendleton & Roweth
1987). With a single leapfrog step it is the Langevin method (MacKay 2003, algorithm 41.4), with
partial refreshment of the momenta it is persistent (Horowitz 1991), and without the Metropolis test
it is the stochastic dynamics of Neal (1992). All are one transition with different settings. The
random walk (Metropolis et al. 1953) is a separate kernel, which needs no gradient.
"""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12
UNSTABLE = 1000.0  # rise of the total energy, in nats, at which a trajectory counts as divergent


class Metric(NamedTuple):
    """Metric by which positions move with velocity ``F p`` for standard normal momenta ``p``.

    This is equivalent to a mass matrix ``F^-2``, without linear systems to solve (Neal 2011,
    section 5.4.2.4). The gradient in the coordinates of the momenta is ``F g``.
    """

    # (n_chains, d, d) or (n_chains, d), symmetric ``F``, or the diagonals of diagonal ones
    factor: np.ndarray

    @classmethod
    def from_precisions(cls, precisions, power=1.0):
        """Build ``F = A^(-power/2)`` from positive definite ``A`` of shape (n_chains, d, d).

        Power 1 whitens a Gaussian of this precision; power 0 is the identity. Intermediate powers
        suit distributions whose precision varies with the position: directions that are narrow in
        one region and wide in another are then not restricted to the narrowest width.

        Eigenvalues below `ROUNDING` times the largest, which are dominated by rounding, are raised
        to that bound; any metric leaves the target invariant.
        """
        values, vectors = np.linalg.eigh(precisions)
        largest = np.max(values, axis=-1, initial=0.0)
        values = np.maximum(values, ROUNDING * largest[:, None])
        scaled = vectors * (values ** (-0.5 * power))[:, None, :]
        return cls(scaled @ np.swapaxes(vectors, -1, -2))

    def select(self, chains):
        """Select the metrics of some chains."""
        return Metric(self.factor[chains])

    def times(self, vectors):
        """Products ``F v``, shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * vectors
        return (self.factor @ vectors[..., None])[..., 0]


class Phase(NamedTuple):
    """Points of phase space, one per chain, with the energy and its gradient."""

    # (n_chains, d + n_conditions); the energy is conditional on the entries beyond ``d``, which the
    # dynamics keeps fixed
    position: np.ndarray
    # (n_chains, d), momenta in the coordinates of the metric, where their distribution is standard
    # normal
    momentum: np.ndarray
    value: np.ndarray  # (n_chains,), potential energy, minus log density up to a constant
    gradient: np.ndarray  # (n_chains, d)

    @property
    def total(self):
        """Potential plus kinetic energy, the Hamiltonian, of shape (n_chains,)."""
        return self.value + 0.5 * np.sum(self.momentum**2, axis=-1)

    def replaced(self, chains, other):
        """Copy with the given chains replaced by those of ``other`` (all of them, in order)."""
        result = Phase(*map(np.ndarray.copy, self))
        for mine, theirs in zip(result, other, strict=True):
            mine[chains] = theirs
        return result

    def select(self, chains):
        """Select some of the chains."""
        return Phase(*(array[chains] for array in self))


def start(energy, position):
    """Evaluate the energy at given positions, with zero momenta."""
    value, gradient = energy(position)
    return Phase(position, np.zeros_like(gradient), value, gradient)


def moved(position, step):
    """Add a step to the first entries of positions."""
    if step.shape == position.shape:
        return position + step
    moved = position.copy()
    moved[:, : step.shape[1]] += step
    return moved


def leapfrog(energy, phase, step_size, n_steps, metric):
    """Follow the trajectory of every chain for its own number of leapfrog steps.

    One step is ``p <- p - eps/2 g``, ``x <- x + eps p``, ``p <- p - eps/2 g`` (MacKay 2003,
    algorithm 41.8; Neal 2011, equations 5.18-5.20), which is reversible and preserves volume. A
    chain stops if its energy has risen by more than `UNSTABLE` or is not a number.

    The energy maps positions ``(m, d + n_conditions)`` to values ``(m,)`` and gradients ``(m, d)``,
    row by row. Its ``compiled`` twin, if it has one, moves chains in place, all steps at once.
    ``step_size`` and ``n_steps`` have one entry per chain. The ends of trajectories that diverged
    have infinite value.
    """
    initial = phase.total
    result, taken = Phase(*map(np.ndarray.copy, phase)), 0
    compiled = getattr(energy, "compiled", None)
    if compiled is not None:
        compiled.leapfrog(result, step_size, n_steps, metric.factor, UNSTABLE)
        return result
    active = np.flatnonzero(n_steps > 0)
    moving, own, eps = result.select(active), metric.select(active), step_size[active, None]
    with np.errstate(all="ignore"):  # unstable dynamics overflows
        force = own.times(moving.gradient)
        while len(active):
            taken += 1
            half = moving.momentum - 0.5 * eps * force
            position = moved(moving.position, eps * own.times(half))
            value, gradient = energy(position)
            force = own.times(gradient)
            moving = Phase(position, half - 0.5 * eps * force, value, gradient)
            lost = ~(moving.total - initial[active] < UNSTABLE)
            going = ~lost & (n_steps[active] > taken)
            if not going.all():
                moving.value[lost] = np.inf
                done = ~going
                for mine, theirs in zip(result, moving, strict=True):
                    mine[active[done]] = theirs[done]
                active, moving, force = active[going], moving.select(going), force[going]
                own, eps = own.select(going), eps[going]
    return result


class Info(NamedTuple):
    """Statistics of a transition, one entry per chain."""

    # acceptance probability ``min(1, exp(-dH))``, even if no Metropolis test is made
    acceptance: np.ndarray
    diverged: np.ndarray  # whether the trajectory diverged, see `leapfrog`
    n_steps: np.ndarray  # leapfrog steps, each costing one gradient


class RandomNumbers(NamedTuple):
    """Random numbers of one transition."""

    momentum: np.ndarray  # (n_chains, d), standard normal numbers
    uniform: np.ndarray  # (n_chains,), uniform numbers for the Metropolis test

    @classmethod
    def draw(cls, rngs, dimension):
        """Draw the numbers of every chain from its own generator."""
        momentum, uniform = np.empty((len(rngs), dimension)), np.empty(len(rngs))
        for i, rng in enumerate(rngs):
            rng.standard_normal(out=momentum[i])
        for i, rng in enumerate(rngs):
            uniform[i] = rng.random()
        return cls(momentum, uniform)


def transition(energy, phase, noise, step_size, n_steps, metric, persistence=0.0, metropolis=True):
    """Make a Hamiltonian Monte Carlo transition: refresh momenta, follow the dynamics, and test.

    After a rejection the momentum of the old position is reversed, which keeps the target invariant
    if momenta persist.

    Arguments are those of `leapfrog`, and `RandomNumbers` as ``noise``. The ``persistence`` is the
    coefficient ``a`` in ``p <- a p + (1 - a^2)^(1/2) n`` (Neal 1992); 0 draws new momenta. Without
    the ``metropolis`` test the sampled distribution is biased by the step size, and only divergent
    trajectories are rejected.
    """
    momentum = persistence * phase.momentum + np.sqrt(1.0 - persistence**2) * noise.momentum
    phase = phase._replace(momentum=momentum)
    end = leapfrog(energy, phase, step_size, n_steps, metric)
    with np.errstate(all="ignore"):
        error = end.total - phase.total
        acceptance = np.where(np.isnan(error), 0.0, np.exp(np.minimum(0.0, -error)))
    diverged = ~np.isfinite(end.value)
    kept = diverged | (noise.uniform >= acceptance) if metropolis else diverged
    if kept.any():
        back = phase._replace(momentum=-phase.momentum)
        for mine, theirs in zip(end, back, strict=True):
            mine[kept] = theirs[kept]
    return end, Info(acceptance, diverged, n_steps)


def random_walk(energy, phase, noise, step_size, n_steps, metric, persistence=0.0, metropolis=True):
    """Make a random-walk Metropolis transition with a Gaussian step (Metropolis et al. 1953).

    The step is ``eps F n`` with the factor ``F`` of the metric. The arguments are those of
    `transition`, the last two of which are ignored, as are the numbers of steps. Momenta are kept.
    """
    position = moved(phase.position, step_size[:, None] * metric.times(noise.momentum))
    with np.errstate(all="ignore"):
        value, gradient = energy(position)
        error = np.where(np.isfinite(value), value - phase.value, np.inf)
    acceptance = np.exp(np.minimum(0.0, -error))
    accepted = noise.uniform < acceptance
    there = Phase(position, phase.momentum, value, gradient)
    result = phase.replaced(accepted, there.select(accepted))
    return result, Info(acceptance, np.isinf(error), np.ones_like(n_steps))
