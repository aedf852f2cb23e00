"""Sampling engine: from a problem to networks drawn from its posterior."""

from copy import deepcopy
from dataclasses import dataclass, fields, replace

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference._chains_fit import model_of
from skbayesnn.inference._laplace_fit import EvidenceFit
from skbayesnn.inference._population_fit import GENEROUS, fit_by_population, sampled_sizes
from skbayesnn.inference._trials import seconds_of_chains
from skbayesnn.inference.minima._search import ALONE
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._population import sample_population
from skbayesnn.inference.sampling._sampling import (
    Draws,
    Sampled,
    SamplingSettings,
    patience,
    run_chains,
    start_chains,
    start_sampling,
    tuned_plan,
)
from skbayesnn.inference.task._problem import Fit
from skbayesnn.samplers import Plan, length_scales

# factor of `Limits.sampled_seconds` up to which chains start from a population, whatever the number
# of targets per weight. Without one, R-hat of diabetes with 8 units is 1.44 instead of 1.05
MORE_SECONDS = 3.0
SWEEPS = 3  # of scale moves after every trajectory of the tuned sampler
N_PARTS = 16  # short chains of each chain that starts from draws of a population


@dataclass(frozen=True)
class Recipe:
    """User's settings of the chains."""

    # plan of one of the classic samplers; by default the sampler tunes itself
    plan: Plan | None = None
    n_chains: int = 4
    n_warmup: int = 150
    n_draws: int = 500
    # transitions per draw; by default more for small data sets and networks
    thin: int | None = None
    dtype: str = "float64"
    from_prior: bool = False  # whether chains start at draws from the prior
    evidence: bool = True  # whether to estimate the evidence

    @property
    def populated(self):
        """True if chains start from draws of a population where one is affordable."""
        return self.plan is None and not self.from_prior

    def seconds(self, problem, hidden_layer_sizes):
        """Predict the processor seconds of chains and their population, to a factor of two."""
        if hidden_layer_sizes == "auto":
            hidden_layer_sizes = GENEROUS[problem.likelihood.n_levels > 0]
        posterior = problem.posed(hidden_layer_sizes).posterior
        # trajectories are longer for cheap posteriors, or there are more of them
        n_transitions = self.n_warmup + self.n_draws * (self.thin or patience(posterior))
        return seconds_of_chains(posterior, self.n_chains * n_transitions)

    def settings(self, fit):
        """`SamplingSettings` for the model of a `Fit`."""
        tuned = self.plan is None
        plan, thin = tuned_plan(fit) if tuned else (self.plan, 1)
        counts = self.n_warmup, self.n_draws, self.thin or thin
        dtype, sweeps = np.dtype(self.dtype), SWEEPS if tuned else 0
        return SamplingSettings(fit.posed.settings, plan, *counts, tuned, dtype, sweeps)


@dataclass(frozen=True, kw_only=True)
class SampledFit(Fit):
    """Result of the sampling engine."""

    sampled: Sampled | None = None  # while chains have not run
    settings: SamplingSettings
    origin: object  # key that identifies the random numbers and the starting points
    log_evidence: float = np.nan  # with its standard error, in the user's units, if requested
    log_evidence_std: float = np.nan

    @property
    def draws(self):
        """`Draws` of all chains."""
        settings = self.settings
        return self.sampled.draws.joined(settings.plan.group).first(settings.n_draws)

    @property
    def typical_prior(self):
        """Prior at sampled precisions, see `draw_prior`."""
        posterior, alpha = self.posed.posterior, self.draws.alpha
        return posterior.network, posterior.groups, alpha.reshape(-1, alpha.shape[-1])

    def continues(self, other, n_chains):
        """Return True if ``other`` requests the same run with at least as many draws."""
        found, group = self.draws.energy.shape, self.settings.plan.group

        def run(fit):  # irrespective of time limits
            search = fit.posed.settings._replace(deadline=None)
            settings = fit.settings.grouped(group)._replace(n_draws=0, search=search)
            of_noise = fit.noise, fit.problem.noise_hidden_layer_sizes
            return fit.origin, of_noise, settings, fit.posed.posterior

        enough = found[0] == n_chains and found[1] <= other.settings.n_draws
        return enough and _same_values(run(self), run(other))


