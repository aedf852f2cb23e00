"""Networks drawn by independent chains, where populations do not reach the posterior in time.

With some hundred rows and weights the posterior has many modes, between which neither a population
nor a chain moves within minutes; shares by evidences or leave-one-out densities would follow noise.
Networks of chains from independent starts have equal weights instead. That is no exact average over
the posterior (chains hardly mix in the weights, but agree in predictions: Izmailov et al. 2021),
but its Monte Carlo error is known from the spread between chains, and decides how many are drawn.

Nothing is chosen: there is one generous size, one weak prior, and one noise law that nests the
others, unless the user gives them.
"""

from dataclasses import replace

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference._drawn_fit import DrawnFit
from skbayesnn.inference._trials import MOST_NETWORKS, Drawn
from skbayesnn.inference.minima._training import BRIEF, random_starts, train
from skbayesnn.inference.noise._constant_noise import derived_generator
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._sampling import (
    Draws,
    SamplingSettings,
    in_step,
    run_chains,
    start_chains,
    start_sampling,
    tuned_plan,
    warmed_up,
)
from skbayesnn.inference.task._problem import Fit
from skbayesnn.network import outputs
from skbayesnn.posterior import StudentT

# hidden layers for regression (True) and for classes: the first with targets enough
SIZES = {True: ((16, 16), (12, 12), (8, 8)), False: ((16,), (8,))}
# with far fewer targets per weight trained networks overfit so much that chains do not recover
MIN_TARGETS_PER_WEIGHT = 1.0
FLEXIBLE = "input_dependent_student_t"  # noise law that nests the others
N_TOGETHER = 4  # chains that are drawn before their spread is looked at
MAX_CHAINS = 16
# rows times weights of all chains beyond the first ones: with more, fewer chains are drawn
WORK_OF_CHAINS = 1e7
# transitions of a chain: first at a tempered posterior, then of the warm-up, then draws
N_TEMPERED, N_WARM_UP, N_DRAWS = 30, 120, 50
# weight of the rows at first. Trained networks fit some rows too closely, so that a noise network
# would take the noise there for tiny; a wider posterior lets the means go where more rows agree
TEMPERED = 0.5
MAX_STEPS = 64  # of a trajectory
MAX_ERROR = 0.1  # Monte Carlo error, in predictive standard deviations, at which no more are drawn
COMPARED_ROWS = 500  # rows on which chains are compared


def model_of(problem, hidden_layer_sizes, noise):
    """Hidden layers and noise law that are sampled, given those that the user has set."""
    likelihood = problem.likelihood
    if hidden_layer_sizes == "auto":
        sizes = SIZES[likelihood.n_levels > 0]
        hidden_layer_sizes = next((each for each in sizes if has_targets(problem, each)), sizes[-1])
    if noise == "auto":
        may_vary = problem.laws is None and not problem.noise_is_given
        noise = FLEXIBLE if may_vary else "constant"
    if noise == "constant" and isinstance(likelihood, StudentT):
        noise = "student_t"
    return hidden_layer_sizes, noise


def has_targets(problem, hidden_layer_sizes):
    """Return True if a network has enough targets per weight for chains."""
    posterior = problem.posed(hidden_layer_sizes).posterior
    n_targets = posterior.n_rows * max(1, posterior.likelihood.n_levels)
    return n_targets >= MIN_TARGETS_PER_WEIGHT * posterior.network.n_weights


def is_drawn_by_chains(problem, hidden_layer_sizes, noise):
    """Return True if networks of these choices are drawn by chains, unless a user wants otherwise.

    Not where Laplace's approximation is exact, where the compiled core lacks the model, so that
    chains take minutes, with few targets per weight, or with so many rows and weights that training
    with early stopping predicts better in the same time.
    """
    sizes, law = model_of(problem, hidden_layer_sizes, noise)
    posterior = problem.posed(sizes).posterior
    if not NOISE_MODELS[law].sampled or not has_targets(problem, sizes):
        return False
    if posterior.is_quadratic and (noise == "auto" or NOISE_MODELS[law].plain):
        return False
    k, limits = posterior.network.n_weights, problem.limits
    affordable = k <= limits.chain_weights and len(posterior.X) * k <= limits.chain_work
    return bool(posterior.compiled and posterior.groups.centred and affordable)


