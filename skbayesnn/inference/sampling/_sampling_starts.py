"""Starting points of chains."""

from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs

from skbayesnn._threads import blas_threads
from skbayesnn.inference.minima._training import (
    BRIEF,
    embedded,
    random_starts,
    trained_starts,
)
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.task._problem import Posed
from skbayesnn.samplers import Chains

FAR_BEHIND = 20.0  # nats of evidence behind the best start at which a start is replaced
ATTEMPTS = 3  # attempts to replace a start
WIDEST = 30.0  # prior sds of starts lie between this and its inverse


def start_sampling(
    problem,
    posed,
    settings,
    seeds,
    noise="constant",
    minima=(),
    from_prior=False,
    n_jobs=None,
    trained=None,
):
    """Place chains at their starting points, without warm-up.

    There is a seed for every chain; ``noise`` is one of `NOISE_MODELS`, under which the posterior
    is ``posed``. The first chains start at the ``minima`` of an evidence fit. The start of every
    other chain is trained briefly from random weights, and replaced by another one if its evidence
    stays far behind, or drawn ``from_prior``. Networks of the means that have been ``trained``
    replace these starts. Returns a `JointPosterior`, and a list of `Chains`, one batch per process.
    """
    posterior, search = posed
    rngs, minima = [np.random.default_rng(seed) for seed in seeds], minima[: len(seeds)]
    model, brief = NOISE_MODELS[noise], search._replace(max_iter=BRIEF)
    with blas_threads(posterior.network.n_weights):
        if from_prior:
            starts = random_starts(posterior, rngs)
        else:
            starts = list(trained or briefly_trained(*posed, rngs))
        for i, minimum in enumerate(minima):
            theta = embedded(minimum, posterior.network)
            starts[i] = starts[i]._replace(theta=theta, hyper=minimum.hyper)
        starts = [start._replace(hyper=search.with_fixed(start.hyper)) for start in starts]
        given = starts, minima, seeds, from_prior
        joint, position = _placed(model, problem, Posed(posterior, brief), settings.tuned, *given)
        if from_prior:
            position = np.stack([joint.draw_prior(rng) for rng in rngs])
        position = joint.renewed(position, rngs, keep_outputs=True)
        return joint, start_chains(joint, position, rngs, settings.plan, n_jobs)


def start_chains(joint, position, rngs, plan, n_jobs=None):
    """Start chains at rest at given positions, one batch per process."""
    groups = np.arange(len(rngs)).reshape(-1, plan.group)
    batches = np.array_split(groups, min(effective_n_jobs(n_jobs), len(groups)))
    return [
        Chains.start(joint, position[batch], [rngs[i] for i in batch], plan)
        for batch in map(np.ravel, batches)
    ]


def briefly_trained(posterior, search, rngs):
    """Train random starts briefly, and replace those that are far behind.

    The posterior mass near the latter is negligible, but a chain may stay there for thousands of
    transitions.
    """
    starts, evidences = trained_starts(posterior, search, rngs)
    for _ in range(ATTEMPTS):
        behind = np.flatnonzero(evidences < np.max(evidences) - FAR_BEHIND)
        if len(behind) == 0:
            break
        others, values = trained_starts(posterior, search, rngs)
        for i in behind[values[behind] > evidences[behind]]:
            starts[i], evidences[i] = others[i], values[i]
    return starts


def _placed(model, problem, posed, tuned, starts, minima, seeds, from_prior):
    """Joint posterior with its coordinates fitted to the data, and positions of the starts."""
    joint = model.joint(problem, posed, tuned)
    theta, hyper = model.starts(problem, posed, joint, starts, minima, seeds, from_prior)
    known = model.information(problem, posed, joint, joint.position(theta, hyper))
    joint = _informed(joint, known, hyper, tuned)
    return joint, joint.position(theta, _moderate(hyper, joint.free))


def _moderate(hyper, free):
    """Move precisions of free groups away from the extremes, where gradients vanish."""
    alpha = free.alpha_prior.clip(np.clip(hyper.alpha, WIDEST**-2, WIDEST**2))
    return hyper._replace(alpha=np.where(free.alpha, alpha, hyper.alpha))


def _informed(joint, known, hyper, tuned):
    """Joint posterior in partially non-centred coordinates fitted to the data.

    They depend on ``h_c``, the typical precision of a weight of every group by the data alone: the
    median of ``known`` over the starting points. For plain dynamics ``h_c`` makes the coordinates
    of groups of fixed precision equal to the weights.
    """
    information = np.median(known, axis=0)
    if not tuned:
        fixed = ~joint.free.alpha
        information[fixed] = 1.0 - hyper.alpha[0, fixed]
    return replace(joint, information=information)
