"""Energies between a first density and the posterior, and that density: near the prior."""

from typing import NamedTuple

import numpy as np

PRIOR_SHARE = 0.05  # of each coordinate's own prior in the first density
LEAST_SPREAD = 0.1  # of the coordinates of precisions in the first density
LOGISTIC_SD = np.pi / np.sqrt(3.0)


class NearPrecisions(NamedTuple):
    """The prior of the weights, with precisions near those of the posterior.

    The coordinates of the precisions are logistic with the mean of those given and twice their
    variance, mixed with a little of their own prior, so that no part of the posterior is out of
    reach. From that prior alone, which spans six decades for each, hardly any particle would get
    there; the evidence stays exact, whatever the reference.

    Attributes
    ----------
    joint : JointPosterior
    centre, scale : ndarray of shape (n_free,)
    """

    joint: object
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def about(cls, joint, mean, sd):
        """With twice the variance of the posterior's coordinates ``(n_free,)``."""
        sd = np.maximum(sd, LEAST_SPREAD)
        return cls(joint, mean, sd * np.sqrt(2.0) / LOGISTIC_SD)

    def draw(self, rng, size):
        """Positions."""
        shape = size, len(self.centre)
        near = self.centre + self.scale * rng.logistic(size=shape)
        far = self.joint.draw_coordinates(rng, size)
        eta = np.where(rng.random(shape) < PRIOR_SHARE, far, near)
        return self.joint.draw_weights(eta, rng)

    def log_density(self, q, terms):
        """``(n,)``, and its gradient ``(n, d)``; ``terms`` are those of the joint energy."""
        moving = slice(self.joint.n_sampled, self.joint.dimension)
        change, change_gradient = self.change(q[..., moving])
        gradient = -terms.prior_gradient
        gradient[..., moving] += change_gradient
        return change - terms.prior, gradient

    def change(self, eta):
        """Log density of all precisions over that of their prior, and its gradient."""
        half = 0.5 * (eta - self.centre) / self.scale
        near = -2.0 * np.logaddexp(half, -half) - np.log(self.scale) + np.log1p(-PRIOR_SHARE)
        prior, prior_slope = self.joint.hyperprior(eta)
        far = np.log(PRIOR_SHARE) - prior
        log_density = np.logaddexp(near, far)
        slope = -np.exp(near - log_density) * np.tanh(half) / self.scale
        slope = slope - np.exp(far - log_density) * prior_slope
        return np.sum(prior + log_density, axis=-1), prior_slope + slope

    def compiled(self, of_joint, of_data, of_first):
        """What `Tempering` needs: of this density `change` alone, as the prior is there already."""
        return of_joint + of_first, of_data, of_first, PRIOR_SHARE, self.centre, self.scale


class Tempered:
    """Energies of populations: sums of minus the logs of the joint density and of the first one.

    Parameters
    ----------
    joint : JointPosterior
    first : NearPrecisions
        The density where particles begin.
    of_joint, of_first : float
        Factors of minus log of the joint density and of the first one.
    of_data : float, optional
        Factor of the likelihood if that of the joint density is not meant: where rows count less
        already, see `at_temperature`.
    """

    def __init__(self, joint, first, of_joint, of_first, of_data=None):
        self.joint, self.first, self.of_joint, self.of_first = joint, first, of_joint, of_first
        self.of_data = of_joint if of_data is None else of_data
        self.core = None
        if joint.compiled and joint.dimension:
            self.core = joint.compiled.tempered(*first.compiled(of_joint, self.of_data, of_first))

    @classmethod
    def at_temperature(cls, joint, first, temperature):
        """Between the first density (0) and the posterior (1), both multiplied as powers.

        If the energy is conditional on factors of the rows' precisions, the power is that of the
        likelihood with these integrated out: a mixture over factors again, of rows that count less.
        """
        if not joint.n_conditions:
            return cls(joint, first, temperature, 1.0 - temperature)
        return cls(joint.tempered(temperature), first, temperature, 1.0 - temperature, of_data=1.0)

    def __call__(self, q):
        """Values and gradients."""
        terms = self.joint.terms(q)
        first, first_gradient = self.first.log_density(q, terms)
        value = self.of_joint * terms.prior + self.of_data * terms.data - self.of_first * first
        gradient = self.of_joint * terms.prior_gradient + self.of_data * terms.data_gradient
        return value, gradient - self.of_first * first_gradient

    def values(self, q):
        """Values alone."""
        if self.core is None:
            return self(q)[0]
        values, failed = self.core.values(q)
        if failed.any():
            values[failed] = self(q[failed])[0]
        return values

    def trajectories(self, phase, step_size, n_steps, metric, unstable):
        """As of `JointPosterior`; gradients stay as they are, as the core needs none to begin."""
        left = np.arange(len(step_size))
        if self.core is not None:
            left = self.core.leapfrog(phase, step_size, n_steps, metric.factor, unstable)
            if len(left):
                phase.gradient[left] = self(phase.position[left])[1]
        return left

    def rescalings(self, phase, shifts, log_uniform, done):
        """As of `JointPosterior`."""
        return done if self.core is None else self.core.rescalings(phase, shifts, log_uniform, done)

    def unit_slices(self, phase, unit, chosen, normal, exponential, uniform, done):
        """As of `JointPosterior`."""
        if self.core is None:
            return done
        return self.core.unit_slices(phase, unit, chosen, normal, exponential, uniform, done)

    def redraws(self, phase, which, gamma, log_uniform, done):
        """As of `JointPosterior`."""
        if self.core is None:
            return done
        return self.core.redraws(phase, which, gamma, log_uniform, done)
