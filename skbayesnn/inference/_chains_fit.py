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
from skbayesnn.inference._population_fit import DrawnFit
from skbayesnn.inference._trials import MAX_NETWORKS, Drawn
from skbayesnn.inference.minima._training import random_starts, train
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
SIZES = {True: ((16, 16), (12, 12), (8, 8), (8,), (4,), ()), False: ((16,), (8,), ())}
# with far fewer targets per weight trained networks overfit so much that chains do not recover
MIN_TARGETS_PER_WEIGHT = 1.0
FLEXIBLE = "input_dependent_student_t"  # noise law that nests the others
N_TOGETHER = 4  # chains that are drawn before their spread is looked at
MAX_CHAINS = 8
# rows times weights of all chains beyond the first ones: with more, fewer chains are drawn
WORK_OF_CHAINS = 5e6
# a start is trained on the other rows, until these are predicted worse: noise is hardly fitted, and
# means of data with little noise converge
HELD_OUT_SHARE, MAX_TRAINING = 0.1, 300
N_TEMPERED = 30  # transitions of a chain at a tempered posterior, before its warm-up
# transitions of the warm-up, and draws. Chains that agree can be short; where they do not, the
# noise is mostly small, and chains move towards better fits for hundreds of transitions
SHORT, LONG = (120, 50), (300, 100)
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
    that of all random numbers. A few short chains come first. Unless their Monte Carlo error is
    small (`monte_carlo_error`), they go on, and rounds of long chains follow until it is, or the
    time is up. Returns a `DrawnFit` of one model.
    """
    sizes, noise = model_of(problem, hidden_layer_sizes, noise)
    problem = replace(problem, weak_prior=problem.open_prior)
    posed = NOISE_MODELS[noise].pose(problem.posed(sizes))
    fit = Fit(problem=problem, posed=posed, noise=noise)
    plan = tuned_plan(fit)[0]._replace(max_steps=MAX_STEPS, metric_power=1.0, n_curvatures=4)
    short, long = (SamplingSettings(posed.settings, plan, *counts) for counts in (SHORT, LONG))
    seeds = np.random.SeedSequence([entropy, 2]).spawn(chains_of(posed.posterior))
    first, *others = (seeds[i : i + N_TOGETHER] for i in range(0, len(seeds), N_TOGETHER))
    works = [sum(SHORT), 2 * sum(LONG) - sum(SHORT), *[sum(LONG)] * len(others)]
    with workers.progress.stage("chains", works[: len(others) + 1]) as step:

        def judged(sampled):
            """Draws of all rounds, and their Monte Carlo error."""
            draws = joined(sampled)
            error = monte_carlo_error(posed.posterior, draws)
            step(f"{len(draws.energy)} chains: predictions known to {error:.2f} predictive sd")
            return draws, error

        sampled = [_sampled(*_started(fit, short, first, workers), short, workers)]
        draws, error = judged(sampled)
        for own in others:
            if error <= MAX_ERROR or problem.deadline.passed:
                break
            if len(sampled) == 1:
                sampled = [_gone_on(sampled[0], long, workers)]
            sampled.append(_sampled(*_started(fit, long, own, workers), long, workers))
            if problem.deadline.passed:  # chains that were cut short add little
                break
            draws, error = judged(sampled)
    drawn = _drawn(fit, sampled[0].joint, draws)
    return DrawnFit(problem=problem, posed=posed, noise=noise, drawn=(drawn,), error=error)


def _started(fit, settings, seeds, workers):
    """Train a start for every seed under constant noise; return the joint posterior and chains."""
    problem, sizes = fit.problem, fit.posed.hidden_layer_sizes
    rngs = [derived_generator(seed) for seed in seeds]
    with blas_threads(fit.posed.posterior.network.n_weights):
        starts = random_starts(problem.posed(sizes).posterior, rngs)
        splits = [held_out_split(problem, sizes, rng) for rng in rngs]
        tasks = [
            (rows, start, search) for start, (rows, search) in zip(starts, splits, strict=True)
        ]
        trained = list(workers.results(train, tasks))
        joint, chains = start_sampling(fit, settings, seeds, n_jobs=workers.n_jobs, trained=trained)
    wider = replace(joint, posterior=joint.posterior.scaled(TEMPERED))
    return joint, _warmed_up(wider, chains, settings._replace(n_warmup=N_TEMPERED), workers)


def held_out_split(problem, hidden_layer_sizes, rng):
    """Pose a problem so that training ends when rows that ``rng`` draws are predicted worse."""
    order = rng.permutation(len(problem.X))
    n_rest = max(1, int(HELD_OUT_SHARE * len(order)))
    kept, rest = (problem.of_rows(np.sort(rows)) for rows in (order[n_rest:], order[:n_rest]))
    posterior, search = kept.posed(hidden_layer_sizes)
    held_out = rest.posed(hidden_layer_sizes).posterior
    return posterior, search._replace(max_iter=MAX_TRAINING, held_out=held_out)


def _warmed_up(energy, chains, settings, workers):
    """Adapt step sizes and metrics of chains anew, from where they are."""
    rngs = [rng for batch in chains for rng in batch.rngs]
    position = np.concatenate([batch.phase.position for batch in chains])
    chains = start_chains(energy, position, rngs, settings.plan, workers.n_jobs)
    tasks = [(energy, batch, settings) for batch in chains]
    return in_step(list(workers.results(warmed_up, tasks)), settings)


def _sampled(joint, chains, settings, workers):
    """Warm chains up, and draw; return `Sampled`."""
    chains = _warmed_up(joint, chains, settings, workers)
    sampled = run_chains(joint, chains, settings, warm=False, workers=workers)
    if sampled.interrupted and not settings.search.deadline.passed:
        raise KeyboardInterrupt
    return sampled


def _gone_on(sampled, settings, workers):
    """Draw anew with short chains, whose transitions so far count as warm-up."""
    rest = settings._replace(n_warmup=settings.n_warmup - sum(SHORT))
    return _sampled(sampled.joint, sampled.chains, rest, workers)


def joined(sampled):
    """Draws of all rounds; each round may have been cut short."""
    n_draws = min(each.draws.energy.shape[1] for each in sampled)
    return Draws.join([each.draws.first(n_draws) for each in sampled], axis=0)


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
    kept = slice(None, None, -(-n_chains * n_draws // MAX_NETWORKS))

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
