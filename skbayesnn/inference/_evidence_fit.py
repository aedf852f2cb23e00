"""Evidence engine: minima of a problem, their evidence, and the choice of size and noise.

Order of calls::

    fit_models                  where the posterior is sampled; else
    grown                       hidden layers, if they are to be chosen
    chosen_with_many_rows       hidden layers and noise, by held-out rows where there are many
    find_minima                 under constant noise, from the remaining starts
    with_chosen_noise           if the noise is to be chosen; else the search under its model
"""

from dataclasses import dataclass, field, replace

import numpy as np

from skbayesnn.inference.choice._growth import (
    BY_EVIDENCE,
    OF_MANY_ROWS,
    Candidate,
    best_of,
    grown,
    grown_with_many_rows,
)
from skbayesnn.inference.choice._held_out import HeldOut
from skbayesnn.inference.choice._noise_choice import (
    HOPELESS,
    continuing,
    p_values_of,
    suspected,
    under_noise,
    while_there_is_time,
    with_chosen_noise,
)
from skbayesnn.inference.choice._sampled_models import (
    GENEROUS,
    Model,
    draw_models,
    is_affordable,
)
from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._minimum import total_log_evidence
from skbayesnn.inference.minima._search import (
    ALONE,
    distinct,
    find_minima,
    is_repeated,
)
from skbayesnn.inference.noise._constant_noise import NOISE_MINIMA
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.task._problem import Posed, Problem
from skbayesnn.network import outputs

N_SCOUTS = 2  # starts of every architecture that is tried


@dataclass(frozen=True)
class EvidenceFit:
    """Result of the evidence engine.

    Attributes
    ----------
    problem : Problem
    posed : Posed
        Posterior and settings under the chosen noise.
    minima : list of Minimum
        Minima in descending order of evidence.
    others : list of tuple
        Posteriors and distinct minima of other networks and noise models that were tried.
    noise : str
    growth : tuple of Candidate
        Networks that were tried, if hidden layers were chosen automatically.
    noise_p_values, noise_log_evidences : dict
        P values of tests against constant noise and log evidences by noise model (in units of the
        user, by Laplace's approximation), where the noise was chosen automatically.
    drawn : tuple of Drawn
        Posterior samples of every model in descending order of evidence; the first one gives the
        evidence of the fit. Empty if the posterior was not sampled.
    """

    problem: Problem
    posed: Posed
    minima: list
    others: list = field(default_factory=list)
    noise: str = "constant"
    growth: tuple = ()
    noise_p_values: dict = field(default_factory=dict)
    noise_log_evidences: dict = field(default_factory=dict)
    drawn: tuple = ()

    @property
    def laplace_log_evidence(self):
        """Log evidence by Laplace's approximation, summed over minima; ``nan`` if none has one."""
        return total_log_evidence(self.minima) + self.problem.log_scale

    @property
    def log_evidence(self):
        """Log evidence estimated by sampling, else by Laplace's approximation."""
        if not self.drawn:
            return self.laplace_log_evidence
        return self.drawn[0].log_evidence + self.problem.log_scale

    @property
    def log_evidence_std(self):
        """Standard error of the log evidence; ``nan`` if not estimated by sampling."""
        return self.drawn[0].log_evidence_std if self.drawn else np.nan

    @property
    def best(self):
        """Minimum of highest evidence."""
        return self.minima[0]

    @property
    def pool(self):
        """Pairs of posteriors and minima: those of the chosen network, then ``others``."""
        return [*((self.posed.posterior, minimum) for minimum in self.minima), *self.others]

    def draw_prior(self, X, size, rng):
        """Draw networks from the prior; returns their outputs, ``(size, n, n_outputs)``.

        The precisions are those of the networks drawn from the posterior, if there are any, and
        else those of the best minimum.
        """
        if self.drawn:
            joint, position = self.drawn[0].joint, self.drawn[0].position
            alpha = joint.place(position[rng.integers(len(position), size=size)]).hyper.alpha
            own = joint.posterior  # groups of a noise network come after its own
            return outputs(own.network, own.groups.draw(alpha, rng), X)
        best = self.best
        alpha = np.tile(best.hyper.alpha, (size, 1))
        return outputs(best.network, best.groups.draw(alpha, rng), X)

    def without_matrices(self):
        """Copy of the fit without the precision matrices of its minima."""
        others = [(posterior, _light(minimum)) for posterior, minimum in self.others]
        return replace(self, minima=[_light(m) for m in self.minima], others=others)


