"""Joint posterior with input-dependent noise: the weights of two networks move together."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skbayesnn.network import Network, forward, hessian, outputs, vector_jacobian
from skbayesnn.posterior.joint._joint import Derivatives, JointPosterior
from skbayesnn.posterior.likelihoods._output_layer import Rows
from skbayesnn.posterior.priors._weight_groups import WeightGroups, sums_by


@dataclass(frozen=True)
class InputDependentJoint(JointPosterior):
    """Joint posterior with noise whose log precision is a function of the inputs.

    The log precision is ``h = ln beta_o + g_o(x; v)`` with a second network ``g``, whose output
    biases are replaced by the level of constant noise with its prior. Values outside the interval
    of that prior are clipped to it. The position holds the weights ``v`` after those of the means.
    Sampling averages over the weights of both networks, so that neither likelihood has to be
    integrated over the weights of the other network as in the evidence (MacKay 1992, chapter 6).

    The posterior of the means has `Gaussian` noise, one level per output. The last of
    ``noise_groups`` are the output biases of the noise network.
    """

    noise_network: Network | None = None
    noise_groups: WeightGroups | None = None

    @cached_property
    def further_weights(self):
        """Labels and group names of the noise network's weights without its output biases."""
        groups, n_outputs = self.noise_groups, self.noise_network.n_outputs
        return groups.labels[:-n_outputs], [f"noise_{name}" for name in groups.names[:-1]]

    @property
    def further_directions(self):
        """Directions of all noise groups, of the hidden ones, and of these against the others."""
        hidden_part = self.noise_groups.labels[: self.noise_network.slices[-1].start]
        n_means, n_noise = len(self.posterior.groups.names), len(self.noise_groups.names) - 1
        hidden = np.isin(np.arange(n_noise), hidden_part).astype(float)
        several = [np.ones(n_noise)]
        if len(hidden_part):
            several += [hidden, 2.0 * hidden - 1.0]
        return [np.concatenate([np.zeros(n_means), some]) for some in several]

    def drawn_coordinates(self, draws):
        """Coordinates ``eta`` of draws with fields ``alpha`` and ``noise``, ``(..., n_free)``."""
        return self.coordinates(draws.alpha, np.exp(draws.noise[..., self.n_noise :]))

    # --- the noise network -----------------------------------------------------------------------

    def noise_state(self, q):
        """Weights of the noise network with output biases ``ln beta``, ``(..., k)``."""
        return self._noise_weights(self.place(q))

    def noise_functions(self, state, X):
        """Log noise precisions of networks at inputs, ``(..., n, n_outputs)``."""
        return np.clip(outputs(self.noise_network, state, X), *self.free.beta_prior.log_range)

    def typical_hyper(self, q):
        """Precisions at positions, with geometric means of the noise precisions over the rows."""
        posterior = self.posterior
        h = self.noise_functions(self.noise_state(q), posterior.X)
        typical = np.exp((posterior.sample_weight @ h) / posterior.n_rows)
        hyper = self.place(q).hyper
        return hyper._replace(beta=typical / posterior.likelihood.relative)

    def _noise_weights(self, place):
        v = place.theta[..., self.n_mean :]
        bias = np.log(self.posterior.likelihood.precisions(place.hyper.beta))
        return np.concatenate([v, bias], axis=-1)

    def _rows(self, place):
        return self._rows_of(self.noise_functions(self._noise_weights(place), self.posterior.X))

    def _rows_of(self, log_precision):
        posterior = self.posterior
        ones = np.ones(posterior.network.n_outputs)
        return Rows(posterior.y, posterior.sample_weight, ones, np.exp(log_precision))

    # --- energy and curvature --------------------------------------------------------------------

    def _likelihood(self, place):
        posterior, s = self.posterior, self.posterior.sample_weight
        trace = forward(self.noise_network, self._noise_weights(place), posterior.X, 1)
        h = np.clip(trace.outputs, *self.free.beta_prior.log_range)
        means, rows = self._of_rows(place, self._rows_of(h))
        value = means.value - 0.5 * np.sum(s @ h, axis=-1)
        slope = (rows.log_factors - 0.5 * s[:, None]) * (h == trace.outputs)
        by_noise = vector_jacobian(trace, slope)
        by_theta = np.concatenate([means.theta, by_noise[..., : self.n_noise]], axis=-1)
        by_beta = sums_by(self.posterior.likelihood.membership, by_noise[..., self.n_noise :])
        return Derivatives(value, by_theta, means.log_alpha, by_beta)

    def _hessian_of_noise(self, place):
        posterior = self.posterior
        trace = forward(self.noise_network, self._noise_weights(place), posterior.X, 1)
        low, high = self.free.beta_prior.log_range
        inside = (low < trace.outputs) & (trace.outputs < high)
        curvature = 0.5 * posterior.sample_weight[:, None] * inside
        matrix = hessian([(trace, np.zeros_like(curvature), curvature)], exact=False)
        return matrix[..., : self.n_noise, : self.n_noise]

    def _hessian_of_means(self, theta, place):
        trace = forward(self.posterior.network, theta, self.posterior.X, 1)
        curvature = self._rows(place).weights
        return hessian([(trace, np.zeros_like(curvature), curvature)], exact=False)
