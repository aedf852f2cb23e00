"""Markov chains: warm-up with adaptation of step sizes and metric, and sampling."""

from typing import NamedTuple

import numpy as np

from skbayesnn.samplers._dynamics import Metric, Phase, RandomNumbers, start, transition

STAGES = (0.08, 0.2, 0.4, 0.7)  # shares of the warm-up after which the metric is updated
LONGEST_STAGE = 0.3  # the longest one between two of these
FIRST_STEP = 0.1
WARM_UP_STEPS = 50  # most steps of a trajectory, as step sizes are often far too small at first
CAREFUL = 5.0  # factor by which the steps of every fifth transition are smaller


class StepSize(NamedTuple):
    """State of dual averaging, one step size per chain (Hoffman & Gelman 2014, section 3.2)."""

    centre: np.ndarray  # (n_chains,), value ``mu`` to which ``ln eps`` is shrunk at first
    log_step: np.ndarray  # (n_chains,)
    log_average: np.ndarray  # (n_chains,)
    error: np.ndarray  # (n_chains,)
    count: int

    @classmethod
    def start(cls, step_size):
        """Begin around the given step sizes ``(n_chains,)``."""
        log_step = np.log(step_size)
        zero = np.zeros_like(log_step)
        return cls(log_step + np.log(2.0), log_step, log_step.copy(), zero, 0)

    @property
    def current(self):
        """Step sizes of the next transition."""
        return np.exp(self.log_step)

    @property
    def average(self):
        """Averaged step sizes, for use after the adaptation."""
        return np.exp(self.log_average)

    def updated(self, acceptance, target):
        """Update the state after a transition with the given acceptance probabilities."""
        count = self.count + 1
        rate = 1.0 / (count + 10.0)
        error = (1.0 - rate) * self.error + rate * (target - acceptance)
        log_step = self.centre - np.sqrt(count) / 0.05 * error
        share = count**-0.75
        log_average = share * log_step + (1.0 - share) * self.log_average
        return StepSize(self.centre, log_step, log_average, error, count)


class Plan(NamedTuple):
    """Settings of the transitions."""

    step_size: float | None = None  # step size; ``None``: adapted during warm-up
    # leapfrog steps; ``(low, high)``: drawn uniformly from this range for each chain and
    # transition; ``None``: as many as make trajectories of the following length
    n_steps: int | tuple | None = None
    # mean length of trajectories, in units of the metric; they vary from 0 to twice that
    length: float = 2.0
    max_steps: int = 512
    persistence: float = 0.0
    metropolis: bool = True
    target: float = 0.8  # target of the mean acceptance probability in the adaptation of step sizes
    # whether the mean curvature defines the metric during warm-up, and its power in
    # `Metric.from_precisions`
    dense: bool = True
    metric_power: float = 0.5
    n_curvatures: int = 40  # most positions per stage of the warm-up whose curvature is averaged
    # transition kernel: `transition`, or another one with its arguments
    kernel: object = transition
    # number of consecutive chains that adapt together: they share step sizes and metric
    group: int = 1

    def pooled(self, values):
        """Replace the values of every chain ``(n_chains, ...)`` by the mean of its group."""
        if self.group == 1:
            return values
        means = values.reshape(-1, self.group, *values.shape[1:]).mean(axis=1)
        return np.repeat(means, self.group, axis=0)


class Chains(NamedTuple):
    """State of the chains, sufficient to continue."""

    phase: Phase
    steps: StepSize
    metric: Metric
    rngs: list  # generators, one per chain, so that a chain does not depend on the others
    count: int  # transitions made so far

    @classmethod
    def start(cls, energy, position, rngs, plan, scales=1.0):
        """Start chains at rest at given positions ``(n_chains, d + n_conditions)``.

        The ``scales`` of the coordinates, ``(d,)`` or one for all, define the first metric.
        """
        size = FIRST_STEP if plan.step_size is None else plan.step_size
        phase = start(energy, position)
        return cls(
            phase,
            StepSize.start(np.full(len(position), size)),
            Metric(np.full(phase.gradient.shape, scales)),
            rngs,
            0,
        )


def is_careful(plan, count):
    """Return True if a transition takes small steps, for sharp corners of the distribution."""
    return plan.n_steps is None and count % 5 == 0


