"""Networks drawn from the posterior that predict, in standardised units."""

from dataclasses import dataclass, replace

import numpy as np

from skbayesnn.network import (
    Network,
    forward,
    input_jacobian,
    input_tangents,
    of_networks,
    outputs,
    row_blocks,
)
from skbayesnn.posterior import OutputLayer
from skbayesnn.predictive._members import Part, class_probabilities, log_probability
from skbayesnn.predictive._noise import GaussianNoise

FUNCTIONS = 4  # functions drawn for each network, which represent covariances between rows


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
        f, variances = self.spreads(X)
        covariances = np.asarray(variances)[..., None] * np.eye(f.shape[-1])
        return f, np.broadcast_to(covariances, (*f.shape, f.shape[-1]))

    def spreads(self, X):
        """Outputs, and their variances given the hidden weights: none."""
        return self.outputs(X), 0.0

    def joint_covariances(self, X):
        return np.broadcast_to(0.0, (self.size, self.network.n_outputs, len(X), len(X)))

    def pointwise(self, X, y, known=None):
        """Predictions of targets under each network, see `GaussianNoise.pointwise`.

        Classes are one-hot (one column of 0 and 1 for two classes).
        """
        f = self.outputs(X)
        if self.noise is not None:
            return self.noise.pointwise(y, f, 0.0, X, known)
        nothing = np.zeros_like(f)
        return log_probability(class_probabilities(f), y), f, nothing, nothing

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

    def spreads(self, X):
        """Means and variances of the outputs of every network, ``(m, n, n_outputs)`` each."""

        def moments(trace, *layers):
            variances = OutputLayer(*layers).variances(trace.inputs[-1])
            return np.stack([trace.outputs, variances], axis=-1)

        both = of_networks(moments, self.network, self.theta, X, others=self.layers)
        return both[..., 0], both[..., 1]

    def joint_covariances(self, X):
        root, known = self.layers.roots(forward(self.network, self.theta, X).inputs[-1])
        return root @ np.swapaxes(root, -1, -2) - known @ np.swapaxes(known, -1, -2)

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
            slopes = input_tangents(trace)[1][-1]  # of the hidden units, (m, n, d, width)
            flat = slopes.reshape(len(slopes), -1, slopes.shape[-1])
            values = OutputLayer(*layers).variances(flat).reshape(*slopes.shape[:-1], -1)
            return np.swapaxes(values, -1, -2)

        return self.gradients(X), of_networks(
            variances, self.network, self.theta, X, 1, self.layers
        )

    def whitened(self, X):
        """Outputs as ``mean + V z``, with exact mean and variances, and correlations of draws."""
        rng, shape = np.random.default_rng(0), self.layers.sd.shape
        drawn = [self.layers.weights(rng.standard_normal(shape)) for _ in range(FUNCTIONS)]

        def functions(trace, drawn):  # the hidden units of each network are computed once
            z = trace.inputs[-1][:, None]
            return np.moveaxis(z @ np.swapaxes(drawn, -1, -2), 1, -1)

        (means, variances), drawn = self.spreads(X), np.stack(drawn, axis=1)
        mean = means.mean(axis=0)
        f = of_networks(functions, self.network, self.theta, X, others=(drawn,))
        V = np.moveaxis(f - mean[..., None], 0, -1).reshape(*mean.shape, -1)
        total = means.var(axis=0) + variances.mean(axis=0)  # law of total variance
        return mean, V * np.sqrt(total / np.sum(V**2, axis=-1))[..., None]
