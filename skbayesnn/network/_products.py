"""Derivatives of outputs by weights and inputs: products with the Jacobian, and their factors."""

import numpy as np


def transposed(network, weights, layer):
    """Transposed weights ``W^T`` without the biases, for back-propagation to the units below."""
    return np.swapaxes(network.without_biases(weights, layer), -1, -2)


def back_propagate(trace, cotangent, n_layers=None):
    """Gradients ``d (r . f) / d a_l`` in the summed inputs of every layer, ``(..., n, fan_out)``.

    The cotangent ``r`` has the shape ``(..., n, n_outputs)`` (Rumelhart, Hinton & Williams 1986);
    for the first ``n_layers`` alone it is the gradient in the summed inputs of the last of them.
    """
    deltas = [cotangent]
    for layer in range((n_layers or len(trace.layers)) - 1, 0, -1):
        back = transposed(trace.network, trace.layers[layer], layer)
        deltas.append(deltas[-1] @ back * trace.slopes[layer - 1])
    return deltas[::-1]


def vector_jacobian(trace, cotangent):
    """Vector-Jacobian product ``sum_n r_n^T J_n``, ``(..., k)``, with ``r`` the cotangent.

    It is the gradient of ``sum_n r_n^T f_n``, for a trace of order 1 at least.
    """
    return _in_weights(trace, back_propagate(trace, cotangent))


def _in_weights(trace, deltas):
    """Gradient in the weights of the first layers from those in their summed inputs."""
    pairs = zip(trace.inputs, deltas, strict=False)
    return trace.network.pack([np.swapaxes(z, -1, -2) @ delta for z, delta in pairs])


def hidden_gradient(trace, cotangent):
    """Gradient of ``sum_n r_n^T z_n`` with respect to all weights but the last layer's.

    The cotangent ``r`` ``(..., n, width + 1)`` belongs to the last layer's inputs ``z``; its entry
    for the constant is ignored. The shape of the gradient is ``(..., n_hidden_weights)``.
    """
    if not trace.slopes:
        return np.zeros((*trace.outputs.shape[:-2], 0))
    delta = cotangent[..., : trace.slopes[-1].shape[-1]] * trace.slopes[-1]
    return _in_weights(trace, back_propagate(trace, delta, len(trace.slopes)))


def jacobian_vector(trace, vector):
    """Derivatives of outputs along a direction ``v``, ``J_n v``.

    The direction is of shape ``(..., k)``, the derivatives ``(..., n, n_outputs)``.
    """
    network, directions = trace.network, trace.network.layers(vector)
    moved = trace.inputs[0] @ directions[0]  # summed inputs of the layers in turn
    for layer in range(1, len(trace.layers)):
        of_units = network.without_biases(trace.layers[layer], layer)
        of_inputs = trace.slopes[layer - 1] * moved
        moved = trace.inputs[layer] @ directions[layer] + of_inputs @ of_units
    return moved


def jacobian(trace):
    """Derivatives ``g = df/dw`` of outputs by weights, ``(..., n, n_outputs, k)``.

    They are the sensitivities of MacKay (1992, section 4.3).
    """
    *lead, n_rows, n_outputs = trace.outputs.shape
    result = np.empty((*lead, n_rows, n_outputs, trace.network.n_weights))
    for layer, delta in sensitivities(trace):
        block = trace.inputs[layer][..., None, :, None] * delta[..., None, :]
        result[..., trace.network.slices[layer]] = block.reshape(*lead, n_rows, n_outputs, -1)
    return result


def sensitivities(trace):
    """Yield ``(l, df / da_l)`` from the output layer down, ``(..., n, n_outputs, fan_out)``."""
    *lead, n_rows, n_outputs = trace.outputs.shape
    top = len(trace.layers) - 1
    delta = np.broadcast_to(np.eye(n_outputs), (*lead, n_rows, n_outputs, n_outputs))
    yield top, delta
    for layer in range(top, 0, -1):
        back = transposed(trace.network, trace.layers[layer], layer)
        error = back[..., None, :, :] if layer == top else times(delta, back)  # delta is 1 at top
        delta = error * trace.slopes[layer - 1][..., None, :]
        yield layer - 1, delta


def times(vectors, matrix):
    """Product ``(..., a, b)`` of ``(..., n, ..., a)`` and ``(..., a, b)`` as one for all rows."""
    flat = vectors.reshape(*matrix.shape[:-2], -1, vectors.shape[-1]) @ matrix
    return flat.reshape(*vectors.shape[:-1], matrix.shape[-1])


def input_jacobian(trace):
    """Derivatives of every output by every input, ``(..., n, n_outputs, n_features)``.

    They are back-propagated to the inputs (Bishop 2006, section 5.3.4).
    """
    *_, (_, delta) = sensitivities(trace)
    return times(delta, transposed(trace.network, trace.layers[0], 0))


