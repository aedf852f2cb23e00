"""Search for minima under other noise models than constant noise, and tests of the latter."""

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._search import find_minima, own_posterior
from skbayesnn.inference.noise._constant_noise import NOISE_MINIMA
from skbayesnn.inference.noise._input_dependent_noise import residuals_and_gamma
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._residual_tests import p_values

# nats by which a fit must be better that outliers influence little, as its noise has no variance
DECISIVE = 10.0
RANDOM_STARTS = 2  # of such fits: minima under constant noise follow the outliers


def search_under_noise(noise, fit, previous, workers):
    """Find minima under a noise model other than constant noise; return `Posed` and these."""
    model = NOISE_MODELS[noise]
    posed = model.pose(fit.posed)
    starts = [*continuing(noise, fit.problem, posed, previous), *fit.minima[:NOISE_MINIMA]]
    minima = model.search(fit.problem, posed, starts, workers)
    robust = model.for_outliers(posed)
    # with many rows, where training stops early, outliers lead it astray less often
    if robust is None or Method.choose(*posed).early or fit.problem.deadline.passed:
        return posed, minima
    seeds = np.random.SeedSequence(0).spawn(RANDOM_STARTS)
    others = model.search(fit.problem, robust, find_minima(*robust, seeds), workers)
    others = [m for m in others if m.likelihood.bends]
    if others and others[0].log_evidence > minima[0].log_evidence + DECISIVE:
        return robust, others
    return posed, minima


def continuing(noise, problem, posed, previous):
    """Minima of an earlier fit that can start this one."""
    old = [] if previous is None else previous.minima
    return [m for m in old if NOISE_MODELS[noise].continues(problem, posed, m)]


def p_values_of(fit):
    """P values of tests of constant noise against each of the other noise models.

    There are none after the deadline. The exact Hessian may be so small in some directions that
    degrees of freedom of rows would be negative, so that the Gauss-Newton matrix is used.
    """
    if fit.problem.deadline.passed:
        return {}
    posterior, best = fit.posed.posterior, fit.best
    testable = posterior.likelihood.quadratic and not fit.problem.noise_is_given
    if not testable:
        return {}
    own = own_posterior(posterior, best)
    method = Method.choose(own, fit.posed.settings)
    with method.threads():
        precision = method.gauss_newton(own, best.theta, best.hyper).precision
        if not precision.definite:
            return {}
        residuals, gamma = residuals_and_gamma(own, best.theta, best.hyper, precision)
    return p_values(posterior, residuals, gamma, own.likelihood.precisions(best.hyper.beta))
