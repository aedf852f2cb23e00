"""Bayesian model averaging over networks drawn from the posterior.

Under sampling the evidence hardly depends on the number of hidden units, and predictions do not
deteriorate with more of them (Neal 1996, section 1.2.4). The size is therefore not selected: one
network of a generous size and the linear model, each under the noise models that the residuals
support, are sampled, and their predictions are averaged with their estimated evidences as weights.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.sampling._population import sample_after, scout
from skbayesnn.inference.sampling._sampling import (
    SamplingSettings,
    is_linear,
    run_chains,
    tuned_plan,
)
from skbayesnn.inference.sampling._sampling_starts import positions_of_minima, start_sampling
from skbayesnn.inference.task._deadline import OutOfTime
from skbayesnn.inference.task._problem import Posed, Problem
from skbayesnn.posterior import JointPosterior

MOST_MINIMA = 8  # minima near whose precisions the first particles start
MOST_NETWORKS = 512  # most networks kept of a model
HOPELESS = 25.0  # nats of evidence behind another model, or behind Laplace's approximation
BEHIND = 12.0  # nats behind another model if small populations have estimated both evidences
N_CHAINS, N_WARM_UP = 8, 100  # number of short chains, and their warm-up transitions
PRECISE, MISSED = 0.4, 2.0  # standard error, and nats below Laplace's, that need more particles
MORE, SECONDS_OF_MORE = 4, 6.0  # factor of the number of particles, within this many seconds
FAR = 5.0  # nats below Laplace's, beyond two standard errors: a minimum has been missed
GENEROUS = {True: (16,), False: (8,)}  # hidden layers that are sampled: regression, classes
SECONDS_OF_REGRESSION = 2.5e-4  # per row, weight and output, for about two noise models
SECONDS_OF_CLASSES = 8e-5  # per row and weight
SECONDS_IN_NUMPY = 3e-3  # per row and weight, for likelihoods that the compiled core lacks
FEW_ROWS = 50  # number of rows whose time equals the overhead independent of the rows


class Model(NamedTuple):
    """Model to be sampled, with the minima from which its populations start.

    Attributes
    ----------
    problem : Problem
    noise : str
        One of `NOISE_MODELS`.
    posed : Posed
    minima : list of Minimum
        Best evidence first.
    """

    problem: Problem
    noise: str
    posed: Posed
    minima: list

    @property
    def hidden_layer_sizes(self):
        """Hidden layers of the network."""
        return self.posed.posterior.network.hidden_layer_sizes


class Drawn(NamedTuple):
    """Posterior draws of the networks of a model.

    Attributes
    ----------
    model : Model
    joint : JointPosterior
    log_evidence, log_evidence_std : float
        Estimated log evidence and its standard error, in nats, for standardised targets.
    share : float
        Posterior probability of the model among those that were sampled.
    position : ndarray of shape (n, d + n_conditions)
        Draws of equal weight, at which chains may start.
    theta : ndarray of shape (m, k)
        Weights of networks of equal weight.
    beta : ndarray of shape (m, n_levels)
        Noise precisions of these networks.
    noise : ndarray of shape (m, ...)
        Noise states, see `JointPosterior.noise_state`.
    """

    model: Model
    joint: JointPosterior
    log_evidence: float
    log_evidence_std: float
    share: float
    position: np.ndarray
    theta: np.ndarray
    beta: np.ndarray
    noise: np.ndarray


def seconds_of_population(posterior):
    """Processor seconds for drawing networks, accurate to a factor of three.

    Measured on sets of 50 to 700 rows, see tests/benchmarks/small_sets.py.
    """
    levels = posterior.likelihood.n_levels
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
    return posterior.groups.centred and seconds_of_population(posterior) <= most


def draw_models(models, entropy, deadline, log_scale=0.0, told=lambda line: None):
    """Sample models, and weight them by their evidences.

    Models far behind by Laplace's approximation or by small populations are dropped; the others are
    sampled with larger populations. If a population has missed a minimum, so that its evidence is
    far below Laplace's, short chains start at the minima.

    Parameters
    ----------
    models : list of Model
    entropy : int
        Entropy of the seeds of all random numbers.
    deadline : Deadline
    log_scale : float
        Constant added to reported log evidences.
    told : callable
        Called with a line for each model that was sampled.

    Returns
    -------
    list of Drawn
        Highest evidence first; empty if there was no time.
    """
    seeds = np.random.SeedSequence([entropy, 1]).spawn(len(models))
    trials = [_Trial(*some, deadline) for some in zip(models, seeds, strict=True)]
    trials = _close(trials, lambda trial: trial.laplace, HOPELESS)
    for trial in trials:
        trial.scout()
    trials = _close([trial for trial in trials if trial.particles], _highest, BEHIND)
    for trial in trials:
        trial.sample()
    for trial in _close(trials, _highest, FAR):
        if trial.is_uncertain:
            trial.sample(MORE)
    drawn = [found for found in (trial.drawn() for trial in trials) if found is not None]
    for found in drawn:
        error = found.log_evidence_std
        told(
            f"hidden layers {found.model.hidden_layer_sizes}, {found.model.noise} noise: "
            f"log evidence {found.log_evidence + log_scale:.2f}"
            + (f" +- {error:.2f}" if np.isfinite(error) else "")
        )
    total = logsumexp([found.log_evidence for found in drawn]) if drawn else 0.0
    drawn = [some._replace(share=float(np.exp(some.log_evidence - total))) for some in drawn]
    return sorted(drawn, key=lambda some: -some.log_evidence)


def _highest(trial):
    """Higher of the two estimates of the log evidence."""
    return np.fmax(trial.particles.log_evidence, trial.laplace)


def _close(trials, value, most):
    """Select trials at most ``most`` nats below the best one, and those without a value."""
    values = np.array([value(trial) for trial in trials])
    best = np.nanmax(values) if np.any(np.isfinite(values)) else np.nan
    return [some for some, own in zip(trials, values, strict=True) if not own < best - most]


class _Trial:
    """Sampling of one model in stages.

    Attributes
    ----------
    model : Model
    laplace : float
        Log evidence of its minima by Laplace's approximation; ``nan`` if there is none.
    particles : Particles or None
        Last population that was drawn.
    """

    def __init__(self, model, seed, deadline):
        self.model, self.deadline, self.particles = model, deadline, None
        self.seed, self.rng = seed, np.random.default_rng(seed)
        evidences = [m.log_evidence for m in model.minima if np.isfinite(m.log_evidence)]
        self.laplace = float(logsumexp(evidences)) if evidences else np.nan

    def scout(self):
        """Draw the small pilot population."""
        joint, starts = positions_of_minima(self.model, self.model.minima[:MOST_MINIMA])
        self.particles = scout(joint, starts, self.rng, self.deadline)

    def sample(self, more=1):
        """Draw a larger population, unless the last one has missed a minimum."""
        if not self._has_missed(HOPELESS):
            joint, position = self.particles.joint, np.concatenate(self.particles.position)
            found = sample_after(joint, position, self.rng, self.deadline, more)
            self.particles = found or self.particles

    def _has_missed(self, least):
        return self.particles.log_evidence < self.laplace - least

    @property
    def is_uncertain(self):
        """True if the estimate is inaccurate, or misses a minimum, and more particles are cheap."""
        seconds = MORE * seconds_of_population(self.model.posed.posterior)
        doubtful = self.particles.log_evidence_std > PRECISE or self._has_missed(MISSED)
        return seconds <= SECONDS_OF_MORE and doubtful

    def drawn(self):
        """Draw networks from the posterior; ``None`` if there was no time."""
        if self._has_missed(FAR + 2.0 * self.particles.log_evidence_std):
            return self._by_chains()
        position = self.particles.chosen(MOST_NETWORKS, self.rng)
        return _drawn(self.model, self.particles, position, self.rng)

    def _by_chains(self):
        """Draw by short chains from the best minima, with Laplace's evidence."""
        model, search = self.model, self.model.posed.settings
        linear = is_linear(model.problem, model.posed, model.noise)
        plan, _ = tuned_plan(model.posed, linear, model.noise)
        settings = SamplingSettings(search, plan, N_WARM_UP, MOST_NETWORKS // N_CHAINS)
        seeds = self.seed.spawn(N_CHAINS)
        near = [m for m in model.minima if m.log_evidence > model.minima[0].log_evidence - FAR]
        minima = [near[i % len(near)] for i in range(N_CHAINS)]
        given = model.problem, model.posed, settings, seeds, model.noise, minima
        try:
            sampled = run_chains(*start_sampling(*given), settings)
        except OutOfTime:
            return None
        position = np.concatenate([chains.phase.position for chains in sampled.chains])
        theta, beta, noise = (
            some.reshape(sampled.draws.energy.size, some.shape[-1])
            for some in (sampled.draws.theta, sampled.draws.beta, sampled.draws.noise)
        )
        joint = sampled.joint
        return Drawn(model, joint, self.laplace, np.nan, 1.0, position, theta, beta, noise)


def _drawn(model, found, position, rng):
    """Collect the networks kept of a population as `Drawn`."""
    joint = found.joint
    return Drawn(
        model,
        joint,
        found.log_evidence,
        found.log_evidence_std,
        1.0,
        position,
        joint.complete_weights(position, [rng] * len(position)),
        joint.place(position).hyper.beta,
        joint.noise_state(position),
    )
