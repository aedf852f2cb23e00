"""Choice of width and depth for many rows: networks grow while the held-out density increases.

The likelihood of held-out rows given the others is a factor of the evidence by the chain rule, the
conditional marginal likelihood, which measures predictive performance (Lotfi et al. 2022,
"Bayesian model selection, the marginal likelihood, and generalization").
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.special import logsumexp

from skbayesnn.inference.minima._search import ALONE, find_minima, own_posterior, seconds_of_start
from skbayesnn.inference.task._problem import Posed, Problem
from skbayesnn.network import outputs
from skbayesnn.posterior import Targets

HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 5000  # fraction of the rows that are held out, at most so many
# starts with all rows that take as long as these and other noise models: the usual number, as fewer
# networks are trained where the noise is chosen
AFTER = 5.0
# factor of `Limits.restarted_work` for starts that end by held-out rows, after fewer steps
# (doc/contributing/ablation.md)
OF_HELD_OUT = 4.0
WIDTHS = 4, 8, 16, 32  # of networks with one hidden layer, all of which are tried
DEEP = 16, 16  # two layers, which are compared with one of any width
MIN_GAIN = 0.01  # least difference of held-out log densities that counts as an improvement


class HeldOut(NamedTuple):
    """Split of a problem into the training rows that are kept, and the rest."""

    kept: Problem
    rest: Problem
    whole: Problem

    @classmethod
    def of(cls, problem):
        """Split a problem at random, regardless of sample weights, with a fixed seed."""
        n = len(problem.X)
        order = np.random.default_rng(0).permutation(n)
        n_rest = min(int(HELD_OUT_SHARE * n), MAX_HELD_OUT)
        kept, rest = (problem.of_rows(np.sort(rows)) for rows in (order[n_rest:], order[:n_rest]))
        # the threshold falls with the number of rows, so that the method for the kept ones is that
        # for all rows, but with early stopping (fewer than ``n`` rows per weight), as no evidence
        # is needed. ``-(-a // b)`` rounds up
        limits = problem.limits._replace(
            batch_rows=-(-problem.limits.batch_rows * len(kept.X) // n),
            batch_rows_per_weight=n,
            compared=True,
            restarted_work=OF_HELD_OUT * problem.limits.restarted_work,
        )
        return cls(replace(kept, limits=limits), rest, problem)

    def posed(self, sizes):
        """Problem of the kept rows for one network, whose training ends by the other rows."""
        posterior, settings = self.kept.posed(sizes)
        return Posed(posterior, settings._replace(held_out=self.rest.posed(sizes).posterior))

    def trained(self, sizes, seeds, workers):
        """Train a network from random starts, and return the best one for the held-out rows."""
        posterior, settings = self.posed(sizes)
        seeds = self._seeds_for(sizes, seeds)
        minima = find_minima(posterior, settings, seeds, workers=workers)
        return max(minima, key=lambda minimum: self.log_density([minimum]))

    def _seeds_for(self, sizes, seeds):
        """Seeds of the starts of a network: one for a linear model, or if starts take long."""
        posterior, settings = self.kept.posed(sizes)
        takes_long = settings.limits.takes_long(len(posterior.X), posterior.network.n_weights)
        return seeds if sizes and not takes_long else seeds[:1]

    def seconds_of_training(self, sizes, seeds, n_jobs):
        """Predict the seconds of `trained`."""
        n_starts = len(self._seeds_for(sizes, seeds))
        n_rounds = np.ceil(n_starts / min(effective_n_jobs(n_jobs), n_starts))
        return n_rounds * seconds_of_start(*self.posed(sizes))

    def seconds_after(self, sizes):
        """Predict the seconds of all that follows the choice of hidden layers, see `grown`."""
        return AFTER * seconds_of_start(*self.whole.posed(sizes))

    def log_density(self, minima):
        """Mean held-out log density (nats per row) of an equally weighted mixture of networks.

        The density is in units of the user and uses the most probable weights: it ignores their
        posterior variance, but penalises a noise level that is too low.
        """
        logs = np.stack([self._log_densities(minimum) for minimum in minima])
        weight = self.rest.sample_weight
        mean = weight @ (logsumexp(logs, axis=0) - np.log(len(logs))) / weight.sum()
        return float(mean + self.rest.log_scale / weight.sum())

    def _log_densities(self, minimum):
        """Log density of every held-out row, in standardised units."""
        sizes = minimum.network.hidden_layer_sizes
        own = own_posterior(self.rest.posed(sizes).posterior, minimum)
        f = outputs(own.network, minimum.theta, own.X)
        # a further axis makes every row a data set of its own, as `misfit` sums over rows
        y, factors, known = (
            None if values is None else values[:, None]
            for values in (own.y, own.factors, own.known)
        )
        targets = Targets(y, np.ones(1), factors, known)
        misfit = own.likelihood.misfit(f[:, None], targets, minimum.hyper.beta).value
        logs = own.likelihood.log_normaliser(minimum.hyper.beta, 1.0) - misfit
        return logs if factors is None else logs + 0.5 * np.sum(np.log(own.factors), axis=1)


class Candidate(NamedTuple):
    """Architecture that was tried.

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
    n_weights : int
        Number of weights before pruning.
    log_evidence : float
        Log evidence measured by sampling, in nats, for targets in their own units; ``nan`` if it
        was not.
    held_out_log_density : float
        Mean held-out log density (nats per row), the criterion where there are many rows; else
        ``nan``.
    """

    hidden_layer_sizes: tuple
    n_weights: int
    log_evidence: float = np.nan
    held_out_log_density: float = np.nan

    def __str__(self):
        found = f"log evidence {self.value:.2f}" if np.isfinite(self.value) else "no evidence"
        if not np.isnan(self.held_out_log_density):
            found = f"log density of rows held out {self.held_out_log_density:.4f} per row"
        return f"hidden layers {self.hidden_layer_sizes}: {found}"

    @property
    def value(self):
        """Criterion by which networks are compared; minus infinity if not available."""
        held_out, measured = self.held_out_log_density, self.log_evidence
        return np.nan_to_num(measured if np.isnan(held_out) else held_out, nan=-np.inf)

    @property
    def merit(self):
        """Held-out log density less the least improvement that every hidden layer has to bring."""
        return self.held_out_log_density - MIN_GAIN * len(self.hidden_layer_sizes)


def doubled(hidden_layer_sizes):
    """Hidden layers of twice the width."""
    return tuple(2 * size for size in hidden_layer_sizes)


def grow(attempt, allowed, report=lambda text: None):
    """Try one layer of few units, and deeper or wider networks while these are better.

    Two layers are compared with one. The better depth is then widened, all layers equally, until
    doubling the units brings no improvement. If two layers are better than one, a third one is
    tried.

    ``attempt`` takes hidden layer sizes and returns a `Candidate`; ``allowed`` returns whether
    sizes may be tried. ``report`` receives a line about every candidate. Returns the candidates in
    the order in which they were tried.
    """
    path = []

    def tried(sizes):
        """Try a network, and return its `Candidate`; ``None`` if it is not allowed."""
        if sizes and not allowed(sizes):
            return None
        path.append(attempt(sizes))
        report(str(path[-1]))
        return path[-1]

    tried(())
    candidates = [tried((width,)) for width in WIDTHS]
    row, deep = [each for each in candidates if each is not None], tried(DEEP)
    if deep is not None and is_better(deep, row):
        row = [deep]
    while row and is_better(row[-1], row[:-1]):
        wider = tried(doubled(row[-1].hidden_layer_sizes))
        if wider is None:
            break
        row.append(wider)
    best = best_of(path).hidden_layer_sizes
    if len(best) == len(DEEP):
        tried((*best, best[-1]))
    return path


def is_better(candidate, others):
    """Return True if a candidate improves on all others by `MIN_GAIN`."""
    return candidate.value > max((each.value for each in others), default=-np.inf) + MIN_GAIN


def ranked(path):
    """Candidates in descending order of `Candidate.merit`."""
    return sorted(path, key=lambda candidate: candidate.merit, reverse=True)


def best_of(path):
    """Candidate of highest `Candidate.merit`; the first one if none has any."""
    return ranked(path)[0]


def grown(held, seeds, workers=ALONE):
    """Choose hidden layers by `grow` and a split `HeldOut`, under constant noise.

    Every network with hidden layers starts from each of the ``seeds``, unless starts take long.
    Training ends by the held-out rows, whose log density is the criterion.

    Returns the path, a tuple of `Candidate`, and the best minimum by hidden layer sizes.
    """
    problem, tried, found = held.kept, {}, []
    first = [(width,) for width in WIDTHS] + [DEEP]

    def attempt(sizes):
        tried[sizes] = held.trained(sizes, seeds, workers)
        value = held.log_density([tried[sizes]])
        n_weights = problem.network(sizes).n_weights
        found.append(Candidate(sizes, n_weights, held_out_log_density=value))
        return found[-1]

    def allowed(sizes):
        """Return True if a network has no more weights than targets and is affordable."""
        k, n_outputs = problem.network(sizes).n_weights, problem.y.shape[1]
        n_targets = problem.sample_weight.sum() * problem.likelihood.n_independent(n_outputs)
        is_small = k <= min(n_targets, problem.limits.growth_weights)
        return is_small and not problem.deadline.passed

    def later():
        """Predict the seconds of wider networks and after growth.

        While the last network is the best, the gain is expected to halve with every doubling of the
        units.
        """
        if not found:
            return 0.0
        best, seconds = best_of(found), 0.0
        sizes = best.hidden_layer_sizes
        gain = best.value - found[-2].value if len(found) > 1 and best is found[-1] else 0.0
        while (gain := 0.5 * gain) > MIN_GAIN and allowed(wider := doubled(sizes)):
            sizes = wider
            seconds += seconds_of_start(*held.posed(sizes)) if sizes not in first else 0.0
        return seconds + held.seconds_after(sizes)

    works = []
    if workers.progress.listens:
        sizes_of_works = [(), *filter(allowed, first)]
        works = [held.seconds_of_training(each, seeds, workers.n_jobs) for each in sizes_of_works]
    with (
        workers.progress.before(later),
        workers.progress.stage("hidden layers", works, True, float(np.sum(works))) as report,
    ):
        return tuple(grow(attempt, allowed, report)), tried
