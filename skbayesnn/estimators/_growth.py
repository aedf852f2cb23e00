"""Width and depth of a network, grown as long as the evidence does."""

from typing import NamedTuple

import numpy as np

LEAST_GAIN = 1.0  # of log evidence, in nats, that counts as an improvement
WIDTHS = 2, 4, 8, 16  # of one layer, tried whatever the evidence
NARROW = 4  # units per layer with which depths are compared
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
    """Try one layer of up to 16 units, and deeper or wider networks as the evidence rises.

    Two layers are compared with one at 4 units per layer, where this costs little. Then the better
    depth is widened, all layers equally, until twice as many units bring no improvement. Networks
    with more weights than targets are not tried, nor are those that would take too long.

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
    path = [Candidate((), attempt((), None), n_weights(()))]

    def widen(tried, sizes):
        """Try a network, if the data allow it; it joins the narrower ones of its depth."""
        k = n_weights(sizes)
        usual = len(sizes) == 1 and sizes[0] in WIDTHS
        allowed = k <= n_targets and (usual or n_targets * k**2 <= LARGEST_WORK)
        if allowed:
            narrower = tried[-1].hidden_layer_sizes if tried else None
            tried.append(Candidate(sizes, attempt(sizes, narrower), k))
            path.append(tried[-1])
        return allowed

    shallow, deep = [], []
    for width in WIDTHS:
        widen(shallow, (width,))
    rivals = [candidate for candidate in shallow if candidate.hidden_layer_sizes == (NARROW,)]
    is_better = widen(deep, (NARROW, NARROW)) and _rises([*rivals, *deep])
    tried = deep if is_better else shallow
    while tried and _rises(tried):
        if not widen(tried, tuple(2 * size for size in tried[-1].hidden_layer_sizes)):
            break
    return path


def _rises(tried):
    """Whether the last of some networks has the highest evidence."""
    best = max(map(_value, tried[:-1]), default=-np.inf)
    return _value(tried[-1]) > best + LEAST_GAIN


def best_of(path):
    """The candidate of highest evidence; the first one if none has any."""
    return max(path, key=_value)


def _value(candidate):
    return -np.inf if np.isnan(candidate.log_evidence) else candidate.log_evidence
