"""Networks that predict: their protocol, and one network with a Gaussian posterior of its weights.

Everything is in standardised units.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from skbayesnn.network import (
    Network,
    forward,
    input_jacobian,
    jacobian,
    jacobian_vector,
    mixed_jacobian,
    of_networks,
    outputs,
    row_blocks,
)
from skbayesnn.predictive._moderation import MANY_CLASSES, class_moments, independent_softmax
from skbayesnn.predictive._noise import GaussianNoise, with_errors


def class_probabilities(activations):
    """Class probabilities ``(..., n_classes)`` of activations; one activation for two classes."""
    if activations.shape[-1] == 1:
        return np.concatenate([expit(-activations), expit(activations)], axis=-1)
    return softmax(activations, axis=-1)


def log_probability(p, y):
    """Log probability of one-hot classes ``y``; one column of 0 and 1 for two classes."""
    y = np.concatenate([1.0 - y, y], axis=1) if y.shape[1] == 1 else y
    return np.log(np.maximum(np.sum(p * y, axis=-1), np.finfo(float).tiny))


class Part:
    """Protocol of ``m`` networks of one layout, each with its own weights.

    Parts have a ``network`` and a ``noise``, which is ``None`` for classifiers.
    """

    def outputs(self, X):
        """Mean outputs ``(m, n, n_outputs)``."""

    def moments(self, X):
        """Mean outputs and their covariances ``(m, n, n_outputs, n_outputs)``, without noise."""

    def noise_covariances(self, X):
        """Covariances of the noise between outputs, ``(m, n or 1, n_outputs, n_outputs)``."""
        return self.noise.covariances(X)

    def spreads(self, X):
        """Mean outputs, and their covariances or independent variances, see `GaussianNoise`."""
        return self.moments(X)

    def joint_covariances(self, X):
        """Covariance of every output between rows, ``(m, n_outputs, n, n)``, without noise."""

    def marginals(self, X, weights):
        """List of `Components` of targets, by law, given weights ``(m,)`` of the networks."""
        return self.noise.components(weights, *self.spreads(X), X)

    def log_densities(self, X, y, errors=None):
        """Log densities of targets, jointly over the outputs, ``(m, n)``.

        ``errors`` are variances of known errors, ``(n, n_outputs)``.
        """
        f, spread = self.spreads(X)
        return self.noise.log_density(y - f, with_errors(spread, errors), X)

    def draw(self, X, rng, size, noisy=False):
        """Draw functions from the posterior, joint over rows: ``(size, n, n_outputs)``.

        If ``noisy``, draw targets, which have the noise of the same network.
        """

    def probabilities(self, X, moderated):
        """Class probabilities, mean and variance over the networks and their weights."""

    def gradients(self, X):
        """Derivatives of the mean outputs by the inputs, ``(m, n, n_outputs, n_features)``.

        Activations of several classes are taken relative to their mean over the classes: the
        probabilities do not depend on it.
        """

    def gradient_moments(self, X):
        """Derivatives as in `gradients`, and their posterior variances, of the same shape."""

    def draw_gradients(self, X, rng, size):
        """Derivatives of the functions that `draw` gives, ``(size, n, n_outputs, n_features)``."""

    @property
    def _has_classes(self):
        """True for three classes or more."""
        return self.noise is None and self.network.n_outputs > 1

    def _relative(self, slopes):
        """Subtract the mean over classes, if there are several activations."""
        return slopes - slopes.mean(axis=-2, keepdims=True) if self._has_classes else slopes

    def whitened(self, X):
        """Outputs as ``mean + V z`` with ``z`` standard normal: ``(n, o)`` and ``(n, o, r)``."""


@dataclass(frozen=True)
class Member(Part):
    """Network with a Gaussian posterior of its weights, linearised in the weights."""

    network: Network
    theta: np.ndarray  # most probable weights, (k,)
    precision: object
    noise: GaussianNoise | None = None
    shift: np.ndarray | None = None  # from theta, where the network is linearised, to the mean
    # weights with the Gaussian posterior; the others are certain
    free: slice = field(default_factory=lambda: slice(None))

    @property
    def n_unknowns(self):
        """Number of weights with a Gaussian posterior."""
        return len(self.theta[self.free])

    @property
    def doubles_per_row(self):
        """Memory per row to predict in doubles, besides the blocks of bounded memory."""
        n_outputs = self.network.n_outputs
        if self.noise is None and n_outputs > MANY_CLASSES:
            return n_outputs
        n_gaussians = 1 if self.noise is None else self.noise.n_gaussians
        return n_gaussians * n_outputs**2

    def moments(self, X, rough=False):
        """Outputs and their covariance ``g^T A^-1 g`` due to the weights (Bishop 5.172-5.173).

        The ``rough`` form is faster for many classes, with fewer digits; all weights are free then.
        """
        network, precision = self.network, self.precision
        width = max(network.layer_sizes[1:]) if rough else network.n_outputs
        if rough:
            of_trace = precision.rough_output_covariances
        else:
            of_trace = partial(precision.output_covariances, free=self.free)
        mean, covariance = self._by_rows(of_trace, X, width * network.n_weights)
        factors = self._within_range(X, covariance)
        return mean[None], (factors[..., None] * covariance * factors[:, None])[None]

    def relative_variances(self, X):
        """Mean activations, and their variances relative to the mean over classes, (n, p)."""
        network, of_trace = self.network, partial(self.precision.relative_variances, free=self.free)
        widest = max(network.layer_sizes[1:])
        width = network.n_weights if self.precision.forms_jacobians else widest
        return self._by_rows(of_trace, X, network.n_outputs * width)

    def _by_rows(self, of_trace, X, width):
        """Mean outputs, and a function of the trace, of blocks of rows of some width in doubles."""
        blocks = []
        for rows in row_blocks(len(X), width):
            trace = forward(self.network, self.theta, X[rows], order=1)
            blocks.append((self._mean(trace), of_trace(trace)))
        return tuple(map(np.concatenate, zip(*blocks, strict=True)))

    def linearised(self, X):
        """Mean outputs ``(n, n_outputs)`` and derivatives ``(n, n_outputs, k)`` by free weights."""
        trace = forward(self.network, self.theta, X, order=1)
        J = np.ascontiguousarray(jacobian(trace)[..., self.free])
        return self._mean(trace), J * self._within_range(X, self.precision.project(J))[..., None]

    def _within_range(self, X, covariance):
        """Factors ``(n, n_outputs)`` that keep error bars of regressions within what units allow.

        Error bars up to the spread of the targets stay.
        """
        network, factors = self.network, np.ones(covariance.shape[:2])
        bounded = network.hidden_layer_sizes and np.isfinite(network.phi.half_range)
        if self.noise is None or not bounded:
            return factors
        sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
        wide = np.flatnonzero(np.any(sd > 1.0, axis=1))
        for block in row_blocks(len(wide), sum(network.layer_sizes[-2:]) * network.n_weights):
            rows = wide[block]
            most = largest_deviations(network, self.theta, self.precision, X[rows])
            factors[rows] = np.minimum(1.0, np.maximum(most, 1.0) / sd[rows])
        return factors

    def _mean(self, trace):
        if self.shift is None:
            return trace.outputs
        shift = np.zeros_like(self.theta)
        shift[self.free] = self.shift
        return trace.outputs + jacobian_vector(trace, shift)

    def outputs(self, X):
        return outputs(self.network, self.theta, X)[None]

    def joint_covariances(self, X):
        J = np.moveaxis(self.linearised(X)[1], 1, 0)
        return np.stack([self.precision.project(part[None])[0] for part in J])[None]

    def draw(self, X, rng, size, noisy=False):
        deviations = self.precision.draw(rng, size)
        draws = np.empty((size, len(X), self.network.n_outputs))
        for rows in row_blocks(len(X), self.network.n_outputs * self.network.n_weights):
            mean, J = self.linearised(X[rows])
            draws[:, rows] = mean + np.moveaxis(J @ deviations.T, -1, 0)
        return draws + self.noise.draw(X, draws.shape, rng) if noisy else draws

    def gradients(self, X):
        if self.shift is None:
            slopes = of_networks(input_jacobian, self.network, self.theta[None], X, order=1)
            return self._relative(slopes)
        return np.concatenate([slopes for slopes, _ in self._slopes(X)])[None]

    def gradient_moments(self, X):
        """Derivatives, and their variances ``G A^-1 G^T``, with ``G`` the `mixed_jacobian`."""
        pieces = []
        for mean, G in self._slopes(X):
            variances = self.precision.project(G.reshape(-1, 1, G.shape[-1]))
            pieces.append((mean, variances.reshape(G.shape[:-1])))
        return tuple(np.concatenate(blocks)[None] for blocks in zip(*pieces, strict=True))

    def draw_gradients(self, X, rng, size):
        deviations = self.precision.draw(rng, size)
        parts = [mean[..., None] + G @ deviations.T for mean, G in self._slopes(X)]
        return np.moveaxis(np.concatenate(parts), -1, 0)

    def _slopes(self, X):
        """Yield mean derivatives of blocks of rows, and `mixed_jacobian` of the free weights."""
        network = self.network
        widest = network.n_outputs * network.n_weights * max(network.layer_sizes)
        for rows in row_blocks(len(X), widest):
            trace = forward(network, self.theta, X[rows], order=2)
            slopes = self._relative(input_jacobian(trace))
            # all weights are free, or those of the last layer
            G = mixed_jacobian(trace, 0 if self.free == slice(None) else len(network.shapes) - 1)
            if self._has_classes:
                G = G - G.mean(axis=1, keepdims=True)
            yield slopes if self.shift is None else slopes + G @ self.shift, G

    def probabilities(self, X, moderated):
        """Class probabilities of Gaussian activations; ``moderated=False``: at the mode."""
        if not moderated:
            p = class_probabilities(self.outputs(X)[0])
            return p, np.zeros_like(p)
        if self.network.n_outputs > MANY_CLASSES:
            p, sd = independent_softmax(*self.relative_variances(X))
            return p, sd**2
        (mean,), (covariance,) = self.moments(X)
        return class_moments(mean, covariance)

    def whitened(self, X):
        mean, J = self.linearised(X)
        n, n_outputs, k = J.shape
        white = self.precision.whiten(J.reshape(n * n_outputs, k).T).T
        return mean, white.reshape(n, n_outputs, -1)


def largest_deviations(network, theta, precision, X):
    """Largest standard deviations of the outputs of rows, ``(n, n_outputs)``.

    Laplace's approximation linearises the network in its weights, and linearised units vary without
    limit, for example where inputs separate targets of 0 and 1. The standard deviation of a unit is
    at most half of its range (Popoviciu 1935), that of an output at most the sum of those of its
    terms (Minkowski's inequality).
    """
    (width, n_outputs), start = network.layer_sizes[-2:], network.slices[-1].start
    below = Network(network.layer_sizes[:-1], network.activation)
    trace = forward(network, theta, X, order=1)
    J = np.zeros((len(X), width + n_outputs, network.n_weights))
    J[:, :width, :start] = jacobian(forward(below, theta[:start], X, order=1))
    J[:, width:, start:] = jacobian(trace)[..., start:]
    variances = np.diagonal(precision.project(J), axis1=1, axis2=2)
    terms = np.sqrt(np.maximum(variances, 0.0))
    units = np.minimum(terms[:, :width] * trace.slopes[-1], network.phi.half_range)
    return units @ np.abs(trace.layers[-1][:width]) + terms[:, width:]
