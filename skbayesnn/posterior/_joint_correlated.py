"""Correlated noise for samplers: coordinates of the correlations move with the weights."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skbayesnn.network import forward, hessian, vector_jacobian
from skbayesnn.posterior._correlation import correlation_root, n_correlations
from skbayesnn.posterior._joint import Derivatives, JointPosterior
from skbayesnn.posterior._output_layer import Rows
from skbayesnn.posterior._priors import WeightGroups

GROUP, TINY = "noise_correlation", np.finfo(float).tiny


@dataclass(frozen=True)
class CorrelatedJoint(JointPosterior):
    """Joint posterior with noise that is correlated between outputs.

    The position holds, after the weights of the means, coordinates of the correlation matrix that
    are standard normal a priori, see `correlation_root`: weights in a group of fixed precision 1.

    In the eigenvectors of the noise covariance the outputs have independent noise, and if a unit's
    weights to all outputs have the same prior, their prior is the same there: that is how the
    output layer is integrated out.

    Parameters
    ----------
    posterior : Posterior
        With `CorrelatedGaussian` noise, whose correlation does not matter.
    """

    @cached_property
    def n_pairs(self):
        """Number of correlations."""
        return n_correlations(self.posterior.network.n_outputs)

    @cached_property
    def n_sampled(self):
        """Number of weights in the position, correlations among them."""
        return self.n_mean + self.n_pairs

    @cached_property
    def groups(self):
        """Weight groups of hidden weights, correlations, and output weights."""
        means, m = self.posterior.groups, self.n_mean
        own = np.full(self.n_pairs, len(means.names))
        labels = np.concatenate([means.labels[:m], own, means.labels[m:]])
        return WeightGroups(labels, [*means.names, GROUP])

    def merged(self, theta, z):
        """Weights of the position from those of the network and coordinates of correlations."""
        return np.concatenate([theta[..., : self.n_mean], z], axis=-1)

    def noise_state(self, q):
        """Correlations of all pairs of outputs, ``(..., n_pairs)``."""
        root, _ = self._root(self.place(q))
        rows, columns = np.tril_indices(root.shape[-1], -1)
        return (root @ np.swapaxes(root, -1, -2))[..., rows, columns]

    def noise_functions(self, state, X):
        """Correlations on Fisher's scale, the same at all inputs, ``(..., n, n_pairs)``."""
        scores = np.arctanh(np.clip(state, -1.0 + 1e-12, 1.0 - 1e-12))
        return np.broadcast_to(scores[..., None, :], (*scores.shape[:-1], len(X), self.n_pairs))

    def _of_means(self, theta):
        return np.concatenate([theta[..., : self.n_mean], theta[..., self.n_sampled :]], axis=-1)

    def _root(self, place):
        """Cholesky factor of the correlation matrix, and its derivatives."""
        return correlation_root(place.theta[..., self.n_mean :], self.posterior.network.n_outputs)

    def _rows(self, place):
        return self._rotated(place, self._root(place)[0])[0]

    def _rotated(self, place, root):
        """Targets as `Rows` along the eigenvectors of the noise covariance, and these."""
        sd = self.posterior.likelihood.noise_sd(place.hyper.beta)
        scaled = sd[..., :, None] * root
        values, vectors = np.linalg.eigh(scaled @ np.swapaxes(scaled, -1, -2))
        precision = 1.0 / np.maximum(values, TINY)
        return Rows(self.posterior.y @ vectors, self._row_weights, precision), vectors

    def _with_outputs(self, place, normal):
        weights, (n_outputs, width) = super()._with_outputs(place, normal), self._output_shape
        layer = weights[..., self.n_sampled :].reshape(*weights.shape[:-1], width, n_outputs)
        vectors = self._rotated(place, self._root(place)[0])[1]
        layer = layer @ np.swapaxes(vectors, -1, -2)
        weights[..., self.n_sampled :] = layer.reshape(*weights.shape[:-1], -1)
        return weights

    # --- energy and curvature --------------------------------------------------------------------

    def _likelihood(self, place):
        root, slopes = self._root(place)
        rows, vectors = self._rotated(place, root)
        if self.integrated:
            found, regression = self._of_rows(place.theta, place.hyper, rows)
            moments = _moments(regression.residual, self.posterior.sample_weight)
            outputs = np.arange(moments.shape[-1])
            # with the variance of output weights that are integrated out
            moments[..., outputs, outputs] = 2.0 * regression.log_precision / rows.precision
        else:
            found, moments = self._given_all_weights(place, rows.precision, vectors)
        # the derivative in Sigma, Sigma^-1 (N Sigma - moments) Sigma^-1 / 2, in its eigenvectors
        precision = rows.precision[..., :, None]
        slope = -0.5 * precision * moments * np.swapaxes(precision, -1, -2)
        slope = slope + 0.5 * self.posterior.n_rows * precision * np.eye(moments.shape[-1])
        slope = vectors @ slope @ np.swapaxes(vectors, -1, -2)
        by_beta, by_pairs = self._chain(place, slope, root, slopes)
        theta = np.concatenate([found.theta, by_pairs], axis=-1)
        return found._replace(theta=theta, log_beta=by_beta)

    def _given_all_weights(self, place, precision, vectors):
        """`Derivatives`, and second moments of residuals along the eigenvectors."""
        posterior, weight = self.posterior, self.posterior.sample_weight
        trace = forward(posterior.network, self._of_means(place.theta), posterior.X, 1)
        residual = (trace.outputs - posterior.y) @ vectors
        moments = _moments(residual, weight)
        pull = weight[:, None] * residual * precision[..., None, :]
        gradient = vector_jacobian(trace, pull @ np.swapaxes(vectors, -1, -2))
        squares = np.diagonal(moments, axis1=-2, axis2=-1)
        normaliser = posterior.n_rows * np.log(precision / (2.0 * np.pi))
        value = 0.5 * np.sum(precision * squares - normaliser, axis=-1)
        return Derivatives(value, gradient, np.zeros_like(place.hyper.alpha), None), moments

    def _chain(self, place, slope, root, slopes):
        """From the derivative in the noise covariance to those in ``ln beta`` and coordinates."""
        sd = self.posterior.likelihood.noise_sd(place.hyper.beta)
        by_correlation = sd[..., :, None] * slope * sd[..., None, :]
        correlation = root @ np.swapaxes(root, -1, -2)
        by_beta = self._sum_levels(-np.sum(by_correlation * correlation, axis=-1))
        by_root = 2.0 * by_correlation @ root
        return by_beta, np.sum(by_root[..., None, :, :] * slopes, axis=(-2, -1))

    def _data_hessian(self, theta, place):
        rows, vectors = self._rotated(place, self._root(place)[0])
        precision = (vectors * rows.precision[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        trace = forward(self.posterior.network, self._of_means(theta), self.posterior.X, 1)
        weight = self.posterior.sample_weight[:, None, None]
        curvature = np.broadcast_to(
            weight * precision[..., None, :, :], (*trace.outputs.shape, precision.shape[-1])
        )
        means = hessian([(trace, np.zeros_like(trace.outputs), curvature)], exact=False)
        m, n, k = self.n_mean, self.n_sampled, theta.shape[-1]
        matrix, index = np.zeros((*theta.shape, k)), np.r_[:m, n:k]
        matrix[..., index[:, None], index] = means
        matrix[..., m:n, m:n] = self._information(place)
        return matrix

    def _information(self, place):
        """Expected Hessian in the coordinates of correlations."""
        root, slopes = self._root(place)
        white = np.linalg.solve(root[..., None, :, :], slopes)
        white = white + np.swapaxes(white, -1, -2)
        flat = white.reshape(*white.shape[:-2], -1)
        return 0.5 * self.posterior.n_rows * flat @ np.swapaxes(flat, -1, -2)


def _moments(residual, weight):
    """``sum_n s_n e_n e_n^T``, of shape (..., n_outputs, n_outputs)."""
    return np.swapaxes(residual, -1, -2) @ (weight[:, None] * residual)
