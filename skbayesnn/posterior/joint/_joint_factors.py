"""Joint posteriors with known errors of the targets, and with Student-t noise.

In both the noise is Gaussian with a factor of its precision for every row. The factors follow from
the known errors, or belong to the position: Student-t noise is a scale mixture of Gaussian noise.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbayesnn.network import outputs
from skbayesnn.posterior.joint._coordinates import Coordinates
from skbayesnn.posterior.joint._joint import Derivatives, JointPosterior
from skbayesnn.posterior.kernels._compiled import compiled_joint
from skbayesnn.posterior.likelihoods._likelihoods import Gaussian
from skbayesnn.posterior.likelihoods._output_layer import Rows
from skbayesnn.posterior.priors._weight_groups import sums_by


def _with_gaussian_noise(posterior):
    """Posterior given the factors of the rows."""
    likelihood = posterior.likelihood
    return replace(posterior, likelihood=Gaussian(likelihood.levels, likelihood.relative))


@dataclass(frozen=True)
class MeasuredJoint(JointPosterior):
    """Joint posterior with `MeasuredGaussian` noise: known errors on top of a noise level."""

    @cached_property
    def compiled(self):
        """Compiled twin of the energy, or ``None``."""
        return compiled_joint(self, _with_gaussian_noise(self.posterior))

    def _likelihood(self, place):
        rows, share = self._rows(place), self._shares(place)
        found, by_row = self._of_rows(place, rows)
        weight = self.posterior.sample_weight
        value = found.value - 0.5 * np.sum(weight @ np.log(rows.factors), axis=-1)
        slope = (by_row.log_factors - 0.5 * weight[:, None]) * share  # d ln(tau F) / d ln tau = F
        by_beta = sums_by(self.posterior.likelihood.membership, np.sum(slope, axis=-2))
        return Derivatives(value, found.theta, found.log_alpha, by_beta)

    def _rows(self, place):
        """Targets with individual precisions, as `Rows`."""
        posterior = self.posterior
        tau = posterior.likelihood.precisions(place.hyper.beta)[..., None, :]
        ones = np.ones(posterior.network.n_outputs)
        return Rows(posterior.y, posterior.sample_weight, ones, tau * self._shares(place))

    def _level_information(self, place):
        """Expected second derivative ``1/2 sum_no s_n F_no^2`` in ``ln beta_l``."""
        weight = self.posterior.sample_weight
        return sums_by(
            self.posterior.likelihood.membership, 0.5 * (weight @ self._shares(place) ** 2)
        )

    def _shares(self, place):
        """Shares ``F`` of `MeasuredGaussian`, ``(..., n, n_outputs)``."""
        posterior = self.posterior
        return posterior.likelihood.shares(posterior.targets(), place.hyper.beta)[1]


@dataclass(frozen=True)
class StudentTJoint(JointPosterior):
    """Joint posterior with Student-t noise, and perhaps limits among the targets.

    Given a factor ``F_n`` of the precision of every row, the noise is Gaussian and the output layer
    can be integrated out. The conditions of a position are these factors, the degrees of freedom
    and the output layer. The dynamics is conditional on the factors, and `renewed` makes Gibbs
    draws of all conditions in turn from their exact conditional distributions (Geweke 1993). Given
    the output layer the factors of the rows are independent of each other, and the degrees of
    freedom are drawn with the factors integrated out. With limits (`CensoredStudentT`) there are
    no factors, and the position holds all weights.

    A row of weight ``s`` stands for ``s`` observations, each with its own factor from a Gamma
    distribution of shape and rate ``nu/2``. Only their sum ``s_n F_n`` matters. Given residuals the
    sum has a Gamma distribution of shape ``s (nu + p)/2`` and rate ``(nu + delta_n)/2``, for any
    ``s``.

    The degrees of freedom of the likelihood affect the metric only; a priori all the values
    ``degrees_of_freedom`` are equally probable.
    """

    degrees_of_freedom: tuple = ()

    state_names = ("degrees_of_freedom",)

    @cached_property
    def n_factors(self):
        """Number of rows, each of which has a factor; 0 with limits."""
        return len(self.posterior.X) if self.posterior.likelihood.conjugate else 0

    @cached_property
    def n_conditions(self):
        """Number of conditions in a position."""
        return self.n_factors + 1 + self.posterior.network.n_weights - self.n_mean

    @cached_property
    def compiled(self):
        """Compiled twin of the energy; ``None`` for limits and fixed levels."""
        if not (self.n_factors and np.all(self.free.beta)):
            return None
        return compiled_joint(self, _with_gaussian_noise(self.posterior))

    # --- positions -------------------------------------------------------------------------------

    def place(self, q):
        """Decompose positions; precisions of fixed noise levels are those of the scale."""
        place = super().place(q)
        beta = self._scale_precisions(place.hyper.beta, place.conditions[..., self.n_factors, None])
        return place._replace(hyper=place.hyper._replace(beta=beta))

    def _scale_precisions(self, beta, nu):
        """Convert the precisions of fixed noise levels to precisions of the scale."""
        ratio = nu / (nu - 2.0) / self.posterior.likelihood.variance_factor
        return np.where(self.free.beta, beta, self.fixed.beta * ratio)

    def position(self, theta, hyper):
        """Positions of weights ``(..., k)`` and precisions, with conditions still to be renewed."""
        lead = theta.shape[:-1]
        factors = np.ones((*lead, self.n_factors))
        nu = np.full((*lead, 1), self.posterior.likelihood.degrees_of_freedom)
        moving = super().position(theta, hyper)
        return np.concatenate([moving, factors, nu, theta[..., self.n_mean :]], axis=-1)

    def draw_weights(self, eta, rng):
        """Draw weights from the prior as the base class; the conditions are still to be renewed."""
        q = super().draw_weights(eta, rng)
        lead = eta.shape[:-1]
        factors = np.ones((*lead, self.n_factors))
        nu = rng.choice(self.degrees_of_freedom, (*lead, 1))
        alpha = Coordinates.place(self, q).hyper.alpha  # without conditions
        sd = self.groups.expand(alpha)[..., self.n_mean :] ** -0.5
        return np.concatenate([q, factors, nu, sd * rng.standard_normal(sd.shape)], axis=-1)

    def complete_weights(self, q, rngs=None):
        """All weights ``(..., k)``, including those of the output layer in the position."""
        place = self.place(q)
        return np.concatenate([place.theta, place.conditions[..., self.n_factors + 1 :]], -1)

    def noise_state(self, q):
        """Degrees of freedom ``(..., 1)``."""
        place = self.dimension + self.n_factors
        return q[..., place : place + 1]

    # --- the energy given the conditions ---------------------------------------------------------

    def _likelihood(self, place):
        if self.n_factors:
            return self._of_rows(place, self._rows(place))[0]
        likelihood = self.posterior.likelihood
        likelihood = replace(likelihood, degrees_of_freedom=place.conditions[..., 0])
        given = replace(self, posterior=replace(self.posterior, likelihood=likelihood))
        return JointPosterior._likelihood(given, place)

    def _rows(self, place):
        factors = place.conditions[..., : self.n_factors, None]
        return super()._rows(place)._replace(factors=factors)

    # --- the conditions --------------------------------------------------------------------------

    def misfit(self, q):
        """Minus log likelihood given all weights, precisions and degrees of freedom, ``(...)``."""
        f = outputs(self.posterior.network, self.complete_weights(q), self.posterior.X)
        return self._misfit(f, self.place(q).hyper.beta, self.noise_state(q)[..., 0])

    def _misfit(self, f, beta, nu):
        posterior = self.posterior
        likelihood = replace(posterior.likelihood, degrees_of_freedom=nu)
        value = likelihood.misfit(f, posterior.targets(), beta).value
        return value - likelihood.log_normaliser(beta, posterior.n_rows)

    def density(self, phase):
        """Minus log posterior density of all weights, the factors integrated out, ``(...)``."""
        place = self.place(phase.position)
        outer = place.conditions[..., self.n_factors + 1 :]
        alpha = self.groups.expand(place.hyper.alpha)[..., self.n_mean :]
        prior = 0.5 * np.sum(alpha * outer**2 - np.log(alpha / (2.0 * np.pi)), axis=-1)
        rest = self._prior(place, *self.precision_map.derivatives(place.eta))[0]
        return rest + prior + self.misfit(phase.position)

    def renewed(self, q, rngs, keep_outputs=False):
        """Update the conditions of positions by Gibbs draws, for each chain from its generator.

        The order is: the output layer given the factors, unless it is kept; the degrees of freedom
        given all weights; the factors given both.
        """
        q, (posterior, n_rows) = q.copy(), (self.posterior, self.n_factors)
        if self.integrated and not keep_outputs:
            drawn = super().complete_weights(q, rngs)
            q[:, self.dimension + n_rows + 1 :] = drawn[:, self.n_mean :]
        f = outputs(posterior.network, self.complete_weights(q), posterior.X)
        beta = self.place(q).hyper.beta
        grid = np.array(self.degrees_of_freedom)
        scales = self._scale_precisions(beta, grid[:, None, None])
        values = self._misfit(f, scales, grid[:, None]).T
        shares = np.exp(np.min(values, axis=-1, keepdims=True) - values)
        levels = np.cumsum(shares, axis=-1)
        uniform = np.array([rng.random() for rng in rngs])
        nu = grid[np.sum(levels < uniform[:, None] * levels[:, -1:], axis=-1)]
        q[:, self.dimension + n_rows] = nu
        if not n_rows:
            return q
        precision = posterior.likelihood.precisions(self._scale_precisions(beta, nu[:, None]))
        delta = np.sum(precision[:, None, :] * (f - posterior.y) ** 2, axis=-1)
        s = posterior.sample_weight
        shape = 0.5 * s * (nu[:, None] + posterior.network.n_outputs)
        gamma = np.stack([rng.standard_gamma(a) for rng, a in zip(rngs, shape, strict=True)])
        q[:, self.dimension : self.dimension + n_rows] = 2.0 * gamma / (nu[:, None] + delta) / s
        return q
