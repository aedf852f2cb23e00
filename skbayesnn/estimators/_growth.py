"""Width and depth of a network, grown as long as the evidence does."""

from itertools import count
from typing import NamedTuple

import numpy as np

from skbayesnn.estimators._report import ROWS_PER_WEIGHT

LEAST_GAIN = 1.0  # of log evidence, in nats, that counts as an improvement
PATIENCE = 2  # widths without improvement that end the widening


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
    """Try wider and then deeper networks until the evidence no longer rises.

    Widths double from 2, all layers being equally wide, until `PATIENCE` of them in a row bring no
    improvement. Layers are added until the best width of a depth has no more evidence than that of
    the depth before. Networks with fewer than 3 targets per weight are not tried: there the
    Gaussian approximation, and with it the evidence, tends to mislead.

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
    best = _value(path[0])
    for depth in count(1):
        tried = _widen(attempt, n_weights, n_targets, depth)
        path += tried
        top = max(map(_value, tried), default=-np.inf)
        if not top > best + LEAST_GAIN:
            return path
        best = top


def _widen(attempt, n_weights, n_targets, depth):
    """All widths tried at one depth."""
    tried, best, failures, narrower = [], -np.inf, 0, None
    for power in count(1):
        sizes = (2**power,) * depth
        k = n_weights(sizes)
        if n_targets < ROWS_PER_WEIGHT * k:
            return tried
        tried.append(Candidate(sizes, attempt(sizes, narrower), k))
        narrower = sizes
        value = _value(tried[-1])
        failures = 0 if value > best + LEAST_GAIN else failures + 1
        best = max(best, value)
        if failures == PATIENCE:
            return tried


def best_of(path):
    """The candidate of highest evidence; the first one if none has any."""
    return max(path, key=_value)


def _value(candidate):
    return -np.inf if np.isnan(candidate.log_evidence) else candidate.log_evidence
