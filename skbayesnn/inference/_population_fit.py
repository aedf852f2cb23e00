"""Fits of small data by networks drawn from the posterior, without a search for minima.

Under sampling the evidence hardly depends on the number of hidden units, and predictions do not
deteriorate with more of them (Neal 1996, section 1.2.4). The size is therefore not selected: one
network of a generous size and the linear model, each under the noise models that the residuals
support, are sampled, and their predictions are averaged.

Up to 42 rows are first fitted by a wide network, unless Gaussian processes show that eleven or
more rows, hardly repeated, have noise (`log_ratio_of_noise`). Its hidden weights are drawn from
their prior, so that one population suffices (`sample_wide`). Where it leaves hardly any noise, it
and the linear model are also fitted without noise, and no other models are tried
(`_trials_of_exact_rows`). Up to ten rows hardly show their noise, so that all these models are
averaged (`_trials_of_few_rows`). If hardly any noise is given, only the wide network and the linear
model are tried.
"""

from dataclasses import dataclass

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference._growth import Candidate
from skbayesnn.inference._trials import CLOSE, LITTLE_NOISE, seconds_of_population, trial_of
from skbayesnn.inference.minima._search import ALONE
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._residual_tests import TESTS, suspected
from skbayesnn.inference.sampling._wide import is_wide, log_ratio_of_noise
from skbayesnn.inference.task._problem import Fit

# nats below trained networks of this noise model at which populations are rejected
MISSED = 20.0
# the same below Laplace's approximation with many targets per weight, where that is accurate
MISSED_BY_LAPLACE = 3.0
MIN_ROWS = 2.0  # least sum of the weights for drawn networks
FEW_ROWS = 10  # number of rows up to which exact targets may look like noisy ones
REPEATED = 2.0  # mean weight of rows above which equal targets show no noise
WIDE = (128,)  # hidden layer that is sampled as well on few rows
# hidden layers that are sampled, for regression (True) and for classes. Evidences and predictions
# hardly depend on the size, see the docstring of the module
GENEROUS = {True: (16,), False: (8,)}


@dataclass(frozen=True, kw_only=True)
class DrawnFit(Fit):
    """Networks drawn from the posteriors of one or several models."""

    drawn: tuple  # `Drawn` of every model, most probable first
    # of independent chains: Monte Carlo error of their predictive means, see `monte_carlo_error`
    error: float = np.nan

    @property
    def log_evidence(self):
        """Highest log evidence of a model, in the user's units; ``nan`` if it was not measured."""
        return self.drawn[0].log_evidence + self.problem.log_scale

    @property
    def log_evidence_std(self):
        """Standard error of the log evidence."""
        return self.drawn[0].log_evidence_std

    @property
    def typical_prior(self):
        """Prior at precisions of the most probable model, see `draw_prior`."""
        best = self.drawn[0]
        own = best.joint.posterior  # groups of a noise network come after its own
        return own.network, own.groups, best.alpha


def sampled_sizes(problem, hidden_layer_sizes, noise, wanted="auto"):
    """Hidden layer sizes of the network whose posterior is sampled; ``None`` for no sampling.

    ``wanted`` may be ``True``, regardless of the time that sampling takes, ``False`` or ``"auto"``.
    """
    possible = noise == "auto" or NOISE_MODELS[noise].sampled
    # with hardly a row the posterior is nearly the prior, whose precisions span six decades: means
    # of draws from it are far off
    if not wanted or not possible or problem.sample_weight.sum() < MIN_ROWS:
        return None
    if hidden_layer_sizes == "auto":
        # the user has not asked for this size, so that it is sampled only where it is affordable
        hidden_layer_sizes, wanted = GENEROUS[problem.likelihood.n_levels > 0], "auto"
    posterior, limits = problem.posed(hidden_layer_sizes).posterior, problem.limits
    if posterior.is_quadratic and noise in ("auto", "constant", "shared"):
        return None  # Laplace's approximation is exact
    # it is also accurate with many targets per weight, where less time is spent
    few_targets = limits.few_targets(posterior)
    seconds = limits.sampled_seconds if few_targets else limits.checked_seconds
    affordable = wanted is True or seconds_of_population(posterior, limits) <= seconds
    return hidden_layer_sizes if affordable and posterior.groups.centred else None


