"""Choice of width and depth: networks grow while the evidence or held-out density increases.

Laplace's approximation of the evidence is wrong by several nats for networks with hundreds of
weights, and not available for the larger networks that many rows support. With many rows, some can
be held out: their likelihood given the other rows is a factor of the evidence by the chain rule,
the conditional marginal likelihood, which measures predictive performance (Lotfi et al. 2022,
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

HELD_OUT_SHARE, MOST_HELD_OUT = 0.1, 5000  # fraction of the rows that are held out, at most so many
# starts with all rows that take as long as these and other noise models: the usual number, as fewer
# networks are trained where the noise is chosen
AFTER = 5.0
# factor of `Limits.restarted_work` for starts that end by held-out rows, after fewer steps
# (doc/contributing/ablation.md)
OF_HELD_OUT = 4.0


def seeds_for(posterior, settings, seeds, widened=False):
    """Seeds of the starts of a network while sizes are compared.

    A linear model has starts of its own. A network whose starts take long has one start, the last
    one if that may be a ``widened`` narrower network.
    """
    takes_long = settings.limits.takes_long(len(posterior.X), posterior.network.n_weights)
    if posterior.network.hidden_layer_sizes and not takes_long:
        return seeds
    return seeds[-1:] if widened else seeds[:1]


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
        n_rest = min(int(HELD_OUT_SHARE * n), MOST_HELD_OUT)
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
        seeds = seeds_for(posterior, settings, seeds)
        minima = find_minima(posterior, settings, seeds, workers=workers)
        return max(minima, key=lambda minimum: self.log_density([minimum]))

    def seconds_after(self, sizes, minima=()):
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


class Ladder(NamedTuple):
    """Sequence of architectures to be tried."""

    widths: tuple  # widths of networks with one hidden layer, all of which are tried
    # two layers of the first of these widths are compared with one layer of any of them
    rivals: tuple
    deepest: int  # maximum number of hidden layers
    least_gain: float  # least difference that counts as an improvement, in units of the criterion


BY_EVIDENCE = Ladder(widths=(2, 4, 8, 16), rivals=(4,), deepest=2, least_gain=1.0)
OF_MANY_ROWS = Ladder(widths=(4, 8, 16, 32), rivals=(16, 4, 8, 32), deepest=3, least_gain=0.01)


class Candidate(NamedTuple):
    """Architecture that was tried.

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
    n_weights : int
        Number of weights before pruning.
    laplace_log_evidence : float
        Log evidence of its best minimum by Laplace's approximation, in nats, for targets in their
        own units; ``nan`` if not available.
    log_evidence : float
        Log evidence measured by sampling; ``nan`` if it was not.
    held_out_log_density : float
        Mean held-out log density (nats per row), the criterion where there are many rows; else
        ``nan``.
    """

    hidden_layer_sizes: tuple
    n_weights: int
    laplace_log_evidence: float = np.nan
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
        values = self.held_out_log_density, self.log_evidence, self.laplace_log_evidence
        return next((value for value in values if not np.isnan(value)), -np.inf)

    @property
    def merit(self):
        """Criterion less the least improvement that every hidden layer has to bring."""
        ladder = BY_EVIDENCE if np.isnan(self.held_out_log_density) else OF_MANY_ROWS
        return self.value - ladder.least_gain * len(self.hidden_layer_sizes)


def doubled(hidden_layer_sizes):
    """Hidden layers of twice the width."""
    return tuple(2 * size for size in hidden_layer_sizes)


def grow(attempt, allowed, ladder=BY_EVIDENCE, report=lambda text: None):
    """Try one narrow layer, and deeper or wider networks while these are better.

    Two layers are compared with one at a small width, for many rows also with one of fewer units,
    or of twice the width, which has about as many weights. Then the better depth is widened, all
    layers equally, until doubling the units brings no improvement. If two layers are better than
    one, further layers of the best width are tried.

    ``attempt`` takes hidden layer sizes and those of the narrower network of the same depth tried
    before, or ``None``, and returns a `Candidate`; ``allowed`` returns whether sizes may be
    tried. ``report`` receives a line about every candidate. Returns the candidates in the
    order in which they were tried.
    """
    path = [attempt((), None)]
    report(str(path[0]))

    def widen(tried, sizes):
        """Try a network if allowed, and append it to the narrower ones of its depth."""
        if not allowed(sizes):
            return False
        tried.append(attempt(sizes, tried[-1].hidden_layer_sizes if tried else None))
        path.append(tried[-1])
        report(str(path[-1]))
        return True

    def rises(tried):
        """Return True if the last network is better than all others by ``least_gain``."""
        best = max((candidate.value for candidate in tried[:-1]), default=-np.inf)
        return tried[-1].value > best + ladder.least_gain

    shallow, deep = [], []
    for width in ladder.widths:
        widen(shallow, (width,))
    rivals = [
        candidate for candidate in shallow if candidate.hidden_layer_sizes[0] in ladder.rivals
    ]
    is_better = widen(deep, 2 * ladder.rivals[:1]) and rises([*rivals, *deep])
    tried = deep if is_better else shallow
    while tried and rises(tried):
        if not widen(tried, doubled(tried[-1].hidden_layer_sizes)):
            break
    for depth in range(3, ladder.deepest + 1):
        best = best_of(path)
        deeper = [best]
        sizes = depth * best.hidden_layer_sizes[:1]
        # another layer is tried only if the last one was an improvement
        if len(best.hidden_layer_sizes) < depth - 1 or not widen(deeper, sizes):
            break
    return path


def ranked(path):
    """Candidates in descending order of `Candidate.merit`."""
    return sorted(path, key=lambda candidate: candidate.merit, reverse=True)


def best_of(path):
    """Candidate of highest `Candidate.merit`; the first one if none has any."""
    return ranked(path)[0]


def grown(problem, seeds, workers=ALONE, held=None, seconds_after=lambda sizes, minima: 0.0):
    """Choose the architecture for a problem by `grow`, under constant noise.

    Every network with hidden layers starts from each of the ``seeds``. Except for the first network
    of each depth, the last start is the narrower network with random units added, and the only one
    where starts take long. If the problem has the training rows of a split `HeldOut`, all starts
    are random, and the criterion is the held-out log density of the best one, by which training
    also ends. ``seconds_after`` predicts the time after growth from the hidden layers and minima of
    the best network so far.

    Returns the path, a tuple of `Candidate`, and the minima by hidden layer sizes.
    """
    tried, found = {}, []
    posed, ladder = (problem.posed, BY_EVIDENCE) if held is None else (held.posed, OF_MANY_ROWS)

    def attempt(sizes, narrower):
        if held is None:
            posterior, settings = posed(sizes)
            start = tried[narrower][0] if narrower else None
            starts = seeds_for(posterior, settings, seeds, start is not None)
            tried[sizes] = find_minima(posterior, settings, starts, (), start, workers)
            value = tried[sizes][0].log_evidence + problem.log_scale
            score = {"laplace_log_evidence": value}
        else:
            tried[sizes] = [held.trained(sizes, seeds, workers)]
            score = {"held_out_log_density": held.log_density(tried[sizes])}
        found.append(Candidate(sizes, problem.network(sizes).n_weights, **score))
        return found[-1]

    def allowed(sizes):
        """Return True if a network has no more weights than targets and is affordable."""
        k, n_outputs = problem.network(sizes).n_weights, problem.y.shape[1]
        n_targets = problem.sample_weight.sum() * problem.likelihood.n_independent(n_outputs)
        usual = held is not None or sizes in [(width,) for width in ladder.widths]
        most_work = np.inf if usual else problem.limits.growth_work
        is_small = k <= min(n_targets, problem.limits.growth_weights)
        return is_small and n_targets * k**2 <= most_work and not problem.deadline.passed

    def later():
        """Predict the seconds of wider networks and after growth.

        While the last network is the best by held-out rows, the gain is expected to halve with
        every doubling of the units.
        """
        if not found:
            return 0.0
        best, seconds = best_of(found), 0.0
        if held is None or len(found) < 2 or best is not found[-1]:
            return seconds_after(best.hidden_layer_sizes, tried[best.hidden_layer_sizes])
        gain, sizes = best.value - found[-2].value, best.hidden_layer_sizes
        while (gain := 0.5 * gain) > ladder.least_gain and allowed(wider := doubled(sizes)):
            sizes = wider
            seconds += seconds_of_start(*posed(sizes)) if sizes not in first else 0.0
        return seconds + seconds_after(sizes, ())

    works, first = [], [*((width,) for width in ladder.widths), 2 * ladder.rivals[:1]]
    if workers.progress.listens:
        for sizes in [(), *filter(allowed, first)]:
            posterior, settings = posed(sizes)
            widened = held is None and sizes in first[1:-1]
            n_starts = len(seeds_for(posterior, settings, seeds, widened))
            n_rounds = np.ceil(n_starts / min(effective_n_jobs(workers.n_jobs), n_starts))
            works.append(n_rounds * seconds_of_start(posterior, settings))
    with (
        workers.progress.before(later),
        workers.progress.stage("hidden layers", works, True, float(np.sum(works))) as report,
    ):
        return tuple(grow(attempt, allowed, ladder, report)), tried
