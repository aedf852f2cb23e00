"""Networks that predict: one with a Gaussian posterior of its weights, or many drawn ones.

Both implement one protocol, `Part`, in standardised units.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, softmax

from skbayesnn.network import (
    Network,
    forward,
    input_jacobian,
    jacobian,
    jacobian_vector,
    mixed_factors,
    mixed_jacobian,
    mixed_product,
    of_networks,
    outputs,
    row_blocks,
)
from skbayesnn.posterior import OutputLayer
from skbayesnn.predictive._bounded_units import largest_deviations
from skbayesnn.predictive._mixture import Components
from skbayesnn.predictive._moderation import (
    MANY_CLASSES,
    independent_softmax,
    moderated_sigmoid,
    moderated_softmax,
    sigmoid_variance,
)
from skbayesnn.predictive._noise import NORMAL, GaussianNoise

FUNCTIONS = 4  # functions drawn for each network, which represent covariances between rows


def class_probabilities(activations):
    """Class probabilities ``(..., n_classes)`` of activations; one activation for two classes."""
    if activations.shape[-1] == 1:
        return np.concatenate([expit(-activations), expit(activations)], axis=-1)
    return softmax(activations, axis=-1)


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

    def joint_covariances(self, X):
        """Covariance of every output between rows, ``(m, n_outputs, n, n)``, without noise."""

    def marginals(self, X, weights):
        """List of `Components` of targets, by law, given weights ``(m,)`` of the networks."""

    def log_densities(self, X, y, errors=None):
        """Log densities of targets, jointly over the outputs, ``(m, n)``.

        ``errors`` are variances of known errors, ``(n, n_outputs)``.
        """

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
    free: slice | None = None  # weights with the Gaussian posterior; the others are certain

    @property
    def n_unknowns(self):
        """Number of weights with a Gaussian posterior."""
        return len(self.theta[self._free])

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
        n_outputs = self.network.n_outputs
        mean = np.empty((len(X), n_outputs))
        covariance = np.empty((len(X), n_outputs, n_outputs))
        width = max(self.network.layer_sizes[1:]) if rough else n_outputs
        for rows in row_blocks(len(X), width * self.network.n_weights):
            trace = forward(self.network, self.theta, X[rows], order=1)
            mean[rows] = self._mean(trace)
            if rough:
                covariance[rows] = self.precision.rough_output_covariances(trace)
            else:
                covariance[rows] = self.precision.output_covariances(trace, self._free)
        factors = self._within_range(X, covariance)
        return mean[None], (factors[..., None] * covariance * factors[:, None])[None]

    def relative_variances(self, X):
        """Mean activations, and their variances relative to the mean over classes, (n, p)."""
        network = self.network
        mean, variance = np.empty((2, len(X), network.n_outputs))
        widest = max(network.layer_sizes[1:])
        width = network.n_weights if self.precision.forms_jacobians else widest
        for rows in row_blocks(len(X), network.n_outputs * width):
            trace = forward(network, self.theta, X[rows], order=1)
            mean[rows] = self._mean(trace)
            variance[rows] = self.precision.relative_variances(trace, self._free)
        return mean, variance

    def linearised(self, X):
        """Mean outputs ``(n, n_outputs)`` and derivatives ``(n, n_outputs, k)`` by free weights."""
        trace = forward(self.network, self.theta, X, order=1)
        J = np.ascontiguousarray(jacobian(trace)[..., self._free])
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
        shift[self._free] = self.shift
        return trace.outputs + jacobian_vector(trace, shift)

    @property
    def _free(self):
        return slice(None) if self.free is None else self.free

    def outputs(self, X):
        return outputs(self.network, self.theta, X)[None]

    def joint_covariances(self, X):
        J = np.moveaxis(self.linearised(X)[1], 1, 0)
        return np.stack([self.precision.project(part[None])[0] for part in J])[None]

    def marginals(self, X, weights):
        """Gaussian marginals, one for each Gaussian of the noise."""
        (mean,), (covariance,) = self.moments(X)
        (shares,), (noise,) = self.noise.mixture(X)
        scales = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2) + noise)
        means = np.broadcast_to(mean, scales.shape)
        return [Components(weights * shares, means, scales, NORMAL)]

    def log_densities(self, X, y, errors=None):
        means, covariances = self.moments(X)
        if errors is not None:
            covariances = covariances + errors[..., None] * np.eye(y.shape[-1])
        return self.noise.log_density(y - means, covariances, X)

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
        for mean, factors in self._slopes(X):
            G = mixed_jacobian(factors)
            variances = self.precision.project(G.reshape(-1, 1, G.shape[-1]))
            pieces.append((mean, variances.reshape(G.shape[:-1])))
        return tuple(np.concatenate(blocks)[None] for blocks in zip(*pieces, strict=True))

    def draw_gradients(self, X, rng, size):
        deviations, parts = self.precision.draw(rng, size), []
        for mean, factors in self._slopes(X):
            parts.append(mean + np.stack([mixed_product(factors, v) for v in deviations]))
        return np.concatenate(parts, axis=1)

    def _slopes(self, X):
        """Yield mean derivatives of blocks of rows, and `mixed_factors` of the free weights."""
        network = self.network
        widest = network.n_outputs * network.n_weights * max(network.layer_sizes)
        for rows in row_blocks(len(X), widest):
            trace = forward(network, self.theta, X[rows], order=2)
            slopes, factors = self._relative(input_jacobian(trace)), mixed_factors(trace)
            if self._has_classes:
                factors = [factor.relative() for factor in factors]
            if self.free is not None:  # only the last layer is free
                factors = factors[-1:]
            if self.shift is not None:
                slopes = slopes + mixed_product(factors, self.shift)
            yield slopes, factors

    def probabilities(self, X, moderated):
        """Class probabilities of Gaussian activations; ``moderated=False``: at the mode."""
        if not moderated:
            p = class_probabilities(self.outputs(X)[0])
            return p, np.zeros_like(p)
        if self.network.n_outputs > MANY_CLASSES:
            p, sd = independent_softmax(*self.relative_variances(X))
            return p, sd**2
        (mean,), (covariance,) = self.moments(X)
        if mean.shape[1] > 1:
            p, sd = moderated_softmax(mean, covariance)
            return p, sd**2
        a, variance = mean[:, 0], np.maximum(covariance[:, 0, 0], 0.0)
        p = np.stack([moderated_sigmoid(sign * a, variance) for sign in (-1.0, 1.0)], axis=1)
        return p, np.broadcast_to(sigmoid_variance(a, variance)[:, None], p.shape)

    def whitened(self, X):
        mean, J = self.linearised(X)
        n, n_outputs, k = J.shape
        white = self.precision.whiten(J.reshape(n * n_outputs, k).T).T
        return mean, white.reshape(n, n_outputs, -1)


@dataclass(frozen=True)
class Draws(Part):
    """Networks drawn from the posterior, each with its own noise."""

    network: Network
    theta: np.ndarray  # drawn weights (m, k), in any floating point type
    noise: GaussianNoise | None = None
    best: int = 0  # index of the draw of highest density

    @property
    def size(self):
        """Number of draws."""
        return len(self.theta)

    def first(self, size):
        """Select the first draws."""
        noise = self.noise and self.noise.of(slice(size))
        return replace(self, theta=self.theta[:size], noise=noise)

    n_unknowns = size  # number of deviations from the mean

    @property
    def doubles_per_row(self):
        """Memory per row to predict in doubles, for all drawn networks side by side."""
        widths = [*self.network.layer_sizes[1:], self.network.n_outputs**2]
        if self.noise is not None:
            widths += self.noise.widths
        return len(self.theta) * max(widths) // 4

    def outputs(self, X):
        return outputs(self.network, self.theta.astype(float), X)

    def moments(self, X):
        f = self.outputs(X)
        return f, np.broadcast_to(0.0, (*f.shape, f.shape[-1]))

    def joint_covariances(self, X):
        return np.broadcast_to(0.0, (self.size, self.network.n_outputs, len(X), len(X)))

    def marginals(self, X, weights):
        """Laws of the noise around the output of every draw."""
        f, scales = self.outputs(X), self.noise.scales(X)
        return [Components(weights[i], f[i], scales[i], law) for law, i in self.noise.laws]

    def log_densities(self, X, y, errors=None):
        residual, covariance = y - self.outputs(X), None
        if errors is not None:
            covariance = np.broadcast_to(
                errors[..., None] * np.eye(y.shape[-1]), (*residual.shape, y.shape[-1])
            )
        return self.noise.log_density(residual, covariance, X)

    def draw(self, X, rng, size, noisy=False):
        chosen = rng.integers(self.size, size=size)
        f = outputs(self.network, self._drawn_weights(chosen, rng), X)
        return f + self.noise.of(chosen).draw(X, f.shape, rng) if noisy else f

    def gradients(self, X):
        return self._slopes(self.theta.astype(float), X)

    def gradient_moments(self, X):
        """Derivatives, and zeros for their variances."""
        slopes = self.gradients(X)
        return slopes, np.broadcast_to(0.0, slopes.shape)

    def draw_gradients(self, X, rng, size):
        chosen = rng.integers(self.size, size=size)
        return self._slopes(self._drawn_weights(chosen, rng), X)

    def _drawn_weights(self, chosen, rng):
        return self.theta[chosen].astype(float)

    def _slopes(self, theta, X):
        return self._relative(of_networks(input_jacobian, self.network, theta, X, order=1))

    def probabilities(self, X, moderated):
        """Mean class probabilities; ``moderated=False``: those of the draw of highest density."""
        if not moderated:
            p = class_probabilities(outputs(self.network, self.theta[self.best].astype(float), X))
            return p, np.zeros_like(p)
        parts = []
        for rows in row_blocks(len(X), self.doubles_per_row):
            p = class_probabilities(self.outputs(X[rows]))
            parts.append((p.mean(axis=0), p.var(axis=0)))
        return tuple(np.concatenate(blocks) for blocks in zip(*parts, strict=True))

    def whitened(self, X):
        """Outputs as ``mean + V z``: deviations from the mean, divided by ``m^(1/2)``."""
        f = self.outputs(X)
        mean = f.mean(axis=0)
        return mean, np.moveaxis(f - mean, 0, -1) / np.sqrt(len(f))


@dataclass(frozen=True)
class GivenHidden(Draws):
    """Drawn hidden weights, with the Gaussian posterior of the output layer given each of them.

    Averages over the output layer are exact, only those over hidden weights and precisions are
    Monte Carlo estimates (Gelfand & Smith 1990). Where there is hardly any noise,
    drawn output layers would make a mixture of laws far narrower than the gaps between them. The
    noise is Gaussian, and independent between outputs. The weights have the mean output layers.
    """

    layers: OutputLayer | None = None

    def first(self, size):
        return replace(super().first(size), layers=self.layers.at(slice(size)))

    @property
    def n_unknowns(self):
        """Number of functions that `whitened` draws."""
        return FUNCTIONS * self.size

    def _moments(self, X):
        """Means and variances of the outputs of every network, ``(m, n, n_outputs)`` each."""

        def moments(trace, *layers):
            variances = OutputLayer(*layers).variances(trace.inputs[-1])
            return np.stack([trace.outputs, variances], axis=-1)

        both = of_networks(moments, self.network, self.theta, X, others=self.layers)
        return both[..., 0], both[..., 1]

    def moments(self, X):
        f, variances = self._moments(X)
        return f, variances[..., None] * np.eye(f.shape[-1])

    def joint_covariances(self, X):
        root, known = self.layers.roots(forward(self.network, self.theta, X).inputs[-1])
        return root @ np.swapaxes(root, -1, -2) - known @ np.swapaxes(known, -1, -2)

    def marginals(self, X, weights):
        f, variances = self._moments(X)
        return [Components(weights, f, np.sqrt(self.noise.scales(X) ** 2 + variances), NORMAL)]

    def log_densities(self, X, y, errors=None):
        return self.noise.widened(y, *self._moments(X), X, errors)[0]

    def _drawn_weights(self, chosen, rng):
        theta = self.theta[chosen]
        for block in row_blocks(len(chosen), self.layers.known[0].size):
            layers = self.layers.at(chosen[block])
            drawn = layers.weights(rng.standard_normal(layers.sd.shape))
            output = np.swapaxes(drawn, -1, -2).reshape(len(drawn), -1)
            theta[block, self.network.slices[-1]] = output
        return theta

    def gradient_moments(self, X):
        """Derivatives, and their variances due to the output layer."""

        def variances(trace, *layers):
            slopes = mixed_factors(trace)[-1].tangents  # of the hidden units, (m, n, d, width)
            flat = slopes.reshape(len(slopes), -1, slopes.shape[-1])
            values = OutputLayer(*layers).variances(flat).reshape(*slopes.shape[:-1], -1)
            return np.swapaxes(values, -1, -2)

        return self.gradients(X), of_networks(
            variances, self.network, self.theta, X, 2, self.layers
        )

    def whitened(self, X):
        """Outputs as ``mean + V z``, with exact mean and variances, and correlations of draws."""
        chosen, rng = np.repeat(np.arange(self.size), FUNCTIONS), np.random.default_rng(0)
        means, variances = self._moments(X)
        mean = means.mean(axis=0)
        V = np.moveaxis(outputs(self.network, self._drawn_weights(chosen, rng), X) - mean, 0, -1)
        total = means.var(axis=0) + variances.mean(axis=0)  # law of total variance
        return mean, V * np.sqrt(total / np.sum(V**2, axis=-1))[..., None]
