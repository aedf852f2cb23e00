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
``J^T J`` alone, whatever the number of outputs.
"""

from functools import lru_cache

import numpy as np

from skbayesnn.network._products import back_propagate, tangents, transposed


def hessian(blocks, exact=True):
    """Hessian of a sum over rows, accumulated over blocks of rows.

    Parameters
    ----------
    blocks : iterable of (Trace, residual, curvature)
        Per block a trace of order 2 (order 1 suffices without ``exact``), the residual
        ``r`` ``(..., n, n_outputs)`` and the curvature ``Lambda`` of the misfit with respect
        to the outputs: ``(..., n, n_outputs)`` if diagonal, else with one more axis.
    exact : bool
        ``False`` leaves out the second-order contraction: the Gauss-Newton (outer product)
        approximation. A curvature of zeros leaves the second-order contraction alone.

    Returns
    -------
    ndarray of shape (..., k, k)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network, forward, hessian
    >>> trace = forward(Network((1, 1)), np.zeros(2), np.array([[1.0], [2.0]]), order=2)
    >>> hessian([(trace, np.zeros((2, 1)), np.ones((2, 1)))])  # linear regression: X^T X
    array([[5., 3.],
           [3., 2.]])
    """
    sums = {}
    for trace, residual, curvature in blocks:
        network = trace.network
        for key, value in _block_sums(trace, residual, curvature, exact):
            sums[key] = sums[key] + value if key in sums else value
    return _assemble(network, sums)


def hessian_product(trace, vector, residual, curvature, exact=True):
    """Product of the Hessian of one block of rows with a vector (Pearlmutter 1994).

    Parameters
    ----------
    trace : Trace of order 2
    vector : ndarray of shape (..., k)
    residual, curvature : ndarray
        As one item of the blocks of `hessian`.
    exact : bool
        ``False``: Gauss-Newton.

    Returns
    -------
    ndarray of shape (..., k)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network, forward, hessian_product
    >>> trace = forward(Network((1, 1)), np.zeros(2), np.array([[1.0], [2.0]]), order=2)
    >>> hessian_product(trace, np.array([1.0, 0.0]), np.zeros((2, 1)), np.ones((2, 1)))
    array([5., 3.])
    """
    da, dz = tangents(trace, vector)
    if curvature.ndim == da[-1].ndim + 1:
        moved = (curvature @ da[-1][..., None])[..., 0]
    else:
        moved = curvature * da[-1]
    directions = trace.network.layers(vector)
    delta = residual if exact else np.zeros_like(moved)
    products = []
    for layer in range(len(trace.layers) - 1, -1, -1):
        product = np.swapaxes(trace.inputs[layer], -1, -2) @ moved
        if layer > 0:
            product[..., :-1, :] += np.swapaxes(dz[layer - 1], -1, -2) @ delta
            back = transposed(trace.layers[layer])
            error = delta @ back
            moved_error = moved @ back + delta @ transposed(directions[layer])
            moved = moved_error * trace.slopes[layer - 1]
            if exact:
                moved = moved + error * trace.bends[layer - 1] * da[layer - 1]
            delta = error * trace.slopes[layer - 1]
        products.append(product)
    return trace.network.pack(products[::-1])


def hessian_width(network):
    """Doubles per row that `hessian` needs in its widest temporary array.

    Examples
    --------
    >>> from skbayesnn.network import Network, hessian_width
    >>> hessian_width(Network((2, 8, 1)))
    81
    """
    shapes = network.shapes
    widths = [max(fan_out**2, fan_in**2) for fan_in, fan_out in shapes]
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


def _pairs(z):
    """Products ``z_i z_j`` with ``i <= j``: ``(..., n, d)`` to ``(..., n, d (d + 1) / 2)``."""
    first, second, _ = _triangle(z.shape[-1])
    return z.take(first, axis=-1) * z.take(second, axis=-1)


def _columns(matrix):
    """Flatten the last two axes."""
    return matrix.reshape(*matrix.shape[:-2], -1)


def _over_rows(left, right):
    """``sum_n left_np right_nq``, of shape ``(..., p, q)``."""
    return np.swapaxes(left, -1, -2) @ right


def _times(stack, weights):
    """``stack @ weights`` for ``(..., n, p, q)`` and ``(..., q, s)`` as one flat product."""
    *lead, n_rows, p, q = stack.shape
    flat = stack.reshape(*lead, n_rows * p, q) @ weights
    return flat.reshape(*flat.shape[:-2], n_rows, p, weights.shape[-1])


def _block_sums(trace, residual, curvature, exact):
    """Yield ``((kind, m, l), sum over rows)`` for one block of rows."""
    top = len(trace.layers) - 1
    deltas = back_propagate(trace, residual) if exact else None
    diagonal = curvature.ndim == residual.ndim
    own = curvature  # C_mm, from the output layer down
    for upper in range(top, -1, -1):
        yield ("own", upper, upper), _own_sum(trace, own, upper, diagonal and upper == top)
        mixed = own
        for lower in range(upper - 1, -1, -1):  # C_ml = (C_m,l+1 W_l+1^T) * phi'_l
            back = transposed(trace.layers[lower + 1])
            slope = trace.slopes[lower][..., None, :]
            if mixed is curvature and diagonal:
                mixed = curvature[..., None] * back[..., None, :, :] * slope
            else:
                mixed = _times(mixed, back) * slope
            if lower == upper - 1:
                first_mixed = mixed
            z_pairs = trace.inputs[upper][..., :, None] * trace.inputs[lower][..., None, :]
            yield ("mixed", upper, lower), _over_rows(_columns(mixed), _columns(z_pairs))
        if exact and upper > 0:
            yield from _path_sums(trace, deltas[upper], upper)
        if upper > 0:
            own = _next_own(trace, first_mixed, upper - 1, deltas if exact else None)


def _own_sum(trace, own, layer, diagonal):
    """Sum over rows of ``C_ll`` pairs times input pairs."""
    if not diagonal:
        first, second, _ = _triangle(own.shape[-1])
        own = _columns(own).take(first * own.shape[-1] + second, axis=-1)
    return _over_rows(own, _pairs(trace.inputs[layer]))


def _next_own(trace, mixed, layer, deltas):
    """``C_ll = phi'_l W_l+1 C_l+1,l + diag(e_l phi''_l)``, shape ``(..., n, width, width)``."""
    back = transposed(trace.layers[layer + 1])
    own = _times(np.swapaxes(mixed, -1, -2), back) * trace.slopes[layer][..., None, :]
    if deltas is not None:
        error = deltas[layer + 1] @ back
        units = np.arange(own.shape[-1])
        own[..., units, units] += error * trace.bends[layer]
    return own


