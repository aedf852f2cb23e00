"""Joint posterior with Student-t noise and limits."""

from dataclasses import dataclass, replace

import numpy as np

from skbayesnn.network import outputs
from skbayesnn.posterior.joint._joint import JointPosterior


@dataclass(frozen=True)
class CensoredStudentTJoint(JointPosterior):
    """Joint posterior with `CensoredStudentT` noise.

    The condition of a position is the number of degrees of freedom. A priori all the values
    ``degrees_of_freedom`` are equally probable; `renewed` draws one given all weights. That of the
    likelihood affects the metric only.
    """

    degrees_of_freedom: tuple = ()

    n_conditions = 1

    def tempered(self, temperature):
        """Posterior under a power of the likelihood, by reduced weights of the rows."""
        return replace(self, posterior=self.posterior.scaled(temperature))

    def place(self, q):
        """Decompose positions; precisions of fixed noise levels are those of the scale."""
        place = super().place(q)
        beta = self._scale_precisions(place.hyper.beta, place.conditions)
        return place._replace(hyper=place.hyper._replace(beta=beta))

    def position(self, theta, hyper):
        """Positions of weights ``(..., k)`` and precisions, with conditions still to be renewed."""
        nu = np.full((*theta.shape[:-1], 1), self.posterior.likelihood.degrees_of_freedom)
        return np.concatenate([super().position(theta, hyper), nu], axis=-1)

    def draw_weights(self, eta, rng):
        """Draw weights and degrees of freedom from the prior."""
        nu = rng.choice(self.degrees_of_freedom, (*eta.shape[:-1], 1))
        return np.concatenate([super().draw_weights(eta, rng), nu], axis=-1)

    @property
    def state_names(self):
        """Names of the entries of `noise_state`."""
        return ["degrees_of_freedom"]

    def noise_state(self, q):
        """Degrees of freedom ``(..., 1)``."""
        return q[..., self.dimension :]

    def misfit(self, q):
        """Minus log likelihood ``(...)``."""
        return self._likelihood(self.place(q)).value

    def renewed(self, q, rngs, keep_outputs=False):
        """Draw the degrees of freedom given all weights, for each chain from its generator."""
        place, grid = self.place(q), np.array(self.degrees_of_freedom)[:, None]
        f = outputs(self.posterior.network, self._of_means(place.theta), self.posterior.X)
        beta = self._scale_precisions(place.hyper.beta, grid[..., None])
        likelihood = replace(self.posterior.likelihood, degrees_of_freedom=grid)
        values = likelihood.misfit(f, self.posterior.targets(), beta).value
        gumbel = np.stack([rng.gumbel(size=len(grid)) for rng in rngs], axis=-1)
        nu = grid[np.argmax(gumbel - values, axis=0)]  # the Gumbel trick: categorical draws
        return np.concatenate([q[..., : self.dimension], nu], axis=-1)

    def _likelihood(self, place):
        likelihood = self.posterior.likelihood
        likelihood = replace(likelihood, degrees_of_freedom=place.conditions[..., 0])
        given = replace(self, posterior=replace(self.posterior, likelihood=likelihood))
        return JointPosterior._likelihood(given, place)

    def _scale_precisions(self, beta, nu):
        """Convert the precisions of fixed noise levels to precisions of the scale."""
        ratio = nu / (nu - 2.0) / self.posterior.likelihood.variance_factor
        return np.where(self.free.beta, beta, self.fixed.beta * ratio)
