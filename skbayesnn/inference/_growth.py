"""Width and depth of a network, grown as long as the evidence does."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._search import ALONE, find_minima

LEAST_GAIN = 1.0  # of log evidence, in nats, that counts as an improvement
WIDTHS = 2, 4, 8, 16  # of one layer, tried whatever the evidence
NARROW = 4  # units per layer with which depths are compared


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


def grow(attempt, n_weights, n_targets, limits):
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
    limits : Limits

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
        allowed = k <= n_targets and (usual or n_targets * k**2 <= limits.growth_work)
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


def grown(problem, seeds, workers=ALONE):
    """`grow` the network of a problem, under constant noise.

    Parameters
    ----------
    problem : Problem
    seeds : list of numpy.random.SeedSequence
        Of the starts of every network with hidden layers; the last one but for the first network of
        its depth is the narrower network with random units added.
    workers : Workers

    Returns
    -------
    path : tuple of Candidate
    tried : dict
        From hidden layer sizes to the posterior and its minima.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, grown
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> problem = Problem(X, X, np.ones(6), Gaussian.per_output(1))
    >>> path, tried = grown(problem, np.random.SeedSequence(0).spawn(1))
    >>> [candidate.hidden_layer_sizes for candidate in path]  # no more weights than targets
    [()]
    """
    tried = {}

    def attempt(sizes, narrower):
        posterior, settings = problem.posed(sizes)
        start = None if narrower is None else tried[narrower][1][0]
        some = seeds if sizes else seeds[:1]
        tried[sizes] = posterior, find_minima(posterior, settings, some, (), start, workers)
        return tried[sizes][1][0].log_evidence + problem.log_scale

    def n_weights(sizes):
        return problem.network(sizes).n_weights

    n_targets = problem.sample_weight.sum() * problem.likelihood.n_independent(problem.y.shape[1])
    return tuple(grow(attempt, n_weights, n_targets, problem.limits)), tried
