"""Symmetries of the prior under exchange and sign change of hidden units (label switching)."""

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np


class UnitSymmetry(NamedTuple):
    """Symmetry operations on the units of a hidden layer that keep the density of the weights."""

    kinds: np.ndarray  # (n_units,), kind of every unit; units of the same kind can be exchanged
    # (n_units,), whether the signs of all weights into and out of a unit can be changed
    mirrored: np.ndarray

    def costs(self, same, flipped):
        """Costs of assigning unit ``i`` to place ``j``, `FORBIDDEN` where that is no symmetry."""
        apart = self.kinds[:, None] != self.kinds
        flipped = np.where(self.mirrored[:, None], flipped, same)
        return np.where(apart, FORBIDDEN, same), np.where(apart, FORBIDDEN, flipped)


FORBIDDEN = 1e300  # cost of a forbidden assignment; an assignment without any always exists


def kinds_of_units(network, labels):
    """Kinds of the units of every hidden layer; units of a kind can be exchanged.

    Units are of a kind if their weights belong to the same groups, given by ``labels``, one for
    every weight.
    """
    kinds = []
    for before, after in pairwise(network.layers(labels)):
        signature = np.vstack([before, after[: before.shape[1]].T])
        kinds.append(np.unique(signature, axis=1, return_inverse=True)[1].ravel())
    return kinds


def symmetries(network, groups):
    """Symmetries of a prior under relabelling and sign changes of hidden units.

    Returns
    -------
    list of UnitSymmetry
        Symmetries of every hidden layer.
    """
    kinds = kinds_of_units(network, groups.labels)
    found = [UnitSymmetry(some, np.full(len(some), network.phi.odd)) for some in kinds]
    if groups.centred:
        return found
    return [_tested(network, groups, layer, some) for layer, some in enumerate(found)]


def tells_apart(network, groups):
    """Return True if no hidden unit can be exchanged or mirrored.

    Otherwise the mean is invariant under a symmetry, and may be a saddle point of the posterior.
    """
    return all(
        len(np.unique(some.kinds)) == len(some.kinds) and not np.any(some.mirrored)
        for some in symmetries(network, groups)
    )


def _tested(network, groups, layer, candidate):
    """Test every exchange and every sign change of a candidate for invariance of the prior."""
    kinds, n = np.arange(len(candidate.kinds)), network.n_weights
    for i, j in combinations(kinds.copy(), 2):
        if candidate.kinds[i] == candidate.kinds[j] and kinds[i] != kinds[j]:
            images = network.layers(np.arange(n))
            images[layer][:, [i, j]] = images[layer][:, [j, i]]
            images[layer + 1][[i, j]] = images[layer + 1][[j, i]]
            if groups.is_invariant(network.pack(images), np.ones(n)):
                kinds[j] = kinds[i]
    mirrored = candidate.mirrored.copy()
    for unit in np.flatnonzero(mirrored):
        signs = network.layers(np.ones(n))
        signs[layer][:, unit], signs[layer + 1][unit] = -1.0, -1.0
        mirrored[unit] = groups.is_invariant(np.arange(n), network.pack(signs))
    return UnitSymmetry(np.unique(kinds, return_inverse=True)[1].ravel(), mirrored)
