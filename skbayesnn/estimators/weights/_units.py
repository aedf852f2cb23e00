"""Conversion of weights to the units of X and y, and their names."""

from dataclasses import dataclass

import numpy as np

from skbayesnn._data import Scaling
from skbayesnn.network import Network


@dataclass(frozen=True)
class WeightUnits:
    """Affine map from weights for standardised inputs and outputs to weights in the user's units.

    With ``x = (X - m) / s`` and ``Y = c f + d`` a network keeps its form: weights of inputs are
    divided by ``s``, ``m / s`` times them is subtracted from the biases of their layer, weights and
    biases of the output layer are multiplied by ``c``, and ``d`` is added to its biases. Every
    method takes weights ``(..., k)``.
    """

    network: Network
    X_scaling: Scaling
    y_scaling: Scaling

    @classmethod
    def none(cls, network):
        """Make the identity map."""
        ends = network.layer_sizes[0], network.n_outputs
        return cls(network, *map(Scaling.none, ends))

    def weights(self, theta):
        """Convert weights to the units of X and y."""
        layers = self._linear(theta)
        layers[-1][..., self.network.layer_sizes[-2] :, :] += self.y_scaling.shift
        return self.network.pack(layers)

    def deviations(self, vectors):
        """Convert differences of weights: the linear part of the map."""
        return self.network.pack(self._linear(vectors))

    def standardised(self, deviations):
        """Convert differences of weights back: the inverse of `deviations`."""
        layers = [w.copy() for w in self.network.layers(deviations)]
        layers[-1] /= self.y_scaling.scale
        first, d = layers[0], self.network.layer_sizes[0]
        first[..., d:, :] += (self.X_scaling.shift @ first[..., :d, :])[..., None, :]
        first[..., :d, :] *= self.X_scaling.scale[:, None]
        return self.network.pack(layers)

    def standard_deviations(self, precision):
        """Standard deviations of weights, ``(k,)``, from a `Precision` in standardised units."""
        network = self.network
        layers = [w.copy() for w in network.layers(np.sqrt(precision.variances()))]
        layers[0][: network.layer_sizes[0]] /= self.X_scaling.scale[:, None]
        if network.has_biases(0):
            layers[0][-1] = self._first_biases(precision)
        layers[-1] *= self.y_scaling.scale
        return network.pack(layers)

    def _first_biases(self, precision):
        """Standard deviations of the first layer's biases, in units of X."""
        shifts = np.append(-self.X_scaling.shift / self.X_scaling.scale, 1.0)
        fan_in, units = self.network.shapes[0]
        to_bias = np.zeros((units, 1, self.network.n_weights))
        for unit in range(units):
            to_bias[unit, 0, np.arange(fan_in) * units + unit] = shifts
        return np.sqrt(precision.project(to_bias)[:, 0, 0])

    def split(self, theta):
        """Split weights ``(k,)`` into ``(coefs, intercepts)`` as in scikit-learn.

        Missing biases of a layer are zero.
        """
        layers = list(zip(self.network.layers(theta), self.network.layer_sizes[:-1], strict=True))
        return [w[:n].copy() for w, n in layers], [w[n:].sum(axis=0) for w, n in layers]

    def _linear(self, theta):
        layers = [w.copy() for w in self.network.layers(theta)]
        first, d = layers[0], self.network.layer_sizes[0]
        first[..., :d, :] /= self.X_scaling.scale[:, None]
        first[..., d:, :] -= (self.X_scaling.shift @ first[..., :d, :])[..., None, :]
        layers[-1] *= self.y_scaling.scale
        return layers


def weight_names(network, inputs, outputs):
    """Make readable names of all weights, in the order of ``theta``.

    Hidden units are counted from 0. A single output is not named.
    """
    names = []
    for layer, (rows, columns) in enumerate(network.shapes):
        last = layer == len(network.shapes) - 1
        title = "output" if last else f"hidden{layer + 1}"
        targets = [f" -> {name}" for name in (outputs if last else range(columns))]
        if last and columns == 1:
            targets = [""]
        width = network.layer_sizes[layer]
        sources = [*(range(width) if layer else inputs), *["bias"] * (rows - width)]
        names += [f"{title}[{source}{target}]" for source in sources for target in targets]
    return tuple(names)
