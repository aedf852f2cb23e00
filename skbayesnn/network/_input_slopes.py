"""Derivatives of the outputs by the inputs, and how these depend on the weights."""

from typing import NamedTuple

import numpy as np

from skbayesnn.network._products import transposed


class InputSlopes(NamedTuple):
    """Derivatives along every input, the first axis, of what a forward pass leaves behind.

    Attributes
    ----------
    summed : list of ndarray of shape (d, ..., n, fan_out)
        Of every layer's summed inputs; the last one is that of the outputs.
    inputs : list of ndarray of shape (d, ..., n, fan_in)
        Of every layer's inputs, from the second layer on.
    scale : ndarray of shape (d,)
        By which the derivative along an input is multiplied.
    """

    summed: list
    inputs: list
    scale: np.ndarray

    @property
    def outputs(self):
        """``scale_j df_o / dx_j``, ``(..., n, n_outputs, d)``."""
        return np.moveaxis(self.summed[-1], 0, -1)


def input_slopes(trace, scale):
    """`InputSlopes` of some rows.

    Parameters
    ----------
    trace : Trace of order >= 1
    scale : ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network, forward, input_slopes
    >>> trace = forward(Network((2, 1)), np.array([3.0, 5.0, 1.0]), np.zeros((1, 2)), order=1)
    >>> input_slopes(trace, np.array([1.0, 0.1])).outputs
    array([[[3. , 0.5]]])
    """
    sizes, rows = trace.network.layer_sizes, trace.outputs.shape[-2]
    first = trace.layers[0][..., : sizes[0], :]
    along = np.moveaxis(first, -2, 0)[..., None, :] * _as_axis(scale, first.ndim + 1)
    summed = [np.broadcast_to(along, (*along.shape[:-2], rows, along.shape[-1]))]
    inputs = []
    for layer in range(1, len(trace.layers)):
        inputs.append(trace.slopes[layer - 1] * summed[-1])
        summed.append(inputs[-1] @ trace.layers[layer][..., : sizes[layer], :])
    return InputSlopes(summed, inputs, scale)


def slope_gradient(trace, slopes, cotangent, by_slopes):
    """Gradient by the weights of a function of outputs and of their derivatives by the inputs.

    Back-propagation through the forward pass and through that of the derivatives (double
    back-propagation: Drucker & Le Cun 1992).

    Parameters
    ----------
    trace : Trace of order 2
    slopes : InputSlopes
        Of the same rows.
    cotangent : ndarray of shape (..., n, n_outputs)
        Derivative of the function by the outputs.
    by_slopes : ndarray of shape (..., n, n_outputs, d)
        Derivative by ``slopes.outputs``.

    Returns
    -------
    ndarray of shape (..., k)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network, forward, input_slopes, slope_gradient
    >>> trace = forward(Network((1, 1)), np.array([3.0, 5.0]), np.array([[2.0]]), order=2)
    >>> slopes = input_slopes(trace, np.ones(1))
    >>> slope_gradient(trace, slopes, np.ones((1, 1)), np.array([[[10.0]]]))  # of f + 10 df/dx
    array([12.,  1.])
    """
    delta, turned, sizes = cotangent, np.moveaxis(by_slopes, -1, 0), trace.network.layer_sizes
    parts = []
    for layer in range(len(trace.layers) - 1, -1, -1):
        part = np.swapaxes(trace.inputs[layer], -1, -2) @ delta
        if layer == 0:
            sums = np.moveaxis(turned.sum(axis=-2), 0, -2)  # (..., d, fan_out)
            part[..., : sizes[0], :] += slopes.scale[:, None] * sums
            parts.append(part)
            break
        across = np.swapaxes(slopes.inputs[layer - 1], -1, -2) @ turned
        part[..., : sizes[layer], :] += across.sum(axis=0)
        parts.append(part)
        back = transposed(trace.network, trace.layers[layer], layer)
        by_inputs, phi = turned @ back, trace.slopes[layer - 1]
        bent = trace.bends[layer - 1] * np.sum(slopes.summed[layer - 1] * by_inputs, axis=0)
        delta, turned = (delta @ back) * phi + bent, by_inputs * phi
    return trace.network.pack(parts[::-1])


def _as_axis(scale, ndim):
    """As the first of some axes."""
    return scale.reshape(-1, *([1] * (ndim - 1)))
