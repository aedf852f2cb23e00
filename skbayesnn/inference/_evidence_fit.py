"""Evidence engine: minima of a problem, their evidence, and the choice of size and noise.

The order of its calls is in `doc/contributing/architecture.md`.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skbayesnn.inference._chains_fit import fit_by_chains, is_drawn_by_chains
from skbayesnn.inference._drawn_fit import fit_by_drawing, sampled_sizes
from skbayesnn.inference.choice._growth import (
    OF_MANY_ROWS,
    HeldOut,
    best_of,
    grown,
    ranked,
)
from skbayesnn.inference.choice._noise_choice import (
    SECONDS_OF_NOISE,
    continuing,
    p_values_of,
    search_under_noise,
    suspected,
    with_chosen_noise,
)
from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._minimum import total_log_evidence
from skbayesnn.inference.minima._search import ALONE, distinct, find_minima, is_repeated, regrouped
from skbayesnn.inference.noise._constant_noise import NOISE_MINIMA
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.task._problem import Fit

METHODS = "auto", "population", "chains", "early_stopping", "laplace"
# share of the time limit in which networks are drawn; without success, they are trained then
MOST_BY_SAMPLING = 0.7
NO_TIME = "There was no time to measure it."
MISSED = "Networks drawn to measure it missed what training found."
N_GROWTH_STARTS = 2  # starts of every architecture that is tried
FIRST_LOOK = (8,)  # hidden layers of the network that shows whether inputs differ in relevance
MOST_BEHIND = 0.1  # held-out log density per row by which a second network may be behind the best
MOST_GAIN = 20.0  # nats by which Student-t noise is taken to gain more in a larger network


@dataclass(frozen=True, kw_only=True)
class EvidenceFit(Fit):
    """Result of the evidence engine, by Laplace's approximation."""

    minima: list  # in descending order of evidence
    others: list = field(default_factory=list)  # pairs as in `pool`, of other models
    unmeasured: str = ""  # why networks were drawn and do not predict

    log_evidence_std = np.nan  # not estimated

    @property
    def log_evidence(self):
        """Log evidence by Laplace's approximation, summed over minima; ``nan`` if none has one."""
        return total_log_evidence(self.minima) + self.problem.log_scale

    @property
    def best(self):
        """Minimum of highest evidence."""
        return self.minima[0]

    @property
    def pool(self):
        """Pairs of posteriors and minima: those of the chosen network, then ``others``."""
        return [*((self.posed.posterior, minimum) for minimum in self.minima), *self.others]

    @property
    def typical_prior(self):
        """Prior at the best minimum, see `draw_prior`."""
        return self.best.network, self.best.groups, self.best.hyper.alpha[None]

    def without_matrices(self):
        """Copy of the fit without the precision matrices of its minima."""
        others = [(posterior, without_matrices(minimum)) for posterior, minimum in self.others]
        minima = [without_matrices(m) for m in self.minima]
        return replace(self, minima=minima, others=others)


def without_matrices(minimum):
    """Copy of a minimum without its precision matrices."""
    noise = minimum.noise and replace(minimum.noise, precision=None)
    return replace(minimum, precision=None, noise=noise)


def seeds_of(entropy, hidden_layer_sizes, n_starts):
    """Seeds of the random starts; a single one without hidden layers."""
    return np.random.SeedSequence(entropy).spawn(n_starts if hidden_layer_sizes else 1)


