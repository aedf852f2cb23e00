"""Layout of a multilayer perceptron: the map from a flat weight vector to layers."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from skbayesnn.network._activations import ACTIVATIONS, Activation


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

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers.
    n_outputs : int
        Number of outputs.
    phi : Activation
        Activation function with its derivatives.
    shapes : list of tuple
        Shapes ``(fan_in + 1, fan_out)`` of the augmented weight matrices.
    slices : list of slice
        Position of every layer in ``theta``.
    n_weights : int
        Number of weights and biases, ``k`` in the texts.

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

    # derived from these
    hidden_layer_sizes: tuple = field(init=False, repr=False, compare=False)
    n_outputs: int = field(init=False, repr=False, compare=False)
    phi: Activation = field(init=False, repr=False, compare=False)
    shapes: list = field(init=False, repr=False, compare=False)
    slices: list = field(init=False, repr=False, compare=False)
    n_weights: int = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        shapes, slices, end = [], [], 0
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.layer_sizes)):
            rows, start = fan_in + self.has_biases(layer), end
            end += rows * fan_out
            shapes.append((rows, fan_out))
            slices.append(slice(start, end))
        vars(self).update(
            hidden_layer_sizes=self.layer_sizes[1:-1],
            n_outputs=self.layer_sizes[-1],
            phi=ACTIVATIONS[self.activation],
            shapes=shapes,
            slices=slices,
            n_weights=end,
        )

    def has_biases(self, layer):
        """Return True if layer ``layer`` of the weights (from 0) has biases."""
        return self.output_bias or layer < len(self.layer_sizes) - 2

    def without_biases(self, matrix, layer):
        """Drop the row of the biases of an augmented matrix ``(..., fan_in + 1, fan_out)``."""
        return matrix[..., : self.layer_sizes[layer], :]

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
