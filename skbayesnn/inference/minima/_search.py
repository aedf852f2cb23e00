"""Multi-start search for the distinct minima of a model, each with its evidence."""

import itertools
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from time import thread_time
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from skbayesnn._progress import NEVER, Progress
from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import integrated, symmetries
from skbayesnn.inference.minima._minimum import complete, polish
from skbayesnn.inference.minima._redundancy import same_minimum
from skbayesnn.inference.minima._training import (
    EARLY,
    LEAST,
    Trained,
    embedded,
    linear_starts,
    random_starts,
    train,
)
from skbayesnn.inference.optimise._batches import BATCH, SAMPLE, STAGES, WARM, steps_per_stage
from skbayesnn.network import outputs
from skbayesnn.posterior import Hyperparameters

# `seconds_of_start` times one evaluation; these numbers, measured on fits, convert it to the time
# of a start to a factor of two
TIMED_SCALE = 0.3  # scale of the weights at which evaluations are timed
POINTS, POINTS_OF_LINEAR = 520.0, 8.0  # Gauss-Newton matrices that take as long as a start
POINTS_OF_STEP = 1.25  # their number in a step of training with early stopping
# steps of training that ends by held-out rows: the geometric mean of the least and the most, which
# is within a factor of two of both
STEPS_BY_HELD_OUT = (LEAST * EARLY) ** 0.5
POINTS_BY_GRADIENTS, GRADIENTS = 60.0, 5000.0  # matrices and gradients of a start by gradients
STEP = 0.6  # time of a step on a batch in the compiled loop, relative to its gradient
OVERHEAD = 0.02  # seconds
N_TIMED, TIMED_SECONDS = 3, 0.1  # most calls that are timed; no further one after these seconds
TIMED_WORK = 2e7  # rows times squared outputs, and rows times weights, that are timed


class Workers(NamedTuple):
    """Parallel workers, and the receivers of their progress."""

    n_jobs: int | None = None  # number of joblib processes
    # called with the posterior, the settings and the number of starts before a search; may return a
    # text
    announce: Callable | None = None
    progress: Progress = Progress()
    # constant that converts log evidences to the user's units of the targets in reports
    log_scale: float = 0.0

    def results(self, function, tasks):
        """Apply a function to each tuple of arguments; yield results as soon as available."""
        return in_order(self.n_jobs, (delayed(function)(*task) for task in tasks))

    def collect(self, report, function, tasks, deadline, n_needed=1):
        """Collect the results of tasks, reporting each as soon as it is available.

        No task begins after the deadline, except for the first ``n_needed`` ones: a fit needs one
        minimum. ``None`` is reported for the others.
        """
        ends = [NEVER if i < n_needed else deadline for i in range(len(tasks))]
        calls = [(end, function, *task) for end, task in zip(ends, tasks, strict=True)]
        found = []
        for result in self.results(_unless_late, calls):
            report(result)
            if result is not None:
                found.append(result)
        return found

    @contextmanager
    def searching(self, posterior, settings, n_starts):
        """Announce a search, and open its stage; yields a function that reports each minimum."""
        if self.announce is not None:
            self.progress.say(self.announce(posterior, settings, n_starts))
        seconds = np.nan
        if self.progress.listens and not settings.deadline.passed:
            n_rounds = np.ceil(n_starts / min(effective_n_jobs(self.n_jobs), n_starts))
            seconds = n_rounds * seconds_of_start(posterior, settings)
        with self.progress.stage("starts", [1.0] * n_starts, seconds=seconds) as step:
            count = itertools.count(1)
            yield lambda minimum: step(self._described(minimum, next(count), n_starts))

    def _described(self, minimum, number, n_starts):
        """Describe a start in a line; ``None`` was not begun in time."""
        if minimum is None:
            return f"start {number} of {n_starts}: no time"
        evidence = f"log evidence {minimum.log_evidence + self.log_scale:.2f}"
        return (
            f"start {number} of {n_starts}: {'no evidence' if minimum.trouble else evidence}, "
            f"{minimum.n_iter} iterations, {len(minimum.pruned)} units pruned"
        )


