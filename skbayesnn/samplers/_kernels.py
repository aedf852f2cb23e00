"""Transition kernels: Hamiltonian Monte Carlo and related methods.

Hamiltonian Monte Carlo draws new momenta, follows the dynamics, and accepts or rejects the end
point (Duane, Kennedy, Pendleton & Roweth 1987). With a single leapfrog step it is the Langevin
method (MacKay 2003, algorithm 41.4), with partial refreshment of the momenta it is persistent
(Horowitz 1991), and without the Metropolis test it is the stochastic dynamics of Neal (1992). All
are one transition with different settings. The random walk (Metropolis et al. 1953) is a separate
kernel, which needs no gradient.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.samplers._dynamics import Phase, leapfrog, moved


class Info(NamedTuple):
    """Statistics of a transition, one entry per chain.

    Attributes
    ----------
    acceptance : ndarray of float
        Acceptance probability ``min(1, exp(-dH))``, even if no Metropolis test is made.
    error : ndarray of float
        Change ``dH`` of the total energy along the trajectory.
    diverged : ndarray of bool
        Whether the trajectory diverged, see `leapfrog`.
    n_steps : ndarray of int
        Leapfrog steps, each costing one gradient.
    """

    acceptance: np.ndarray
    error: np.ndarray
    diverged: np.ndarray
    n_steps: np.ndarray


class RandomNumbers(NamedTuple):
    """Random numbers of one transition.

    Attributes
    ----------
    momentum : ndarray of shape (n_chains, d)
        Standard normal numbers.
    uniform : ndarray of shape (n_chains,)
        Uniform numbers for the Metropolis test.
    """

    momentum: np.ndarray
    uniform: np.ndarray

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

    Parameters
    ----------
    energy, phase, noise, step_size, n_steps, metric
        See `leapfrog`; ``noise`` are `RandomNumbers`.
    persistence : float, default=0
        Coefficient ``a`` in ``p <- a p + (1 - a^2)^(1/2) n`` (Neal 1992); 0 draws new momenta.
    metropolis : bool, default=True
        Make a Metropolis test. Without it the sampled distribution is biased by the step size, and
        only divergent trajectories are rejected.
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
        end = end.replaced(kept, back.select(kept))
    return end, Info(acceptance, error, diverged, n_steps)


def random_walk(energy, phase, noise, step_size, n_steps, metric, persistence=0.0, metropolis=True):
    """Make a random-walk Metropolis transition with a Gaussian step (Metropolis et al. 1953).

    The step is ``eps F n`` with the factor ``F`` of the metric. The arguments are those of
    `transition`, the last two of which are ignored, as are the numbers of steps. Momenta are kept.
    """
    position = moved(phase.position, step_size[:, None] * metric.velocity(noise.momentum))
    with np.errstate(all="ignore"):
        value, gradient = energy(position)
        error = np.where(np.isfinite(value), value - phase.value, np.inf)
    acceptance = np.exp(np.minimum(0.0, -error))
    accepted = noise.uniform < acceptance
    there = Phase(position, phase.momentum, value, gradient)
    result = phase.replaced(accepted, there.select(accepted))
    return result, Info(acceptance, error, np.isinf(error), np.ones_like(n_steps))