def fit_evidence(
    problem,
    hidden_layer_sizes,
    entropy,
    n_restarts=5,
    noise="constant",
    previous=None,
    workers=ALONE,
    method="laplace",
    with_chains=True,
):
    """Draw networks from the posterior of a problem, or find its minima.

    ``hidden_layer_sizes`` and ``noise``, one of `NOISE_MODELS`, may be ``"auto"``. ``entropy`` is
    that of the seeds of random numbers. The ``method`` is one of `METHODS`; ``"auto"`` is the first
    of these that is possible and takes seconds to minutes: a population, which also measures the
    evidence; independent chains, if ``with_chains``; early stopping; Laplace's approximation around
    minima. Minima of the fit ``previous`` replace random starts. Returns a `DrawnFit` or an
    `EvidenceFit`.
    """
    wanted = {"auto": "auto", "population": True}.get(method, False)
    sizes = sampled_sizes(problem, hidden_layer_sizes, noise, wanted)
    limit = problem.deadline.part(MOST_BY_SAMPLING)
    if sizes is not None:
        limited = replace(problem, deadline=limit)
        drawn = fit_by_drawing(limited, hidden_layer_sizes, sizes, entropy, noise, workers)
        if drawn is not None:
            return replace(drawn, problem=problem)
    unmeasured = "" if sizes is None else NO_TIME if limit.passed else MISSED
    if method == "chains" or (
        method == "auto"
        and with_chains
        and not limit.passed
        and is_drawn_by_chains(problem, hidden_layer_sizes, noise)
    ):
        return fit_by_chains(problem, hidden_layer_sizes, noise, entropy, workers)
    if method == "early_stopping" or _has_many_rows(problem, hidden_layer_sizes, noise):
        model = hidden_layer_sizes, noise
        fit = fit_to_many_rows(problem, *model, entropy, n_restarts, previous, workers)
        return replace(fit, unmeasured=unmeasured)
    growth, tried = (), {}

    def later(sizes, minima):
        """Predict the seconds of noise models from minima under constant noise."""
        seconds = 0.0
        if noise == "auto" and minima:
            fit = EvidenceFit(problem=problem, posed=problem.posed(sizes), minima=minima)
            n_models = len(suspected(problem, p_values_of(fit)))
            seconds += SECONDS_OF_NOISE * n_models * workers.progress.elapsed
        return seconds

    if hidden_layer_sizes == "auto":
        seeds = seeds_of(entropy, "auto", min(N_GROWTH_STARTS, n_restarts))
        growth, tried = grown(problem, seeds, workers, seconds_after=later)
        hidden_layer_sizes = best_of(growth).hidden_layer_sizes

    search = problem, hidden_layer_sizes, tried, entropy, n_restarts, previous, workers
    known = tried.get(hidden_layer_sizes)
    with workers.progress.before(lambda: later(hidden_layer_sizes, known)):
        fit = _under_constant_noise(*search)
    fit = _with_noise(replace(fit, growth=growth), noise, previous, workers)
    return replace(fit, unmeasured=unmeasured)


def fit_to_many_rows(problem, hidden_layer_sizes, noise, entropy, n_restarts, previous, workers):
    """Choose a model by held-out rows, and fit its network and a second one to all rows.

    Held-out rows tell sizes apart only roughly, and a mixture of the two predicts better.
    """
    problem = replace(problem, limits=problem.limits._replace(compared=True))
    problem = with_affordable_noise_network(problem) if noise == "auto" else problem
    model = hidden_layer_sizes, noise
    best, *rest = chosen_with_many_rows(problem, *model, entropy, n_restarts, workers)
    noise = best.noise
    if not NOISE_MODELS[noise].plain:
        n_restarts = min(n_restarts, NOISE_MINIMA)
    fit = _of_all_rows(problem, best, noise, entropy, n_restarts, previous or best, workers)
    others = [*fit.others]
    for second in () if problem.deadline.passed else rest:
        others += _of_all_rows(problem, second, noise, entropy, 1, second, workers).pool
    p_values = best.noise_p_values or fit.noise_p_values
    return replace(fit, others=others, growth=best.growth, noise_p_values=p_values)


def _of_all_rows(problem, part, noise, entropy, n_restarts, previous, workers):
    """Fit the network of a fit to a ``part`` of the rows to all of them."""
    sizes = part.posed.hidden_layer_sizes
    # a network whose starts do not take long has an evidence
    takes_long = problem.limits.takes_long(len(problem.X), problem.network(sizes).n_weights)
    limits = problem.limits._replace(compared=takes_long)
    problem = replace(problem, prior=part.problem.prior, limits=limits)
    if Method.choose(*problem.posed(sizes)).early:
        # without evidence training ends at twice the step that fitted held-out rows best, as
        # averages of several networks overfit less than each of them
        n_steps = 2 * max(1, part.best.n_iter)
        problem = replace(problem, max_iter=min(problem.max_iter, n_steps))
    fit = _under_constant_noise(problem, sizes, {}, entropy, n_restarts, previous, workers)
    return _with_noise(fit, noise, previous, workers)


def _under_constant_noise(problem, sizes, tried, entropy, n_restarts, previous, workers):
    """Fit one network from all starts, reusing the minima found by growth."""
    posed = problem.posed(sizes)
    of_growth = tried.get(sizes, [])
    n_done = min(N_GROWTH_STARTS, n_restarts) if of_growth else 0
    old = continuing("constant", problem, posed, previous)
    seeds = seeds_of(entropy, sizes, n_restarts)[n_done:]  # growth used the same first seeds
    seeds = seeds[len(old) :]  # the first seeds led to the old minima
    found = find_minima(*posed, seeds, old, workers=workers) if seeds or old else []
    minima = distinct([*of_growth, *found])
    others = []
    for size in tried:
        posterior = problem.posed(size).posterior
        for minimum in tried[size] if size != sizes else ():
            earlier = [*minima, *(m for _, m in others)]
            if not is_repeated(minimum, earlier):
                others.append((posterior, minimum))
    return EvidenceFit(problem=problem, posed=posed, minima=minima, others=others)


