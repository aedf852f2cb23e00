"""Uncertainty of the precisions in predictions: a minimum as a small mixture over them.

Error bars at the most probable precisions are too narrow, as they treat these as known. Here the
minimum is continued to precisions around its own, each weighted by its evidence: nested Laplace
approximation (Rue, Martino & Chopin 2009, section 3), by importance sampling from a Gaussian with
the widths ``(2 / gamma)^(1/2)`` of log precisions (MacKay 1992, section 2.5). The minimum itself is
one of the points, lest a few points carry all the weight in many dimensions.
"""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._profile import hyper_of, minimum_at
from skbayesnn.inference.minima._search import own_posterior

WIDEST = 1.5  # largest standard deviation of a log precision
LEAST_WEIGHT = 0.01  # least weight of a point that is kept


def spread(posterior, minimum, settings):
    """Continue a minimum to several precisions, with a weight for each.

    Parameters
    ----------
    posterior : Posterior
        Posterior of the network before pruning.
    minimum : Minimum
    settings : Settings

    Returns
    -------
    minima : list of Minimum
        Continued minima; the given minimum alone if Hessians are expensive, if the Gaussian
        approximation is exact, or with a noise network.
    weights : ndarray of shape (len(minima),)
        Weights, which sum to 1.
    """
    own = own_posterior(posterior, minimum)
    method, free = Method.choose(own, settings), settings.free
    simple = minimum.trouble is None and minimum.noise is None and not own.is_quadratic
    is_free = np.concatenate([free.alpha & (own.groups.sizes > 0), free.beta])
    n_places = settings.limits.places if simple and method.profiled else 0
    if n_places == 0 or not is_free.any():
        return [minimum], np.ones(1)
    logs = np.log(np.concatenate(minimum.hyper))
    prior, degrees = free.prior[is_free], minimum.noise_counts - minimum.noise_gamma
    degrees = np.concatenate([minimum.gamma, degrees]) + free.prior.counts
    widths = np.minimum(np.sqrt(2.0 / np.maximum(degrees[is_free], 0.1)), WIDEST)
    normal = ndtri(Sobol(int(is_free.sum()), seed=0).random(n_places))
    low, high = prior.log_range
    found, log_weights = [], []
    with method.threads():
        for shift in [np.zeros(len(widths)), *normal]:
            there = logs.copy()
            there[is_free] += widths * shift
            if np.any(there[is_free] < low) or np.any(there[is_free] > high):
                continue  # outside the support of the hyperprior
            mode = minimum_at(own, method, minimum.theta, hyper_of(there, minimum))
            if mode is not None:
                point, height = mode
                precision = point.precision.condensed()
                place = replace(minimum, theta=point.theta, hyper=point.hyper, precision=precision)
                found.append(place if shift.any() else minimum)
                height = height + np.sum(prior.log_kernel(there[is_free]))
                log_weights.append(height + 0.5 * shift @ shift)  # over the normal proposal density
    if not found:
        return [minimum], np.ones(1)
    weights = np.exp(log_weights - np.max(log_weights))
    kept = np.flatnonzero(weights >= LEAST_WEIGHT * weights.sum())
    return [found[i] for i in kept], weights[kept] / weights[kept].sum()
