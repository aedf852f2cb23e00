"""Engine for many rows: networks whose training stops early, chosen by rows held out.

The held-out log density tells sizes apart only roughly, and a mixture of the two best predicts
better than either.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from skbayesnn.inference._growth import MIN_GAIN, HeldOut, grown, ranked
from skbayesnn.inference._laplace_fit import EvidenceFit, of_network, seeds_of, under_noise
from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._search import ALONE, regrouped
from skbayesnn.inference.noise._constant_noise import NOISE_MINIMA
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._noise_search import p_values_of, search_under_noise
from skbayesnn.inference.noise._residual_tests import suspected

FIRST_LOOK = (8,)  # hidden layers of the network that shows whether inputs differ in relevance
MAX_BEHIND = 0.1  # held-out log density per row by which a second network may be behind the best


def fit_to_many_rows(problem, hidden_layer_sizes, noise, entropy, n_restarts, previous, workers):
    """Choose a model by held-out rows, and fit its network and a second one to all rows."""
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
    fit = of_network(problem, sizes, entropy, n_restarts, previous, workers)
    return under_noise(fit, noise, previous, workers)


def has_many_rows(problem, hidden_layer_sizes, noise):
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
    densities["layer"] += MIN_GAIN  # the simpler one where they agree
    return replace(problem, prior=max(densities, key=densities.get))


def chosen_with_many_rows(problem, hidden_layer_sizes, noise, entropy, n_restarts, workers=ALONE):
    """Choose hidden layers and noise by the held-out log density.

    Returns `EvidenceFit` of networks to the training rows under constant noise: that of the chosen
    one, with the chosen ``noise``, and that of the second best hidden layers if these are near.
    """
    growth, seeds = (), seeds_of(entropy, "auto", n_restarts)
    held = HeldOut.of(with_chosen_prior(problem, hidden_layer_sizes, seeds, workers))
    if hidden_layer_sizes == "auto":
        growth, tried = grown(held, seeds, workers)
        best, *others = ranked(growth)
        near = [c for c in others[:1] if c.merit >= best.merit - MAX_BEHIND]
        chosen = [c.hidden_layer_sizes for c in (best, *near)]
    else:
        tried = {hidden_layer_sizes: held.trained(hidden_layer_sizes, seeds, workers)}
        chosen = [hidden_layer_sizes]
    fit, *rest = (
        EvidenceFit(
            problem=held.kept,
            posed=held.kept.posed(sizes),
            minima=[tried[sizes]],
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
    densities["constant"] += MIN_GAIN  # the simpler one where they agree
    best_noise = max(densities, key=densities.get)
    return replace(fit, noise=best_noise, noise_p_values=p_values), *rest