def _same_values(one, other):
    """Return True if two nested tuples or dataclasses hold the same numbers."""
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

    ``hidden_layer_sizes`` and ``noise``, one of `NOISE_MODELS`, may be ``"auto"``; ``entropy`` is
    that of all random numbers. The `EvidenceFit` ``init`` selects what is ``"auto"``, and the first
    chains start at its minima. The models of a `SampledFit` ``previous`` are kept, and its chains
    continue if they lack only draws; if the key ``origin`` of its starting points differs, the fit
    starts anew.
    """
    populated = recipe.populated
    with workers.progress.before(lambda: recipe.seconds(problem, hidden_layer_sizes)):
        chosen = _chosen(
            problem, hidden_layer_sizes, noise, entropy, init, previous, workers, populated
        )
    settings = recipe.settings(chosen)
    seeds = np.random.SeedSequence(entropy).spawn(2)
    fit = SampledFit(
        problem=problem, posed=chosen.posed, noise=chosen.noise, settings=settings, origin=origin
    )
    if previous is not None and previous.continues(fit, recipe.n_chains):
        settings = settings.grouped(previous.settings.plan.group)
        sampled = _continued(previous.sampled, settings, workers)
        evidence = previous.log_evidence, previous.log_evidence_std
    else:
        if previous is not None:  # begin as a first fit of the models that it has chosen would
            sizes = chosen.posed.hidden_layer_sizes
            again = _chosen(problem, sizes, chosen.noise, entropy, init, None, workers, populated)
            chosen = replace(again, growth=chosen.growth)
        settings, sampled, evidence = _begun(chosen, recipe, settings, seeds, workers)
    fit = replace(
        fit,
        settings=settings,
        sampled=sampled,
        growth=chosen.growth,
        noise_log_evidences=chosen.noise_log_evidences,
    )
    if not recipe.evidence or sampled.interrupted:
        return fit
    if np.isfinite(evidence[1]):
        return replace(fit, log_evidence=evidence[0], log_evidence_std=evidence[1])
    return fit if problem.deadline.passed else _with_evidence(fit, seeds[1], workers)


def _begun(chosen, recipe, settings, seeds, workers):
    """Run new chains, from draws of a population if there is one, and else from near minima.

    A chain that starts from draws consists of short chains from different draws, most of them with
    the same ancestors. R-hat thus compares descendants of different particles (Margossian et al.
    2024), and regions between which chains hardly move have the probability that the population
    gives them. Returns the settings, `Sampled`, and the log evidence with its standard error,
    ``nan`` without a population.
    """
    problem, chain_seeds = chosen.problem, seeds[0].spawn(recipe.n_chains)
    if not (chosen.drawn and recipe.populated):
        sizes = chosen.posed.hidden_layer_sizes
        later = workers.progress.before(lambda: recipe.seconds(problem, sizes))
        with later, workers.progress.stage("starts", seconds=0.0):
            prior, n_jobs = recipe.from_prior, workers.n_jobs
            started = start_sampling(chosen, settings, chain_seeds, prior, n_jobs)
        return settings, run_chains(*started, settings, True, workers), (np.nan, np.nan)
    found, settings = chosen.drawn[0], settings.grouped(N_PARTS)
    joint, starts = found.joint, found.starts
    rngs = [np.random.default_rng(s) for seed in chain_seeds for s in seed.spawn(N_PARTS)]
    position = starts[np.arange(len(rngs)) * len(starts) // len(rngs)]
    with blas_threads(joint.posterior.network.n_weights):
        known = found.position
        scales = length_scales(joint(known)[1], known) ** settings.plan.metric_power
        chains = start_chains(joint, position, rngs, settings.plan, workers.n_jobs, scales)
    evidence = found.log_evidence + problem.log_scale, found.log_evidence_std
    return settings, run_chains(joint, chains, settings, True, workers), evidence


def _with_evidence(fit, seed, workers):
    """Add the evidence to a fit, if there is time."""
    sampled, problem = fit.sampled, fit.problem
    with workers.progress.stage("evidence") as step:
        try:
            eta = np.concatenate(sampled.joint.drawn_coordinates(sampled.draws))
            rng = np.random.default_rng(seed)
            found = sample_population(sampled.joint, eta, rng, problem.deadline)
        except KeyboardInterrupt:
            return replace(fit, sampled=replace(sampled, interrupted=True))
        if found is None:
            return fit
        log_evidence, error = found.log_evidence + problem.log_scale, found.log_evidence_std
        step(f"log evidence {log_evidence:.2f} +- {error:.2f}")
    return replace(fit, log_evidence=log_evidence, log_evidence_std=error)


def _continued(old, settings, workers):
    """Continue an earlier run up to the requested number of draws."""
    done = old.draws.energy.shape[1]
    if done == settings.of_parts(settings.n_draws):
        return replace(old, interrupted=False)
    rest = settings._replace(n_draws=settings.n_draws - done * settings.plan.group)
    chains = [batch._replace(rngs=deepcopy(batch.rngs)) for batch in old.chains]  # they advance
    more = run_chains(old.joint, chains, rest, False, workers)
    return replace(more, draws=Draws.join([old.draws, more.draws], axis=1))


def _chosen(problem, hidden_layer_sizes, noise, entropy, init, previous, workers, populated):
    """Select hidden layers and noise: as given, as in an earlier fit, or by a rule.

    If ``populated``, populations are drawn where they are affordable, even if nothing is to be
    selected. The minima or drawn networks of the returned fit, if any, are the starting points of
    chains.
    """
    kept = init or previous
    if kept is None and (populated or "auto" in (hidden_layer_sizes, noise)):
        # chains in the coordinates of wide layers would run in NumPy
        limits, seconds = problem.limits, MORE_SECONDS * problem.limits.sampled_seconds
        limits = limits._replace(
            wide_units_per_row=np.inf, sampled_seconds=seconds, checked_seconds=seconds
        )
        narrow, model = replace(problem, limits=limits), (hidden_layer_sizes, noise)
        sizes = sampled_sizes(narrow, *model)
        drawn = None
        if sizes is not None:
            drawn = fit_by_population(narrow, *model, sizes, entropy, workers)
        if drawn is not None:
            return replace(drawn, problem=problem)
    growth, minima = (), []
    if kept is not None:
        if hidden_layer_sizes == "auto":
            hidden_layer_sizes = kept.posed.hidden_layer_sizes
            growth = kept.growth if init is None else ()
        if noise == "auto":
            noise = kept.noise if NOISE_MODELS[kept.noise].sampled else "constant"
        minima = [] if init is None else init.minima
    hidden_layer_sizes, noise = model_of(problem, hidden_layer_sizes, noise)
    posed = NOISE_MODELS[noise].pose(problem.posed(hidden_layer_sizes))
    return EvidenceFit(problem=problem, posed=posed, noise=noise, minima=minima, growth=growth)
