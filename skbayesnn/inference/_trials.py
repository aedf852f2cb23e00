"""Sampling of one model in stages: pilot populations, a larger one, and more where that helps."""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.minima._minimum import total_log_evidence
from skbayesnn.inference.minima._search import minima_from
from skbayesnn.inference.minima._training import BRIEF, briefly_trained, random_starts
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._noise_search import DECISIVE
from skbayesnn.inference.noise._residual_tests import p_values
from skbayesnn.inference.sampling._population import pilot_population, sample_population
from skbayesnn.inference.sampling._wide import is_wide, sample_wide
from skbayesnn.inference.task._problem import Posed
from skbayesnn.network import outputs
from skbayesnn.posterior import JointPosterior

MAX_NETWORKS = 512  # most networks kept of a model
MAX_AVERAGED = 128  # the same if output layers are averaged over in closed form
N_TRAINED = 16  # networks that are trained for some steps
FIRST_STEPS, N_BEST = 15, 4  # these steps, and the best networks, which are trained further
MOSTLY_EXPLAINED = 0.5  # left-out mean square error, in variances of targets, without noise
# prior log odds of wide networks, and of targets without noise; one nat more gains on exact rows
# what it loses on noisy ones (doc/contributing/ablation.md)
ODDS = 2.0
SECONDS_OF_REGRESSION = 2.5e-4  # per row, weight and output, for about two noise models
SECONDS_OF_CLASSES = 8e-5  # per row and weight
SECONDS_IN_NUMPY = 3e-3  # per row and weight, for likelihoods that the compiled core lacks
SECONDS_OF_CHAINS = 1e-8  # per transition, row and weight, a population included
FEW_WEIGHTS = 250  # weights whose transitions take as long as hidden units, whatever the inputs
SECONDS_OF_WIDE = 1e-5  # per row, hidden unit, and row or input
# growth of the number of stages with the log10 of the mean weight of the rows: repeated targets
# make the posterior narrower. 60 rows of weight 1, 10, 100, 1,000, 10,000 took up to 27, 63, 71,
# 129, 199 stages
STAGES_OF_REPETITIONS = 1.25
OVERHEAD_ROWS = 50  # number of rows that take as long as the overhead of a population
CLOSE = 3.0  # nats behind others, prior odds included, at which a further model is sampled
LITTLE_NOISE = 0.02  # largest sd of noise, in that of the targets, that may be none


class Drawn(NamedTuple):
    """Posterior draws of the networks of a model, of equal weight."""

    noise: str  # one of `NOISE_MODELS`
    posed: Posed
    joint: JointPosterior
    log_evidence: float  # estimate and its standard error, in nats, for standardised targets
    log_evidence_std: float
    starts: np.ndarray  # of chains, in the order of populations, (n_chains, d + n_conditions)
    position: np.ndarray  # of the networks, (m, d + n_conditions)
    theta: np.ndarray  # weights (m, k)
    alpha: np.ndarray  # precisions of the weights, (m, n_groups)
    beta: np.ndarray  # noise precisions (m, n_levels)
    state: np.ndarray  # noise states (m, ...), see `JointPosterior.noise_state`
    # whether stacking determines its weight in predictions; else its posterior probability does
    by_stacking: bool
    averaged: bool  # True if predictions average over the output layers in closed form

    @property
    def log_odds(self):
        """Log evidence plus the prior log odds of the model."""
        return self.log_evidence + ODDS * (not self.by_stacking)

    def name(self, problem):
        """Hidden layers and noise model, for messages."""
        name, noise = f"hidden layers {self.posed.hidden_layer_sizes}", self.noise
        if noise != "constant" or problem.noise_is_given:
            return f"{name}, {noise} noise"
        if not problem.likelihood.n_levels:  # classes
            return name
        return f"{name}, {noise if np.any(self.posed.settings.free.beta) else 'no'} noise"


