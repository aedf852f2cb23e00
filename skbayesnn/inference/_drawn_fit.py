"""Fits of small data by networks drawn from the posterior, without a search for minima.

Under sampling the evidence hardly depends on the number of hidden units, and predictions do not
deteriorate with more of them (Neal 1996, section 1.2.4). The size is therefore not selected: one
network of a generous size and the linear model, each under the noise models that the residuals
support, are sampled, and their predictions are averaged.

Order of calls::

    sampled_sizes       the network that is sampled, if the time suffices
    fit_by_drawing      pilot populations under constant noise, tests of their residuals, pilot
                        populations under the noise models that these suggest
        Trial.scout     two pilot populations, one of them near briefly trained networks
        Trial.sample    a larger population
        Trial.sample_near_trained
                        another one if trained networks show that a narrow mode was missed
        Trial.refine    more particles for an inaccurate highest evidence

Up to 42 rows are first fitted by a wide network, unless Gaussian processes show that eleven or
more rows have noise (`log_ratio_of_noise`). Its hidden weights are drawn from their prior, so
that one population suffices (`sample_wide`). Where it leaves hardly any noise, it and the linear
model are also fitted without noise, and no other models are tried (`_of_exact_rows`). Up to ten
rows hardly show their noise, so that all these models are averaged (`Trial.beside`). If hardly any
noise is given, the wide network and the linear model are the only ones, whatever the rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference.choice._growth import Candidate
from skbayesnn.inference.choice._noise_choice import p_values, suspected
from skbayesnn.inference.minima._search import ALONE
from skbayesnn.inference.minima._training import trained_starts
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.sampling._population import sample_after, sample_population, scout
from skbayesnn.inference.sampling._wide import is_wide, log_ratio_of_noise, sample_wide
from skbayesnn.inference.task._problem import Fit, Posed
from skbayesnn.network import outputs
from skbayesnn.posterior import JointPosterior

MOST_NETWORKS = 512  # most networks kept of a model
MOST_AVERAGED = 128  # the same if output layers are averaged over in closed form
CLOSE = 3.0  # nats behind others, prior odds included, at which a further model is sampled
PRECISE = 0.4  # standard error of an evidence that needs no more particles
N_TRAINED = 16  # trained starts
DOUBTFUL = 10.0  # nats below trained networks at which a narrow density is tried after all
MISSED = 20.0  # nats below trained networks of this noise model at which populations are rejected
LEAST_MORE, MOST_MORE = 2.0, 8.0  # factors of the number of particles for an inaccurate evidence
SECONDS_OF_MORE = 3.0  # predicted seconds that determine the factor
EXACT_ROWS = 10  # most rows that hardly show whether they have noise
LITTLE_NOISE = 0.02  # largest sd of noise, in that of the targets, that may be none
MOSTLY_EXPLAINED = 0.5  # left-out mean square error, in variances of targets, without noise
ODDS = 2.0  # prior log odds of wide networks, and of targets without noise
WIDE = (128,)  # hidden layer that is sampled as well on few rows
GENEROUS = {True: (16,), False: (8,)}  # hidden layers that are sampled: regression, classes
SECONDS_OF_REGRESSION = 2.5e-4  # per row, weight and output, for about two noise models
SECONDS_OF_CLASSES = 8e-5  # per row and weight
SECONDS_IN_NUMPY = 3e-3  # per row and weight, for likelihoods that the compiled core lacks
SECONDS_OF_WIDE = 1e-5  # per row, hidden unit, and row or input
FEW_ROWS = 50  # number of rows whose time equals the overhead independent of the rows


class Drawn(NamedTuple):
    """Posterior draws of the networks of a model, of equal weight."""

    noise: str  # one of `NOISE_MODELS`
    posed: Posed
    joint: JointPosterior
    log_evidence: float  # estimate and its standard error, in nats, for standardised targets
    log_evidence_std: float
    position: np.ndarray  # where chains may start, (m, d + n_conditions)
    theta: np.ndarray  # weights (m, k)
    alpha: np.ndarray  # precisions of the weights, (m, n_groups)
    beta: np.ndarray  # noise precisions (m, n_levels)
    state: np.ndarray  # noise states (m, ...), see `JointPosterior.noise_state`
    narrow: bool  # see `Particles`
    stacked: bool  # False for a model that has its posterior probability in predictions
    averaged: bool  # True if predictions average over the output layers in closed form

    @property
    def log_odds(self):
        """Log evidence plus the prior log odds of the model."""
        return self.log_evidence + ODDS * (not self.stacked)

    @property
    def hidden_layer_sizes(self):
        """Hidden layers of the network."""
        return self.posed.posterior.network.hidden_layer_sizes

    def name(self, problem):
        """Hidden layers and noise model, for messages."""
        name, noise = f"hidden layers {self.hidden_layer_sizes}", self.noise
        if noise != "constant" or problem.noise_is_given:
            return f"{name}, {noise} noise"
        if not problem.likelihood.n_levels:  # classes
            return name
        return f"{name}, {noise if np.any(self.posed.settings.free.beta) else 'no'} noise"


@dataclass(frozen=True, kw_only=True)
class DrawnFit(Fit):
    """Networks drawn from the posteriors of one or several models."""

    drawn: tuple  # `Drawn` of every model, most probable first

    @property
    def log_evidence(self):
        """Highest log evidence of a model, in the user's units."""
        return self.drawn[0].log_evidence + self.problem.log_scale

    @property
    def log_evidence_std(self):
        """Standard error of the log evidence."""
        return self.drawn[0].log_evidence_std

    @property
    def typical_prior(self):
        """Prior at precisions of the most probable model, see `Fit`."""
        best = self.drawn[0]
        own = best.joint.posterior  # groups of a noise network come after its own
        return own.network, own.groups, best.alpha


