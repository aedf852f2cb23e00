r"""Second derivatives of ``sum_n l_n(f(x_n; theta))`` without forming any Jacobian.

With ``r = dl/df`` and ``Lambda = d2l/df2`` the exact Hessian is (Bishop 1992, "Exact calculation
of the Hessian matrix for the multilayer perceptron")::

    H = sum_n J_n^T Lambda_n J_n + sum_n r_n . grad grad f_n

For the weights into unit ``i`` of layer ``l`` from input ``a`` and unit ``j`` of layer ``m >= l``
from input ``b`` one row contributes::

    z_a z_b C_ml[j, i]  +  z_a (dz_b / da_i) delta_j          (second term for m > l only)

where ``C_ml`` holds the second derivatives with respect to the *summed inputs* of the units. The
sum over rows of the first term is one matrix product between the (few) pairs of units and the
(few) pairs of inputs; by symmetry only half of each is needed when ``l = m``. That costs less than
``J^T J`` alone if there are several outputs. For a single one, whose ``J^T J`` is faster, only the
second-order contraction is found in this way; between the units of the last hidden layer its ``C``
is diagonal.
"""

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from skbayesnn.network._products import back_propagate


def hessian(blocks, exact=True):
    """Hessian ``(..., k, k)`` of a sum over rows, accumulated over blocks of rows.

    A block is a trace of order 2 (order 1 suffices unless ``exact``), the residual ``r`` ``(..., n,
    n_outputs)`` and the curvature ``Lambda`` of the misfit with respect to the outputs: ``(..., n,
    n_outputs)`` if diagonal, else with one more axis. Unless ``exact`` the second-order contraction
    is left out: the Gauss-Newton (outer product) approximation. A curvature of zeros leaves the
    second-order contraction alone.
    """
    matrix = None
    for trace, residual, curvature in blocks:
        network = trace.network
        if matrix is None:
            k = network.n_weights
            matrix = np.zeros((*trace.outputs.shape[:-2], k, k))
        if network.n_outputs == 1:
            matrix += _outer_products(trace, curvature.reshape(residual.shape))
            curvature = None
        if exact or curvature is not None:
            _add_rows(matrix, trace, residual, curvature, exact)
    for upper, lower in combinations(reversed(network.slices), 2):
        matrix[..., lower, upper] = np.swapaxes(matrix[..., upper, lower], -1, -2)
    return matrix


def hessian_width(network, exact=True):
    """Doubles per row that `hessian` needs in its widest temporary array."""
    shapes = network.shapes
    single = network.n_outputs == 1
    if single and not exact:
        return network.n_weights
    widths = [network.n_weights]
    for fan_in, width in shapes[:-2] if single else shapes:
        pairs = width * (width + 1) // 2
        widths += [pairs * fan_in if _few(pairs, fan_in) else max(fan_in, width) ** 2]
    for layer, (fan_in, fan_out) in enumerate(shapes):
        for above, (fan_in_above, fan_out_above) in enumerate(shapes[layer + 1 :]):
            pairs = fan_out * fan_out_above
            widths += [fan_in * fan_in_above, pairs if above == 0 else pairs * fan_in_above]
    return max(widths)


@lru_cache(maxsize=64)
def _triangle(size):
    """Rows and columns of the upper triangle, and the position of every entry within it."""
    first, second = np.triu_indices(size)
    position = np.empty((size, size), dtype=int)
    position[first, second] = position[second, first] = np.arange(len(first))
    return first, second, position


