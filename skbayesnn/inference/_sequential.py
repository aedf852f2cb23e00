"""Sequential learning: the posterior of one batch of data is the prior of the next one."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._method import Method
from skbayesnn.inference._search import own_posterior
from skbayesnn.network import Network
from skbayesnn.posterior import Gamma, GaussianPrior, LogUniform

NOTHING = 1e-6  # of a target: what is known of a noise level from less


class Learnt(NamedTuple):
    """What a fit hands on to later data, in its standardised units.

    Attributes
    ----------
    network : Network
        That of the best minimum, after pruning.
    prior : GaussianPrior
        ``N(w_MP, A^-1)`` at the best minimum, all weights in one group.
    noise : tuple of Hyperprior or None
        Of every noise level, if some were inferred; ``None`` if not, or if the noise is not
        Gaussian with constant levels.
    """

    network: Network
    prior: GaussianPrior
    noise: tuple | None


def learnt(fit):
    """The posterior of a fit as a prior (Bishop 2006, sections 3.3.1 and 4.4.1).

    Exact for linear models with Gaussian noise at fixed precisions; else Laplace's approximation at
    the minimum of highest evidence, with the exact Hessian where it is positive definite.

    Parameters
    ----------
    fit : EvidenceFit

    Returns
    -------
    Learnt or None
        ``None`` if no curvature there is positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, fit_evidence, learnt
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> fit = fit_evidence(Problem(X, X + X**2, np.ones(20), Gaussian.per_output(1)), (), 0)
    >>> prior = learnt(fit).prior
    >>> np.array_equal(prior.mean, fit.best.theta), prior.shape.shape
    (True, (2, 2))
    """
    best, (posterior, settings) = fit.best, fit.posed
    own, method = own_posterior(posterior, best), Method.choose(posterior, settings)
    for exact in (True, False) if method.exact else (False,):
        matrix = own.hessian(best.theta, best.hyper, exact)
        if _is_definite(matrix):
            break
    else:
        return None
    labels = np.zeros(len(best.theta), dtype=int)
    prior = GaussianPrior(labels, ["weights"], best.theta, matrix)
    return Learnt(best.network, prior, _noise_prior(fit, own))


def _is_definite(matrix):
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.isfinite(matrix)))


def _noise_prior(fit, own):
    """Of every inferred noise level as much as its well-determined targets and its prior tell.

    A Gamma distribution of the mean ``beta`` and the shape ``(N - gamma) / 2`` is what targets
    leave of a flat prior of ``ln beta`` (Bishop 2006, exercise 2.43 and equation 2.146). Beside
    known errors that is not a Gamma distribution; the one of the same maximum and curvature in
    ``ln beta`` replaces it.
    """
    best, free = fit.best, fit.posed.settings.free
    if fit.noise not in ("constant", "shared") or not np.any(free.beta):
        return None
    prior, found = free.beta_prior, []
    shapes = 0.5 * (np.maximum(best.noise_counts - best.noise_gamma, 0.0) + prior.counts)
    if not own.likelihood.linear:
        shapes = np.diagonal(own.level_information(best.theta, best.hyper.beta))
        shapes = shapes + prior.rate * best.hyper.beta
    rates = shapes / best.hyper.beta
    for level, shape in enumerate(shapes):
        bounds = float(prior.lower[level]), float(prior.upper[level])
        known = free.beta[level] and shape > NOTHING
        parameters = (float(shape), float(rates[level])) if known else ()
        found.append((Gamma if known else LogUniform)(*parameters, *bounds))
    return tuple(found)