def seconds_of_population(posterior, limits):
    """Processor seconds for drawing networks, accurate to a factor of three.

    Measured on sets of 50 to 700 rows, see tests/benchmarks/small_sets.py.
    """
    n, levels = len(posterior.X), posterior.likelihood.n_levels
    if is_wide(posterior, limits):
        hidden = posterior.network.hidden_layer_sizes[0]
        return SECONDS_OF_WIDE * n * hidden * (n + posterior.X.shape[1] + FEW_ROWS)
    per_weight = SECONDS_OF_REGRESSION * levels if levels else SECONDS_OF_CLASSES
    if posterior.likelihood.compiled is None and not posterior.likelihood.quadratic:
        per_weight = SECONDS_IN_NUMPY
    return per_weight * (len(posterior.X) + FEW_ROWS) * posterior.network.n_weights


def is_affordable(posterior, limits):
    """Return True if drawing networks is within the time limit.

    With many targets per weight Laplace's approximation is accurate, so that the limit is lower.
    """
    n_targets = posterior.n_rows * max(1, posterior.likelihood.n_levels)
    few = n_targets < limits.few_targets_per_weight * posterior.network.n_weights
    most = limits.sampled_seconds if few else limits.checked_seconds
    return posterior.groups.centred and seconds_of_population(posterior, limits) <= most


def sampled_sizes(problem, hidden_layer_sizes, noise, wanted="auto"):
    """Hidden layer sizes of the network whose posterior is sampled; ``None`` for no sampling.

    ``wanted`` may be ``True``, regardless of the time that sampling takes, ``False`` or ``"auto"``.
    """
    possible = noise == "auto" or NOISE_MODELS[noise].sampled
    if not wanted or not possible or problem.sample_weight.sum() < 1.0:
        return None  # means of draws from a prior of six decades are far off
    if hidden_layer_sizes == "auto":
        hidden_layer_sizes, wanted = GENEROUS[problem.likelihood.n_levels > 0], "auto"
    posterior = problem.posed(hidden_layer_sizes).posterior
    if posterior.is_quadratic and noise in ("auto", "constant", "shared"):
        return None  # Laplace's approximation is exact
    if is_affordable(posterior, problem.limits) or (wanted is True and posterior.groups.centred):
        return hidden_layer_sizes
    return None