def _light(minimum):
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
    measured=False,
):
    """Find the minima of a problem, and choose network size and noise model if asked for.

    Parameters
    ----------
    problem : Problem
    hidden_layer_sizes : tuple of int or "auto"
    entropy : int
        Entropy of the random starts.
    n_restarts : int
    noise : str
        One of `NOISE_MODELS`, or ``"auto"``.
    previous : EvidenceFit, optional
        Minima of this earlier fit take the place of random starts.
    workers : Workers
    measured : bool or "auto"
        Whether to sample the posterior, which also estimates the evidence; ``"auto"``: where
        `Limits` predict that this takes seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, fit_evidence
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> fit = fit_evidence(Problem(X, y, np.ones(20), Gaussian.per_output(1)), (3,), entropy=0)
    >>> print((fit.best.hyper.beta ** -0.5).round(1))  # the noise level
    [0.1]
    """
    sizes = sampled_sizes(problem, hidden_layer_sizes, noise, measured)
    if sizes is not None:
        given = problem, hidden_layer_sizes, sizes, entropy, n_restarts, noise, previous, workers
        return fit_models(*given)
    growth, tried, on_part = (), {}, {}
    if _has_many_rows(problem, hidden_layer_sizes, noise):
        asked = hidden_layer_sizes, noise
        chosen = chosen_with_many_rows(problem, *asked, entropy, workers)
        hidden_layer_sizes, noise, growth, on_part, scouts = chosen
        previous = previous or scouts
        if not NOISE_MODELS[noise].plain:
            n_restarts = min(n_restarts, NOISE_MINIMA)
    if hidden_layer_sizes == "auto":
        growth, tried = grown(
            problem, seeds_of(entropy, "some", min(N_SCOUTS, n_restarts)), workers
        )
        hidden_layer_sizes = best_of(growth).hidden_layer_sizes

    def under_noise(sizes, models=None):
        fit = _under_constant_noise(problem, sizes, tried, entropy, n_restarts, previous, workers)
        return _with_noise(replace(fit, growth=growth), noise, previous, workers, models)

    fit = under_noise(hidden_layer_sizes)
    better = size_under_noise(fit, tried, noise, workers)
    if better is not None:
        smaller, fit = fit, under_noise(*better)
        others = [*fit.others, *(pair for pair in smaller.pool if pair[1].noise is not None)]
        fit = replace(fit, others=others, noise_p_values=smaller.noise_p_values)
    return replace(fit, **on_part)


def sampled_sizes(problem, hidden_layer_sizes, noise, wanted="auto"):
    """Hidden layer sizes of the network whose posterior is sampled; ``None`` for no sampling.

    Parameters
    ----------
    problem : Problem
    hidden_layer_sizes : tuple of int or "auto"
    noise : str
        One of `NOISE_MODELS`, or ``"auto"``.
    wanted : bool or "auto"
        ``True``: regardless of the time it takes.
    """
    possible = noise == "auto" or NOISE_MODELS[noise].sampled
    if not wanted or not possible:
        return None
    if hidden_layer_sizes == "auto":
        hidden_layer_sizes, wanted = GENEROUS[problem.likelihood.n_levels > 0], "auto"
    posterior = problem.posed(hidden_layer_sizes).posterior
    if posterior.is_quadratic and noise in ("auto", "constant", "shared"):
        return None  # Laplace's approximation is exact
    if is_affordable(posterior, problem.limits) or (wanted is True and posterior.groups.centred):
        return hidden_layer_sizes
    return None