def _unless_late(deadline, function, *task):
    """Result of a task; ``None`` if the deadline has passed."""
    return None if deadline.passed else function(*task)


def in_order(n_jobs, calls):
    """Yield the results of delayed calls in order, each as soon as it is available.

    Joblib backends without generators return all results at the end.
    """
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs)
    return parallel(calls)


ALONE = Workers()  # a single process, without reports


def find_minima(posterior, settings, seeds, previous=(), workers=ALONE):
    """Train from several starts and return the distinct minima, best evidence first.

    There is one random start per seed, or one per prior for a linear model with Gaussian noise;
    further searches continue from the minima ``previous``.
    """
    tasks, starts = [(posterior, old, settings) for old in previous], []
    if seeds:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        method = Method.choose(posterior, settings)
        low_noise = None if method.has_evidence else not method.by_gradients
        if posterior.is_quadratic and not method.by_gradients:
            starts = linear_starts(posterior, settings)
        else:
            starts = random_starts(posterior, rngs, low_noise)
    trained = [(posterior, start, settings) for start in starts]
    with workers.searching(posterior, settings, len(tasks) + len(starts)) as report:
        found = workers.collect(report, continued, tasks, settings.deadline)
        n_needed = 0 if found else 1
        found += workers.collect(report, _trained, trained, settings.deadline, n_needed)
    tasks = [(own_posterior(posterior, minimum), minimum, settings) for minimum in distinct(found)]
    return ranked(workers.results(integrated, tasks))


def minima_from(posterior, settings, starts):
    """Train from given starts and return the distinct minima, best evidence first."""
    found = distinct(_trained(posterior, start, settings) for start in starts)
    return ranked(integrated(own_posterior(posterior, each), each, settings) for each in found)


def distinct(minima):
    """Drop minima that repeat a better one; sort by evidence, best first, ``nan`` last."""
    kept = []
    for minimum in ranked(minima):
        if not is_repeated(minimum, kept):
            kept.append(minimum)
    return kept


def ranked(minima):
    """Sort minima by evidence, best first, ``nan`` last."""
    return sorted(minima, key=lambda m: (np.isnan(m.log_evidence), -np.nan_to_num(m.log_evidence)))


def is_repeated(minimum, others):
    """Return True if a minimum equals one of others up to symmetry.

    Only minima that both have an evidence, or both have none, are compared.
    """
    return any(
        np.isnan(minimum.log_evidence) == np.isnan(other.log_evidence) and _same(minimum, other)
        for other in others
    )


def _same(minimum, other):
    """Return True if two minima, noise networks included, are equal up to symmetry."""
    if minimum is None or other is None:
        return minimum is other
    network, groups = minimum.network, minimum.groups
    if network != other.network:
        return False
    allowed = None if groups.centred else symmetries(network, groups)
    same = same_minimum(network, minimum.theta, other.theta, allowed=allowed)
    return same and _same(minimum.noise, other.noise)


def fits(minimum, network, groups):
    """Return True if a minimum can be continued in a network of this layout, equal or wider."""
    if minimum is None:
        return False
    theirs, sizes = minimum.network.layer_sizes, network.layer_sizes
    return (
        minimum.groups.names == groups.names
        and (theirs == sizes or groups.centred)
        and len(theirs) == len(sizes)
        and theirs[0] == sizes[0]
        and theirs[-1] == sizes[-1]
        and bool(np.all(np.less_equal(theirs, sizes)))
        and minimum.network.activation == network.activation
        and minimum.network.output_bias == network.output_bias
    )


def _trained(posterior, start, settings):
    """Train a network, then complete it."""
    with Method.choose(posterior, settings).threads():
        theta, hyper, n_iter = train(posterior, start, settings)
        minimum = complete(posterior, theta, hyper, settings)
        return replace(minimum, n_iter=int(n_iter))


