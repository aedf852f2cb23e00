"""The sampling engine: from a problem to networks drawn from its posterior.

The order of calls::

    grown, with_chosen_noise    hidden layers and noise, if they are to be chosen: by evidence
    start_sampling, run_chains  or run_chains alone, to go on with the chains of the last fit
    estimate_evidence           if it is wanted
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from skbayesnn.inference._engine import (
    N_SCOUTS,
    EvidenceFit,
    seeds_of,
    with_chosen_noise,
)
from skbayesnn.inference._growth import best_of, grown
from skbayesnn.inference._noise_models import NOISE_MODELS
from skbayesnn.inference._problem import Posed, Problem
from skbayesnn.inference._sampled_evidence import estimate_evidence
from skbayesnn.inference._sampling import Sampled, SamplingSettings, run_chains
from skbayesnn.inference._sampling_starts import start_sampling
from skbayesnn.inference._search import ALONE, find_minima
from skbayesnn.network import outputs
from skbayesnn.samplers import Plan

LEAST_LIMIT = 64  # of the steps of a trajectory
TRAJECTORY_ROWS = 2**16  # of a trajectory, steps times rows, beyond that many steps
NOISE_NETWORK_ROWS = 2**14  # the same with a noise network, where longer ones have shown no gain
LONG = 3.0  # length of trajectories where they are long, times `patience`
PATIENT_WORK = 120_000  # rows times weights times `patience`
MOST_PATIENT = 4


@dataclass(frozen=True)
class Recipe:
    """What the user wants of the chains.

    Parameters
    ----------
    plan : Plan, optional
        Of one of the classic samplers; by default the sampler tunes itself.
    n_chains, n_warmup, n_draws : int
    thin : int, optional
        By default few rows and weights have more transitions per draw.
    dtype : str
    from_prior : bool
        Whether chains start at draws from the prior.
    evidence : bool
        Whether the evidence is wanted.
    """

    plan: Plan | None = None
    n_chains: int = 4
    n_warmup: int = 150
    n_draws: int = 500
    thin: int | None = None
    dtype: str = "float64"
    from_prior: bool = False
    evidence: bool = True

    def settings(self, problem, posed, noise):
        """`SamplingSettings` for a posterior."""
        tuned = self.plan is None
        linear = _is_linear(problem, posed, noise)
        plan, thin = tuned_plan(posed, linear, noise) if tuned else (self.plan, 1)
        counts = self.n_warmup, self.n_draws, self.thin or thin
        return SamplingSettings(posed.settings, plan, *counts, tuned, np.dtype(self.dtype))


def _is_linear(problem, posed, noise):
    """Whether neither the means nor the noise have hidden units."""
    hidden = posed.posterior.network.hidden_layer_sizes
    return not (hidden or NOISE_MODELS[noise].hidden_layer_sizes(problem))


def patience(posterior):
    """How much more is done for a draw where steps cost little: some chains mix slowly."""
    size = len(posterior.X) * posterior.network.n_weights
    return int(np.clip(PATIENT_WORK // size, 1, MOST_PATIENT))


def tuned_plan(posed, linear, noise="constant"):
    """How the sampler that tunes itself makes its transitions, and how many of them per draw.

    Under constant noise the output layer is integrated out, and hidden units move along ridges:
    there trajectories are long, as far as steps cost little. Elsewhere they are short, and there
    are more of them: what is slow are the scales of whole groups of weights, or conditions of the
    energy, which have transitions of their own. Where the output layer stays in the position the
    curvature changes so much from place to place that its mean is no guide to a metric.
    """
    if linear:
        return Plan(), 1
    n_rows = len(posed.posterior.X)  # distinct ones, which set the time
    most_rows = NOISE_NETWORK_ROWS if noise == "input_dependent" else TRAJECTORY_ROWS
    max_steps = max(LEAST_LIMIT, min(n_rows, most_rows // n_rows))
    more = patience(posed.posterior)
    integrated = posed.posterior.likelihood.n_levels and posed.posterior.groups.centred
    if integrated and noise == "constant":
        return Plan(length=LONG * more, max_steps=more * max_steps), 1
    return Plan(max_steps=max_steps, metric_power=0.5 if integrated else 0), more


@dataclass(frozen=True)
class SampledFit:
    """What the engine has found.

    Attributes
    ----------
    problem : Problem
    posed : Posed
    noise : str
    sampled : Sampled
    settings : SamplingSettings
    origin : object
        What chose the random numbers and the starting points.
    log_evidence, log_evidence_std : float
        In units of the user; ``nan`` if not wanted.
    growth : tuple of Candidate
    noise_log_evidences : dict
        As of `EvidenceFit`.
    """

    problem: Problem
    posed: Posed
    noise: str
    sampled: Sampled
    settings: SamplingSettings
    origin: object
    log_evidence: float = np.nan
    log_evidence_std: float = np.nan
    growth: tuple = ()
    noise_log_evidences: dict = field(default_factory=dict)

    @property
    def draws(self):
        """`Draws` of all chains."""
        return self.sampled.draws

    def draw_prior(self, X, size, rng):
        """Outputs of networks drawn from the prior at drawn precisions, as of `EvidenceFit`."""
        alpha = self.draws.alpha.reshape(-1, self.draws.alpha.shape[-1])
        posterior, chosen = self.posed.posterior, alpha[rng.integers(len(alpha), size=size)]
        return outputs(posterior.network, posterior.groups.draw(chosen, rng), X)

    def continues(self, other, n_chains):
        """Whether this is a run of the same posterior in the same way, with fewer draws."""
        mine, theirs = self.settings, other.settings
        same = self.noise == other.noise and self.origin == other.origin
        same = same and self.draws.energy.shape[0] == n_chains
        same = same and self.draws.energy.shape[1] <= theirs.n_draws
        unlike = {"n_draws": 0, "search": None}
        same = same and mine._replace(**unlike) == theirs._replace(**unlike)
        same = same and (
            self.problem.noise_hidden_layer_sizes == other.problem.noise_hidden_layer_sizes
        )
        return same and _same_values(self.posed, other.posed)


def _same_values(one, other):
    """Whether two nested tuples or dataclasses hold the same numbers."""
    if hasattr(one, "__dataclass_fields__"):
        names = [f.name for f in fields(one)] if type(one) is type(other) else [None]
        return names != [None] and all(
            _same_values(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple | list):
        same = len(one) == len(other)
        return same and all(_same_values(a, b) for a, b in zip(one, other, strict=True))
    return bool(np.array_equal(one, other))


def fit_by_sampling(
    problem,
    hidden_layer_sizes,
    recipe,
    entropy,
    noise="constant",
    init=None,
    origin=None,
    previous=None,
    workers=ALONE,
):
    """Draw networks from the posterior of a problem.

    Parameters
    ----------
    problem : Problem
    hidden_layer_sizes : tuple of int or "auto"
    recipe : Recipe
    entropy : int
        Of all random numbers.
    noise : str
        One of `NOISE_MODELS`, or ``"auto"``.
    init : EvidenceFit, optional
        At whose minima the first chains start, and which chooses what is to be chosen.
    origin : object
        With another one the fit begins anew, whatever the ``previous`` was.
    previous : SampledFit, optional
        If only its draws are too few, its chains go on; its choices are kept in any case.
    workers : Workers

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, Recipe, fit_by_sampling
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> y = X + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> problem = Problem(X, y, np.ones(20), Gaussian.per_output(1))
    >>> fit = fit_by_sampling(problem, (), Recipe(n_chains=2, n_draws=50), entropy=0)
    >>> bool(np.isfinite(fit.log_evidence))
    True
    """
    chosen = _chosen(problem, hidden_layer_sizes, noise, entropy, init, previous, workers)
    settings = recipe.settings(problem, chosen.posed, chosen.noise)
    chain_seed, evidence_seed = np.random.SeedSequence(entropy).spawn(2)
    fit = SampledFit(problem, chosen.posed, chosen.noise, None, settings, origin)
    if previous is not None and previous.continues(fit, recipe.n_chains):
        sampled = _continued(previous.sampled, settings, workers)
    else:
        seeds = chain_seed.spawn(recipe.n_chains)
        given = chosen.noise, chosen.minima, recipe.from_prior, workers.n_jobs
        joint, chains = start_sampling(problem, chosen.posed, settings, seeds, *given)
        sampled = run_chains(joint, chains, settings, True, workers)
    fit = replace(
        fit,
        sampled=sampled,
        growth=chosen.growth,
        noise_log_evidences=chosen.noise_log_evidences,
    )
    if not recipe.evidence or sampled.interrupted or problem.deadline.passed:
        return fit
    return _with_evidence(fit, evidence_seed, workers)


def _with_evidence(fit, seed, workers):
    """The fit with its evidence, if there is time for it."""
    sampled, problem = fit.sampled, fit.problem
    with workers.progress.over("evidence") as step:
        try:
            given = sampled.joint, sampled.draws, seed, problem.deadline
            found = estimate_evidence(*given)
        except KeyboardInterrupt:
            return replace(fit, sampled=replace(sampled, interrupted=True))
        if found is None:
            return fit
        log_evidence, error = found.log_evidence + problem.log_scale, found.log_evidence_std
        step(f"log evidence {log_evidence:.2f} +- {error:.2f}, by annealing")
    return replace(fit, log_evidence=log_evidence, log_evidence_std=error)


def _continued(old, settings, workers):
    """An earlier run with more draws."""
    done = old.draws.energy.shape[1]
    if done == settings.n_draws:
        return replace(old, interrupted=False)
    rest = settings._replace(n_draws=settings.n_draws - done)
    more = run_chains(old.joint, old.chains, rest, False, workers)
    return more.after(old)


def _chosen(problem, hidden_layer_sizes, noise, entropy, init, previous, workers):
    """Hidden layers and noise as given, as before, or by the evidence of Gaussian approximations.

    Returns
    -------
    EvidenceFit
        Its minima are where chains start; there may be none.
    """
    kept, growth, minima = init or previous, (), []
    if hidden_layer_sizes == "auto" and kept is not None:
        hidden_layer_sizes = kept.posed.posterior.network.hidden_layer_sizes
        growth = kept.growth if init is None else ()
    elif hidden_layer_sizes == "auto":
        growth, tried = grown(problem, seeds_of(entropy, "some", N_SCOUTS), workers)
        hidden_layer_sizes = best_of(growth).hidden_layer_sizes
        minima = tried[hidden_layer_sizes][1]
    posed = problem.posed(hidden_layer_sizes)
    fit = EvidenceFit(problem, posed, minima, growth=growth)
    if init is not None:
        fit = replace(fit, minima=init.minima)
    if noise == "auto":
        noise = "constant" if problem.noise_is_given else None
        if kept is not None and noise is None:
            noise = "constant" if NOISE_MODELS[kept.noise].plain else kept.noise
    if noise is not None:
        return replace(fit, posed=NOISE_MODELS[noise].pose(problem, posed), noise=noise)
    seeds = seeds_of(entropy, hidden_layer_sizes, N_SCOUTS)
    found = minima or find_minima(*posed, seeds, workers=workers)
    best = with_chosen_noise(replace(fit, minima=found), workers=workers)
    unchanged = best.noise == "constant"
    return replace(best, minima=minima if unchanged else best.minima, others=[])