def seconds_of_population(posterior, limits):
    """Processor seconds for drawing networks, accurate to a factor of three.

    Measured on sets of 50 to 700 rows.
    """
    n, levels = len(posterior.X), posterior.likelihood.n_levels
    if is_wide(posterior, limits):
        hidden = posterior.network.hidden_layer_sizes[0]
        return SECONDS_OF_WIDE * n * hidden * (n + posterior.X.shape[1] + OVERHEAD_ROWS)
    per_weight = SECONDS_OF_REGRESSION * levels if levels else SECONDS_OF_CLASSES
    if posterior.likelihood.compiled is None and not posterior.likelihood.quadratic:
        per_weight = SECONDS_IN_NUMPY
    per_weight *= 1.0 + STAGES_OF_REPETITIONS * max(np.log10(posterior.n_rows / n), 0.0)
    return per_weight * (n + OVERHEAD_ROWS) * posterior.network.n_weights


def seconds_of_chains(posterior, n_transitions):
    """Processor seconds of chains with these transitions in all, accurate to a factor of two."""
    work = (len(posterior.X) + OVERHEAD_ROWS) * (posterior.network.n_weights + FEW_WEIGHTS)
    return SECONDS_OF_CHAINS * n_transitions * work


class Trial:
    """Sampling of one model in stages: ``particles`` are the last population that was drawn."""

    wide = False  # True for `WideTrial`

    def __init__(self, problem, noise, posed, seed, by_stacking):
        self.problem, self.noise, self.posed = problem, noise, posed
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.by_stacking, self.particles = by_stacking, None

    @cached_property
    def _trained(self):
        """Best of briefly trained networks, and their log evidences by Laplace's approximation."""
        rngs = [np.random.default_rng(seed) for seed in self.seed.spawn(N_TRAINED)]
        starts = random_starts(self.posed.posterior, rngs)
        starts, values = briefly_trained(*self.posed, starts, FIRST_STEPS)
        best = np.argsort(-values, kind="stable")[:N_BEST]
        return briefly_trained(*self.posed, [starts[i] for i in best], BRIEF)

    @property
    def highest_by_training(self):
        """Highest log evidence of trained networks, by Laplace's approximation."""
        return np.max(self._trained[1])

    @property
    def log_evidence_by_laplace(self):
        """Log evidence of the minima of the trained networks, by Laplace's approximation."""
        return total_log_evidence(minima_from(*self.posed, self._trained[0]))

    def run_pilot(self):
        """Locate the precisions of the posterior by small populations.

        Sets ``particles``. Returns False if time ran out.
        """
        model = NOISE_MODELS[self.noise]
        joint = model.joint(self.problem, self.posed, integrate_outputs=True)
        found = pilot_population(
            joint, self.rng, self.problem.deadline, self._of_best_trained(joint)
        )
        if found is not None:
            information = model.information(self.problem, self.posed, joint, found.last)
            # further populations use coordinates with the information at the pilot's states
            joint = replace(found.joint, information=np.median(information, axis=0))
            position = found.joint.converted(found.position, joint)
            self.particles = found._replace(joint=joint, position=position)
        return found is not None

    def _of_best_trained(self, joint):
        """Coordinates ``(n_free,)`` of the precisions of the best trained network.

        They are ``nan`` for the weights of a noise network. Returns ``None`` if no trained network
        has an evidence.
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
        beta = self.particles.joint.place(self.particles.last).hyper.beta
        return bool(np.all(np.median(beta, axis=0) > LITTLE_NOISE**-2.0))

    @property
    def predicts_left_out_rows(self):
        """True if most of the variance of left-out targets is explained.

        Networks can interpolate random targets as well, if many of them are equal.
        """
        posterior = self.posed.posterior
        mean, _ = self.particles.joint.left_out_outputs(self.particles.last)
        errors = (np.median(mean, axis=0) - posterior.y) ** 2
        mse = np.average(errors, axis=0, weights=posterior.sample_weight)
        return bool(np.all(mse < MOSTLY_EXPLAINED))

    def competes_with(self, others):
        """Run the pilot of a further model; return False if others are far more probable."""
        if self.particles is None and not self.run_pilot():
            return False
        best = max(trial.particles.log_evidence for trial in others)
        return self.particles.log_evidence > best - CLOSE - ODDS

    def p_values(self):
        """P values of tests of constant noise against other noise models."""
        posterior, particles = self.posed.posterior, self.particles
        if not posterior.likelihood.quadratic or self.problem.noise_is_given:
            return {}
        position = particles.thinned(MAX_NETWORKS, self.rng)
        theta = particles.joint.complete_weights(position, [self.rng] * len(position))
        f = outputs(posterior.network, theta, posterior.X)
        beta = posterior.likelihood.precisions(particles.joint.place(position).hyper.beta)
        beta = np.exp(np.mean(np.log(beta), axis=0))
        # beta times the epistemic variance of a row is its leverage
        return p_values(posterior, f.mean(axis=0) - posterior.y, 1.0 - beta * f.var(axis=0), beta)

    def sample(self):
        """Draw a larger population near the precisions of the pilot; return False if not in time.

        The evidence of a pilot is far too low, and its networks are not those of the posterior.
        """
        joint, near_trained = self.particles.joint, self.particles.near_trained
        eta = np.concatenate(joint.coordinates_in(self.particles.position))  # of all chains
        found = sample_population(joint, eta, self.rng, self.problem.deadline, near_trained)
        self.particles = found or self.particles
        return found is not None

    def drawn(self):
        """Collect drawn networks."""
        found, joint = self.particles, self.particles.joint
        # with hardly any noise, drawn output layers would leave gaps between their predictions
        averaged = self.wide or not self.by_stacking
        position = found.thinned(MAX_AVERAGED if averaged else MAX_NETWORKS, self.rng)
        hyper = joint.typical_hyper(position)
        return Drawn(
            self.noise,
            self.posed,
            joint,
            found.log_evidence,
            found.log_evidence_std,
            starts=found.last,
            position=position,
            theta=joint.complete_weights(position, [self.rng] * len(position)),
            alpha=hyper.alpha,
            beta=hyper.beta,
            state=joint.noise_state(position),
            by_stacking=self.by_stacking,
            averaged=averaged,
        )


class WideTrial(Trial):
    """Sampling of one wide layer under constant noise by a single population, see `sample_wide`."""

    # a wide network is nearly a Gaussian process, of which trained networks are single functions:
    # they show no mode that its population has missed
    highest_by_training = -np.inf
    wide = True

    def run_pilot(self):
        """Draw the only population, without a pilot; return False if time ran out."""
        joint = NOISE_MODELS[self.noise].joint(self.problem, self.posed, integrate_outputs=True)
        self.particles = sample_wide(joint, self.rng, self.problem.deadline)
        return self.particles is not None

    def p_values(self):
        """Return no P values: nearly interpolated rows do not show other noise."""
        return {}

    def sample(self):
        """Keep the population; return True."""
        return True


def trial_of(problem, noise, hidden_layer_sizes, seed, by_stacking=True, without_noise=False):
    """Make the `Trial` of a model; ``without_noise`` fixes noise levels at their lower bounds."""
    model = NOISE_MODELS[noise]
    posed = model.pose(problem.posed(hidden_layer_sizes))
    if without_noise:
        posed = posed._replace(settings=posed.settings.without_noise())
    wide = noise == "constant" and is_wide(posed.posterior, problem.limits)
    trial = (WideTrial if wide else Trial)(problem, noise, posed, seed, by_stacking)
    robust = model.for_outliers(posed)
    if robust is not None:
        other = Trial(problem, noise, robust, seed, by_stacking)
        if other.highest_by_training > trial.highest_by_training + DECISIVE:
            return other
    return trial
