"""Evidence and posterior draws of networks by sequential Monte Carlo.

Particles are drawn from the prior of the weights, with precisions near those of the posterior
(`PathFromPrior`), and annealed to the posterior. Small pilot populations locate the precisions of
the posterior; a larger population starts there.

While the exponent of the likelihood is small, free precisions drift to those of data explained by
noise alone, and particles may miss narrow modes that fit the data: the transition between the two
explanations is of first order. Such modes are found from a narrow first density, which holds the
precisions near those of a trained network until the exponent is near 1.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skbayesnn._progress import NEVER, Deadline, OutOfTime
from skbayesnn._threads import blas_threads
from skbayesnn.inference.sampling._moves import extra_moves
from skbayesnn.posterior import JointPosterior
from skbayesnn.samplers import Schedule, Stage, anneal

# schedules of pilot populations and of larger ones
PILOT = Schedule(n_chains=64, n_moves=2, n_steps=10, n_last_moves=4, n_last_steps=10)
MAIN = Schedule(n_last_moves=24, n_last_steps=48)
MOVE_ROWS = 2560  # target for the moves of a particle at each exponent times rows
MIN_MOVES = 16  # of a particle, at every exponent
SPREAD = 0.7  # sd of the first coordinates of precisions, which cover most of their intervals
MIN_SPREAD = 0.1  # least sd about those that a pilot population has found
NARROW = 0.02  # sd of a narrow density
# nats that a narrow density must gain for a pilot population: from wide ones evidences are up to 19
# nats too low under heavy tails, from narrow ones up to 2 nats of classes
NEEDED = 5.0
LOGISTIC_SD = np.pi / np.sqrt(3.0)  # sd of the standard logistic distribution
# nats of error by what all particles miss, by tests/benchmarks/evidence_truth.py
SYSTEMATIC = 0.2


class PathFromPrior(NamedTuple):
    """Annealing path to the posterior from a density near the prior, by powers of their ratio.

    The first density has the prior of the weights, and precisions near given ones: their
    coordinates have a logistic density, whose tails reach everywhere. Under the prior alone, which
    spans six decades for each precision, hardly any particle would reach the posterior. The
    evidence estimate is correct for any first density.
    """

    joint: JointPosterior
    centre: np.ndarray  # (n_free,)
    scale: np.ndarray  # (n_free,)
    deadline: Deadline = NEVER  # after it the next stage raises `OutOfTime`

    @classmethod
    def about(cls, joint, mean, sd, deadline=NEVER):
        """Build from the mean and sd of coordinates ``(n_free,)``, with twice their variance."""
        return cls(joint, mean, sd * np.sqrt(2.0) / LOGISTIC_SD, deadline)

    def draw(self, rng, size):
        """Draw positions from the first density."""
        eta = self.centre + self.scale * rng.logistic(size=(size, len(self.centre)))
        return self.joint.draw_weights(eta, rng)

    def change(self, eta):
        """Log ratio of the density of all precisions to their prior density, and its gradient."""
        half = 0.5 * (eta - self.centre) / self.scale
        # logistic density 1 / (4 s cosh(half)^2), whose log has the slope -tanh(half) / s
        log_density = -2.0 * np.logaddexp(half, -half) - np.log(self.scale)
        prior, prior_slope = self.joint.hyperprior(eta)  # of minus its log
        slope = prior_slope - np.tanh(half) / self.scale
        return np.sum(prior + log_density, axis=-1), slope

    def misfit(self, q):
        """Minus log ratio of the joint density, conditions integrated out, to the first density."""
        if not self.joint.n_conditions:
            # factors 1 and -1 of minus the log joint density and minus the log first density
            return Tempered(self.joint, self, 1.0, -1.0).values(q)
        return self.joint.misfit(q) + self.change(self.joint.coordinates_in(q))[0]

    def energy(self, exponent):
        """Energy at an exponent, from the first density (0) to the posterior (1).

        If the energy is conditional on factors of the rows' precisions, the power is taken of the
        likelihood with these integrated out. It is again a mixture over factors, with reduced
        weights of the rows.
        """
        if not self.joint.n_conditions:
            return Tempered(self.joint, self, exponent, 1.0 - exponent)
        joint = replace(self.joint, posterior=self.joint.posterior.scaled(exponent))
        return Tempered(joint, self, exponent, 1.0 - exponent, of_data=1.0)

    def stage(self, exponent, position, rngs):
        """Build the `Stage` of an exponent, redrawing the conditions."""
        if self.deadline.passed:
            raise OutOfTime
        energy = self.energy(exponent)
        position = energy.joint.renewed(position, rngs, keep_outputs=True)
        return Stage(position, energy, extra_moves(energy.joint, 1))


class Tempered:
    """Energy of a population: weighted sum of minus the logs of the joint and the first density.

    The factors are ``of_joint`` and ``of_first``. The factor of the likelihood, ``of_data``,
    differs from ``of_joint`` where the rows have reduced weights already, see
    `PathFromPrior.energy`.
    """

    def __init__(self, joint, first, of_joint, of_first, of_data=None):
        self.joint, self.first, self.of_joint, self.of_first = joint, first, of_joint, of_first
        self.of_data = of_joint if of_data is None else of_data
        self.compiled = None
        if joint.compiled:
            self.compiled = joint.compiled.tempered(
                of_joint + of_first,  # the core adds `change` alone to the prior of the joint
                self.of_data,
                of_first,
                first.centre,
                first.scale,
            )

    def __call__(self, q):
        """Values and gradients of the energy."""
        if self.compiled is not None:
            return self.compiled.values(q, gradients=True)
        terms, joint = self.joint.terms(q), self.joint
        change, change_gradient = self.first.change(joint.coordinates_in(q))
        first, first_gradient = change - terms.prior, -terms.prior_gradient  # log density
        first_gradient[..., joint.n_sampled :] += change_gradient
        value = self.of_joint * terms.prior + self.of_data * terms.data - self.of_first * first
        gradient = self.of_joint * terms.prior_gradient + self.of_data * terms.data_gradient
        return value, gradient - self.of_first * first_gradient

    def values(self, q):
        """Values of the energy, without gradients."""
        return self(q)[0] if self.compiled is None else self.compiled.values(q)


class Particles(NamedTuple):
    """Draws from a posterior, and an estimate of its evidence."""

    joint: JointPosterior
    log_evidence: float  # with its standard error, in nats, for standardised targets
    log_evidence_std: float
    position: np.ndarray  # states of short chains, (n_chains, n_moves, d + n_conditions)
    # True if the first density was a narrow one at the precisions of a trained network
    near_trained: bool = False

    @property
    def last(self):
        """Last positions of all chains."""
        return self.position[:, -1]

    def thinned(self, size, rng):
        """Select positions ``(size, d + n_conditions)``, thinned along the chains if possible.

        The first ones are the last states of different chains.
        """
        n_chains, n_moves = self.position.shape[:2]
        every = max(1, n_chains * n_moves // size)
        # from the last states backwards, which are the farthest from the start of the chains
        states = self.position[rng.permutation(n_chains), ::-1][:, ::every]
        return np.swapaxes(states, 0, 1).reshape(-1, states.shape[-1])[:size]


def annealed(path, rng, schedule):
    """Anneal populations along a path; ``None`` after the deadline."""
    joint = path.joint
    with blas_threads(joint.posterior.network.n_weights):
        try:
            found = anneal(path, rng, schedule)
        except OutOfTime:
            return None
    error = float(np.hypot(found.log_evidence_std, SYSTEMATIC if joint.dimension else 0.0))
    return Particles(joint, found.log_evidence, error, found.position)


def pilot_population(joint, rng, deadline=NEVER, near=None):
    """Locate the precisions of the posterior by small pilot populations.

    The first one starts from precisions of all orders of magnitude, the second one from a narrow
    density at the coordinates ``near`` ``(n_free,)`` of the precisions of a mode (``nan`` where
    they are unknown). Their evidences are too low by up to dozens of nats. Returns `Particles`, of
    the second population if it finds more, or ``None`` if there was no time.
    """
    centre, sd = np.zeros(joint.n_free), np.full(joint.n_free, SPREAD)
    found = annealed(PathFromPrior.about(joint, centre, sd, deadline), rng, PILOT)
    if found is None or near is None:
        return found
    sd = np.where(np.isnan(near), SPREAD, NARROW)
    path = PathFromPrior.about(joint, np.nan_to_num(near), sd, deadline)
    other = annealed(path, rng, PILOT)
    if other is None or other.log_evidence < found.log_evidence + NEEDED:
        return found
    return other._replace(near_trained=True)


def sample_population(joint, eta, rng, deadline=NEVER, near_trained=False):
    """Draw from the posterior, and estimate its evidence with a standard error.

    Particles start near the coordinates ``eta`` ``(m, n_free)`` of precisions drawn from the
    posterior. Returns `Particles`, or ``None`` if there was no time for it.
    """
    sd = np.full(joint.n_free, NARROW) if near_trained else np.maximum(eta.std(axis=0), MIN_SPREAD)
    path = PathFromPrior.about(joint, eta.mean(axis=0), sd, deadline)
    n_moves = int(np.clip(MOVE_ROWS // len(joint.posterior.X), MIN_MOVES, MAIN.n_moves))
    return annealed(path, rng, MAIN._replace(n_moves=n_moves))
