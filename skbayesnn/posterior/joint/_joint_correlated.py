"""Joint posterior with correlated noise: coordinates of the correlations move with the weights."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbayesnn.posterior.joint._joint import JointPosterior
from skbayesnn.posterior.likelihoods._correlated import correlation_matrix
from skbayesnn.posterior.likelihoods._output_layer import Rows
from skbayesnn.posterior.priors._weight_groups import sums_by

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class CorrelatedJoint(JointPosterior):
    """Joint posterior with noise that is correlated between outputs.

    The position holds, after the hidden weights, coordinates of the correlation matrix that are
    standard normal a priori, see `correlation_matrix`: weights in a group of fixed precision 1.

    Along the eigenvectors of the noise covariance the outputs have independent noise. If the
    weights from a unit to all outputs have the same prior, the prior is invariant under this
    rotation, so that the output layer can be integrated out for each eigenvector separately.

    The posterior has `CorrelatedGaussian` noise, whose correlation is ignored.
    """

    @cached_property
    def further_weights(self):
        """Labels and name of the group of the coordinates of correlations."""
        p = self.posterior.network.n_outputs
        return np.zeros(p * (p + 1), dtype=int), ["noise_correlation"]

    def noise_state(self, q):
        """Correlations of all pairs of outputs, ``(..., n_pairs)``."""
        correlation = self._noise(self.place(q))[0].correlation
        rows, columns = np.tril_indices(correlation.shape[-1], -1)
        return correlation[..., rows, columns]

    def noise_functions(self, state, X):
        """Correlations on Fisher's scale, constant over the inputs, ``(..., n, n_pairs)``."""
        return np.repeat(np.arctanh(state)[..., None, :], len(X), axis=-2)

    def _noise(self, place):
        """Likelihood with the correlations of positions, and the derivatives of these."""
        z = place.theta[..., self.n_mean : self.n_sampled]
        correlation, slopes = correlation_matrix(z, self.posterior.network.n_outputs)
        return replace(self.posterior.likelihood, correlation=correlation), slopes

    def _rotated(self, covariance):
        """Rotate targets to the eigenvectors of the noise covariance; return `Rows` and these."""
        values, vectors = np.linalg.eigh(covariance)
        precision = 1.0 / np.maximum(values, TINY)
        return Rows(self.posterior.y @ vectors, self.posterior.sample_weight, precision), vectors

    def _rows(self, place):
        return self._rotated(self._noise(place)[0].covariance(place.hyper.beta))[0]

    def _with_outputs(self, place, normal=None):
        weights = super()._with_outputs(place, normal)
        if not self.integrated:
            return weights
        n_outputs, width = self._output_labels.shape
        _, vectors = self._rotated(self._noise(place)[0].covariance(place.hyper.beta))
        layer = weights[..., self.n_sampled :].reshape(*weights.shape[:-1], width, n_outputs)
        layer = layer @ np.swapaxes(vectors, -1, -2)
        weights[..., self.n_sampled :] = layer.reshape(*weights.shape[:-1], -1)
        return weights

    def output_layers(self, q):
        """Return ``None``: the output layers of correlated targets depend on each other."""
        return None

    def left_out_outputs(self, q):
        """Return ``None``: targets of a row with correlated noise are not left out one by one."""
        return None

    def _likelihood(self, place):
        noise, slopes = self._noise(place)
        covariance = noise.covariance(place.hyper.beta)
        rows, vectors = self._rotated(covariance)
        found, regression = self._of_rows(place, rows)
        residual, weight = regression.residual, self.posterior.sample_weight
        moments = np.swapaxes(residual, -1, -2) @ (weight[:, None] * residual)
        diagonal = np.arange(moments.shape[-1])
        # with the variance of output weights that are integrated out
        moments[..., diagonal, diagonal] = 2.0 * regression.log_precision / rows.precision
        # the derivative in Sigma, Sigma^-1 (N Sigma - moments) Sigma^-1 / 2, in its eigenvectors
        precision = rows.precision[..., :, None]
        slope = -precision * moments * np.swapaxes(precision, -1, -2)
        slope[..., diagonal, diagonal] += self.posterior.n_rows * rows.precision
        slope = 0.5 * vectors @ slope @ np.swapaxes(vectors, -1, -2)
        sd = noise.noise_sd(place.hyper.beta)
        by_correlation = sd[..., :, None] * slope * sd[..., None, :]
        by_own = np.sum(by_correlation[..., None, :, :] * slopes, axis=(-2, -1))
        by_beta = sums_by(
            self.posterior.likelihood.membership, -np.sum(slope * covariance, axis=-1)
        )
        theta = np.concatenate([found.theta, by_own], axis=-1)
        return found._replace(theta=theta, log_beta=by_beta)

    def _hessian_of_means(self, theta, place):
        own = replace(self.posterior, likelihood=self._noise(place)[0])
        return own.data_hessian(theta, place.hyper.beta, exact=False)

    def _hessian_of_noise(self, place):
        noise, slopes = self._noise(place)
        relative = noise.inverse[..., None, :, :] @ slopes
        fisher = np.einsum("...kij,...lji->...kl", relative, relative)
        return 0.5 * self.posterior.n_rows * fisher
