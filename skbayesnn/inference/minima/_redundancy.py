"""Redundant hidden units: pruning, and comparison of networks up to label switching."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skbayesnn.network import forward

NEGLIGIBLE = 1e-3  # effect of a unit, relative to the noise (or to a logit of 1), that is ignored
NOTHING = 1e-100  # least singular value of a common map; below, norms of weights may underflow
COINCIDE = 1e-2  # relative distance of incoming weights below which units are duplicates
ROWS_LOOKED_AT = 10_000


class Pruned(NamedTuple):
    """Record of a deleted hidden unit."""

    layer: int  # hidden layer, from 1
    reason: str


def prune(posterior, theta, tolerance):
    """Delete redundant hidden units until every unit is needed.

    Returns the posterior and weights of the pruned network, and a list of `Pruned`.
    """
    if not posterior.groups.centred:
        return posterior, theta, []
    posterior, theta, pruned = merge_linear_units(posterior, theta, tolerance)
    while (change := prune_one(posterior, theta, tolerance)) is not None:
        posterior, theta, unit = change
        pruned.append(unit)
    return posterior, theta, pruned


def prune_one(posterior, theta, tolerance):
    """Delete one redundant hidden unit, keeping the function (MacKay 1992, section 3.A).

    A unit is *off* if its variation over the training rows changes the input of no unit above by
    more than `NEGLIGIBLE`. Its mean is added to the biases above; if there are none, the mean
    counts as variation. *Duplicates* have equal (for odd activations also opposite) incoming
    weights; their outgoing weights are added. The last unit of a layer is kept.

    ``tolerance`` (n_outputs,) is the noise standard deviation of every output, 1 for classifiers.
    Returns posterior, weights and a `Pruned`, or ``None`` if every unit is needed.
    """
    network = posterior.network
    trace = forward(network, theta, _rows_to_look_at(posterior.X))
    for layer, width in enumerate(network.hidden_layer_sizes):
        if width == 1:
            continue
        layers = [w.copy() for w in network.layers(theta)]
        above = layers[layer + 1]
        found = _off_unit(trace, layer, tolerance)
        if found is not None:
            above[width:] += trace.inputs[layer + 1][:, found].mean() * above[found]
            reason = "off"
        else:
            pair = _coinciding_pair(layers[layer], network.phi.odd)
            if pair is None:
                continue
            kept, found, sign = pair
            above[kept] += sign * above[found]
            reason = "duplicate"
        return *_without(posterior, layers, layer, [found]), Pruned(layer + 1, reason)
    return None


def merge_linear_units(posterior, theta, tolerance):
    """Merge hidden units in their linear range into the fewest that compute the same map.

    Units for which ``phi`` is linear to within `NEGLIGIBLE` can be rotated into each other. More
    units than the rank of their common linear map make the minimum degenerate. The map is factored
    anew by its singular value decomposition, which also minimises the energy of the weights. The
    new units have inputs about zero. No units are merged if ``phi`` has no slope at zero (relu), or
    if there are no biases above to absorb the constant.

    Arguments and results are those of `prune`.
    """
    pruned = []
    for layer in range(len(posterior.network.hidden_layer_sizes)):
        network = posterior.network
        steepness = network.phi.derivatives(np.zeros(1), 1)[1][0]
        if network.phi.linear or steepness == 0.0 or not network.has_biases(layer + 1):
            break
        layers = [w.copy() for w in network.layers(theta)]
        incoming, outgoing = layers[layer], layers[layer + 1]
        trace = forward(network, theta, _rows_to_look_at(posterior.X))
        z = trace.inputs[layer + 1][:, : network.hidden_layer_sizes[layer]]
        a = trace.inputs[layer] @ incoming
        slope, offset, error = _linear_fits(a, z)
        limit = tolerance if layer + 2 == len(layers) else 1.0
        effect = np.max(error[:, None] * np.abs(outgoing[:-1]) / limit, axis=1)
        linear = np.flatnonzero(effect < NEGLIGIBLE)
        labels = network.layers(posterior.groups.labels)
        into, out = labels[layer][:, linear], labels[layer + 1][linear]
        exchangeable = np.all(into == into[:, :1]) and np.all(out == out[:1])
        if len(linear) < 2 or not exchangeable:
            continue
        left, right = incoming[:-1, linear], slope[linear, None] * outgoing[linear]
        U, s, V = np.linalg.svd(left @ right, full_matrices=False)
        rank = max(1, int(np.sum(s > 1e-8 * max(s[0], 1e-300))))
        if rank >= len(linear) or s[0] < NOTHING:
            continue
        constant = (slope * incoming[-1] + offset)[linear] @ outgoing[linear]
        balance = np.sqrt(np.linalg.norm(left) / max(np.linalg.norm(outgoing[linear]), 1e-300))
        kept, dropped = linear[:rank], linear[rank:]
        rest = network.phi.derivatives(np.zeros(1), 0)[0][0]
        root = np.sqrt(s[:rank] / steepness)
        incoming[:-1, kept], incoming[-1, kept] = U[:, :rank] * root * balance, 0.0
        outgoing[kept] = root[:, None] * V[:rank] / balance
        outgoing[-1] += constant - rest * outgoing[kept].sum(axis=0)
        posterior, theta = _without(posterior, layers, layer, dropped)
        pruned += [Pruned(layer + 1, "linear")] * len(dropped)
    return posterior, theta, pruned


def _rows_to_look_at(X):
    """Select at most `ROWS_LOOKED_AT` rows, evenly spaced, as the rows are sorted."""
    return X[:: -(-len(X) // ROWS_LOOKED_AT)]


def _linear_fits(a, z):
    """Least-squares line ``z = slope a + offset`` of every unit, and its largest error."""
    centred = a - a.mean(axis=0)
    spread = np.sum(centred**2, axis=0)
    slope = np.sum(centred * z, axis=0) / np.where(spread > 0, spread, 1.0)
    offset = z.mean(axis=0) - slope * a.mean(axis=0)
    return slope, offset, np.max(np.abs(z - slope * a - offset), axis=0)


def _without(posterior, layers, layer, units):
    """Posterior and weights after deleting hidden units of a layer (from 0)."""
    network = posterior.network
    smaller = network.without_units(layer, units)
    labels = network.layers(posterior.groups.labels)
    for matrices in (layers, labels):
        matrices[layer] = np.delete(matrices[layer], units, axis=1)
        matrices[layer + 1] = np.delete(matrices[layer + 1], units, axis=0)
    return posterior.with_network(smaller, smaller.pack(labels)), smaller.pack(layers)


def layers_switched_off(posterior, theta, tolerance):
    """Hidden layers (from 0) whose single unit is off, so that its sign change is no new mode."""
    trace = forward(posterior.network, theta, _rows_to_look_at(posterior.X))
    single = np.flatnonzero(np.equal(posterior.network.hidden_layer_sizes, 1))
    return [layer for layer in single if _off_unit(trace, layer, tolerance) is not None]


def _off_unit(trace, layer, tolerance):
    """Index of the unit of least effect in a hidden layer if it is off, else ``None``."""
    network, above = trace.network, trace.layers[layer + 1]
    z = trace.inputs[layer + 1][:, : network.hidden_layer_sizes[layer]]
    size = np.std(z, axis=0)
    if not network.has_biases(layer + 1):
        size = np.sqrt(np.mean(z**2, axis=0))
    effect = size[:, None] * np.abs(above[: len(size)])
    if layer + 2 == len(trace.layers):
        effect = effect / tolerance
    largest = np.max(effect, axis=1)
    weakest = int(np.argmin(largest))
    return weakest if largest[weakest] < NEGLIGIBLE else None


def _coinciding_pair(incoming, odd):
    """Indices and sign ``(kept, deleted, sign)`` of a pair of duplicate units, or ``None``."""
    columns = incoming.T
    size = np.linalg.norm(columns, axis=1)
    limit = COINCIDE * np.maximum(size[:, None], size)
    for sign in (1.0, -1.0) if odd else (1.0,):
        distance = cdist(columns, sign * columns)
        close = np.triu(distance <= limit, 1)
        if np.any(close):
            kept, found = np.argwhere(close)[0]
            return int(kept), int(found), sign
    return None


def align(network, theta, reference, allowed=None):
    """Undo label switching: permute and flip hidden units to match a reference network best.

    Both networks have the same layout. ``allowed`` are the `UnitSymmetry` of every hidden layer; by
    default units take any place and sign.
    """
    layers = [w.copy() for w in network.layers(theta)]
    targets = network.layers(reference)
    for layer, width in enumerate(network.hidden_layer_sizes):
        mine, other = layers[layer].T, targets[layer].T
        same = cdist(mine, other)
        flipped = cdist(mine, -other) if network.phi.odd else same
        if allowed is not None:
            same, flipped = allowed[layer].costs(same, flipped)
        units, places = linear_sum_assignment(np.minimum(same, flipped))
        order = np.empty(width, dtype=int)
        order[places] = units
        sign = np.where(flipped < same, -1.0, 1.0)[units, places][np.argsort(places)]
        layers[layer] = layers[layer][:, order] * sign
        layers[layer + 1] = np.vstack(
            [layers[layer + 1][:width][order] * sign[:, None], layers[layer + 1][width:]]
        )
    return network.pack(layers)


def same_minimum(network, theta, reference, tol=1e-2, allowed=None):
    """Return True if two networks agree up to symmetry, to within ``tol`` after `align`.

    The distance is relative if the norm of the weights exceeds 1, and absolute otherwise, so that
    networks with vanishing weights agree.
    """
    distance = np.linalg.norm(align(network, theta, reference, allowed) - reference)
    return bool(distance <= tol * max(1.0, np.linalg.norm(reference)))
