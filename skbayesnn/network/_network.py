"""Layout of a multilayer perceptron: the map from a flat weight vector to layers."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from skbayesnn.network._activations import ACTIVATIONS


@dataclass(frozen=True)
class Network:
    """Shape of a multilayer perceptron with linear outputs.

    The weights of layer ``l`` are one *augmented* matrix of shape ``(fan_in + 1, fan_out)``
    whose last row holds the biases, which the output layer may lack; ``theta`` is the
    concatenation of these matrices, each in row-major order. Every function of this package accepts
    leading axes on ``theta`` (several networks at once: restarts, chains) and carries them through
    to its result.

    Parameters
    ----------
    layer_sizes : tuple of int
        ``(n_features, *hidden_layer_sizes, n_outputs)``.
    activation : str
        Name of the hidden units' activation function.
    output_bias : bool, default=True
        Whether the output layer has biases.

    Examples
    --------
    >>> from skbayesnn.network import Network
    >>> network = Network((2, 8, 1))
    >>> network.n_weights
    33
    >>> network.shapes
    [(3, 8), (9, 1)]
    """

    layer_sizes: tuple
    activation: str = "tanh"
    output_bias: bool = True

    @property
    def n_outputs(self):
        """Number of outputs."""
        return self.layer_sizes[-1]

    @property
    def hidden_layer_sizes(self):
        """Widths of the hidden layers."""
        return self.layer_sizes[1:-1]

    @cached_property
    def phi(self):
        """Activation function with its derivatives."""
        return ACTIVATIONS[self.activation]

    @cached_property
    def shapes(self):
        """Shapes ``(fan_in + 1, fan_out)`` of the augmented weight matrices."""
        return [
            (fan_in + self.has_biases(layer), fan_out)
            for layer, (fan_in, fan_out) in enumerate(pairwise(self.layer_sizes))
        ]

    def has_biases(self, layer):
        """Return True if layer ``layer`` of the weights (from 0) has biases."""
        return self.output_bias or layer < len(self.layer_sizes) - 2

    def without_biases(self, matrix, layer):
        """Drop the row of the biases of an augmented matrix ``(..., fan_in + 1, fan_out)``."""
        return matrix[..., : self.layer_sizes[layer], :]

    @cached_property
    def slices(self):
        """Position of every layer in ``theta``."""
        found, start = [], 0
        for rows, columns in self.shapes:
            found.append(slice(start, start + rows * columns))
            start += rows * columns
        return found

    @property
    def n_weights(self):
        """Number of weights and biases, ``k`` in the texts."""
        return self.slices[-1].stop

    def layers(self, theta):
        """Views of ``theta`` ``(..., k)`` as augmented matrices ``(..., fan_in + 1, fan_out)``."""
        lead = theta.shape[:-1]
        return [
            theta[..., part].reshape(*lead, *shape)
            for part, shape in zip(self.slices, self.shapes, strict=True)
        ]

    def pack(self, layers):
        """Concatenate augmented matrices to ``theta``, ``(..., k)``: the inverse of `layers`."""
        return np.concatenate([w.reshape(*w.shape[:-2], -1) for w in layers], axis=-1)

    def without_units(self, hidden_layer, units):
        """Layout after the deletion of ``units`` of hidden layer ``hidden_layer`` (from 0)."""
        sizes = list(self.layer_sizes)
        sizes[hidden_layer + 1] -= len(units)
        return replace(self, layer_sizes=tuple(sizes))
