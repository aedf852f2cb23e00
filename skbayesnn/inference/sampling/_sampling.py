"""Markov chain Monte Carlo for weights and hyperparameters: settings, starts and runs of chains."""

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from skbayesnn._progress import OutOfTime
from skbayesnn._threads import blas_threads
from skbayesnn.inference.minima._search import ALONE
from skbayesnn.inference.minima._training import (
    BRIEF,
    briefly_trained,
    embedded,
    random_starts,
)
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._moves import extra_moves
from skbayesnn.inference.task._problem import Posed, Settings
from skbayesnn.posterior import JointPosterior
from skbayesnn.samplers import Chains, Plan, sample, warm_up

FEWEST = 4  # fewest draws of each chain that are returned after an interruption
LINES = 10  # lines of progress
WARM_UP_SHARE = 0.5  # largest share of the remaining time for the warm-up
# steps of a trajectory that are always allowed, and the most for chains that start from a
# population and have its length scales, by which trajectories are as long in fewer steps
MIN_LIMIT = 64
TRAJECTORY_ROWS = 2**16  # limit of steps times rows of a trajectory beyond that
NOISE_NETWORK_ROWS = 2**14  # the limit with a noise network; longer trajectories showed no gain
# length of long trajectories, to be multiplied by `patience`, but by at most one per some rows
LONG, LONG_ROWS = 3.0, 32
# target for rows times weights times `patience`, and the largest, with and without a dense metric
PATIENT_WORK = {True: 120_000, False: 240_000}
MAX_PATIENT = {True: 4, False: 6}
PATIENT_ROWS = 8  # rows per unit of `patience`: few rows are sampled fast
FAR_BEHIND = 20.0  # nats of evidence behind the best start at which a start is replaced
ATTEMPTS = 3  # attempts to replace a start
WIDEST = 30.0  # prior sds of starts lie between this and its inverse


