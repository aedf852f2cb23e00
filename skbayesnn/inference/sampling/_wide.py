"""Posterior of one wide hidden layer, by draws of its hidden weights from their prior.

With the output layer integrated out and many more hidden units than rows, the posterior of the
white hidden weights is near their prior: the network is nearly a Gaussian process (Neal 1996,
chapter 2; Hron et al. 2022). Particles are pairs of white hidden weights from the prior, which are
rarely moved, and few precisions, which follow the dynamics. This avoids the narrow ridges on which
hidden weights of small networks must move if targets have hardly any noise.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skbayesnn._progress import NEVER, OutOfTime
from skbayesnn.inference.sampling._moves import tested
from skbayesnn.inference.sampling._population import SPREAD, PathFromPrior, Tempered, annealed
from skbayesnn.posterior import JointPosterior, LogUniform
from skbayesnn.samplers import Schedule, Stage

SCHEDULE = Schedule(n_chains=64, n_moves=4, n_steps=4, n_last_moves=8, n_last_steps=6)

SCALE_MEAN, SCALE_SD = -0.7, 1.0  # prior of the log standard deviations of hidden weights
RATIO_SD = 0.5  # the same of those of single inputs and of biases, about their mean
DEFAULT_SHAPE = 0.5  # largest shape of the default priors of precisions
TINY = np.finfo(float).tiny
# noise variances relative to the amplitude; the first one stands for no noise
NOISE_VARIANCES = 10.0 ** np.array([-6, *range(-4, 3)])[:, None]


def log_ratio_of_noise(X, y):
    """Log likelihood ratio of Gaussian processes with noise to those without, each maximised.

    ``X`` ``(n, p)`` and ``y`` ``(n, n_outputs)`` are standardised. Covariances are squared
    exponentials, Matern and exponential ones of all inputs or of a single one, plus a constant.
    The amplitude is maximised in closed form (Rasmussen & Williams 2006, eqs. 2.30, 4.9 and 4.17).
    It is seldom above three for steps and for few rows without noise, and far below zero for smooth
    functions without noise.
    """
    n, p = X.shape
    squares, best = (X[:, None] - X) ** 2, np.full(len(NOISE_VARIANCES), -np.inf)
    # all inputs, then each alone; for one input both are the same
    for relevance in [np.full(p, 1.0 / p), *np.eye(p)][: p + (p > 1)]:
        r = np.sqrt(squares @ relevance)
        smooth = [np.exp(-0.5 * r**2), np.exp(-0.5 * (r / 4.0) ** 2)]
        rough = [(1.0 + a * r) * np.exp(-a * r) for a in np.sqrt(3.0) / [0.5, 2.0]]
        for K in [*smooth, *rough, np.exp(-0.25 * r)]:
            values, vectors = np.linalg.eigh(K + 1.0)
            spectrum = np.maximum(values, 0.0) + NOISE_VARIANCES
            amplitude = np.mean((vectors.T @ y) ** 2 / spectrum[..., None], axis=1)
            log_likelihood = -0.5 * n * np.log(amplitude + TINY).sum(axis=1)
            log_likelihood -= 0.5 * y.shape[1] * np.log(spectrum).sum(axis=1)
            best = np.maximum(best, log_likelihood)
    return best[1:].max() - best[0]


def is_wide(posterior, limits):
    """Return True if one hidden layer has so many units that its hidden weights need not move."""
    hidden, likelihood = posterior.network.hidden_layer_sizes, posterior.likelihood
    if len(hidden) != 1 or likelihood.n_levels == 0 or not likelihood.conjugate:
        return False
    return posterior.groups.centred and hidden[0] >= limits.wide_units_per_row * len(posterior.X)


@dataclass(frozen=True)
class WideJoint(JointPosterior):
    """`JointPosterior` that is evaluated in the space of the rows, by NumPy.

    Few rows hardly determine the scales of hidden weights. Under log-uniform priors over six
    decades nearly all units would be steps or linear, and inputs irrelevant by chance. With biases
    far larger than weights, hardly any unit would vary in the range of the data, and functions
    would be flat with tiny error bars between jumps. These priors are therefore replaced by a
    normal one for the log standard deviations, which ties those of biases, and of inputs with
    precisions of their own, to each other. Priors that the user has chosen are kept.
    """

    compiled = None

    @cached_property
    def _scales(self):
        """Indices of the free precisions of hidden weights that have the default prior."""
        labels = self.posterior.network.layers(self.posterior.groups.labels)
        default, priors = LogUniform(), self.free.alpha_prior
        usual = (
            (priors.shape <= DEFAULT_SHAPE)
            & (priors.low == default.low)
            & (priors.high == default.high)
        )
        usual[np.unique(labels[-1])] = False  # of a single precision for all weights
        usual &= np.isin(np.arange(len(usual)), labels[0])
        return np.flatnonzero(usual[self.free.alpha])

    def hyperprior(self, eta):
        """Minus log prior density of each coordinate of the precisions, and its derivative."""
        stretch, change = self.precision_map.derivatives(eta)
        logs, priors = self.precision_map.log_precision(eta), self.free.priors
        value, slope = -priors.log_density(logs), -priors.slope(logs)
        hidden = self._scales
        log_sd = -0.5 * logs[..., hidden] - SCALE_MEAN
        value[..., hidden] = 0.5 * (log_sd / SCALE_SD) ** 2
        value[..., hidden] += 0.5 * np.log(8.0 * np.pi * SCALE_SD**2)  # ln alpha = -2 ln sd
        slope[..., hidden] = -0.5 * log_sd / SCALE_SD**2
        if len(hidden) > 1:
            # deviations from the mean have the smaller variance 1 / (SCALE_SD^-2 + RATIO_SD^-2)
            away = log_sd - log_sd.mean(axis=-1, keepdims=True)
            log_det = (1.0 - 1.0 / len(hidden)) * np.log1p((SCALE_SD / RATIO_SD) ** 2)
            value[..., hidden] += 0.5 * (away / RATIO_SD) ** 2 - 0.5 * log_det
            slope[..., hidden] -= 0.5 * away / RATIO_SD**2
        return value - np.log(stretch), slope * stretch - change

    @classmethod
    def of(cls, joint):
        """Convert to coordinates in which the prior of the weights is standard normal."""
        none = np.zeros_like(joint.information)
        return cls(joint.posterior, joint.free, joint.fixed, information=none)


class WidePath(PathFromPrior):
    """Annealing path on which the precisions move, given the hidden weights.

    Positions hold the coordinates of the precisions first, the hidden weights are conditions.
    """

    def draw(self, rng, size):
        """Draw positions from the first density."""
        return np.roll(super().draw(rng, size), self.joint.n_free, axis=-1)

    def misfit(self, q):
        """Minus log ratio of the joint density to the first density."""
        return super().misfit(np.roll(q, -self.joint.n_free, axis=-1))

    def stage(self, exponent, position, rngs):
        """Build the `Stage` of an exponent."""
        if self.deadline.passed:
            raise OutOfTime
        energy = GivenWeights(self.joint, self, exponent, 1.0 - exponent)
        return Stage(position, energy, [rotated])


class GivenWeights(Tempered):
    """Energy of the coordinates of the precisions, given the hidden weights."""

    def __call__(self, q):
        """Values and gradients of the energy."""
        value, gradient = super().__call__(np.roll(q, -self.joint.n_free, axis=-1))
        return value, gradient[..., self.joint.n_sampled :]


def rotated(energy, phase, rngs):
    """Rotate the hidden weights towards a draw from their prior, by a random angle.

    The prior is invariant, so that the likelihood alone decides (Neal 1999; Cotter et al. 2013).
    """
    n_free, rng = energy.joint.n_free, rngs[0]
    v = phase.position[:, n_free:]
    angle = 0.5 * np.pi * 10.0 ** (-2.0 * rng.random((len(v), 1)))  # log-uniform over two decades
    other = np.cos(angle) * v + np.sin(angle) * rng.standard_normal(v.shape)
    position = np.concatenate([phase.position[:, :n_free], other], axis=1)
    prior = 0.5 * np.sum(other**2 - v**2, axis=1)
    return tested(energy, phase, position, prior, np.log(rng.random(len(v))))


def sample_wide(joint, rng, deadline=NEVER):
    """Draw wide networks from the posterior; see `sample_population`."""
    joint = WideJoint.of(joint)
    sd = np.full(joint.n_free, SPREAD)
    path = WidePath.about(joint, np.zeros(joint.n_free), sd, deadline)
    found = annealed(path, rng, SCHEDULE)
    if found is None:
        return None
    return found._replace(position=np.roll(found.position, -joint.n_free, axis=-1))