def regrouped(posterior, old, settings):
    """Train from the weights of a minimum whose weights may have been in other groups."""
    groups, network = posterior.groups, posterior.network
    alpha = embedded(replace(old, theta=old.groups.diagonal(old.hyper.alpha)), network)
    alpha = groups.sums(alpha) / np.maximum(groups.sums(alpha > 0.0), 1.0)
    start = Trained(embedded(old, network), settings.with_fixed(old.hyper._replace(alpha=alpha)))
    return _trained(posterior, start, settings)


def trained_further(posterior, old, settings):
    """Train further from an earlier minimum if there is time, for methods that stop early."""
    trained = Trained(old.theta, settings.with_fixed(old.hyper), old.n_iter)
    if not settings.deadline.passed:
        trained = train(posterior, trained, settings)
    return complete(posterior, trained.theta, trained.hyper, settings)


def continued(posterior, old, settings):
    """Continue the minimum of an earlier fit to the nearest one for the present data.

    The old precisions are kept if their evidence is higher than that of the re-estimated ones, or
    if the deadline has passed.
    """
    posterior = posterior.with_network(old.network, old.groups.labels)
    hyper, method = settings.with_fixed(old.hyper), Method.choose(posterior, settings)
    with method.threads():
        if method.early:
            return trained_further(posterior, old, settings)
        found = []
        if not settings.deadline.passed:
            found.append(complete(posterior, old.theta, hyper, settings))
        if method.has_evidence or not found:
            found.append(polish(posterior, old.theta, hyper, settings, refine=False))
    best = ranked(found)[0]
    return replace(best, pruned=old.pruned + best.pruned)


def own_posterior(posterior, minimum):
    """Posterior with the layout, the likelihood and the noise of every row of a minimum."""
    own = posterior.with_network(minimum.network, minimum.groups.labels)
    factors = None
    if minimum.noise is not None:
        log_precision = outputs(minimum.noise.network, minimum.noise.theta, posterior.X)
        level = np.log(minimum.likelihood.precisions(minimum.hyper.beta))
        factors = np.exp(log_precision - level)
    return replace(own, likelihood=minimum.likelihood, factors=factors)


def seconds_of_start(posterior, settings):
    """Predict the seconds that a start takes, to a factor of two, by timing one evaluation."""
    method, n = Method.choose(posterior, settings), len(posterior.X)
    n_weights, n_levels = posterior.network.n_weights, posterior.likelihood.n_levels
    theta = posterior.groups.start(np.random.default_rng(0), np.full(n_weights, TIMED_SCALE))
    hyper = Hyperparameters(np.ones(len(posterior.groups.names)), np.ones(n_levels))
    n_timed = min(n, max(1, int(TIMED_WORK / max(n_weights, posterior.network.n_outputs**2))))
    part = posterior.of_rows(np.arange(n_timed))
    with method.threads():
        per_row = _seconds(lambda: method.point(part, theta, hyper)) / n_timed
        if method.by_batches:
            rows = np.arange(min(BATCH, n))
            step = _seconds(lambda: posterior.of_rows(rows).misfit_and_gradient(theta, hyper.beta))
            n_steps = STAGES * steps_per_stage(posterior, settings.limits.batch_steps)
            return OVERHEAD + STEP * n_steps * step + (STAGES - WARM) * min(SAMPLE, n) * per_row
        if method.by_gradients:
            gradient = _seconds(lambda: part.energies_and_gradient(theta, hyper)) / n_timed
            return OVERHEAD + n * (POINTS_BY_GRADIENTS * per_row + GRADIENTS * gradient)
        n_points = POINTS
        if not posterior.network.hidden_layer_sizes:
            n_points = POINTS_OF_LINEAR
        elif method.early:
            n_points = POINTS_OF_STEP * (EARLY if settings.held_out is None else STEPS_BY_HELD_OUT)
        return OVERHEAD + n * per_row * n_points


def _seconds(function):
    """Processor seconds of a call, the minimum over a few trials."""
    times = []
    while len(times) < N_TIMED and sum(times) < TIMED_SECONDS:
        begun = thread_time()
        function()
        times.append(thread_time() - begun)
    return min(times)
