"""Short chains, whose networks predict together with the minima of a fit.

Where populations would take too long, Gaussians around a few minima leave out most of the
posterior. Each chain starts at a briefly trained network of its own and visits its neighbourhood,
in about a tenth of the time of a population. Chains do not measure the evidence.
"""

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference._drawn_fit import GENEROUS
from skbayesnn.inference._trials import seconds_of_population
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._sampling import (
    SamplingSettings,
    run_chains,
    start_sampling,
    trained_starts,
    tuned_plan,
)
from skbayesnn.inference.task._problem import Fit

N_CHAINS, N_WARM_UP, N_DRAWS = 6, 15, 15  # longer and more chains gained .02 nats per row at most
MAX_STEPS = 32  # leapfrog steps of a trajectory; 64 predicted no better
FEW = 0.5  # of `Limits.few_targets_per_weight`; with fewer, such short chains overfit
SHARE_OF_TIME = 0.1  # predicted seconds relative to those of a population


def sizes_of_chains(problem):
    """Hidden layers of the network: fewer units where there are few targets per weight."""
    wide, narrow = GENEROUS[True], GENEROUS[False]
    n_targets = problem.sample_weight.sum() * problem.likelihood.n_levels
    enough = problem.limits.few_targets_per_weight * problem.network(wide).n_weights
    return wide if n_targets >= enough else narrow


def seconds_of_short_chains(problem):
    """Predict the processor seconds of short chains under one noise model."""
    posterior = problem.posed(sizes_of_chains(problem)).posterior
    return SHARE_OF_TIME * seconds_of_population(posterior, problem.limits)


def short_chains(fit, entropy, workers):
    """Run short chains under the noise models of a fit, as far as there is time.

    ``fit`` is an `EvidenceFit`, and ``entropy`` that of the seeds. If noise models other than
    constant noise were tried, these are sampled. Returns a dict of `Sampled` by noise model, which
    is empty for classes, where the chains would take too long or have few targets per weight, and
    where few large targets would mislead networks (``Problem.linear_share``).
    """
    problem, sizes = fit.problem, sizes_of_chains(fit.problem)
    noises = [noise for noise in fit.noise_log_evidences if noise != "constant"] or [fit.noise]
    noises = [noise for noise in noises if NOISE_MODELS[noise].sampled]
    posterior = problem.posed(sizes).posterior
    seconds = len(noises) * seconds_of_short_chains(problem)
    affordable = posterior.groups.centred and seconds <= problem.limits.sampled_seconds
    n_targets = problem.sample_weight.sum() * problem.likelihood.n_levels
    least = FEW * problem.limits.few_targets_per_weight * posterior.network.n_weights
    has_data = n_targets >= max(least, 1.0)  # means under the prior alone are far off
    if problem.linear_share or not (problem.likelihood.n_levels and affordable and has_data):
        return {}
    found, seeds = {}, np.random.SeedSequence([entropy, 2]).spawn(N_CHAINS)
    with workers.progress.stage("short chains", np.ones(len(noises)), seconds=seconds) as step:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        with blas_threads(posterior.network.n_weights):  # under constant noise, for all models
            trained = trained_starts(*problem.posed(sizes), rngs)
        for noise in noises:
            if problem.deadline.passed:
                break
            posed = NOISE_MODELS[noise].pose(problem.posed(sizes))
            model = Fit(problem=problem, posed=posed, noise=noise)
            plan = tuned_plan(model)[0]._replace(max_steps=MAX_STEPS)
            settings = SamplingSettings(posed.settings, plan, N_WARM_UP, N_DRAWS)
            started = start_sampling(model, settings, seeds, trained=trained)
            found[noise] = run_chains(*started, settings)
            step(f"{N_CHAINS * N_DRAWS} networks of hidden layers {sizes}, {noise} noise")
    return found