def advance(energy, chains, plan, step_size, moves=()):
    """Make one transition of every chain, followed by ``moves``.

    Step sizes (with a fixed number of steps) or trajectory lengths vary from one transition to the
    next, to prevent periodic trajectories (Neal 2011, section 5.4.2.2). The variation is
    quasi-random and common to all chains, except for drawn numbers of steps.
    """
    count = chains.count + 1
    u = int(f"{count:b}"[::-1], 2) / (1 << count.bit_length())  # van der Corput: 1/2, 1/4, 3/4, ...
    if plan.n_steps is None:
        n_steps = np.ceil(2.0 * plan.length * u / step_size)
        n_steps = np.clip(n_steps, 1, plan.max_steps).astype(int)
        if is_careful(plan, count):
            step_size = step_size / CAREFUL
    elif isinstance(plan.n_steps, tuple):
        low, high = plan.n_steps
        n_steps = np.array([rng.integers(low, high + 1) for rng in chains.rngs])
    else:
        n_steps = np.full(len(step_size), plan.n_steps)
        if plan.n_steps > 1:
            step_size = step_size * (0.8 + 0.4 * u)
    noise = RandomNumbers.draw(chains.rngs, chains.phase.gradient.shape[1])
    phase, info = plan.kernel(
        energy,
        chains.phase,
        noise,
        step_size,
        n_steps,
        chains.metric,
        plan.persistence,
        plan.metropolis,
    )
    for move in moves:
        phase = move(energy, phase, chains.rngs)
    return chains._replace(phase=phase, count=count), info


def warm_up(
    energy, chains, plan, n_transitions, curvature=None, moves=(), progress=None, is_late=None
):
    """Run the chains to the typical set, and adapt step sizes and metric.

    ``curvature`` maps positions (n_chains, d) to positive definite matrices (n_chains, d, d), whose
    mean over each stage defines the next metric; by default the metric is not adapted. The
    ``moves`` are further transitions that leave the target invariant, made in turn after each
    transition of the dynamics: functions from the energy, a phase and the chains' generators to a
    phase. ``progress`` is called after every transition with the chains and its `Info`, and
    ``is_late`` without arguments; the warm-up ends when the latter returns True.
    """
    if curvature is not None and n_transitions > 0:
        precisions = plan.pooled(curvature(chains.phase.position))
        chains = chains._replace(metric=Metric.from_precisions(precisions, plan.metric_power))
    brief = plan._replace(max_steps=min(plan.max_steps, WARM_UP_STEPS))
    ends = [round(share * n_transitions) for share in STAGES]
    total, used, begin = 0.0, 0, 0
    every = max(1, round(LONGEST_STAGE * n_transitions / plan.n_curvatures))
    for i in range(n_transitions):
        chains, info = advance(energy, chains, brief, chains.steps.current, moves)
        if plan.step_size is None and not is_careful(plan, chains.count):
            steps = chains.steps.updated(plan.pooled(info.acceptance), plan.target)
            chains = chains._replace(steps=steps)
        if curvature is not None and begin < ends[-1]:
            if (i - begin) % every == 0:
                total, used = total + curvature(chains.phase.position), used + 1
            if i + 1 in ends:
                metric = Metric.from_precisions(plan.pooled(total / used), plan.metric_power)
                chains = chains._replace(metric=metric, steps=StepSize.start(chains.steps.average))
                total, used, begin = 0.0, 0, i + 1
        if progress is not None:
            progress(chains, info)
        if is_late is not None and is_late():
            break
    return chains


def sample(energy, chains, plan, n_transitions, keep, moves=(), progress=None):
    """Advance the chains with their adapted settings, see `warm_up`.

    ``keep`` is called with the chains and the `Info` of every transition.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import Chains, Plan, sample, warm_up
    >>> def energy(q):  # standard normal distribution
    ...     return 0.5 * np.sum(q**2, axis=-1), q
    >>> rngs = [np.random.default_rng(seed) for seed in range(4)]
    >>> chains = Chains.start(energy, np.zeros((4, 3)), rngs, Plan())
    >>> chains = warm_up(energy, chains, Plan(), n_transitions=200)
    >>> draws = []
    >>> def keep(chains, info):
    ...     draws.append(chains.phase.position)
    >>> chains = sample(energy, chains, Plan(), 500, keep)
    >>> print(np.std(draws).round(1))
    1.0
    """
    for _ in range(n_transitions):
        chains, info = advance(energy, chains, plan, chains.steps.average, moves)
        keep(chains, info)
        if progress is not None:
            progress(chains, info)
    return chains