def fit_by_drawing(problem, hidden_layer_sizes, sizes, entropy, noise="constant", workers=ALONE):
    """Draw networks of a given size from their posteriors under several noise models.

    The linear model is included if the size or the noise is chosen automatically. Noise models
    other than constant noise are included if tests of the residuals reject constant noise in their
    favour; a test for each network is needed, as a large one may fit outliers that the linear model
    shows.

    ``hidden_layer_sizes`` are those that the user asked for or ``"auto"``, ``sizes`` those of the
    network, and ``entropy`` is that of the seeds of all random numbers. Returned is a `DrawnFit`,
    or ``None`` if there was no time, or if populations miss what training finds.
    """
    chosen, free = hidden_layer_sizes == "auto", noise == "auto"
    linear = [()] if chosen or (free and problem.suits(())) else []
    tried = list(dict.fromkeys([sizes, *linear]))  # the linear model once
    posterior = problem.posed(sizes).posterior
    seconds = seconds_of_population(posterior, problem.limits)
    with (
        workers.progress.over("networks drawn from the posterior", seconds=seconds) as step,
        blas_threads(posterior.network.n_weights),
    ):
        found = _drawn(problem, tried, chosen, noise, np.random.SeedSequence([entropy, 1]))
        if found is None:
            return None
        drawn, tests, missed = found
        if missed > MISSED:
            return None  # other noise models miss the mode, too, even at a higher evidence
        totals, growth = {}, []
        for some in drawn:
            hidden, log_evidence = some.hidden_layer_sizes, some.log_evidence + problem.log_scale
            name = some.name(problem)
            step(f"{name}: log evidence {log_evidence:.2f} +- {some.log_evidence_std:.2f}")
            totals.setdefault(some.noise, log_evidence)  # of the most probable
            n_weights = some.posed.posterior.network.n_weights
            growth.append(Candidate(hidden, n_weights, log_evidence=log_evidence))
    tested = tests if free or NOISE_MODELS[noise].plain else {}
    return DrawnFit(
        problem=problem,
        posed=drawn[0].posed,
        noise=drawn[0].noise,
        drawn=tuple(drawn),
        growth=tuple(growth) if chosen else (),
        noise_p_values=tested,
        noise_log_evidences=totals if free else {},
    )


def _drawn(problem, tried, chosen, noise, seed):
    """Draw networks under all noise models; ``None`` if there was no time.

    ``tried`` are the hidden layers of the network, then of the linear model, which without
    ``chosen`` shows residuals only. Returned are a list of `Drawn`, most probable first; P values
    of the residuals of the network; and by how much the highest log evidence of trained networks,
    by Laplace's approximation, exceeds that of drawn ones of the same size and noise model, and of
    models for few rows. It does so by far if populations have missed a narrow mode, such as a
    function of many periods.
    """
    free = noise == "auto"
    seeds = iter(seed.spawn(len(tried) * (3 + len(NOISE_MODELS))))
    first = "constant" if free else noise
    wide = _wide(problem, seed) if chosen and first == "constant" else None
    if wide is not None:
        if not wide.scout():
            return None
        if problem.noise_is_given or (
            wide.shows_no_noise and not _has_few_rows(problem) and wide.predicts_left_out_rows
        ):
            return _sampled(_of_exact_rows(wide, seed)), {}, -np.inf
    trials = [trial_of(problem, first, sizes, next(seeds)) for sizes in tried]
    if not all(trial.scout() for trial in trials):
        return None
    network, tests = trials[0], [trial.p_values() for trial in trials]
    others = []
    if free:  # the lowest p value of any network counts
        lowest = {name: min(values[name] for values in tests) for name in tests[0]}
        others = suspected(problem, lowest)
    sampled = tried if chosen else tried[:1]
    further = [Trial(problem, law, sizes, next(seeds)) for law in others for sizes in sampled]
    trials = trials[: len(sampled)] + [trial for trial in further if trial.scout()]
    if first == "constant":
        more = network.beside(sampled, wide, seeds)
        trials += [trial for trial in more if trial.is_plausible_beside(trials)]
    drawn = _sampled(trials)
    alike = [trial for trial in trials if trial is network or not trial.stacked]
    found = _best(alike).particles.log_evidence
    return drawn, tests[0], network.highest_by_training - found


def _has_few_rows(problem):
    """Return True if exact rows may look like noisy ones."""
    return problem.sample_weight.sum() <= EXACT_ROWS


def _is_nearly_exact(problem):
    """Return True if the noise is given and hardly any."""
    if problem.known is not None or problem.noise_precision is None:
        return False
    free, precision = problem.noise_precision
    return not np.any(free) and bool(np.all(precision > LITTLE_NOISE**-2.0))


def _wide(problem, seed):
    """Make the trial of a wide network; ``None`` if it does not apply."""
    posterior = problem.posed(WIDE).posterior
    if not is_wide(posterior, problem.limits):
        return None
    if problem.noise_is_given:
        if not _is_nearly_exact(problem):
            return None
    elif not _has_few_rows(problem) and log_ratio_of_noise(posterior.X, posterior.y) > CLOSE:
        return None
    return trial_of(problem, "constant", WIDE, seed.spawn(1)[0], stacked=False)


