"""The minimum of a network in a wider one."""

import numpy as np

FAINT = 0.01  # size of weights from new units to old ones, relative to those of a random start


def widened(minimum, network, rng):
    """Weights of a wider network that computes nearly what the narrower one does.

    New hidden units get random incoming weights, of standard deviation ``fan_in^(-1/2)``, and faint
    outgoing weights to old units; training decides what they are good for.

    Parameters
    ----------
    minimum : Minimum
        Of a network of the same depth, with no layer wider.
    network : Network
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k,)
    """
    layers = []
    narrow = minimum.network.layers(minimum.theta)
    for (fan_in, fan_out), old in zip(network.shapes, narrow, strict=True):
        n_in, n_out = old.shape[0] - 1, old.shape[1]
        new = rng.standard_normal((fan_in, fan_out)) * fan_in**-0.5
        new[n_in:-1, :n_out] *= FAINT
        new[:n_in, :n_out], new[-1, :n_out] = old[:-1], old[-1]
        layers.append(new)
    return network.pack(layers)


def embedded(minimum, network):
    """Weights of a minimum in the full layout: pruned units come back switched off.

    Parameters
    ----------
    minimum, network
        As of `widened`.

    Returns
    -------
    ndarray of shape (k,)
    """
    theta = np.zeros(network.n_weights)
    small = minimum.network.layers(minimum.theta)
    for layer, part in zip(network.layers(theta), small, strict=True):
        layer[: part.shape[0] - 1, : part.shape[1]] = part[:-1]
        layer[-1, : part.shape[1]] = part[-1]
    return theta