def _with_noise(fit, noise, previous, workers):
    """Fit under the given noise, or choose it."""
    if noise == "auto":
        return with_chosen_noise(fit, previous, workers)
    if NOISE_MODELS[noise].plain:
        return replace(fit, noise=noise, noise_p_values=p_values_of(fit))
    posed, minima = search_under_noise(noise, fit, previous, workers)
    return replace(fit, posed=posed, minima=minima, others=[], noise=noise)


def _has_many_rows(problem, hidden_layer_sizes, noise):
    """Return True if models are compared by held-out rows, where the evidence is unreliable."""
    if hidden_layer_sizes == "auto":
        of_targets = *problem.X.shape, problem.y.shape[1]
        return problem.limits.compares_rows(problem.likelihood, *of_targets)
    return noise == "auto" and Method.choose(*problem.posed(hidden_layer_sizes)).early


def with_affordable_noise_network(problem):
    """Problem whose noise network has no hidden layer if it had more weights than rows."""
    n_weights = problem.network(problem.noise_hidden_layer_sizes).n_weights
    sizes = problem.noise_hidden_layer_sizes if n_weights <= len(problem.X) else ()
    return replace(problem, noise_hidden_layer_sizes=sizes)


def with_chosen_prior(problem, hidden_layer_sizes, seeds, workers):
    """Problem with the prior ``"ard"`` if that is ``"auto"``, and inputs differ in relevance.

    A small network, or the given one, is trained, and trained further under both priors. ``"ard"``
    is chosen if its held-out log density is higher. From two random starts, local minima would
    make a larger difference than priors.
    """
    if problem.prior != "auto" or problem.groups is not None:
        return problem
    sizes = FIRST_LOOK if hidden_layer_sizes == "auto" else hidden_layer_sizes
    first = HeldOut.of(problem).trained(sizes, seeds, workers)
    densities = {}
    with workers.progress.stage("priors", np.ones(2), seconds=0.0) as step:
        for prior in ("layer", "ard"):
            held = HeldOut.of(replace(problem, prior=prior))
            posterior, settings = held.posed(sizes)
            minimum = regrouped(posterior, first, settings)
            densities[prior] = held.log_density([minimum])
            step(f"prior {prior!r}: log density of rows held out {densities[prior]:.4f} per row")
    densities["layer"] += OF_MANY_ROWS.least_gain  # the simpler one where they agree
    return replace(problem, prior=max(densities, key=densities.get))


def chosen_with_many_rows(problem, hidden_layer_sizes, noise, entropy, n_restarts, workers=ALONE):
    """Choose hidden layers and noise by the held-out log density.

    Returns `EvidenceFit` of networks to the training rows under constant noise: that of the chosen
    one, with the chosen ``noise``, and that of the second best hidden layers if these are near.
    """
    growth, seeds = (), seeds_of(entropy, "auto", n_restarts)
    held = HeldOut.of(with_chosen_prior(problem, hidden_layer_sizes, seeds, workers))
    if hidden_layer_sizes == "auto":
        growth, tried = grown(held.kept, seeds, workers, held, held.seconds_after)
        least = best_of(growth).merit - MOST_BEHIND
        chosen = [c.hidden_layer_sizes for c in ranked(growth)[:2] if c.merit >= least]
    else:
        tried = {hidden_layer_sizes: [held.trained(hidden_layer_sizes, seeds, workers)]}
        chosen = [hidden_layer_sizes]
    fit, *rest = (
        EvidenceFit(
            problem=held.kept,
            posed=held.kept.posed(sizes),
            minima=tried[sizes],
            noise=noise,
            growth=growth,
        )
        for sizes in chosen
    )
    if noise != "auto":
        return fit, *rest
    p_values, densities = p_values_of(fit), {"constant": held.log_density(fit.minima)}
    names = suspected(problem, p_values)
    later = workers.progress.before(partial(held.seconds_after, chosen[0]))
    with later, workers.progress.stage("noise models", np.ones(len(names)), seconds=0.0) as step:
        for name in names:
            if problem.deadline.passed:
                break
            densities[name] = held.log_density(search_under_noise(name, fit, None, workers)[1])
            step(
                f"{name} noise: log density of rows held out {densities[name]:.4f} per row "
                f"(constant noise {densities['constant']:.4f})"
            )
    densities["constant"] += OF_MANY_ROWS.least_gain  # the simpler one where they agree
    best_noise = max(densities, key=densities.get)
    return replace(fit, noise=best_noise, noise_p_values=p_values), *rest