def _of_exact_rows(wide, seed):
    """Make trials of a wide and a linear network, also without noise where hardly any is left.

    Few rows without noise do not distinguish noise models, and networks of few units move slowly
     on the narrow ridges of their posterior.
    """
    linear, trials = trial_of(wide.problem, "constant", (), seed.spawn(1)[0], stacked=False), [wide]
    trials += [linear] if linear.scout() else []
    if wide.problem.noise_is_given:
        return trials
    exact = [trial.without_noise(seed.spawn(1)[0]) for trial in trials if trial.shows_no_noise]
    return trials + [trial for trial in exact if trial.scout()]


def _sampled(trials):
    """Draw from all models; most probable first."""
    for trial in trials:
        trial.sample()
    if _best(trials).stacked:  # the others interpolate exact rows, on which small networks are slow
        for trial in trials:
            trial.sample_near_trained()
        _best(trials).refine()
    drawn = [trial.drawn() for trial in trials]
    return sorted(drawn, key=lambda some: -some.log_odds)


def _best(trials):
    """Find the trial of the highest evidence."""
    return max(trials, key=lambda trial: trial.particles.log_evidence)


class Trial:
    """Sampling of one model in stages: ``particles`` are the last population that was drawn."""

    wide = False  # True for `WideTrial`

    def __init__(self, problem, noise, hidden_layer_sizes, seed, stacked=True, exact=False):
        self.problem, self.noise, self.particles, self.stacked = problem, noise, None, stacked
        self.hidden_layer_sizes = hidden_layer_sizes
        posterior, settings = NOISE_MODELS[noise].pose(problem.posed(hidden_layer_sizes))
        if exact:
            settings = settings.without_noise()
        self.posed = Posed(posterior, settings)
        self.seed, self.rng = seed, np.random.default_rng(seed)

    @cached_property
    def _trained(self):
        """Briefly trained networks, and their log evidences by Laplace's approximation."""
        rngs = [np.random.default_rng(seed) for seed in self.seed.spawn(N_TRAINED)]
        return trained_starts(*self.posed, rngs)

    @property
    def highest_by_training(self):
        """Highest log evidence of trained networks, by Laplace's approximation."""
        return np.max(self._trained[1])

    def scout(self):
        """Locate the precisions of the posterior by small populations; False if time ran out."""
        model = NOISE_MODELS[self.noise]
        joint = model.joint(self.problem, self.posed, tuned=True)
        found = scout(joint, self.rng, self.problem.deadline, self._of_best_trained(joint))
        if found is not None:
            last = found.position[:, -1]
            known = model.information(self.problem, self.posed, joint, last)
            self.particles = found.informed(np.median(known, axis=0))
        return found is not None

    def _of_best_trained(self, joint):
        """Coordinates ``(n_free,)`` of the precisions of the best trained network.

        ``nan`` for precisions of the weights of a noise network.
        """
        starts, values = self._trained
        if not np.any(np.isfinite(values)):
            return None
        best = starts[np.argmax(values)].hyper
        alpha = np.full(len(joint.fixed.alpha), np.nan)  # groups of a noise network are last
        alpha[: best.alpha.size] = best.alpha
        return joint.coordinates(alpha, best.beta)

    @property
    def shows_no_noise(self):
        """True if the noise is most likely a small part of the spread of all targets."""
        beta = self.particles.joint.place(self._last_positions).hyper.beta
        return bool(np.all(np.median(beta, axis=0) > LITTLE_NOISE**-2.0))

    @property
    def predicts_left_out_rows(self):
        """True if most of the variance of left-out targets is explained.

        Networks can interpolate random targets as well, if many of them are equal.
        """
        posterior = self.posed.posterior
        mean, _ = self.particles.joint.left_out_outputs(self._last_positions)
        errors = (np.median(mean, axis=0) - posterior.y) ** 2
        mse = np.average(errors, axis=0, weights=posterior.sample_weight)
        return bool(np.all(mse < MOSTLY_EXPLAINED))

    @property
    def _last_positions(self):
        """Last positions of all chains of the population."""
        return self.particles.position[:, -1]

    def without_noise(self, seed):
        """Make the trial of the same network without noise."""
        sizes = self.hidden_layer_sizes
        return trial_of(self.problem, self.noise, sizes, seed, self.stacked, exact=True)

    def beside(self, sampled, wide, seeds):
        """List trials of models for few rows, which have no weight by stacking.

        Populations with a free noise level miss small networks that interpolate few targets. Models
        without noise are therefore tried as well, and a ``wide`` network if there is one, whose
        populations do not miss such functions. ``sampled`` are the sizes of all networks.
        """
        problem, levels = self.problem, self.posed.posterior.likelihood.n_levels
        if not _has_few_rows(problem) or levels == 0 or problem.noise_is_given:
            return []
        if wide is not None:
            sampled = [WIDE, *sampled[1:]]
        exact = [
            trial_of(problem, "constant", sizes, next(seeds), stacked=False, exact=True)
            for sizes in sampled
        ]
        return exact if wide is None else [wide, *exact]

    def is_plausible_beside(self, others):
        """Locate the precisions of a further model; False if others are more probable."""
        if self.particles is None and not self.scout():
            return False
        best = max(trial.particles.log_evidence for trial in others)
        return self.particles.log_evidence > best - CLOSE - ODDS

    def p_values(self):
        """P values of tests of constant noise against other noise models."""
        posterior, particles = self.posed.posterior, self.particles
        if not posterior.likelihood.quadratic or self.problem.noise_is_given:
            return {}
        position = particles.chosen(MOST_NETWORKS, self.rng)
        theta = particles.joint.complete_weights(position, [self.rng] * len(position))
        f = outputs(posterior.network, theta, posterior.X)
        beta = posterior.likelihood.precisions(particles.joint.place(position).hyper.beta)
        beta = np.exp(np.mean(np.log(beta), axis=0))
        return p_values(posterior, f.mean(axis=0) - posterior.y, 1.0 - beta * f.var(axis=0), beta)

    def sample(self, more=1):
        """Draw a larger population near the precisions of the last one, if there is time."""
        found = sample_after(self.particles, self.rng, self.problem.deadline, more)
        self.particles = found or self.particles

    def sample_near_trained(self):
        """Draw another population if training finds more; keep the one that finds more."""
        found, joint = self.particles, self.particles.joint
        if found.narrow or self.highest_by_training < found.log_evidence + DOUBTFUL:
            return
        near, last = self._of_best_trained(joint), joint.coordinates_in(found.position[:, -1])
        eta = np.where(np.isnan(near), last.mean(axis=0), near)[None]
        other = sample_population(joint, eta, self.rng, self.problem.deadline, narrow=True)
        if other is not None and other.log_evidence > found.log_evidence:
            self.particles = other

    def refine(self):
        """Draw a population of more particles if the evidence is inaccurate and they are cheap."""
        factor = SECONDS_OF_MORE / seconds_of_population(self.posed.posterior, self.problem.limits)
        if factor >= LEAST_MORE and self.particles.log_evidence_std > PRECISE:
            self.sample(int(min(factor, MOST_MORE)))

    def drawn(self):
        """Collect drawn networks."""
        found, joint = self.particles, self.particles.joint
        averaged = self.wide or not self.stacked  # there may be hardly any noise
        position = found.chosen(MOST_AVERAGED if averaged else MOST_NETWORKS, self.rng)
        hyper = joint.typical_hyper(position)
        return Drawn(
            self.noise,
            self.posed,
            joint,
            found.log_evidence,
            found.log_evidence_std,
            position=position,
            theta=joint.complete_weights(position, [self.rng] * len(position)),
            alpha=hyper.alpha,
            beta=hyper.beta,
            state=joint.noise_state(position),
            narrow=found.narrow,
            stacked=self.stacked,
            averaged=averaged,
        )


class WideTrial(Trial):
    """Sampling of one wide layer under constant noise by a single population, see `sample_wide`."""

    highest_by_training = -np.inf  # training would find single functions of a near Gaussian process
    wide = True

    def scout(self):
        """Draw the population; False if time ran out."""
        joint = NOISE_MODELS[self.noise].joint(self.problem, self.posed, tuned=True)
        self.particles = sample_wide(joint, self.rng, self.problem.deadline)
        return self.particles is not None

    def p_values(self):
        """No tests: networks that nearly interpolate their rows do not show other noise."""
        return {}

    def sample(self, more=1):
        """Keep the population."""

    def sample_near_trained(self):
        """Keep the population."""


def trial_of(problem, noise, hidden_layer_sizes, seed, stacked=True, exact=False):
    """Make the `Trial` of a model."""
    wide = noise == "constant" and is_wide(
        problem.posed(hidden_layer_sizes).posterior, problem.limits
    )
    kind = WideTrial if wide else Trial
    return kind(problem, noise, hidden_layer_sizes, seed, stacked, exact)
