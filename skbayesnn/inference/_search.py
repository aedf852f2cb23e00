"""From data to the distinct minima of a model, each with its evidence."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skbayesnn.inference._linear import linear_start, scannable
from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import complete, evaluated
from skbayesnn.inference._profile import integrated, minimum_at
from skbayesnn.inference._redundancy import same_minimum
from skbayesnn.inference._subsample import subsample
from skbayesnn.inference._symmetries import symmetries
from skbayesnn.inference._training import Trained, random_starts, train, train_on_part_first
from skbayesnn.inference._widening import widened
from skbayesnn.network import outputs
from skbayesnn.posterior import NOISY_INPUTS, at_slopes


class Workers(NamedTuple):
    """Who does the work, and who is told of it.

    Attributes
    ----------
    n_jobs : int or None
        Processes of joblib.
    announce : callable or None
        Called with the posterior, the settings and the number of starts before a search.
    progress : callable or None
        Called with lines of text.
    """

    n_jobs: int | None = None
    announce: Callable | None = None
    progress: Callable | None = None

    def announced(self, posterior, settings, n_starts):
        """Say that a search begins."""
        if self.announce is not None:
            self.announce(posterior, settings, n_starts)

    def run(self, function, tasks):
        """A function of each of some tuples of arguments, and of the progress, in order."""
        return Parallel(n_jobs=self.n_jobs)(delayed(function)(self.progress, *t) for t in tasks)


ALONE = Workers()


def find_minima(posterior, settings, seeds, previous=(), narrower=None, workers=ALONE):
    """Train from several starts and return the distinct minima, best evidence first.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings
    seeds : list of numpy.random.SeedSequence
        One per random start.
    previous : sequence of Minimum
        To continue from, besides the random starts.
    narrower : Minimum, optional
        Of a network of the same depth, no layer of which is wider: the start from the last seed is
        this network with random units added.
    workers : Workers
    """
    workers.announced(posterior, settings, len(seeds) + len(previous))
    found = workers.run(continued, [(posterior, old, settings) for old in previous])
    if seeds:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        method = Method.choose(posterior, settings)
        starts = random_starts(posterior, rngs, method.has_evidence)
        if narrower is not None:
            theta = widened(narrower, posterior.network, rngs[-1])
            starts[-1] = starts[-1]._replace(theta=theta, hyper=narrower.hyper)
        part = subsample(posterior, method.part_rows, rngs[0])
        tasks = [(posterior, part, start, settings, i > 0) for i, start in enumerate(starts)]
        found += [m for m in workers.run(_trained, tasks) if m is not None]
    minima = distinct(found, (posterior, settings))
    return ranked(workers.run(_integrated, [(posterior, minimum, settings) for minimum in minima]))


def _integrated(progress, posterior, minimum, settings):
    """`integrated`, by one of the workers, if there is time."""
    if settings.deadline.passed:
        return minimum
    with Method.choose(posterior, settings).threads():
        return integrated(own_posterior(posterior, minimum), minimum, settings)


def distinct(minima, posed):
    """Drop minima that repeat a better one; best evidence first, ``nan`` last."""
    kept = []
    for minimum in ranked(minima):
        if not is_repeated(minimum, kept, *posed):
            kept.append(minimum)
    return kept


def ranked(minima):
    """Best evidence first, ``nan`` last."""
    return sorted(minima, key=lambda m: (np.isnan(m.log_evidence), -np.nan_to_num(m.log_evidence)))


def is_repeated(minimum, others, posterior, settings):
    """Whether a minimum is one of others up to symmetry, with an evidence like it or without.

    A minimum is a curve, as precisions change. So it is one of others as well if it ends there when
    it is continued to their precisions.
    """
    return any(
        np.isnan(minimum.log_evidence) == np.isnan(other.log_evidence)
        and (_same(minimum, other) or _leads_to(minimum, other, posterior, settings))
        for other in others
    )


def _same(minimum, other):
    """Whether two minima are one up to symmetry, those of their noise networks included."""
    if minimum is None or other is None:
        return minimum is other
    same = minimum.network == other.network
    same = same and _same_weights(minimum, minimum.theta, other)
    return same and _same(minimum.noise, other.noise)


def _leads_to(minimum, other, posterior, settings):
    """Whether a minimum under constant noise becomes another one at the precisions of that one."""
    noises = [m.likelihood.variance_factor for m in (minimum, other)]
    if minimum.network != other.network or minimum.noise or other.noise or noises[0] != noises[1]:
        return False
    own = own_posterior(posterior, minimum)
    method = Method.choose(own, settings)
    if not method.cheap:
        return False
    there = minimum_at(own, method, minimum.theta, other.hyper)
    return there is not None and _same_weights(minimum, there[0].theta, other)


def _same_weights(minimum, theta, other):
    """Whether weights of the network of a minimum are those of another one up to symmetry."""
    allowed = None if minimum.groups.centred else symmetries(minimum.network, minimum.groups)
    return same_minimum(minimum.network, theta, other.theta, allowed=allowed)


def fits(minimum, network, groups):
    """Whether a minimum can be continued in a network of this layout, no narrower anywhere."""
    if minimum is None:
        return False
    theirs, sizes = minimum.network.layer_sizes, network.layer_sizes
    return (
        minimum.groups.names == groups.names
        and (theirs == sizes or not groups.one_size)
        and len(theirs) == len(sizes)
        and theirs[0] == sizes[0]
        and theirs[-1] == sizes[-1]
        and bool(np.all(np.less_equal(theirs, sizes)))
        and minimum.network.activation == network.activation
    )


def _trained(progress, posterior, part, start, settings, optional):
    """Train a network, then complete it; ``None`` if there is no time for what is optional."""
    if optional and settings.deadline.passed:
        return None
    with Method.choose(posterior, settings).threads():
        if scannable(posterior, settings):  # no random numbers: the weights' minimum is unique
            hyper = linear_start(posterior, settings)
            start = start._replace(theta=np.zeros_like(start.theta), hyper=hyper)
        trained = train_on_part_first(posterior, part, start, settings)
        minimum = complete(posterior, trained.theta, trained.hyper, settings)
        minimum = replace(minimum, n_iter=int(trained.n_iter))
    return told(progress, minimum)


def trained_further(posterior, old, settings):
    """Where training on batches leads from an earlier minimum."""
    start = Trained(old.theta, settings.with_fixed(old.hyper), old.n_iter)
    trained = train(posterior, start, settings)
    return complete(posterior, trained.theta, trained.hyper, settings)


def continued(progress, posterior, old, settings):
    """Take the minimum of an earlier fit to the nearest one for the present data.

    The old precisions are kept if their evidence is higher than that of the re-estimated ones.
    """
    posterior = posterior.with_network(old.network, old.groups.labels)
    hyper, method = settings.with_fixed(old.hyper), Method.choose(posterior, settings)
    with method.threads():
        if method.by_batches:
            return told(progress, trained_further(posterior, old, settings))
        moved = complete(posterior, old.theta, hyper, settings)
        stayed = evaluated(posterior, old.theta, hyper, settings)
    return told(progress, ranked([moved, stayed])[0])


def told(progress, minimum):
    """The minimum, after a line about it."""
    if progress is not None:
        evidence = f"log evidence {minimum.log_evidence:.2f} (standardised targets)"
        progress(
            f"start completed: {'no evidence' if minimum.trouble else evidence}, "
            f"{minimum.n_iter} iterations, {len(minimum.pruned)} units pruned"
        )
    return minimum


def own_posterior(posterior, minimum):
    """The posterior with the layout, the likelihood and the noise of every row of a minimum."""
    own = posterior.with_network(minimum.network, minimum.groups.labels)
    own, factors = replace(own, likelihood=minimum.likelihood), None
    if isinstance(own.likelihood, NOISY_INPUTS):
        own = at_slopes(own, minimum.theta)
    if minimum.noise is not None:
        log_precision = outputs(minimum.noise.network, minimum.noise.theta, posterior.X)
        level = np.log(minimum.likelihood.precisions(minimum.hyper.beta))
        factors = np.exp(log_precision - level)
    return replace(own, factors=factors)
