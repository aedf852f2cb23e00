"""Sequential learning: the posterior of one batch of data as the prior of the next one."""

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.evidence._evidence import level_information
from skbayesnn.inference.minima._search import own_posterior
from skbayesnn.posterior import Gamma, LogUniform, WeightGroups

NOTHING = 1e-6  # Gamma shape below which a noise level counts as undetermined


def learnt(fit):
    """Convert the posterior of a fit to a prior (Bishop 2006, sections 3.3.1 and 4.4.1).

    It is exact for linear models with Gaussian noise at fixed precisions. Otherwise it is Laplace's
    approximation at the minimum of highest evidence, with the exact Hessian where that is positive
    definite and the Gauss-Newton approximation elsewhere.

    From an `EvidenceFit` the results are, in its standardised units, the network of the best
    minimum, after pruning; the prior ``N(w_MP, A^-1)`` there, all weights in one group; and the
    hyperpriors of the noise levels, see `_noise_prior`. ``None`` if neither curvature is positive
    definite there.
    """
    best, (posterior, settings) = fit.best, fit.posed
    own, method = own_posterior(posterior, best), Method.choose(posterior, settings)
    for exact in (True, False) if method.exact else (False,):
        matrix = own.hessian(best.theta, best.hyper, exact)
        if DensePrecision(matrix).definite:
            break
    else:
        return None
    labels = np.zeros(len(best.theta), dtype=int)
    prior = WeightGroups(labels, ["weights"], best.theta, matrix)
    return best.network, prior, _noise_prior(fit, own)


def _noise_prior(fit, own):
    """Hyperpriors of the noise levels given their degrees of freedom and earlier hyperpriors.

    ``None`` if none was inferred, or if the noise is not Gaussian with constant levels.

    Under a flat prior of ``ln beta`` the posterior of ``beta`` is a Gamma distribution of mean
    ``beta`` and shape ``(N - gamma) / 2`` (Bishop 2006, exercise 2.43 and equation 2.146). With
    known measurement errors the posterior is not a Gamma distribution; it is replaced by the one of
    the same maximum and curvature in ``ln beta``.
    """
    best, free = fit.best, fit.posed.settings.free
    if fit.noise not in ("constant", "shared") or not np.any(free.beta):
        return None
    prior, found = free.beta_prior, []
    shapes = 0.5 * (np.maximum(best.noise_counts - best.noise_gamma, 0.0) + prior.counts)
    if not own.likelihood.linear:
        shapes = np.diagonal(level_information(own, best.theta, best.hyper.beta))
        shapes = shapes + prior.rate * best.hyper.beta
    rates = shapes / best.hyper.beta
    for level, shape in enumerate(shapes):
        bounds = float(prior.lower[level]), float(prior.upper[level])
        known = free.beta[level] and shape > NOTHING
        parameters = (float(shape), float(rates[level])) if known else ()
        found.append((Gamma if known else LogUniform)(*parameters, *bounds))
    return tuple(found)
