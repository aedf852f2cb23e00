"""Second derivatives of outputs, once by an input and once by a weight."""

from typing import NamedTuple

import numpy as np

from skbayesnn.network._products import sensitivities, times, transposed


class MixedFactors(NamedTuple):
    """Factors of the second derivatives by the inputs ``x_j`` and the weights of one layer.

    With the inputs ``z`` and the summed inputs ``a`` of the layer ``l``::

        d2 f / dx_j dW_l = dz/dx_j  df/da + z  d2 f / dx_j da

    Attributes
    ----------
    inputs : ndarray of shape (..., n, fan_in + 1)
        Inputs ``z`` with the constant.
    tangents : ndarray of shape (..., n, n_features, fan_in)
        Derivatives ``dz/dx_j``.
    sensitivities : ndarray of shape (..., n, n_outputs, fan_out)
        Derivatives ``df/da``.
    bends : ndarray of shape (..., n, n_outputs, n_features, fan_out)
        Derivatives ``d2 f / dx_j da``.
    """

    inputs: np.ndarray
    tangents: np.ndarray
    sensitivities: np.ndarray
    bends: np.ndarray

    @property
    def moving(self):
        """Tangents and bends side by side, ``(..., n_features, fan_in + fan_out)``."""
        shape = *self.bends.shape[:-1], self.tangents.shape[-1]
        tangents = np.broadcast_to(self.tangents[..., None, :, :], shape)
        return np.concatenate([tangents, self.bends], axis=-1)

    def relative(self):
        """Factors of the outputs less their mean over all outputs."""
        return self._replace(
            sensitivities=self.sensitivities - self.sensitivities.mean(axis=-2, keepdims=True),
            bends=self.bends - self.bends.mean(axis=-3, keepdims=True),
        )


def mixed_factors(trace):
    """`MixedFactors` of every layer, from a trace of order 2.

    Tangents in the directions of the inputs are carried forward, and the derivatives of the
    back-propagated sensitivities along them backward (Pearlmutter 1994).
    """
    network, top = trace.network, len(trace.layers) - 1
    d, (*lead, n, n_outputs) = network.layer_sizes[0], trace.outputs.shape
    tangents, sums = [np.broadcast_to(np.eye(d), (*lead, n, d, d))], []
    for layer, slopes in enumerate(trace.slopes):
        of_units = network.without_biases(trace.layers[layer], layer)
        sums.append(times(tangents[-1], of_units))  # da/dx
        tangents.append(slopes[..., None, :] * sums[-1])
    bends, factors = np.zeros((*lead, n, n_outputs, d, n_outputs)), []
    for layer, delta in sensitivities(trace):
        if layer < top:
            back = transposed(network, trace.layers[layer + 1], layer + 1)
            along = trace.bends[layer][..., None, :] * sums[layer]
            error = times(factors[-1].sensitivities, back)[..., None, :]
            bends = times(bends, back) * trace.slopes[layer][..., None, None, :]
            bends += error * along[..., None, :, :]
        inputs = trace.inputs[layer]
        factors.append(MixedFactors(inputs, tangents[layer], delta, bends))
    return factors[::-1]


def mixed_jacobian(factors):
    """Second derivatives by inputs and the weights of layers, ``(..., n, n_outputs, d, k)``."""
    blocks = []
    for z, dz, delta, bend in factors:
        block = z[..., None, None, :, None] * bend[..., None, :]
        moved = dz[..., None, :, :, None] * delta[..., None, None, :]
        block[..., : dz.shape[-1], :] += moved
        blocks.append(block.reshape(*bend.shape[:-1], -1))
    return np.concatenate(blocks, axis=-1)


def mixed_product(factors, vector):
    """Product of `mixed_jacobian` with a vector ``(k,)``: ``(n, n_outputs, n_features)``."""
    result, start = 0.0, 0
    for z, dz, delta, bend in factors:
        end = start + z.shape[-1] * delta.shape[-1]
        matrix = vector[start:end].reshape(z.shape[-1], -1)
        moved = np.swapaxes(dz @ matrix[: dz.shape[-1]], -1, -2)
        result = result + delta @ moved + (bend @ (z @ matrix)[:, None, :, None])[..., 0]
        start = end
    return result


def mixed_variances(factors, covariance):
    """Variances ``g^T S g`` of the derivatives by the inputs, ``(n, n_outputs, n_features)``.

    The covariance ``S`` of the weights of two layers is contracted with the factors that all inputs
    share. What is left for each input is a quadratic form in its tangents and bends.
    """
    shapes = [(some.inputs.shape[-1], some.sensitivities.shape[-1]) for some in factors]
    ends = np.cumsum([fan_in * fan_out for fan_in, fan_out in shapes])
    slices = [slice(end - i * o, end) for end, (i, o) in zip(ends, shapes, strict=True)]
    moving = [some.moving for some in factors]
    result = 0.0
    for upper in range(len(factors)):
        for lower in range(upper + 1):
            block = covariance[slices[upper], slices[lower]].reshape(*shapes[upper], *shapes[lower])
            inner = _contracted(factors[upper], factors[lower], block)
            part = np.sum((moving[upper] @ inner) * moving[lower], axis=-1)
            result = result + (part if upper == lower else 2.0 * part)
    return np.maximum(result, 0.0)


def _contracted(upper, lower, block):
    """Matrix between the tangents and bends of two layers, ``(n, n_outputs, p, q)``.

    Each quarter is one matrix product, of pairs of factors with pairs of weights.
    """
    quarters, ends = [], [(some.inputs[:, None], some.sensitivities) for some in (upper, lower)]
    kept = [(some.tangents.shape[-1], None) for some in (upper, lower)]
    for i, j in ((1, 1), (1, 0), (0, 1), (0, 0)):  # 1: contract the units, 0: the inputs
        pairs = ends[0][i][..., :, None] * ends[1][j][..., None, :]
        weights = block.transpose(i, 2 + j, 1 - i, 3 - j)
        flat = pairs.reshape(-1, pairs[0, 0].size) @ weights.reshape(pairs[0, 0].size, -1)
        quarter = flat.reshape(*pairs.shape[:2], *weights.shape[2:])
        quarters.append(quarter[..., : kept[0][1 - i], : kept[1][1 - j]])
    quarters[3] = np.broadcast_to(quarters[3], (*quarters[0].shape[:2], *quarters[3].shape[2:]))
    return np.block([quarters[:2], quarters[2:]])
