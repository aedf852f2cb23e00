"""Noise of the inputs for samplers, which let it follow the weights."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.network import forward, hessian, input_slopes, slope_gradient
from skbayesnn.posterior._joint import Derivatives, JointPosterior
from skbayesnn.posterior._noisy_inputs import inverse_and_log_det, known_variances


@dataclass(frozen=True)
class NoisyInputsJoint(JointPosterior):
    """Joint posterior whose noise has the part ``J S J^T`` of noisy inputs at every position.

    As the slopes ``J`` depend on all weights, the output layer stays in the position.

    Parameters
    ----------
    posterior : Posterior
        With the likelihood of `with_input_noise`.
    """

    @property
    def integrated(self):
        """Whether the output layer is integrated out: never."""
        return False

    @property
    def _batch(self):
        """As of `JointPosterior`, with the derivatives by all inputs besides."""
        return max(1, super()._batch // (1 + self.posterior.X.shape[1]))

    def _likelihood(self, place):
        """Likelihood given all weights, and its exact gradient.

        With the covariance ``Sigma`` of a row and ``u = Sigma^-1 e`` the derivative by ``Sigma`` is
        ``G = s (Sigma^-1 - u u^T) / 2``; so that by ``J S^(1/2)`` is ``2 G J S^(1/2)``.
        """
        posterior, weight = self.posterior, self.posterior.sample_weight[:, None]
        trace = forward(posterior.network, place.theta, posterior.X, 2)
        slopes, inverse, log_det = self._covariances(trace, place)
        residual = trace.outputs - posterior.y
        u = (inverse @ residual[..., None])[..., 0]
        rows = np.sum(residual * u, axis=-1) + log_det
        value = 0.5 * np.sum(weight[:, 0] * rows, axis=-1)
        value += 0.5 * posterior.n_rows * posterior.network.n_outputs * np.log(2.0 * np.pi)
        by_sigma = 0.5 * weight[..., None] * (inverse - u[..., :, None] * u[..., None, :])
        by_slopes = 2.0 * by_sigma @ slopes.outputs
        gradient = slope_gradient(trace, slopes, weight * u, by_slopes)
        tau = posterior.likelihood.precisions(place.hyper.beta)
        by_tau = -np.diagonal(by_sigma, axis1=-2, axis2=-1).sum(axis=-2) / tau
        by_alpha = np.zeros_like(place.hyper.alpha)
        return Derivatives(value, gradient, by_alpha, self._sum_levels(by_tau))

    def _covariances(self, trace, place):
        """`InputSlopes`, and inverses and log determinants of the covariances of all rows."""
        posterior, noise = self.posterior, self.posterior.likelihood
        slopes = input_slopes(trace, np.sqrt(noise.input_variances))
        J = slopes.outputs
        own = 1.0 / noise.precisions(place.hyper.beta)[..., None, :]
        own = own + known_variances(posterior.targets())
        sigma = J @ np.swapaxes(J, -1, -2) + own[..., None] * np.eye(own.shape[-1])
        return slopes, *inverse_and_log_det(sigma)

    def _data_hessian(self, theta, place):
        """Gauss-Newton Hessian at the noise that there is; what its changes tell is left out."""
        posterior = self.posterior
        trace = forward(posterior.network, theta, posterior.X, 1)
        curvature = posterior.sample_weight[:, None, None] * self._covariances(trace, place)[1]
        return hessian([(trace, np.zeros_like(trace.outputs), curvature)], exact=False)

    def _level_information(self, place):
        """Expected second derivative ``1/2 sum_no s_n F_no^2`` in ``ln beta_l``."""
        trace = forward(self.posterior.network, place.theta, self.posterior.X, 1)
        inverse = self._covariances(trace, place)[1]
        tau = self.posterior.likelihood.precisions(place.hyper.beta)[..., None, :]
        share = np.diagonal(inverse, axis1=-2, axis2=-1) / tau
        return self._sum_levels(0.5 * (self.posterior.sample_weight @ share**2))