def patience(posterior, dense=True):
    """Factor of the work per draw for cheap posteriors, as some chains mix slowly."""
    n_rows = len(posterior.X)
    affordable = PATIENT_WORK[dense] // (n_rows * posterior.network.n_weights)
    return int(np.clip(min(affordable, n_rows // PATIENT_ROWS), 1, MAX_PATIENT[dense]))


def tuned_plan(fit):
    """Plan of the self-tuning sampler for a `Fit`, and its number of transitions per draw.

    Under constant noise the output layer is integrated out, and hidden weights move along ridges of
    the posterior: trajectories are long if steps are cheap. Otherwise trajectories are short but
    more frequent: the slowest quantities are the scales of groups of weights, or the conditions of
    the energy, which have transitions of their own. If the output layer stays in the position, the
    curvature varies so much over the posterior that its mean does not yield a useful metric. The
    metric is then diagonal, from the draws where chains start, or the identity.
    """
    posed, noise = fit.posed, fit.noise
    varies = noise.startswith("input_dependent")
    of_noise = varies and fit.problem.noise_hidden_layer_sizes
    if not (posed.hidden_layer_sizes or of_noise):
        return Plan(), 1
    n_rows = len(posed.posterior.X)  # distinct ones, which set the time
    most_rows = NOISE_NETWORK_ROWS if varies else TRAJECTORY_ROWS
    max_steps = max(MIN_LIMIT, min(n_rows, most_rows // n_rows))
    likelihood, centred = posed.posterior.likelihood, posed.posterior.groups.centred
    integrated = bool(likelihood.n_levels and likelihood.conjugate and centred)
    more = patience(posed.posterior, integrated)
    if integrated and noise == "constant":
        more = min(more, max(1, n_rows // LONG_ROWS))
        return Plan(length=LONG * more, max_steps=more * max_steps), 1
    return Plan(max_steps=max_steps, dense=integrated), more


class SamplingSettings(NamedTuple):
    """Settings of a sampling run.

    If it is ``tuned``, the output layer is integrated out where possible, and a metric is adapted.
    Otherwise it is the plain dynamics of all weights, whose coordinates are the weights where
    precisions are fixed.
    """

    search: Settings  # free precisions, their priors, and the values of the fixed ones
    plan: Plan
    n_warmup: int  # transitions
    n_draws: int  # kept of every chain
    thin: int = 1  # transitions per draw
    tuned: bool = True
    dtype: np.dtype = np.dtype(np.float64)  # of the stored draws
    sweeps: int = 1  # of scale moves after every trajectory

    def of_parts(self, n_transitions):
        """Number of transitions of each short chain if a chain consists of a group of them."""
        return -(-n_transitions // self.plan.group)

    def grouped(self, size):
        """Settings of chains that consist of several short ones, from draws of a population."""
        plan = self.plan._replace(group=size)
        if size > 1 and not plan.dense:
            plan = plan._replace(max_steps=min(plan.max_steps, MIN_LIMIT))
        return self._replace(plan=plan)


class Draws(NamedTuple):
    """Stored draws; the first two axes are chains and draws."""

    theta: np.ndarray  # (n_chains, n_draws, k)
    alpha: np.ndarray  # (n_chains, n_draws, n_groups)
    beta: np.ndarray  # (n_chains, n_draws, n_levels)
    # degrees of freedom of Student-t noise, or weights of the noise network, (n_chains, n_draws, m)
    noise: np.ndarray
    # the rest (n_chains, n_draws); minus log posterior density of the position, up to the evidence
    energy: np.ndarray
    acceptance: np.ndarray  # mean acceptance probability of the transitions of each draw
    n_steps: np.ndarray  # their leapfrog steps
    diverged: np.ndarray  # their trajectories given up

    @classmethod
    def join(cls, parts, axis):
        """Concatenate sets of draws along chains (0) or draws (1)."""
        return cls(*(np.concatenate(fields, axis=axis) for fields in zip(*parts, strict=True)))

    def first(self, n_draws):
        """First ``n_draws`` draws of every chain."""
        return Draws(*(field[:, :n_draws] for field in self))

    def joined(self, n_parts):
        """Chains of ``n_parts`` parts each, one part after the other."""
        m, n = self.energy.shape
        shape = m // n_parts, n * n_parts
        return Draws(*(field.reshape(*shape, *field.shape[2:]) for field in self))


@dataclass(frozen=True)
class Sampled:
    """Result of a sampling run: draws, and the state needed to continue."""

    draws: Draws
    joint: JointPosterior
    chains: list  # final states, in batches that ran together
    interrupted: bool  # by the user or the deadline; the draws so far are kept


def run_chains(joint, chains, settings, warm=True, workers=ALONE):
    """Warm the chains up, unless they are to continue (``warm=False``), and draw."""
    n_warmup = settings.of_parts(settings.n_warmup) if warm else 0
    alone, tell = len(chains) == 1, None
    total = n_warmup + settings.of_parts(settings.n_draws) * settings.thin
    with workers.progress.stage("sampling", np.ones(total) if alone else ()) as step:
        if alone and workers.progress.listens:
            tell = _teller(step, n_warmup, total)
        if warm:
            tasks = [(joint, batch, settings, tell) for batch in chains]
            chains = in_step(list(workers.results(warmed_up, tasks)), settings)
        parts, tasks = [], [(joint, batch, settings, tell) for batch in chains]
        for part in workers.results(_draw, tasks):
            parts.append(part)
            if not alone:
                step(f"chains drawn by process {len(parts)} of {len(chains)}")
    shortest = min(draws.energy.shape[1] for draws, _, _ in parts)
    draws = Draws.join([draws.first(shortest) for draws, _, _ in parts], axis=0)
    interrupted = any(broken for _, _, broken in parts)
    return Sampled(draws, joint, [batch for _, batch, _ in parts], interrupted)


def warmed_up(joint, chains, settings, tell=None):
    """Warm up one batch of chains."""
    shaped = settings.tuned and settings.plan.dense
    small = joint.dimension <= settings.search.limits.dense
    curvature = joint.curvature if shaped and small else None
    deadline = settings.search.deadline.part(WARM_UP_SHARE)
    with blas_threads(joint.posterior.network.n_weights):
        n_warmup = settings.of_parts(settings.n_warmup)
        moves = extra_moves(joint, settings.sweeps)
        stop = lambda: deadline.passed  # noqa: E731
        return warm_up(joint, chains, settings.plan, n_warmup, curvature, moves, tell, stop)


def in_step(batches, settings):
    """Give all chains of the tuned sampler one step size, the geometric mean.

    A chain that was tuned where the posterior is wide would get stuck where it is narrow.
    """
    if not settings.tuned:
        return batches
    mean = np.mean(np.concatenate([batch.steps.log_average for batch in batches]))
    steps = [b.steps._replace(log_average=np.full_like(b.steps.log_average, mean)) for b in batches]
    return [batch._replace(steps=own) for batch, own in zip(batches, steps, strict=True)]


def _draw(joint, chains, settings, tell):
    """Draw with one batch of chains."""
    record, broken = _Record(joint, settings), False
    with blas_threads(joint.posterior.network.n_weights):
        moves = extra_moves(joint, settings.sweeps)
        try:
            n_transitions = settings.of_parts(settings.n_draws) * settings.thin
            chains = sample(joint, chains, settings.plan, n_transitions, record, moves, tell)
        except (KeyboardInterrupt, OutOfTime):
            if len(record.kept) < FEWEST:
                raise
            broken, chains = True, record.last_chains()
    return record.draws(), chains, broken


class _Record:
    """Collector of draws while chains run."""

    def __init__(self, joint, settings):
        self.joint, self.thin, self.dtype = joint, settings.thin, settings.dtype
        self.deadline = settings.search.deadline
        self.kept, self.infos, self.chains, self.states = [], [], None, []

    def __call__(self, chains, info):
        """Record a transition, and a draw after every ``thin`` of them."""
        self.infos.append(info)
        if len(self.infos) < self.thin:
            return
        if self.deadline.passed and len(self.kept) >= FEWEST:
            raise OutOfTime
        position = chains.phase.position
        hyper = self.joint.typical_hyper(position)
        theta = self.joint.complete_weights(position, chains.rngs)
        acceptance = np.mean([i.acceptance for i in self.infos], axis=0)
        n_steps = np.sum([i.n_steps for i in self.infos], axis=0)
        diverged = np.sum([i.diverged for i in self.infos], axis=0)
        noise, energy = self.joint.noise_state(position), self.joint.density(chains.phase)
        largest = np.finfo(self.dtype).max
        theta = np.clip(theta, -largest, largest).astype(self.dtype)
        values = (theta, *hyper, noise, energy)
        self.kept.append(Draws(*values, acceptance, n_steps, diverged))
        self.infos, self.chains = [], chains
        self.states = [rng.bit_generator.state for rng in chains.rngs]

    def last_chains(self):
        """Chains at their last stored draw, with the random generators rewound to it."""
        for rng, state in zip(self.chains.rngs, self.states, strict=True):
            rng.bit_generator.state = state
        return self.chains

    def draws(self):
        """Draws stored so far."""
        return Draws(*(np.stack(fields, axis=1) for fields in zip(*self.kept, strict=True)))


def _teller(step, n_warmup, total):
    """Function that reports transitions of chains, in about `LINES` lines of text."""
    count = itertools.count(1)

    def tell(chains, info):
        n = next(count)
        if n % max(1, total // LINES):
            step()
            return
        step(
            f"transition {n} of {total} ({'warm-up' if n <= n_warmup else 'sampling'}): "
            f"acceptance {np.mean(info.acceptance):.2f}, {np.mean(info.n_steps):.0f} leapfrog "
            f"steps, minus log posterior {np.mean(chains.phase.value):.2f}"
        )

    return tell


def start_sampling(fit, settings, seeds, from_prior=False, n_jobs=None, trained=None):
    """Place chains at their starting points, without warm-up.

    There is a seed for every chain. The first chains start at the minima of the `Fit`, if it has
    any. The start of every other chain is trained briefly from random weights, and replaced by
    another one if its evidence stays far behind. Networks of the means that have been ``trained``
    replace these starts. With ``from_prior`` these networks only define the coordinates, and
    positions are drawn from the prior. Returns a `JointPosterior`, and a list of `Chains`, one
    batch per process.
    """
    problem, (posterior, search), model = fit.problem, fit.posed, NOISE_MODELS[fit.noise]
    rngs, minima = [np.random.default_rng(seed) for seed in seeds], fit.minima[: len(seeds)]
    brief = Posed(posterior, search._replace(max_iter=BRIEF))
    with blas_threads(posterior.network.n_weights):
        starts = list(trained or trained_starts(posterior, search, rngs))
        for i, minimum in enumerate(minima):
            theta = embedded(minimum, posterior.network)
            starts[i] = starts[i]._replace(theta=theta, hyper=minimum.hyper)
        starts = [start._replace(hyper=search.with_fixed(start.hyper)) for start in starts]
        joint = model.joint(problem, brief, settings.tuned)
        theta, hyper = model.starts(problem, brief, joint, starts, minima, seeds)
        # coordinates fitted to the data: the typical precision of a weight by the data alone
        information = model.information(problem, brief, joint, joint.position(theta, hyper))
        information, free = np.median(information, axis=0), joint.free
        if not settings.tuned:  # the coordinates of groups of fixed precision are the weights
            information[~free.alpha] = 1.0 - hyper.alpha[0, ~free.alpha]
        joint = replace(joint, information=information)
        # away from the extremes, where gradients vanish
        alpha = free.alpha_prior.clip(np.clip(hyper.alpha, WIDEST**-2, WIDEST**2))
        alpha = np.where(free.alpha, alpha, hyper.alpha)
        position = joint.position(theta, hyper._replace(alpha=alpha))
        if from_prior:
            position = np.stack([joint.draw_prior(rng) for rng in rngs])
        position = joint.renewed(position, rngs, keep_outputs=True)
        return joint, start_chains(joint, position, rngs, settings.plan, n_jobs)


def start_chains(joint, position, rngs, plan, n_jobs=None, scales=1.0):
    """Start chains at rest at given positions, one batch per process, see `Chains.start`."""
    groups = np.arange(len(rngs)).reshape(-1, plan.group)
    batches = np.array_split(groups, min(effective_n_jobs(n_jobs), len(groups)))
    return [
        Chains.start(joint, position[batch], [rngs[i] for i in batch], plan, scales)
        for batch in map(np.ravel, batches)
    ]


def trained_starts(posterior, search, rngs):
    """Train random starts briefly, and replace those that are far behind.

    The posterior mass near the latter is negligible, but a chain may stay there for thousands of
    transitions.
    """
    starts = random_starts(posterior, rngs)
    starts, evidences = briefly_trained(posterior, search, starts, BRIEF)
    for _ in range(ATTEMPTS):
        behind = np.flatnonzero(evidences < np.max(evidences) - FAR_BEHIND)
        if len(behind) == 0:
            break
        again = random_starts(posterior, [rngs[i] for i in behind])
        others, values = briefly_trained(posterior, search, again, BRIEF)
        for i, other, value in zip(behind, others, values, strict=True):
            if value > evidences[i]:
                starts[i], evidences[i] = other, value
    return starts