def fit_models(
    problem, hidden_layer_sizes, sizes, entropy, n_restarts, noise, previous=None, workers=ALONE
):
    """Sample the posterior of networks of a given size under several noise models.

    The linear model is included if the size is chosen automatically. Noise models other than
    constant noise are included if tests of the residuals reject constant noise in their favour.

    Parameters
    ----------
    problem : Problem
    hidden_layer_sizes : tuple of int or "auto"
        Hidden layer sizes that the user asked for.
    sizes : tuple of int
        Hidden layer sizes of the network.
    entropy, n_restarts, noise, previous, workers
        See `fit_evidence`.
    """
    chosen = hidden_layer_sizes == "auto"
    n_starts = min(N_SCOUTS, n_restarts) if chosen else n_restarts
    given = {}, entropy, n_starts, previous, workers
    linear = [()] if chosen or (noise == "auto" and problem.suits(())) else []
    tried = dict.fromkeys([sizes, *linear])  # the linear model once
    fits = [_under_constant_noise(problem, some, *given) for some in tried]
    laws = _laws(problem, fits) if noise == "auto" else [noise]
    sampled = fits if chosen else fits[:1]
    models = [_model(fit, law, previous, workers) for fit in sampled for law in laws]
    with workers.progress.over("networks drawn from the posterior") as step:
        drawn = draw_models(models, entropy, problem.deadline, problem.log_scale, step)
    best = drawn[0].model if drawn else models[0]
    rest = [(m.posed.posterior, minimum) for m in models if m is not best for minimum in m.minima]
    fit = EvidenceFit(problem, best.posed, best.minima, rest, best.noise, drawn=tuple(drawn))
    growth = tuple(_candidate(problem, some) for some in drawn) if chosen else ()
    totals = {}
    for some in drawn if noise == "auto" else ():
        totals.setdefault(some.model.noise, some.log_evidence + problem.log_scale)
    tested = noise == "auto" or NOISE_MODELS[noise].plain
    p_values = p_values_of(fits[0]) if tested else {}
    return replace(fit, growth=growth, noise_p_values=p_values, noise_log_evidences=totals)


def _laws(problem, fits):
    """Noise models to be tried: constant noise, then those that tests of any fit suggest.

    A test of each fit is needed, as a large network may fit outliers that the linear model shows.
    """
    found = [p_values_of(fit) for fit in fits]
    lowest = {name: min(values.get(name, 1.0) for values in found) for name in found[0]}
    return ["constant", *suspected(problem, lowest)]


def _model(fit, noise, previous, workers):
    """Pose a network under a noise model, with the minimum reached from its best one."""
    if NOISE_MODELS[noise].plain:
        return Model(fit.problem, noise, fit.posed, fit.minima)
    best = replace(fit, minima=fit.minima[:1])
    return Model(fit.problem, noise, *under_noise(noise, best, previous, workers))


def _candidate(problem, drawn):
    """Convert a sampled model to a `Candidate` of growth."""
    model, scale = drawn.model, problem.log_scale
    laplace = total_log_evidence(model.minima) + scale
    n_weights = model.posed.posterior.network.n_weights
    return Candidate(model.hidden_layer_sizes, n_weights, laplace, drawn.log_evidence + scale)


def _under_constant_noise(problem, sizes, tried, entropy, n_restarts, previous, workers):
    """Fit one network from all starts, reusing the minima found by growth."""
    posed = problem.posed(sizes)
    _, scouted = tried.get(sizes, (None, []))
    n_done = min(N_SCOUTS, n_restarts) if scouted else 0
    old = continuing("constant", problem, posed, previous)
    seeds = seeds_of(entropy, sizes, n_restarts)[n_done:]
    seeds = seeds[: max(0, len(seeds) - len(old))]
    found = find_minima(*posed, seeds, old, workers=workers) if seeds or old else []
    minima = distinct([*scouted, *found], posed)
    others = [(there, m) for size, (there, some) in tried.items() if size != sizes for m in some]
    others = _unrepeated(minima, others, posed.settings)
    return EvidenceFit(problem, posed, minima, others)


def _with_noise(fit, noise, previous, workers, models=None):
    """Fit under the given noise; if it is ``"auto"``, ``models`` are the ones to be tried."""
    if noise == "auto":
        return with_chosen_noise(fit, previous, workers, models)
    if NOISE_MODELS[noise].plain:
        return replace(fit, noise=noise, noise_p_values=p_values_of(fit))
    posed, minima = under_noise(noise, fit, previous, workers)
    return replace(fit, posed=posed, minima=minima, others=[], noise=noise)