def fit_by_population(problem, hidden_layer_sizes, noise, sizes, entropy, workers=ALONE):
    """Draw networks of a given size from their posteriors under several noise models.

    The linear model is included if the size or the noise is chosen automatically. Noise models
    other than constant noise are included if tests of the residuals reject constant noise in their
    favour; a test for each network is needed, as a large one may fit outliers that the linear model
    shows.

    ``hidden_layer_sizes`` are those that the user asked for or ``"auto"``, ``sizes`` those of the
    network, and ``entropy`` is that of the seeds of all random numbers. Returns a `DrawnFit`, or
    ``None`` if there was no time, or if populations miss what training finds.
    """
    auto_size, auto_noise = hidden_layer_sizes == "auto", noise == "auto"
    linear = [()] if auto_size or (auto_noise and problem.suits(())) else []
    tried = list(dict.fromkeys([sizes, *linear]))  # ``sizes`` may be those of the linear model
    posterior = problem.posed(sizes).posterior
    seconds = seconds_of_population(posterior, problem.limits)
    with (
        workers.progress.stage("networks drawn from the posterior", seconds=seconds) as step,
        blas_threads(posterior.network.n_weights),
    ):
        seed = np.random.SeedSequence([entropy, 1])
        progress = workers.progress
        found = _draw_models(problem, tried, auto_size, noise, seed, progress, seconds)
        if found is None:
            return None
        drawn, tests = found
        totals, growth = {}, []
        for model in drawn:
            name, network = model.name(problem), model.posed.posterior.network
            log_evidence = model.log_evidence + problem.log_scale
            step(f"{name}: log evidence {log_evidence:.2f} +- {model.log_evidence_std:.2f}")
            totals.setdefault(model.noise, log_evidence)  # the most probable size comes first
            hidden, n_weights = network.hidden_layer_sizes, network.n_weights
            growth.append(Candidate(hidden, n_weights, log_evidence=log_evidence))
    tested = tests if auto_noise or NOISE_MODELS[noise].plain else {}
    return DrawnFit(
        problem=problem,
        posed=drawn[0].posed,
        noise=drawn[0].noise,
        drawn=tuple(drawn),
        growth=tuple(growth) if auto_size else (),
        noise_p_values=tested,
        noise_log_evidences=totals if auto_noise else {},
    )


def _draw_models(problem, tried, auto_size, noise, seed, progress, seconds):
    """Draw networks under all noise models; ``None`` as in `fit_by_population`.

    ``tried`` are the hidden layers of the network, then of the linear model, which takes part in
    predictions if the size is chosen automatically, and otherwise shows residuals only. Returns a
    list of `Drawn`, most probable first, and P values of the residuals of the network.
    """
    auto_noise = noise == "auto"
    # enough seeds for every size under every noise model, and for the models of few rows
    seeds = iter(seed.spawn(len(tried) * (3 + len(NOISE_MODELS))))
    first = "constant" if auto_noise else noise
    wide = _wide_trial(problem, seed) if auto_size and first == "constant" else None
    if wide is not None:
        if not wide.run_pilot():
            return None
        if problem.noise_is_given or (
            wide.shows_no_noise and not _has_few_rows(problem) and wide.predicts_left_out_rows
        ):
            drawn = _draw_all(_trials_of_exact_rows(wide, seed))
            return drawn and (drawn, {})
    trials = [trial_of(problem, first, sizes, next(seeds)) for sizes in tried]
    if not all(trial.run_pilot() for trial in trials):
        return None
    network, tests = trials[0], [trial.p_values() for trial in trials]
    others = []
    if auto_noise:  # the lowest p value of any network counts
        lowest = {name: min(values.get(name, 1.0) for values in tests) for name in TESTS}
        others = suspected(problem, lowest)
    sampled = tried if auto_size else tried[:1]
    further = [trial_of(problem, name, sizes, next(seeds)) for name in others for sizes in sampled]
    left = seconds * (1 + 4 * len(others)) / 6.0  # a sixth has been spent on constant noise
    with progress.stage("noise models", seconds=left):
        trials = trials[: len(sampled)] + [trial for trial in further if trial.run_pilot()]
        if first == "constant":
            others = _trials_of_few_rows(problem, sampled, wide, seeds)
            trials += [trial for trial in others if trial.competes_with(trials)]
        drawn = _draw_all(trials)
    if drawn is None:
        return None
    # trained networks have the size and the noise of the first trial, with which they are compared
    comparable = [trial for trial in trials if trial is network or not trial.by_stacking]
    found = max(trial.particles.log_evidence for trial in comparable)
    # other noise models miss the mode, too, even at a higher evidence
    return None if _is_missed(network, found) else (drawn, tests[0])


