"""Short chains, whose networks predict together with the minima of a fit.

Where populations would take too long, Laplace's approximation around few minima leaves out most of
the posterior. Chains are far cheaper than populations: each starts at a network of its own, briefly
trained, and visits its neighbourhood. They do not measure the evidence.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._drawn_fit import GENEROUS, seconds_of_population
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._sampling import SamplingSettings, run_chains, tuned_plan
from skbayesnn.inference.sampling._sampling_starts import start_sampling
from skbayesnn.posterior import JointPosterior

N_CHAINS, N_WARM_UP, N_DRAWS = 8, 25, 25
MAX_STEPS = 32  # of a trajectory; 64 were as good
POPULATIONS_PER_CHAINS = 0.12  # time of the chains relative to that of a population


class Chained(NamedTuple):
    """Networks drawn by short chains under one noise model; fields as those of `Drawn`."""

    noise: str
    joint: JointPosterior
    theta: np.ndarray
    beta: np.ndarray
    state: np.ndarray


def seconds_of_chains(posterior):
    """Processor seconds of short chains, accurate to a factor of three."""
    return POPULATIONS_PER_CHAINS * seconds_of_population(posterior)


def generous_sizes(problem):
    """Hidden layers of the network: the generous ones, or half of them if targets are few."""
    (width,) = GENEROUS[True]
    n_weights = problem.network((width,)).n_weights
    n_targets = problem.sample_weight.sum() * problem.likelihood.n_levels
    return (
        (width,)
        if n_targets >= problem.limits.few_targets_per_weight * n_weights
        else GENEROUS[False]
    )


def short_chains(fit, entropy, workers):
    """Run short chains under the noise models of a fit, as far as there is time.

    ``fit`` is an `EvidenceFit`, and ``entropy`` that of the seeds. If other models than constant
    noise were tried, these are sampled. Returns a tuple of `Chained`, which is empty for classes,
    and where the chains would take too long.
    """
    problem = fit.problem
    sizes = generous_sizes(problem)
    noises = [noise for noise in fit.noise_log_evidences if noise != "constant"] or [fit.noise]
    posterior = problem.posed(sizes).posterior
    seconds = len(noises) * seconds_of_chains(posterior)
    most = problem.limits.sampled_seconds
    if not problem.likelihood.n_levels or not posterior.groups.centred or seconds > most:
        return ()
    found, seeds = [], np.random.SeedSequence([entropy, 2])
    with workers.progress.over("short chains", np.ones(len(noises)), seconds=seconds) as step:
        for noise in noises:
            if problem.deadline.passed:
                break
            posed = NOISE_MODELS[noise].pose(problem.posed(sizes))
            plan = tuned_plan(posed, False, noise)[0]._replace(max_steps=MAX_STEPS)
            settings = SamplingSettings(posed.settings, plan, N_WARM_UP, N_DRAWS)
            started = start_sampling(problem, posed, settings, seeds.spawn(N_CHAINS), noise)
            sampled = run_chains(*started, settings)
            theta, beta, state = (
                some.reshape(-1, some.shape[-1])
                for some in (sampled.draws.theta, sampled.draws.beta, sampled.draws.noise)
            )
            found.append(Chained(noise, sampled.joint, theta, beta, state))
            step(f"{noise} noise: {len(theta)} networks of hidden layers {sizes}")
    return tuple(found)
