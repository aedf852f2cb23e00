"""Standard deviations that outputs of networks with units of bounded range cannot exceed.

Laplace's approximation linearises the network in its weights. Linearised units vary without limit,
for example where inputs separate targets of 0 and 1.
"""

import numpy as np

from skbayesnn.network import Network, forward, jacobian


def largest_deviations(network, theta, precision, X):
    """Largest standard deviations of the outputs of rows, ``(n, n_outputs)``.

    The standard deviation of a unit is at most half of its range (Popoviciu 1935), that of an
    output at most the sum of those of its terms (Minkowski's inequality).
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
