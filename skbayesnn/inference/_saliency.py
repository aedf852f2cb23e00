"""Pruning single weights by their saliency, with the evidence as the stopping rule.

A weight is taken out by giving it a prior of no width: it moves to the group `REMOVED`, whose
precision is fixed and larger than any that is inferred. Everything else, training, evidence, error
bars, stays as it is: the weight's terms in the evidence cancel, and units whose weights were taken
out in different places cannot be exchanged any more.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import complete
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._search import own_posterior
from skbayesnn.network import Network

PATIENCE = 10.0  # nats below the best at which pruning ends: parts of a unit cost, the whole gains


class Removal(NamedTuple):
    """One step on the way of a minimum to fewer weights.

    Attributes
    ----------
    network : Network
        Before.
    weight : int or None
        Which of its weights was taken out; ``None`` in the first place, where nothing was yet.
    saliency : float
        By how many nats ``M`` was to rise.
    n_weights : int
        That are left, those of units that have become redundant taken out, too.
    log_evidence : float
        With these, in nats (standardised targets).
    """

    network: Network
    weight: int | None
    saliency: float
    n_weights: int
    log_evidence: float


def saliencies(theta, precision):
    """Rise of ``M`` if a weight is set to zero and the others follow, ``(k,)``.

    ``L_i = w_i^2 / (2 [A^-1]_ii)`` (Hassibi & Stork 1993, equation 5; with a diagonal ``A`` that
    of Le Cun, Denker & Solla 1990). Exact where ``M`` is quadratic.

    Parameters
    ----------
    theta : ndarray of shape (k,)
    precision : Precision
        ``A``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision, saliencies
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> saliencies(np.array([1.0, 2.0]), DensePrecision(A))
    array([0.75, 3.  ])
    """
    return 0.5 * theta**2 / precision.variances()


def prune_weights(posterior, minimum, settings):
    """Take weights out of a minimum, one by one, as long as that may raise its evidence.

    The one of least saliency goes, the others follow by ``-A^-1 e_i w_i / [A^-1]_ii`` (Hassibi &
    Stork 1993, equation 5), and lead to the nearest minimum, with precisions of its own.

    Parameters
    ----------
    posterior : Posterior
        Of the network before pruning, whose last group is `REMOVED`.
    minimum : Minimum
    settings : Settings

    Returns
    -------
    best : Minimum
        Of highest evidence on the way.
    path : tuple of Removal
        Empty where there is no evidence to go by.
    """
    if np.isnan(minimum.log_evidence):
        return minimum, ()
    here = best = minimum
    path = [Removal(here.network, None, 0.0, here.n_weights, here.log_evidence)]
    while here.n_weights > 1 and not settings.deadline.passed:
        own = own_posterior(posterior, here)
        index, saliency = least_salient(own, here)
        there = _without(own, here, index, settings)
        step = index, saliency, there.n_weights, there.log_evidence
        path.append(Removal(here.network, *step))
        here = replace(there, pruned=here.pruned + there.pruned, n_iter=minimum.n_iter)
        if here.log_evidence > best.log_evidence:
            best = here
        if not here.log_evidence > best.log_evidence - PATIENCE:  # also if there is none
            break
    return best, tuple(path)


def least_salient(posterior, minimum):
    """Index and saliency of the weight that is missed least."""
    present = posterior.groups.labels != len(posterior.groups.names) - 1
    found = np.where(present, saliencies(minimum.theta, minimum.precision), np.inf)
    index = int(np.argmin(found))
    return index, float(found[index])


def _without(posterior, minimum, index, settings):
    """The minimum nearby without one of the weights."""
    labels = posterior.groups.labels.copy()
    labels[index] = len(posterior.groups.names) - 1
    smaller = posterior.with_network(minimum.network, labels)
    with Method.choose(smaller, settings).threads():
        column = minimum.precision.solve(np.eye(len(labels))[index])
        theta = minimum.theta - column * (minimum.theta[index] / column[index])
        found = complete(smaller, theta, minimum.hyper, settings)
        return integrated(own_posterior(posterior, found), found, settings)


def with_zeros(minimum):
    """The minimum with exact zeros for weights that were taken out; they are of order 1e-9."""
    out = minimum.groups.labels == len(minimum.groups.names) - 1
    return replace(minimum, theta=np.where(out, 0.0, minimum.theta))
