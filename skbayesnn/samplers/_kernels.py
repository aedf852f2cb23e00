"""One transition of every chain: Hamiltonian Monte Carlo and its relatives.

Hamiltonian Monte Carlo draws momenta afresh, follows the dynamics, and accepts or rejects where it
ends (Duane, Kennedy, Pendleton & Roweth 1987). With a single leapfrog step it is the Langevin
method (MacKay 2003, algorithm 41.4). If momenta are refreshed only in part it is persistent
(Horowitz 1991), and without the Metropolis test it is the stochastic dynamics of Neal (1992). All
are one transition with different settings. The random walk (Metropolis et al. 1953) is a kernel of
its own, which needs no gradient.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.samplers._dynamics import Phase, leapfrog, moved


class Info(NamedTuple):
    """What happened in a transition, one entry per chain.

    Attributes
    ----------
    acceptance : ndarray of float
        Probability ``min(1, exp(-dH))`` of the Metropolis test, also where none is made.
    error : ndarray of float
        ``dH``, the change of the total energy along the trajectory.
    diverged : ndarray of bool
        Whether the trajectory diverged: the error of its energy became huge.
    n_steps : ndarray of int
        Leapfrog steps, each costing one gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Chains, Plan, advance
    >>> def energy(q):  # standard normal distribution
    ...     return 0.5 * np.sum(q**2, axis=-1), q
    >>> rngs = [np.random.default_rng(seed) for seed in range(4)]
    >>> chains = Chains.start(energy, np.zeros((4, 3)), rngs, Plan())
    >>> chains, info = advance(energy, chains, Plan(n_steps=5), step_size=np.full(4, 0.1))
    >>> info.n_steps
    array([5, 5, 5, 5])
    >>> bool(np.all(info.acceptance > 0.99))  # small steps keep the total energy
    True
    """

    acceptance: np.ndarray
    error: np.ndarray
    diverged: np.ndarray
    n_steps: np.ndarray


class Noise(NamedTuple):
    """Random numbers of one transition.

    Attributes
    ----------
    momentum : ndarray of shape (n_chains, d)
        Standard normal.
    uniform : ndarray of shape (n_chains,)
        For the Metropolis test.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Noise
    >>> noise = Noise.draw([np.random.default_rng(seed) for seed in range(4)], dimension=3)
    >>> noise.momentum.shape, noise.uniform.shape
    ((4, 3), (4,))
    """

    momentum: np.ndarray
    uniform: np.ndarray

    @classmethod
    def draw(cls, rngs, dimension):
        """Every chain's numbers from its own generator."""
        momentum, uniform = np.empty((len(rngs), dimension)), np.empty(len(rngs))
        for i, rng in enumerate(rngs):
            rng.standard_normal(out=momentum[i])
        for i, rng in enumerate(rngs):
            uniform[i] = rng.random()
        return cls(momentum, uniform)


def transition(energy, phase, noise, step_size, n_steps, metric, persistence=0.0, metropolis=True):
    """Refresh the momentum, follow the dynamics, accept or reject.

    Parameters
    ----------
    energy : callable
        From positions (m, d + n_conditions) to values (m,) and gradients (m, d), row by row.
    phase : Phase
    noise : Noise
    step_size : ndarray of shape (n_chains,)
    n_steps : ndarray of int, shape (n_chains,)
    metric : Metric
    persistence : float, default=0
        ``a`` in ``p <- a p + (1 - a^2)^(1/2) n`` (Neal 1992); 0 draws momenta afresh.
    metropolis : bool, default=True
        Without the test the distribution sampled is biased by the step size. A trajectory that was
        given up is rejected all the same.

    Returns
    -------
    phase : Phase
        After a rejection the old position, with the momentum turned round: what keeps the target
        invariant if momenta persist.
    info : Info

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Metric, Noise, start, transition
    >>> def energy(q):  # standard normal distribution
    ...     return 0.5 * np.sum(q**2, axis=-1), q
    >>> phase = start(energy, np.zeros((2, 3)))
    >>> noise = Noise.draw([np.random.default_rng(seed) for seed in range(2)], dimension=3)
    >>> step_size, n_steps = np.full(2, 0.1), np.full(2, 10)
    >>> phase, info = transition(energy, phase, noise, step_size, n_steps, Metric.identity(2, 3))
    >>> info.diverged
    array([False, False])
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
    """A Gaussian step in any direction, accepted or rejected (Metropolis et al. 1953).

    Its arguments are those of `transition`.

    Parameters
    ----------
    energy : callable
    phase : Phase
        Momenta stay as they are.
    noise : Noise
        The step is ``eps F n`` with the factor ``F`` of the metric.
    step_size : ndarray of shape (n_chains,)
    n_steps : ndarray of int, shape (n_chains,)
        Ignored: there is one step.
    metric : Metric
    persistence : float
        Ignored.
    metropolis : bool
        Ignored: without the test there would be no target.

    Returns
    -------
    phase : Phase
    info : Info

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Metric, Noise, random_walk, start
    >>> def energy(q):  # standard normal distribution
    ...     return 0.5 * np.sum(q**2, axis=-1), q
    >>> phase = start(energy, np.zeros((2, 3)))
    >>> noise = Noise.draw([np.random.default_rng(seed) for seed in range(2)], dimension=3)
    >>> step_size, n_steps = np.full(2, 1e-3), np.ones(2, dtype=int)
    >>> phase, info = random_walk(energy, phase, noise, step_size, n_steps, Metric.identity(2, 3))
    >>> bool(np.all(info.acceptance > 0.999))  # of tiny steps
    True
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
