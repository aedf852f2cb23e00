"""Forward propagation, and the block sizes that bound its memory."""

from operator import attrgetter
from typing import NamedTuple

import numpy as np

BLOCK_DOUBLES = 2**20  # numbers that one temporary array may hold per network (8 MiB)
CACHED_DOUBLES = 2**14  # numbers per array if several arrays share a fast cache


class Trace(NamedTuple):
    """Record of a forward pass over some rows; lists have an item for each layer.

    The inputs of a layer have a column of ones where it has biases. The first ones are shared by
    all networks, without leading axes.
    """

    network: object
    layers: list  # augmented weight matrices (..., fan_in + 1, fan_out)
    inputs: list  # of every layer, (..., n, fan_in + 1)
    slopes: list  # first derivatives of the hidden units, (..., n, width)
    bends: list  # second derivatives
    outputs: np.ndarray  # (..., n, n_outputs)


def _augment(z):
    """Append a column of ones: ``(..., n, d)`` to ``(..., n, d + 1)``."""
    augmented = np.empty((*z.shape[:-1], z.shape[-1] + 1))
    augmented[..., :-1] = z
    augmented[..., -1] = 1.0
    return augmented


def first_inputs(network, X):
    """Inputs of the first layer, ``X`` with a column of ones if it has biases, ``(n, fan_in)``."""
    return _augment(X) if network.has_biases(0) else X


def forward(network, theta, X, order=0):
    """Propagate rows ``X`` ``(n, n_features)`` through networks: their `Trace`.

    ``theta`` has the shape ``(..., k)``; ``order`` (0 to 2) is the number of derivatives of the
    activations that later steps need.
    """
    layers = network.layers(theta)
    inputs, slopes, bends = [first_inputs(network, X)], [], []
    for layer, weights in enumerate(layers[:-1]):
        z, *derivatives = network.phi.derivatives(inputs[-1] @ weights, order)
        inputs.append(_augment(z) if network.has_biases(layer + 1) else z)
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
    """Network outputs ``f(x; theta)`` of shape ``(..., n, n_outputs)``, blocked over rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network, outputs
    >>> network = Network((2, 4, 1))
    >>> theta = np.random.default_rng(0).standard_normal((5, network.n_weights))
    >>> outputs(network, theta, np.zeros((3, 2))).shape  # five networks at once
    (5, 3, 1)
    """
    return of_networks(attrgetter("outputs"), network, theta, X)


def of_networks(function, network, theta, X, order=0):
    """Values of a function of traces at all rows, in blocks of rows and networks.

    ``function`` maps a `Trace` to an array ``(..., n, *values)``; the result has that shape.
    """
    networks, width, result = theta.reshape(-1, theta.shape[-1]), max(network.layer_sizes), None
    for rows in row_blocks(len(X), width):
        step = max(1, CACHED_DOUBLES // (width * (rows.stop - rows.start)))
        for first in range(0, max(1, len(networks)), step):
            some = slice(first, first + step)
            values = function(forward(network, networks[some], X[rows], order))
            if result is None:
                result = np.empty((len(networks), len(X), *values.shape[2:]))
            result[some, rows] = values
    return result.reshape(*theta.shape[:-1], *result.shape[1:])