def _path_sums(trace, delta, upper):
    """Terms ``z_a (dz_b / da_i) delta_j`` between layer ``upper`` and every layer below it."""
    reach = None  # dz_b / da_i as (..., n, b, i)
    for lower in range(upper - 1, -1, -1):
        slope = trace.slopes[lower]
        if lower == upper - 1:  # b = i: keep only this diagonal
            path = slope[..., :, None] * delta[..., None, :]
        else:
            if reach is None:
                reach = trace.slopes[lower + 1][..., :, None] * np.eye(
                    trace.slopes[lower + 1].shape[-1]
                )
            back = transposed(trace.layers[lower + 1])
            reach = _times(reach, back) * slope[..., None, :]
            path = _columns(reach)[..., :, None] * delta[..., None, :]
        yield ("path", upper, lower), _over_rows(_columns(path), trace.inputs[lower])


def _assemble(network, sums):
    """Scatter the sums over rows into the full matrix ``(..., k, k)``."""
    lead = max((value.shape[:-2] for value in sums.values()), key=len)
    matrix = np.empty((*lead, network.n_weights, network.n_weights))
    for upper, (fan_in_above, fan_out_above) in enumerate(network.shapes):
        rows = network.slices[upper]
        matrix[..., rows, rows] = _expand(sums["own", upper, upper], fan_in_above, fan_out_above)
        for lower, (fan_in, fan_out) in enumerate(network.shapes[:upper]):
            columns = network.slices[lower]
            sizes = (fan_out_above, fan_out, fan_in_above, fan_in)  # j, i, b, a
            block = sums["mixed", upper, lower].reshape(*lead, *sizes)
            block = np.moveaxis(block, (-2, -4, -1, -3), (-4, -3, -2, -1)).copy()  # b, j, a, i
            if ("path", upper, lower) in sums:
                _add_paths(block, sums["path", upper, lower], lower == upper - 1)
            block = block.reshape(*lead, fan_in_above * fan_out_above, fan_in * fan_out)
            matrix[..., rows, columns] = block
            matrix[..., columns, rows] = np.swapaxes(block, -1, -2)
    return matrix


def _expand(packed, fan_in, fan_out):
    """Packed pairs ``(..., units, inputs)`` to the symmetric block of one layer."""
    lead = packed.shape[:-2]
    square = packed.take(_triangle(fan_in)[2], axis=-1)  # (..., units, a, b)
    if packed.shape[-2] == fan_out:  # units do not interact (or there is only one)
        block = np.zeros((*lead, fan_in, fan_out, fan_in, fan_out))
        units = np.arange(fan_out)
        block[..., units, :, units] = np.moveaxis(square, -3, 0)
    else:
        square = square.take(_triangle(fan_out)[2], axis=-3)  # (..., i, j, a, b)
        block = np.moveaxis(square, (-2, -4, -1, -3), (-4, -3, -2, -1))
    return block.reshape(*lead, fan_in * fan_out, fan_in * fan_out)


def _add_paths(block, paths, adjacent):
    """Add ``z_a (dz_b / da_i) delta_j`` to ``block`` of shape ``(..., b, j, a, i)``."""
    fan_in_above, fan_out_above, fan_in, fan_out = block.shape[-4:]
    lead = block.shape[:-4]
    if adjacent:  # paths: (..., i * j, a), to be added where b = i
        term = paths.reshape(*lead, fan_out, fan_out_above, fan_in)
        units = np.arange(fan_out)
        block[..., units, :, :, units] += np.moveaxis(term, -3, 0)
    else:  # paths: (..., b * i * j, a)
        term = paths.reshape(*lead, fan_in_above - 1, fan_out, fan_out_above, fan_in)
        block[..., :-1, :, :, :] += np.moveaxis(term, (-4, -2, -1, -3), (-4, -3, -2, -1))