def output_covariances(trace, covariance):
    """Covariance ``J S J^T`` of the outputs of every row, without forming the Jacobian ``J``.

    The covariance of the summed inputs of two layers, given the inputs of these layers, is a matrix
    product; derivatives of the outputs propagate it upwards. With many outputs this is much less
    work than a product of Jacobians. The trace is that of one network, ``S`` ``(k, k)`` the
    covariance of its weights, and the result ``(n, n_outputs, n_outputs)``.
    """
    network, n_layers = trace.network, len(trace.layers)
    n, n_outputs = trace.outputs.shape
    deltas = dict(sensitivities(trace))
    result = np.zeros((n, n_outputs, n_outputs))
    for upper in range(n_layers):
        for lower in range(upper + 1):
            ends = network.shapes[upper], network.shapes[lower]
            block = covariance[network.slices[upper], network.slices[lower]]
            block = block.reshape(*ends[0], *ends[1]).transpose(2, 0, 1, 3)
            moved = trace.inputs[lower] @ block.reshape(len(block), -1)
            moved = moved.reshape(n, ends[0][0], -1)
            summed = (trace.inputs[upper][:, None] @ moved).reshape(n, ends[0][1], ends[1][1])
            part = deltas[upper] @ summed @ np.swapaxes(deltas[lower], 1, 2)
            result += part if upper == lower else part + np.swapaxes(part, 1, 2)
    return 0.5 * (result + np.swapaxes(result, 1, 2))


def kronecker_factors(trace, curvature, sample_weight):
    """Kronecker factors that approximate the Gauss-Newton matrices of the layers.

    Inputs of a layer and derivatives by its summed inputs are taken to be independent (Martens &
    Grosse 2015, "Optimizing neural networks with Kronecker-factored approximate curvature").

    With the curvature ``L_n`` of the misfit in the outputs of one network they are ``sum_n s_n z_n
    z_n^T`` and ``sum_n D_n^T L_n D_n`` for every layer, where ``D_n`` are the derivatives of the
    outputs by its summed inputs; the matrix is their product over ``sum_n s_n``.
    """
    factors, top = [None] * len(trace.layers), len(trace.layers) - 1
    for layer, delta in sensitivities(trace):
        if layer == top:  # ``D_n`` is the identity
            G = curvature.sum(axis=0)
            G = np.diag(G) if G.ndim == 1 else G
        else:
            bent = curvature_product(curvature, delta)
            G = bent.reshape(-1, bent.shape[-1]).T @ delta.reshape(-1, delta.shape[-1])
        z = trace.inputs[layer]
        factors[layer] = (z.T * sample_weight) @ z, 0.5 * (G + G.T)
    return factors


def curvature_product(curvature, columns):
    """Product of the curvature in the outputs of every row with columns ``(..., n, n_outputs, m)``.

    The curvature is ``(..., n, n_outputs)`` if diagonal, otherwise with one more axis.
    """
    if curvature.ndim < columns.ndim:
        return curvature[..., None] * columns
    return curvature @ columns


def input_tangents(trace):
    """Derivatives by the inputs of every layer's summed inputs but the outputs, and of its inputs.

    Tangents in the directions of the inputs ``x_j`` are carried forward: lists of arrays ``(..., n,
    n_features, fan_out)`` and ``(..., n, n_features, fan_in)``.
    """
    network, d = trace.network, trace.network.layer_sizes[0]
    tangents, sums = [np.broadcast_to(np.eye(d), (*trace.outputs.shape[:-1], d, d))], []
    for layer, slopes in enumerate(trace.slopes):
        of_units = network.without_biases(trace.layers[layer], layer)
        sums.append(times(tangents[-1], of_units))
        tangents.append(slopes[..., None, :] * sums[-1])
    return sums, tangents


def mixed_jacobian(trace, lowest=0):
    """Second derivatives by inputs and weights of layers, ``(..., n, n_outputs, d, k)``.

    With the inputs ``z`` and the summed inputs ``a`` of a layer, from the ``lowest`` one on::

        d2 f / dx_j dW = dz/dx_j  df/da + z  d2 f / dx_j da

    Derivatives of the back-propagated sensitivities along the `input_tangents` are carried backward
    (Pearlmutter 1994). The trace is of order 2.
    """
    network, top, (sums, tangents) = trace.network, len(trace.layers) - 1, input_tangents(trace)
    outer = *trace.outputs.shape, network.layer_sizes[0], network.n_outputs
    bend, blocks, above = np.zeros(outer), [], None  # bend: d2 f / dx_j da
    for layer, delta in sensitivities(trace):
        if layer < lowest:
            break
        if layer < top:
            back = transposed(network, trace.layers[layer + 1], layer + 1)
            along = trace.bends[layer][..., None, :] * sums[layer]
            bend = times(bend, back) * trace.slopes[layer][..., None, None, :]
            bend += times(above, back)[..., None, :] * along[..., None, :, :]
        z, dz, above = trace.inputs[layer], tangents[layer], delta
        block = z[..., None, None, :, None] * bend[..., None, :]
        block[..., : dz.shape[-1], :] += dz[..., None, :, :, None] * delta[..., None, None, :]
        blocks.append(block.reshape(*bend.shape[:-1], -1))
    return np.concatenate(blocks[::-1], axis=-1)
