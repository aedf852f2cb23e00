"""Multilayer perceptron: activation functions, layout of the weights, and forward propagation."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr

BLOCK_DOUBLES = 2**20  # numbers that one temporary array may hold per network (8 MiB)
CACHED_DOUBLES = 2**14  # numbers per array if several arrays share a fast cache


class Activation(NamedTuple):
    """Hidden-unit non-linearity ``z = phi(a)``."""

    successive: Callable  # generator of ``phi(a)``, ``phi'(a)`` and ``phi''(a)``
    # whether ``phi(-a) = -phi(a)``: then a unit whose weights all change sign computes the same
    # function, which doubles the number of equivalent minima (MacKay 1992, section 3.3)
    odd: bool = False
    # whether ``phi`` is linear: then hidden units can be rotated into each other freely
    linear: bool = False
    half_range: float = np.inf  # half the distance between the lowest and the highest value

    def derivatives(self, a, order):
        """Values ``phi(a)`` and derivatives up to ``order``, each of the shape of ``a``."""
        return tuple(islice(self.successive(a), order + 1))


def _identity(a):
    yield a
    yield np.ones_like(a)
    yield np.zeros_like(a)


def _tanh(a):
    z = np.tanh(a)
    yield z
    slope = z * z
    yield np.subtract(1.0, slope, out=slope)
    yield -2.0 * z * slope


def _logistic(a):
    z = expit(a)
    yield z
    slope = z * (1.0 - z)
    yield slope
    yield slope * (1.0 - 2.0 * z)


def _relu(a):
    slope = (a > 0).astype(a.dtype)
    yield a * slope
    yield slope
    yield np.zeros_like(a)


def _silu(a):
    """Activation ``a sigmoid(a)``, also called swish (Elfwing, Uchibe & Doya 2018)."""
    s = expit(a)
    yield a * s
    yield s + a * s * (1.0 - s)
    yield s * (1.0 - s) * (2.0 + a * (1.0 - 2.0 * s))


def _gelu(a):
    """Activation ``a Phi(a)`` with the normal cdf ``Phi`` (Hendrycks & Gimpel 2016)."""
    cdf = ndtr(a)
    yield a * cdf
    pdf = np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi)
    yield cdf + a * pdf
    yield pdf * (2.0 - a * a)


ACTIVATIONS = {
    "identity": Activation(_identity, odd=True, linear=True),
    "tanh": Activation(_tanh, odd=True, half_range=1.0),
    "logistic": Activation(_logistic, half_range=0.5),
    "relu": Activation(_relu),
    "silu": Activation(_silu),
    "gelu": Activation(_gelu),
}


@dataclass(frozen=True)
class Network:
    """Shape of a multilayer perceptron with linear outputs.

    The weights of layer ``l`` are one *augmented* matrix of shape ``(fan_in + 1, fan_out)``
    whose last row holds the biases, which the output layer may lack; ``theta`` is the
    concatenation of these matrices, each in row-major order. Every function of this package accepts
    leading axes on ``theta`` (several networks at once: restarts, chains) and carries them through
    to its result.
    """

    layer_sizes: tuple  # n_features, *hidden_layer_sizes, n_outputs
    activation: str = "tanh"  # of the hidden units, one of `ACTIVATIONS`
    output_bias: bool = True  # whether the output layer has biases

    # derived from these
    hidden_layer_sizes: tuple = field(init=False, repr=False, compare=False)
    n_outputs: int = field(init=False, repr=False, compare=False)
    phi: Activation = field(init=False, repr=False, compare=False)
    # (fan_in + 1, fan_out) of the augmented weight matrices
    shapes: list = field(init=False, repr=False, compare=False)
    slices: list = field(init=False, repr=False, compare=False)  # of every layer in theta
    n_weights: int = field(init=False, repr=False, compare=False)  # with biases, k in the texts

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


class Trace(NamedTuple):
    """Record of a forward pass over some rows; lists have an item for each layer.

    The inputs of a layer have a column of ones where it has biases. The first ones are shared by
    all networks, without leading axes.
    """

    network: Network
    layers: list  # augmented weight matrices (..., fan_in + 1, fan_out)
    inputs: list  # of every layer, (..., n, fan_in + 1)
    slopes: list  # first derivatives of the hidden units, (..., n, width)
    bends: list  # second derivatives
    outputs: np.ndarray  # (..., n, n_outputs)


def with_constant(network, z, layer=0):
    """Append a column of ones to inputs ``(..., n, d)`` of a layer of weights if it has biases."""
    if not network.has_biases(layer):
        return z
    augmented = np.empty((*z.shape[:-1], z.shape[-1] + 1))
    augmented[..., :-1] = z
    augmented[..., -1] = 1.0
    return augmented


def forward(network, theta, X, order=0):
    """Propagate rows ``X`` ``(n, n_features)`` through networks: their `Trace`.

    ``theta`` has the shape ``(..., k)``; ``order`` (0 to 2) is the number of derivatives of the
    activations that later steps need.
    """
    layers = network.layers(theta)
    inputs, slopes, bends = [with_constant(network, X)], [], []
    for layer, weights in enumerate(layers[:-1]):
        z, *derivatives = network.phi.derivatives(inputs[-1] @ weights, order)
        inputs.append(with_constant(network, z, layer + 1))
        if order > 0:
            slopes.append(derivatives[0])
        if order > 1:
            bends.append(derivatives[1])
    return Trace(network, layers, inputs, slopes, bends, inputs[-1] @ layers[-1])


def row_blocks(n_rows, doubles_per_row):
    """Yield consecutive slices of rows that keep the arrays of a block below `BLOCK_DOUBLES`.

    The widest of these has ``doubles_per_row`` numbers for each row. The blocks, and so the last
    bits of sums over rows, do not depend on the number of networks.
    """
    step = int(max(1, BLOCK_DOUBLES // max(1, doubles_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def outputs(network, theta, X):
    """Network outputs ``f(x; theta)`` of shape ``(..., n, n_outputs)``, blocked over rows."""
    return of_networks(attrgetter("outputs"), network, theta, X)


def of_networks(function, network, theta, X, order=0, others=()):
    """Values of a function of traces at all rows, in blocks of rows and networks.

    ``function`` maps a `Trace` to an array ``(..., n, *values)``; the result has that shape. Its
    further arguments are those items of the arrays ``others`` that belong to the same networks.
    """
    networks, width, result = theta.reshape(-1, theta.shape[-1]), max(network.layer_sizes), None
    for rows in row_blocks(len(X), width):
        step = max(1, CACHED_DOUBLES // (width * (rows.stop - rows.start)))
        for first in range(0, max(1, len(networks)), step):
            some = slice(first, first + step)
            trace = forward(network, networks[some], X[rows], order)
            values = function(trace, *(array[some] for array in others))
            if result is None:
                result = np.empty((len(networks), len(X), *values.shape[2:]))
            result[some, rows] = values
    return result.reshape(*theta.shape[:-1], *result.shape[1:])
