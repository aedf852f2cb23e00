"""Drawing networks from the posterior of weights and hyperparameters."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from skbayesnn._threads import blas_threads
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.inference._training import Settings, random_starts, train
from skbayesnn.posterior import JointPosterior
from skbayesnn.samplers import Chains, Plan, sample, warm_up

TRAINING_STEPS = 60  # towards a minimum, from which a chain then starts
WIDEST = 30.0  # prior sds of starts lie between this and its inverse
SWEEPS = 3  # of scale moves after every trajectory
DENSE_LIMIT = 3000  # sampled weights up to which the metric is a dense matrix


class SamplingSettings(NamedTuple):
    """How to sample.

    Attributes
    ----------
    search : Settings
        Which precisions are free, their prior, and the values of the others.
    plan : Plan
    n_warmup, n_draws, thin : int
        Transitions of warm-up; draws kept of every chain; transitions per draw.
    tuned : bool
        Integrate the output layer out where possible, and adapt a metric. ``False``: the plain
        dynamics of all weights, whose coordinates are the weights where precisions are fixed.
    dtype : numpy.dtype
        In which draws are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, SamplingSettings, Settings
    >>> from skbayesnn.posterior import Hyperparameters, LogUniform
    >>> from skbayesnn.samplers import Plan
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> search = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> settings = SamplingSettings(search, Plan(), n_warmup=200, n_draws=500)
    >>> settings.plan.target, settings.thin
    (0.8, 1)
    """

    search: Settings
    plan: Plan
    n_warmup: int
    n_draws: int
    thin: int = 1
    tuned: bool = True
    dtype: np.dtype = np.dtype(np.float64)


class Draws(NamedTuple):
    """Kept draws; the first two axes count chains and draws.

    Attributes
    ----------
    theta : ndarray of shape (n_chains, n_draws, k)
    alpha : ndarray of shape (n_chains, n_draws, n_groups)
    beta : ndarray of shape (n_chains, n_draws, n_levels)
    energy : ndarray of shape (n_chains, n_draws)
        Minus log posterior density of the sampler's position, up to the evidence.
    acceptance, n_steps, diverged : ndarray of shape (n_chains, n_draws)
        Mean acceptance probability, leapfrog steps, and trajectories given up, of the transitions
        of each draw.
    """

    theta: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    energy: np.ndarray
    acceptance: np.ndarray
    n_steps: np.ndarray
    diverged: np.ndarray

    @classmethod
    def join(cls, parts, axis):
        """Several sets of draws as one, along chains (0) or draws (1)."""
        return cls(*(np.concatenate(fields, axis=axis) for fields in zip(*parts, strict=True)))

    def first(self, n_draws):
        """The first draws of every chain."""
        return Draws(*(field[:, :n_draws] for field in self))


@dataclass(frozen=True)
class Sampled:
    """What a run leaves: draws, and all that is needed to go on.

    Attributes
    ----------
    draws : Draws
    joint : JointPosterior
    chains : list of Chains
        In batches that ran together.
    interrupted : bool
        Whether the user broke it off; the draws so far are kept.
    """

    draws: Draws
    joint: JointPosterior
    chains: list
    interrupted: bool

    def after(self, earlier):
        """The same run as the continuation of an earlier one."""
        return replace(self, draws=Draws.join([earlier.draws, self.draws], axis=1))


def start_sampling(posterior, settings, seeds, minima=(), from_prior=False, n_jobs=None):
    """Chains at their starting points, not warmed up yet.

    Parameters
    ----------
    posterior : Posterior
    settings : SamplingSettings
    seeds : list of numpy.random.SeedSequence
        One per chain.
    minima : sequence of Minimum, optional
        Of an evidence fit: the first chains start from these. Each other chain is trained briefly
        from a random start of its own.
    from_prior : bool, default=False
        Start from draws from the prior instead.
    n_jobs : int, optional

    Returns
    -------
    joint : JointPosterior
    chains : list of Chains
        One batch per process.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, SamplingSettings, Settings
    >>> from skbayesnn.inference import start_sampling
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> from skbayesnn.samplers import Plan
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> sampling = SamplingSettings(settings, Plan(), n_warmup=20, n_draws=20)
    >>> seeds = np.random.SeedSequence(0).spawn(2)
    >>> joint, chains = start_sampling(posterior, sampling, seeds)
    >>> chains[0].phase.position.shape  # two chains; six hidden weights and two precisions
    (2, 8)
    """
    rngs = [np.random.default_rng(seed) for seed in seeds]
    search = settings.search
    plain = JointPosterior(
        posterior,
        search.free,
        search.fixed,
        np.zeros(len(posterior.groups.names)),
        integrate_outputs=settings.tuned,
    )
    with blas_threads(posterior.network.n_weights):
        theta, hyper = random_starts(posterior, rngs)
        hyper = search.with_fixed(hyper)
        if not from_prior:
            brief = search._replace(max_iter=TRAINING_STEPS)
            theta, hyper = train(posterior, theta, hyper, brief)[:2]
        _embed(posterior, minima[: len(rngs)], theta, hyper)
        hyper = search.with_fixed(hyper)
        joint = replace(plain, information=_information(plain, theta, hyper, settings))
        position = joint.position(theta, _moderate(hyper, search.free))
        if from_prior:
            position = np.stack([joint.draw_prior(rng) for rng in rngs])
        batches = np.array_split(np.arange(len(rngs)), min(effective_n_jobs(n_jobs), len(rngs)))
        return joint, [
            Chains.start(joint.energy, position[batch], [rngs[i] for i in batch], settings.plan)
            for batch in batches
        ]


def _embed(posterior, minima, theta, hyper):
    """Put minima in the first rows of weights and precisions; pruned units come back switched off.

    Parameters
    ----------
    posterior : Posterior
        Of the full layout.
    minima : sequence of Minimum
    theta : ndarray of shape (n, k)
    hyper : Hyperparameters
        Of shapes (n, n_groups) and (n, n_levels); both are changed in place.
    """
    for i, minimum in enumerate(minima):
        theta[i] = 0.0
        small = minimum.network.layers(minimum.theta)
        for layer, part in zip(posterior.network.layers(theta[i]), small, strict=True):
            layer[: part.shape[0] - 1, : part.shape[1]] = part[:-1]
            layer[-1, : part.shape[1]] = part[-1]
        hyper.alpha[i], hyper.beta[i] = minimum.hyper


def _moderate(hyper, free):
    """Precisions of free groups moved away from the extremes, where gradients vanish."""
    alpha = free.prior.clip(np.clip(hyper.alpha, WIDEST**-2, WIDEST**2))
    return hyper._replace(alpha=np.where(free.alpha, alpha, hyper.alpha))


def _information(joint, theta, hyper, settings):
    """``h_c``: typical precision that the data alone give a weight of every group.

    From ``Tr_c(A^-1) = k_c / (alpha_c + h_c)``, the median over the starting points. For plain
    dynamics it is chosen such that the coordinates of groups of fixed precision are the weights.
    """
    known = _known(joint, theta, hyper) if joint.n_sampled else np.zeros_like(hyper.alpha)
    information = np.median(known, axis=0)
    if not settings.tuned:
        fixed = ~settings.search.free.alpha
        information[fixed] = 1.0 - hyper.alpha[0, fixed]
    return information


def _known(joint, theta, hyper):
    """`_information` at every starting point, ``(n, n_groups)``."""
    if joint.posterior.network.n_weights > DENSE_LIMIT:
        return np.zeros_like(hyper.alpha)
    matrix = joint.posterior.hessian(theta, hyper, exact=False)
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, : joint.n_sampled]
    member = joint.posterior.groups.membership[: joint.n_sampled]
    sizes = member.sum(axis=0)
    return np.maximum(sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha, 0.0) * (
        sizes > 0
    )


def run_chains(joint, chains, settings, warm=True, n_jobs=None, progress=None):
    """Warm the chains up, unless they are already, and draw.

    Parameters
    ----------
    joint : JointPosterior
    chains : list of Chains
    settings : SamplingSettings
    warm : bool, default=True
        ``False``: go on sampling.
    n_jobs : int, optional
    progress : callable, optional
        Called with lines of text.

    Returns
    -------
    Sampled

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, SamplingSettings, Settings
    >>> from skbayesnn.inference import run_chains, start_sampling
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> from skbayesnn.samplers import Plan
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> sampling = SamplingSettings(settings, Plan(), n_warmup=20, n_draws=20)
    >>> seeds = np.random.SeedSequence(0).spawn(2)
    >>> joint, chains = start_sampling(posterior, sampling, seeds)
    >>> run_chains(joint, chains, sampling).draws.theta.shape
    (2, 20, 10)
    """
    if warm:
        tasks = (delayed(_warm_up)(joint, batch, settings, progress) for batch in chains)
        chains = _in_step(Parallel(n_jobs=n_jobs)(tasks), settings)
    tasks = (delayed(_draw)(joint, batch, settings, progress) for batch in chains)
    parts = Parallel(n_jobs=n_jobs)(tasks)
    shortest = min(draws.energy.shape[1] for draws, _, _ in parts)
    draws = Draws.join([draws.first(shortest) for draws, _, _ in parts], axis=0)
    interrupted = any(broken for _, _, broken in parts)
    return Sampled(draws, joint, [batch for _, batch, _ in parts], interrupted)


def _warm_up(joint, chains, settings, progress):
    """Warm-up of one batch of chains."""
    shaped = settings.tuned and settings.plan.metric_power > 0
    curvature = joint.curvature if shaped and joint.dimension <= DENSE_LIMIT else None
    tell = None if progress is None else _Teller(progress, settings)
    move = ScaleMoves(joint, SWEEPS) if settings.tuned else None
    with blas_threads(joint.posterior.network.n_weights):
        return warm_up(
            joint.energy, chains, settings.plan, settings.n_warmup, curvature, move, tell
        )


def _in_step(batches, settings):
    """Chains of the tuned sampler with one step size for all, the geometric mean.

    One that has tuned itself where the posterior is wide would get stuck where it is narrow.
    """
    if not settings.tuned:
        return batches
    mean = np.mean(np.concatenate([batch.steps.log_average for batch in batches]))
    return [batch._replace(steps=batch.steps.averaging(mean)) for batch in batches]


def _draw(joint, chains, settings, progress):
    """Draws of one batch of chains."""
    record = _Record(joint, settings)
    tell = None if progress is None else _Teller(progress, settings)
    move = ScaleMoves(joint, SWEEPS) if settings.tuned else None
    broken = False
    with blas_threads(joint.posterior.network.n_weights):
        try:
            n_transitions = settings.n_draws * settings.thin
            chains = sample(joint.energy, chains, settings.plan, n_transitions, record, move, tell)
        except KeyboardInterrupt:
            if record.n_draws < 4:  # too few to say anything
                raise
            broken, chains = True, record.chains
    return record.draws(), chains, broken


class _Record:
    """Collects draws while chains run."""

    def __init__(self, joint, settings):
        self.joint, self.thin, self.dtype = joint, settings.thin, settings.dtype
        self.kept, self.infos, self.chains = [], [], None

    def __call__(self, chains, info):
        """Take note of a transition."""
        self.infos.append(info)
        if len(self.infos) < self.thin:
            return
        position = chains.phase.position
        hyper = self.joint.place(position).hyper
        theta = self.joint.complete_weights(position, chains.rngs)
        acceptance = np.mean([i.acceptance for i in self.infos], axis=0)
        n_steps = np.sum([i.n_steps for i in self.infos], axis=0)
        diverged = np.sum([i.diverged for i in self.infos], axis=0)
        values = (theta.astype(self.dtype), *hyper, chains.phase.value)
        self.kept.append(Draws(*values, acceptance, n_steps, diverged))
        self.infos, self.chains = [], chains

    @property
    def n_draws(self):
        return len(self.kept)

    def draws(self):
        """Everything so far."""
        return Draws(*(np.stack(fields, axis=1) for fields in zip(*self.kept, strict=True)))


class _Teller:
    """Turns transitions into some ten lines of progress."""

    def __init__(self, progress, settings):
        self.progress = progress
        self.total = settings.n_warmup + settings.n_draws * settings.thin
        self.n_warmup = settings.n_warmup

    def __call__(self, chains, info):
        """Report now and then."""
        if chains.count % max(1, self.total // 10) == 0:
            stage = "warm-up" if chains.count <= self.n_warmup else "sampling"
            self.progress(
                f"transition {chains.count} of {self.total} ({stage}): "
                f"acceptance {np.mean(info.acceptance):.2f}, "
                f"{np.mean(info.n_steps):.0f} leapfrog steps, "
                f"energy {np.mean(chains.phase.value):.2f}"
            )