def _is_missed(network, found):
    """Return True if populations miss a mode, such as a function of many periods.

    The highest log evidence of trained networks is then far above ``found``, that of drawn ones of
    the same size and noise model, and of models for few rows. Laplace's approximation at the
    minimum is accurate to a few nats with many targets per weight.
    """
    missed, posterior = network.highest_by_training - found, network.posed.posterior
    if missed < 0.0 or network.problem.limits.few_targets(posterior):
        return missed > MISSED
    return network.log_evidence_by_laplace > found + MISSED_BY_LAPLACE


def _has_few_rows(problem):
    """Return True if exact rows may look like noisy ones."""
    return problem.sample_weight.sum() <= FEW_ROWS


def _wide_trial(problem, seed):
    """Make the trial of a wide network; ``None`` if it does not apply."""
    posterior = problem.posed(WIDE).posterior
    if not is_wide(posterior, problem.limits):
        return None
    if problem.noise_is_given:  # wide only where hardly any is given
        if problem.known is not None or problem.noise_precision is None:
            return None
        free, precision = problem.noise_precision
        if np.any(free) or np.any(precision <= LITTLE_NOISE**-2.0):
            return None
    elif (
        not _has_few_rows(problem)
        and problem.sample_weight.mean() < REPEATED
        and log_ratio_of_noise(posterior.X, posterior.y) > CLOSE
    ):
        return None
    return trial_of(problem, "constant", WIDE, seed.spawn(1)[0], by_stacking=False)


def _trials_of_exact_rows(wide, seed):
    """Make trials of a wide and a linear network, each also without noise if it shows hardly any.

    Few rows without noise do not distinguish noise models, and networks of few units move slowly
    on the narrow ridges of their posterior.
    """
    problem = wide.problem
    linear, trials = trial_of(problem, "constant", (), seed.spawn(1)[0], by_stacking=False), [wide]
    trials += [linear] if linear.run_pilot() else []
    if problem.noise_is_given:
        return trials
    sizes = [trial.posed.hidden_layer_sizes for trial in trials if trial.shows_no_noise]
    seeds = iter(seed.spawn(len(sizes)))
    return trials + [
        trial for trial in _trials_without_noise(problem, sizes, seeds) if trial.run_pilot()
    ]


def _trials_without_noise(problem, sizes, seeds):
    """Make trials of networks without noise, which have no weight by stacking."""
    return [
        trial_of(problem, "constant", hidden, next(seeds), by_stacking=False, without_noise=True)
        for hidden in sizes
    ]


def _trials_of_few_rows(problem, sampled, wide, seeds):
    """List trials of further models for few rows, which have no weight by stacking.

    Populations with a free noise level miss small networks that interpolate few targets. Models
    without noise are therefore tried as well, and a ``wide`` network if there is one, whose
    populations do not miss such functions. ``sampled`` are the sizes of all networks.
    """
    if not _has_few_rows(problem) or not problem.likelihood.n_levels or problem.noise_is_given:
        return []
    if wide is None:
        return _trials_without_noise(problem, sampled, seeds)
    return [wide, *_trials_without_noise(problem, [WIDE, *sampled[1:]], seeds)]


def _draw_all(trials):
    """Draw networks of all models for which there is time.

    Returns a list of `Drawn`, most probable first; ``None`` if there was no time for the first one.
    """
    first, trials = trials[0], [trial for trial in trials if trial.sample()]
    if first not in trials:
        return None
    drawn = [trial.drawn() for trial in trials]
    return sorted(drawn, key=lambda model: -model.log_odds)
