"""Width and depth of a network, grown as long as the evidence does."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from skbayesnn.estimators._base import BayesianMLP
from skbayesnn.inference import find_minima, machine_memory, readable, requirements

N_SCOUTS = 2  # starts from which every architecture is tried
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


class Growing(BayesianMLP):
    """Estimators that look for minima, and so can choose their hidden layers by the evidence."""

    _n_scouts = N_SCOUTS

    def _grown(self, rows, hidden_layer_sizes):
        """Hidden layers, and what was tried if they were to be chosen.

        Returns
        -------
        hidden_layer_sizes : tuple of int
        tried : dict
            From hidden layers to the posterior and its minima; empty if there was no choice.
        """
        vars(self).pop("growth_", None)  # of an earlier fit
        if hidden_layer_sizes != "auto":
            return hidden_layer_sizes, {}
        tried = self._grow(rows)
        return best_of(self.growth_).hidden_layer_sizes, tried

    def _grow(self, rows):
        """Posterior and minima of every architecture that was tried; sets ``growth_``."""
        tried = {}

        def attempt(sizes, narrower):
            problem = self._pose(rows, sizes)
            start = None if narrower is None else tried[narrower][1][0]
            found = self._find(problem, self._seeds(sizes, self._n_scouts), narrower=start)
            tried[sizes] = problem.posterior, found
            return found[0].log_evidence + self._scale_term(problem)

        def n_weights(sizes):
            return self._pose(rows, sizes).posterior.network.n_weights

        n_outputs = self._pose(rows, ()).posterior.network.n_outputs
        if is_classifier(self) and n_outputs > 1:
            n_outputs -= 1  # probabilities sum to 1
        self.growth_ = tuple(grow(attempt, n_weights, rows.weight.sum() * n_outputs))
        return tried

    def _seeds(self, hidden_layer_sizes, n_starts):
        """One per random start; without hidden layer there is one minimum."""
        entropy = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.SeedSequence(entropy).spawn(n_starts if hidden_layer_sizes else 1)

    def _search(self, problem, seeds, further=()):
        """Distinct minima from random starts and from others."""
        return self._find(problem, seeds, further)

    def _find(self, problem, seeds, previous=(), narrower=None):
        """Distinct minima, best evidence first."""
        self._tell_requirements(problem, len(seeds) + len(previous))
        progress = print if self.verbose else None
        return find_minima(
            problem.posterior, problem.settings, seeds, previous, narrower, self.n_jobs, progress
        )

    def _tell_requirements(self, problem, n_starts):
        """Say what a search will take; warn if the machine has less memory."""
        needed = requirements(problem.posterior, problem.settings, n_starts, self.n_jobs)
        if self.verbose:
            print(needed)
        if needed.n_bytes > machine_memory():
            warnings.warn(
                f"The fit needs about {readable(needed.n_bytes)} of memory, and the machine has "
                f"{readable(machine_memory())} ({needed.plan}). Use fewer hidden units, "
                "n_jobs=1, fewer n_restarts, or some of the rows.",
                UserWarning,
                stacklevel=4,
            )
