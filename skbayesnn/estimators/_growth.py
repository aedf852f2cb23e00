"""Width and depth of a network, grown as long as the evidence does."""

from typing import NamedTuple

import numpy as np

LEAST_GAIN = 1.0  # of log evidence, in nats, that counts as an improvement
SMALL, NARROW, USUAL = (
    2,
    4,
    16,
)  # widths: the first, that of comparing depths, one always affordable
LARGEST_WORK = 2e8  # rows times squared weights up to which larger networks are tried


class Candidate(NamedTuple):
    """An architecture that was tried.

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
    log_evidence : float
        Of its best minimum, in nats, targets in their own units; ``nan`` if not available.
    n_weights : int
        Before pruning.
    """

    hidden_layer_sizes: tuple
    log_evidence: float
    n_weights: int


def grow(attempt, n_weights, n_targets):
    """Choose one or two layers while they are narrow, then widen them as the evidence rises.

    Two layers are compared with one at 4 units per layer, where this costs little. Then widths
    double, both layers being equally wide, until one brings no improvement. Networks with more
    weights than targets are not tried, nor are those that would take too long, unless they have one
    layer of up to 16 units.

    Parameters
    ----------
    attempt : callable
        From hidden layer sizes and those of the narrower network of the same depth tried before
        (or ``None``) to a log evidence.
    n_weights : callable
        From hidden layer sizes to the number of weights.
    n_targets : float

    Returns
    -------
    list of Candidate
        In the order in which they were tried.
    """
    path = []

    def gain(sizes, narrower, rival):
        """Try a network; by how much its evidence exceeds that of a rival tried before."""
        k = n_weights(sizes)
        usual = len(sizes) == 1 and sizes[0] <= USUAL
        if k > n_targets or (not usual and n_targets * k**2 > LARGEST_WORK):
            return -np.inf
        path.append(Candidate(sizes, attempt(sizes, narrower), k))
        return _value(path[-1]) - max((_value(c) for c in path if c[0] in rival), default=-np.inf)

    path.append(Candidate((), attempt((), None), n_weights(())))
    gain((SMALL,), None, ())
    gain((NARROW,), (SMALL,), ())
    deeper = gain((NARROW, NARROW), None, {(NARROW,)})
    depth = 2 if deeper > LEAST_GAIN else 1
    width = 2 * NARROW
    narrower = [(w,) * depth for w in (SMALL, NARROW)]
    while gain((width,) * depth, narrower[-1], narrower) > LEAST_GAIN:
        narrower.append((width,) * depth)
        width *= 2
    return path


def best_of(path):
    """The candidate of highest evidence; the first one if none has any."""
    return max(path, key=_value)


def _value(candidate):
    return -np.inf if np.isnan(candidate.log_evidence) else candidate.log_evidence
