"""First derivatives: vector-Jacobian and Jacobian-vector products and the Jacobian itself."""

import numpy as np


def transposed(network, weights, layer):
    """Transposed weights ``W^T`` without the biases, for back-propagation to the units below."""
    return np.swapaxes(network.without_biases(weights, layer), -1, -2)


def back_propagate(trace, cotangent):
    """Gradients with respect to every layer's summed inputs, ``d (r . f) / d a_l``.

    Parameters
    ----------
    trace : Trace of order >= 1
    cotangent : ndarray of shape (..., n, n_outputs)

    Returns
    -------
    list of ndarray of shape (..., n, fan_out)
        Gradients, one per layer, first layer first (Rumelhart, Hinton & Williams 1986).
    """
    deltas = [cotangent]
    for layer in range(len(trace.layers) - 1, 0, -1):
        back = transposed(trace.network, trace.layers[layer], layer)
        deltas.append(deltas[-1] @ back * trace.slopes[layer - 1])
    return deltas[::-1]


def vector_jacobian(trace, cotangent):
    """Vector-Jacobian product ``sum_n r_n^T J_n``, of shape ``(..., k)``.

    It is the gradient of ``sum_n r_n^T f_n``.

    Parameters
    ----------
    trace : Trace of order >= 1
    cotangent : ndarray of shape (..., n, n_outputs)
        The vector ``r``.
    """
    deltas = back_propagate(trace, cotangent)
    return trace.network.pack(
        [np.swapaxes(z, -1, -2) @ delta for z, delta in zip(trace.inputs, deltas, strict=True)]
    )


def hidden_gradient(trace, cotangent):
    """Gradient of ``sum_n r_n^T z_n`` with respect to all weights but the last layer's.

    Parameters
    ----------
    trace : Trace of order >= 1
    cotangent : ndarray of shape (..., n, width + 1)
        The vector ``r`` for the last layer's inputs ``z`` (the one of the constant is ignored).

    Returns
    -------
    ndarray of shape (..., n_hidden_weights)
    """
    lead = trace.outputs.shape[:-2]
    if not trace.slopes:
        return np.zeros((*lead, 0))
    width = trace.network.hidden_layer_sizes[-1]
    delta, parts = cotangent[..., :width] * trace.slopes[-1], []
    for layer in range(len(trace.slopes) - 1, -1, -1):
        parts.append((np.swapaxes(trace.inputs[layer], -1, -2) @ delta).reshape(*lead, -1))
        if layer > 0:
            back = transposed(trace.network, trace.layers[layer], layer)
            delta = delta @ back * trace.slopes[layer - 1]
    return np.concatenate(parts[::-1], axis=-1)


def tangents(trace, vector):
    """Forward derivatives along ``vector``.

    Parameters
    ----------
    trace : Trace of order >= 1
    vector : ndarray of shape (..., k)

    Returns
    -------
    da : list of ndarray of shape (..., n, fan_out)
        Derivative of every layer's summed inputs; the last one is that of the outputs.
    dz : list of ndarray of shape (..., n, fan_in)
        Derivative of every layer's inputs from the second layer on.
    """
    directions = trace.network.layers(vector)
    da, dz = [trace.inputs[0] @ directions[0]], []
    for layer in range(1, len(trace.layers)):
        dz.append(trace.slopes[layer - 1] * da[-1])
        of_units = trace.network.without_biases(trace.layers[layer], layer)
        da.append(trace.inputs[layer] @ directions[layer] + dz[-1] @ of_units)
    return da, dz


def jacobian_vector(trace, vector):
    """Jacobian-vector product ``J_n v`` of every row: shape ``(..., n, n_outputs)``."""
    return tangents(trace, vector)[0][-1]


def second_derivative_along(trace, vector):
    """Second derivative ``d2 f / dh2`` at ``theta + h v``, ``h = 0``: ``(..., n, n_outputs)``.

    Parameters
    ----------
    trace : Trace of order 2
    vector : ndarray of shape (..., k)
        The direction ``v``.
    """
    directions = trace.network.layers(vector)
    da, dz = tangents(trace, vector)
    second = np.zeros_like(da[0])
    for layer in range(1, len(trace.layers)):
        below = layer - 1
        second_z = trace.bends[below] * da[below] ** 2 + trace.slopes[below] * second
        along, of_units = (
            trace.network.without_biases(some[layer], layer) for some in (directions, trace.layers)
        )
        second = 2.0 * dz[below] @ along
        second = second + second_z @ of_units
    return second


def jacobian(trace):
    """Derivatives of every output with respect to every weight.

    Parameters
    ----------
    trace : Trace of order >= 1

    Returns
    -------
    ndarray of shape (..., n, n_outputs, k)
        The sensitivities ``g = df/dw`` of MacKay (1992, section 2.6), one per row and output.
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

    Parameters
    ----------
    trace : Trace of order >= 1
    """
    *_, (_, delta) = sensitivities(trace)
    return times(delta, transposed(trace.network, trace.layers[0], 0))


def output_covariances(trace, covariance):
    """Covariance ``J S J^T`` of the outputs of every row, without forming the Jacobian ``J``.

    The covariance of the summed inputs of two layers, given the inputs of these layers, is a matrix
    product; derivatives of the outputs propagate it upwards. With many outputs this is much less
    work than a product of Jacobians.

    Parameters
    ----------
    trace : Trace of order >= 1
        Trace of one network.
    covariance : ndarray of shape (k, k)
        Covariance ``S`` of the weights.

    Returns
    -------
    ndarray of shape (n, n_outputs, n_outputs)
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

    Parameters
    ----------
    trace : Trace of order >= 1
        Trace of one network.
    curvature : ndarray of shape (n, n_outputs, n_outputs) or (n, n_outputs)
        Curvature ``L_n`` of the misfit in the outputs, or its diagonal.
    sample_weight : ndarray of shape (n,)

    Returns
    -------
    list of tuple
        Factors ``sum_n s_n z_n z_n^T`` and ``sum_n D_n^T L_n D_n`` of every layer, where ``D_n``
        are the derivatives of the outputs by its summed inputs; the matrix is their product over
        ``sum_n s_n``.
    """
    factors, diagonal = [None] * len(trace.layers), curvature.ndim == trace.outputs.ndim
    for layer, delta in sensitivities(trace):
        if layer == len(trace.layers) - 1:
            G = np.diag(curvature.sum(axis=0)) if diagonal else curvature.sum(axis=0)
        else:
            bent = curvature[..., None] * delta if diagonal else curvature @ delta
            G = bent.reshape(-1, bent.shape[-1]).T @ delta.reshape(-1, delta.shape[-1])
        z = trace.inputs[layer]
        factors[layer] = (z.T * sample_weight) @ z, 0.5 * (G + G.T)
    return factors