def size_under_noise(fit, tried, noise, workers=ALONE):
    """Find a larger network that has a higher evidence than the one grown under constant noise.

    Outliers mask structure in the data. So the best noise model with `hides` is tried with larger
    networks, from the best minimum of each, in descending order of evidence under constant noise.
    Smaller networks are not tried: such noise absorbs their misfit (on airfoil their evidence was
    higher, but their predictions were worse).

    Parameters
    ----------
    fit : EvidenceFit
    tried : dict
        Posterior under constant noise and its minima, by hidden layer sizes.
    noise : str
        Noise that the user asked for.
    workers : Workers

    Returns
    -------
    tuple or None
        Hidden layer sizes and noise models; ``None`` if no larger network is better.
    """
    totals = fit.noise_log_evidences if noise == "auto" else {fit.noise: fit.laplace_log_evidence}
    known = {name: value for name, value in totals.items() if np.isfinite(value)}
    others = {name: value for name, value in known.items() if NOISE_MODELS[name].hides}
    constant = {sizes: total_log_evidence(minima) for sizes, (_, minima) in tried.items()}
    constant = {sizes: value for sizes, value in constant.items() if np.isfinite(value)}
    own = fit.posed.posterior.network
    before = constant.get(own.hidden_layer_sizes)
    if not others or before is None:
        return None
    problem, best = fit.problem, max(others, key=others.get)
    highest = max(known.values()) - problem.log_scale
    least = before - abs(highest - before) - HOPELESS
    larger = [s for s in constant if problem.network(s).n_weights > own.n_weights]
    larger = [s for s in larger if constant[s] >= least]
    larger, better = sorted(larger, key=constant.get, reverse=True), None
    with workers.progress.over("larger networks", np.ones(len(larger))) as step:
        for sizes in larger:
            if problem.deadline.passed:
                break
            there = EvidenceFit(problem, problem.posed(sizes), tried[sizes][1][:1])
            total = total_log_evidence(under_noise(best, there, None, workers)[1])
            value = total + problem.log_scale
            step(f"hidden layers {sizes} with {best} noise: log evidence {value:.2f}")
            if total > highest + BY_EVIDENCE.least_gain:
                better, highest = (sizes, [best]), total
    return better


def _has_many_rows(problem, hidden_layer_sizes, noise):
    """Return True if models are compared by held-out rows, as the evidence is unreliable."""
    if hidden_layer_sizes == "auto":
        return problem.limits.many_rows(*problem.X.shape)
    return noise == "auto" and Method.choose(*problem.posed(hidden_layer_sizes)).early


def chosen_with_many_rows(problem, hidden_layer_sizes, noise, entropy, workers=ALONE):
    """Choose hidden layers and noise by the held-out log density.

    Parameters
    ----------
    problem : Problem
    hidden_layer_sizes : tuple of int or "auto"
    noise : str
    entropy : int
    workers : Workers

    Returns
    -------
    hidden_layer_sizes : tuple of int
    noise : str
    growth : tuple of Candidate
    tests : dict
        Fields of `EvidenceFit`.
    fit : EvidenceFit
        Fit of the network with these layers, under constant noise, to the training rows.
    """
    held, growth, seeds = HeldOut.of(problem), (), seeds_of(entropy, "some", N_SCOUTS)
    if hidden_layer_sizes == "auto":
        growth, tried = grown_with_many_rows(held, seeds, workers)
        hidden_layer_sizes = best_of(growth, OF_MANY_ROWS.least_gain).hidden_layer_sizes
        minima = tried[hidden_layer_sizes]
    else:
        minima = find_minima(*held.kept.posed(hidden_layer_sizes), seeds, workers=workers)
    fit = EvidenceFit(held.kept, held.kept.posed(hidden_layer_sizes), minima)
    if noise != "auto":
        return hidden_layer_sizes, noise, growth, {}, fit
    p_values, densities = p_values_of(fit), {"constant": held.log_density(minima[:1])}
    names, first = suspected(problem, p_values), replace(fit, minima=minima[:1])
    with workers.progress.over("noise models", np.ones(len(names))) as step:
        for name in while_there_is_time(names, problem):
            densities[name] = held.log_density(under_noise(name, first, None, workers)[1])
            step(
                f"{name} noise: log density of rows held out {densities[name]:.4f} per row "
                f"(constant noise {densities['constant']:.4f})"
            )
    densities["constant"] += OF_MANY_ROWS.least_gain  # the simpler one where they agree
    noise = max(densities, key=densities.get)
    return hidden_layer_sizes, noise, growth, {"noise_p_values": p_values}, fit


def _unrepeated(minima, others, settings):
    """Pairs of posterior and minimum of other networks, without repeated minima."""
    kept = []
    for posterior, minimum in others:
        if not is_repeated(minimum, [*minima, *(m for _, m in kept)], posterior, settings):
            kept.append((posterior, minimum))
    return kept