def chains_of(posterior):
    """Most chains that are drawn, a multiple of `N_TOGETHER`: fewer for large data."""
    affordable = WORK_OF_CHAINS / (len(posterior.X) * posterior.network.n_weights)
    rounds = np.clip(affordable // N_TOGETHER, 1, MAX_CHAINS // N_TOGETHER)
    return int(rounds) * N_TOGETHER


def fit_by_chains(problem, hidden_layer_sizes, noise, entropy, workers):
    """Draw networks by independent chains, each from a trained start of its own.

    ``hidden_layer_sizes`` and ``noise``, one of `NOISE_MODELS`, may be ``"auto"``; ``entropy`` is
    that of all random numbers. Rounds of chains follow until their Monte Carlo error is small
    (`monte_carlo_error`), or the time is up. Returns a `DrawnFit` of one model.
    """
    sizes, noise = model_of(problem, hidden_layer_sizes, noise)
    problem = replace(problem, weak_prior=problem.open_prior)
    posed = NOISE_MODELS[noise].pose(problem.posed(sizes))
    fit = Fit(problem=problem, posed=posed, noise=noise)
    plan = tuned_plan(fit)[0]._replace(max_steps=MAX_STEPS, metric_power=1.0, n_curvatures=4)
    settings = SamplingSettings(posed.settings, plan, N_WARM_UP, N_DRAWS)
    seeds = np.random.SeedSequence([entropy, 2]).spawn(chains_of(posed.posterior))
    found, error, rounds = [], np.inf, np.arange(0, len(seeds), N_TOGETHER)
    with workers.progress.stage("chains", np.ones(len(rounds))) as step:
        for first in rounds:
            own = seeds[first : first + N_TOGETHER]
            sampled = _run(fit, settings, own, workers)
            if sampled.interrupted and not problem.deadline.passed:
                raise KeyboardInterrupt
            found.append(sampled.draws)
            draws = joined(found)
            error = monte_carlo_error(posed.posterior, draws)
            step(f"{len(draws.energy)} chains: predictions known to {error:.2f} predictive sd")
            if error <= MAX_ERROR or problem.deadline.passed:
                break
    drawn = _drawn(fit, sampled.joint, draws)
    return DrawnFit(problem=problem, posed=posed, noise=noise, drawn=(drawn,), error=error)


def _run(fit, settings, seeds, workers):
    """Train a start for every seed under constant noise, and run a chain from it."""
    plain, search = fit.problem.posed(fit.posed.hidden_layer_sizes)
    with blas_threads(plain.network.n_weights):
        starts = random_starts(plain, [derived_generator(seed) for seed in seeds])
        brief = search._replace(max_iter=BRIEF)
        trained = list(workers.results(train, [(plain, start, brief) for start in starts]))
        joint, chains = start_sampling(fit, settings, seeds, n_jobs=workers.n_jobs, trained=trained)
    wider = replace(joint, posterior=joint.posterior.scaled(TEMPERED))
    for energy, n_warmup in ((wider, N_TEMPERED), (joint, N_WARM_UP)):
        rngs = [rng for batch in chains for rng in batch.rngs]
        position = np.concatenate([batch.phase.position for batch in chains])
        chains = start_chains(energy, position, rngs, settings.plan, workers.n_jobs)
        tasks = [(energy, batch, settings._replace(n_warmup=n_warmup)) for batch in chains]
        chains = in_step(list(workers.results(warmed_up, tasks)), settings)
    return run_chains(joint, chains, settings, warm=False, workers=workers)


def joined(found):
    """Draws of all rounds; each round may have been cut short."""
    n_draws = min(draws.energy.shape[1] for draws in found)
    return Draws.join([draws.first(n_draws) for draws in found], axis=0)


def monte_carlo_error(posterior, draws):
    """Standard error of predictive means, in predictive standard deviations, between two fits.

    If the means of ``K`` chains vary with the standard deviation ``s``, those of two fits differ by
    ``s (2 / K)^(1/2)``. The root mean square over training rows and outputs is returned.
    """
    some = np.unique(np.linspace(0, len(posterior.X) - 1, COMPARED_ROWS).astype(int))
    theta, beta = draws.theta.astype(float), draws.beta
    targets = posterior.targets(some)
    f = outputs(posterior.network, theta, posterior.X[some])
    mean, variance = posterior.likelihood.moments(f, targets, beta)
    total = variance.mean(axis=(0, 1)) + mean.var(axis=(0, 1))
    between = mean.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt(np.mean(between / total) * 2.0 / len(f)))


def _drawn(fit, joint, draws):
    """`Drawn` networks of all chains, thinned along the chains."""
    n_chains, n_draws = draws.energy.shape
    kept = slice(None, None, -(-n_chains * n_draws // MOST_NETWORKS))

    def flat(values):
        return np.concatenate(values[:, ::-1][:, kept])

    return Drawn(
        fit.noise,
        fit.posed,
        joint,
        np.nan,
        np.nan,
        starts=None,
        position=None,
        theta=flat(draws.theta),
        alpha=flat(draws.alpha),
        beta=flat(draws.beta),
        state=flat(draws.noise),
        by_stacking=True,
        averaged=False,
    )
