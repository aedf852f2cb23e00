"""Embedding of the minimum of a network in a wider network."""

import numpy as np

FAINT = 0.01  # size of weights from new units to old units, relative to those of a random start


def widened(minimum, network, rng):
    """Weights of a wider network that computes nearly the function of the narrower one.

    New hidden units get random incoming weights, of standard deviation ``fan_in^(-1/2)``, and small
    outgoing weights to old units, to be adjusted by training.

    The narrower network has the same depth, with no layer wider.
    """
    layers = []
    narrow = minimum.network.layers(minimum.theta)
    for layer, old in enumerate(narrow):
        (fan_in, fan_out), width = network.shapes[layer], network.layer_sizes[layer]
        n_in, n_out = minimum.network.layer_sizes[layer], old.shape[1]
        new = rng.standard_normal((fan_in, fan_out)) * fan_in**-0.5
        new[n_in:width, :n_out] *= FAINT
        new[:n_in, :n_out], new[width:, :n_out] = old[:n_in], old[n_in:]
        layers.append(new)
    return network.pack(layers)


def embedded(minimum, network):
    """Weights of a minimum in the full layout, where pruned units are switched off."""
    theta = np.zeros(network.n_weights)
    small, layers = minimum.network.layers(minimum.theta), network.layers(theta)
    for i, (layer, part) in enumerate(zip(layers, small, strict=True)):
        n_in, width = minimum.network.layer_sizes[i], network.layer_sizes[i]
        layer[:n_in, : part.shape[1]] = part[:n_in]
        layer[width:, : part.shape[1]] = part[n_in:]
    return theta