def _pairs(left, right):
    """Products ``l_i r_j`` with ``i <= j``: ``(..., d, n)`` to ``(..., d (d + 1) / 2, n)``."""
    *lead, d, n = left.shape
    products, start = np.empty((*lead, d * (d + 1) // 2, n)), 0
    for i in range(d):  # a loop is far faster than a gather
        end = start + d - i
        np.multiply(left[..., i : i + 1, :], right[..., i:, :], out=products[..., start:end, :])
        start = end
    return products


def _rows_last(array):
    """Reorder ``(..., n, d)`` to ``(..., d, n)``, contiguous in memory for each unit."""
    return np.ascontiguousarray(np.swapaxes(array, -1, -2))


def _flat(stack):
    """Flatten the two axes before the rows."""
    return stack.reshape(*stack.shape[:-3], -1, stack.shape[-1])


def _over_rows(left, right):
    """Sum over rows ``sum_n left_pn right_qn``, of shape ``(..., p, q)``."""
    return left @ np.swapaxes(right, -1, -2)


class _Layers(NamedTuple):
    """Quantities of a trace by layer, rows last, and ``W`` without the biases.

    ``deltas`` are the derivatives of ``sum_n r_n . f_n`` with respect to the summed inputs.
    """

    inputs: list
    slopes: list
    bends: list
    weights: list
    deltas: list

    @classmethod
    def of(cls, trace, residual, exact):
        """Extract the layers; bends and deltas are for the second-order contraction alone."""
        lists = trace.inputs, trace.slopes, trace.bends if exact else []
        inputs, slopes, bends = ([_rows_last(a) for a in arrays] for arrays in lists)
        deltas = [_rows_last(d) for d in back_propagate(trace, residual)] if exact else None
        weights = [trace.network.without_biases(w, i) for i, w in enumerate(trace.layers)]
        return cls(inputs, slopes, bends, weights, deltas)


def _add_rows(matrix, trace, residual, curvature, exact):
    """Add the sums over a block of rows to the blocks of every layer and those below it.

    Without curvature they are those of the second-order contraction alone.
    """
    layers, top = _Layers.of(trace, residual, exact), len(trace.layers) - 1
    own = None  # C_mm, or its diagonal, from the output layer down
    if curvature is not None:
        diagonal = curvature.ndim == residual.ndim
        own = _rows_last(curvature) if diagonal else np.moveaxis(curvature, -3, -1)
    for upper in range(top, -1, -1):
        blocks = [_block(matrix, trace.network, upper, lower) for lower in range(upper + 1)]
        mixed = None
        if own is not None:
            _add_own(blocks[upper], layers.inputs[upper], own, _is_diagonal(layers, own))
            mixed = _add_mixed(blocks, layers, own, upper)
        if upper > 0:
            if exact:
                _add_paths(blocks, layers, upper)
            own = _next_own(layers, mixed, upper - 1)


def _block(matrix, network, upper, lower):
    """View of the block of two layers, ``(..., b, j, a, i)``."""
    block = matrix[..., network.slices[upper], network.slices[lower]]
    return block.reshape(*matrix.shape[:-2], *network.shapes[upper], *network.shapes[lower])


def _is_diagonal(layers, own):
    """Return True if only the diagonal of ``C_mm`` is held, as its other entries vanish."""
    return own.ndim == layers.weights[0].ndim


def _add_own(block, inputs, own, diagonal):
    """Add sums of ``C_ll`` pairs times input pairs."""
    width, fan_in = own.shape[-2], inputs.shape[-2]
    pairs, (first, second, of_units) = own, _triangle(width)
    if not diagonal:  # else units do not interact
        pairs = _flat(own).take(first * width + second, axis=-2)
    if _few(pairs.shape[-2], fan_in):
        square = _over_rows(_flat(pairs[..., None, :] * inputs[..., None, :, :]), inputs)
        square = square.reshape(*square.shape[:-2], -1, fan_in, fan_in)
        square = 0.5 * (square + np.swapaxes(square, -1, -2))  # symmetric to the last bit
    else:
        square = _over_rows(pairs, _pairs(inputs, inputs)).take(_triangle(fan_in)[2], axis=-1)
    if diagonal:
        units = np.arange(width)
        block[..., units, :, units] += np.moveaxis(square, -3, 0)
    else:
        _add_pairs(block, square.take(of_units, axis=-3))


def _few(n_pairs, fan_in):
    """Return True if so few pairs of units are multiplied by inputs faster than by their pairs."""
    return 2 * n_pairs <= fan_in


def _add_mixed(blocks, layers, own, upper):
    """Add sums of ``C_ml = (C_m,l+1 W_l+1^T) * phi'_l``, and return the one for ``l = m - 1``."""
    mixed, adjacent = own, None
    for lower in range(upper - 1, -1, -1):
        weights, slope = layers.weights[lower + 1], layers.slopes[lower][..., None, :, :]
        if mixed is own and _is_diagonal(layers, own):
            mixed = own[..., None, :] * np.swapaxes(weights, -1, -2)[..., None]
        else:
            mixed = weights[..., None, :, :] @ mixed
        mixed *= slope
        adjacent = mixed if adjacent is None else adjacent
        z_pairs = layers.inputs[upper][..., None, :] * layers.inputs[lower][..., None, :, :]
        sums = _over_rows(_flat(mixed), _flat(z_pairs))
        b, j, a, i = blocks[lower].shape[-4:]
        _add_pairs(blocks[lower], sums.reshape(*sums.shape[:-2], j, i, b, a))
    return adjacent


def _next_own(layers, mixed, layer):
    """Recursion ``C_ll = phi'_l W_l+1 C_l+1,l + diag(e_l phi''_l)``, ``(..., width, width, n)``.

    Without a contribution from above only the diagonal, ``(..., width, n)``.
    """
    weights, slope, bend = layers.weights[layer + 1], layers.slopes[layer], None
    if layers.deltas is not None:
        bend = weights @ layers.deltas[layer + 1] * layers.bends[layer]
    if mixed is None:
        return bend
    *lead, above, width, n_rows = mixed.shape
    own = weights @ mixed.reshape(*lead, above, width * n_rows)
    own = own.reshape(*lead, width, width, n_rows)
    own *= slope[..., None, :]
    if bend is not None:
        units = np.arange(width)
        own[..., units, units, :] += bend
    return own


def _add_paths(blocks, layers, upper):
    """Add terms ``z_a (dz_b / da_i) delta_j`` between layer ``upper`` and every layer below it."""
    delta, reach = layers.deltas[upper], None  # reach: dz_b / da_i as (..., b, i, n)
    for lower in range(upper - 1, -1, -1):
        _, j, a, i = blocks[lower].shape[-4:]
        slope, inputs = layers.slopes[lower], layers.inputs[lower]
        if lower == upper - 1:  # b = i: keep only this diagonal
            path = _flat(slope[..., :, None, :] * delta[..., None, :, :])
            sums = _over_rows(path, inputs)
            units, term = np.arange(i), sums.reshape(*sums.shape[:-2], i, j, a)
            blocks[lower][..., units, :, :, units] += np.moveaxis(term, -3, 0)
            continue
        if reach is None:
            above = layers.slopes[lower + 1]
            reach = above[..., None, :] * np.eye(above.shape[-2])[..., None]
        reach = layers.weights[lower + 1][..., None, :, :] @ reach
        reach *= slope[..., None, :, :]
        path = _flat(reach)[..., :, None, :] * delta[..., None, :, :]
        sums, units = _over_rows(_flat(path), inputs), reach.shape[-3]  # without biases
        term = sums.reshape(*sums.shape[:-2], units, i, j, a)
        blocks[lower][..., :units, :, :, :] += np.moveaxis(term, (-4, -2, -1, -3), (-4, -3, -2, -1))


def _outer_products(trace, curvature):
    """Sum of outer products ``sum_n c_n J_n^T J_n`` of a single output, ``(..., k, k)``."""
    network, delta = trace.network, np.sqrt(np.abs(_rows_last(curvature)))
    J = np.empty((*trace.outputs.shape[:-2], network.n_weights, delta.shape[-1]))
    for layer in range(len(trace.layers) - 1, -1, -1):
        z, (fan_in, fan_out) = _rows_last(trace.inputs[layer]), network.shapes[layer]
        block = J[..., network.slices[layer], :].reshape(*J.shape[:-2], fan_in, fan_out, -1)
        np.multiply(z[..., :, None, :], delta[..., None, :, :], out=block)
        if layer > 0:
            of_units = network.without_biases(trace.layers[layer], layer)
            delta = of_units @ delta * _rows_last(trace.slopes[layer - 1])
    matrix = _over_rows(J, J)
    negative = np.any(curvature[..., 0] < 0, axis=tuple(range(curvature.ndim - 2)))
    if np.any(negative):
        J = J * (curvature[..., None, :, 0] < 0)
        matrix -= 2.0 * _over_rows(J, J)
    return matrix


def _add_pairs(block, sums):
    """Add ``(..., j, i, b, a)`` to ``block`` of shape ``(..., b, j, a, i)``."""
    block += np.moveaxis(sums, (-2, -4, -1, -3), (-4, -3, -2, -1))
