"""Tempered energies between a first density near the prior and the posterior."""

from typing import NamedTuple

import numpy as np

LOGISTIC_SD = np.pi / np.sqrt(3.0)


class NearPrecisions(NamedTuple):
    """Density with the prior of the weights, and precisions near given ones.

    The coordinates of the precisions have a logistic density, whose tails reach everywhere. Under
    the prior alone, which spans six decades for each precision, hardly any particle would reach the
    posterior. The evidence estimate is correct for any first density.

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
        """Build from a mean and sd of coordinates ``(n_free,)``, with twice their variance."""
        return cls(joint, mean, sd * np.sqrt(2.0) / LOGISTIC_SD)

    def draw(self, rng, size):
        """Draw positions."""
        eta = self.centre + self.scale * rng.logistic(size=(size, len(self.centre)))
        return self.joint.draw_weights(eta, rng)

    def log_density(self, q, terms):
        """Log density ``(n,)`` and gradient ``(n, d)``, given the ``terms`` of the joint energy."""
        moving = slice(self.joint.n_sampled, self.joint.dimension)
        change, change_gradient = self.change(q[..., moving])
        gradient = -terms.prior_gradient
        gradient[..., moving] += change_gradient
        return change - terms.prior, gradient

    def change(self, eta):
        """Log ratio of the density of all precisions to their prior density, and its gradient."""
        half = 0.5 * (eta - self.centre) / self.scale
        prior, prior_slope = self.joint.hyperprior(eta)
        log_density = -2.0 * np.logaddexp(half, -half) - np.log(self.scale)
        slope = prior_slope - np.tanh(half) / self.scale
        return np.sum(prior + log_density, axis=-1), slope

    def compiled(self, of_joint, of_data, of_first):
        """Arguments of the compiled energy, which adds `change` alone to the prior of the joint."""
        return of_joint + of_first, of_data, of_first, self.centre, self.scale


class Tempered:
    """Energy of a population: weighted sum of minus the logs of the joint and the first density.

    Parameters
    ----------
    joint : JointPosterior
    first : NearPrecisions
        Initial density of the particles.
    of_joint, of_first : float
        Factors of minus the log of the joint density and of the first density.
    of_data : float, optional
        Factor of the likelihood if it differs from ``of_joint``: where the rows have reduced
        weights already, see `at_temperature`.
    """

    def __init__(self, joint, first, of_joint, of_first, of_data=None):
        self.joint, self.first, self.of_joint, self.of_first = joint, first, of_joint, of_first
        self.of_data = of_joint if of_data is None else of_data
        self.core = None
        if joint.compiled and joint.dimension:
            self.core = joint.compiled.tempered(*first.compiled(of_joint, self.of_data, of_first))

    @classmethod
    def at_temperature(cls, joint, first, temperature):
        """Build the geometric path from the first density (0) to the posterior (1).

        If the energy is conditional on factors of the rows' precisions, the power is taken of the
        likelihood with these integrated out. It is again a mixture over factors, with reduced
        weights of the rows.
        """
        if not joint.n_conditions:
            return cls(joint, first, temperature, 1.0 - temperature)
        return cls(joint.tempered(temperature), first, temperature, 1.0 - temperature, of_data=1.0)

    def __call__(self, q):
        """Values and gradients of the energy."""
        terms = self.joint.terms(q)
        first, first_gradient = self.first.log_density(q, terms)
        value = self.of_joint * terms.prior + self.of_data * terms.data - self.of_first * first
        gradient = self.of_joint * terms.prior_gradient + self.of_data * terms.data_gradient
        return value, gradient - self.of_first * first_gradient

    def values(self, q):
        """Values of the energy, without gradients."""
        if self.core is None:
            return self(q)[0]
        values, failed = self.core.values(q)
        if failed.any():
            values[failed] = self(q[failed])[0]
        return values

    def trajectories(self, phase, step_size, n_steps, metric, unstable):
        """Follow trajectories in the core, see `JointPosterior`, without updating gradients."""
        left = np.arange(len(step_size))
        if self.core is not None:
            left = self.core.leapfrog(phase, step_size, n_steps, metric.factor, unstable)
            if len(left):
                phase.gradient[left] = self(phase.position[left])[1]
        return left

    def rescalings(self, phase, shifts, log_uniform, done):
        """Make steps of `ScaleMoves` in the core, see `JointPosterior.rescalings`."""
        return done if self.core is None else self.core.rescalings(phase, shifts, log_uniform, done)

    def unit_slices(self, phase, unit, chosen, normal, exponential, uniform, done):
        """Make slices of `UnitMoves` in the core, see `JointPosterior.unit_slices`."""
        if self.core is None:
            return done
        return self.core.unit_slices(phase, unit, chosen, normal, exponential, uniform, done)
