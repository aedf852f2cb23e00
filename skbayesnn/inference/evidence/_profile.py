"""Numerically integrated Occam factors of precisions that few weights determine.

The Gaussian width of ``ln alpha_c`` (MacKay 1992, equation 2.27) is a poor approximation where
``gamma_c`` is small: the minimum moves with the precision, and the evidence is not Gaussian. Here
the evidence is evaluated along ``ln alpha_c``, with the weights re-optimised at every value, and
integrated: nested Laplace approximation (Tierney & Kadane 1986; Rue, Martino & Chopin 2009,
section 3).
"""

from dataclasses import replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import (
    gaussian_serves,
    log_evidence_fixed,
    log_occam,
    log_occam_gaussian,
)
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.posterior import Hyperparameters

DEPTH = -5.0  # log evidence relative to the minimum at which a profile ends: omits 1 % of its area
LEAST_STEP, FIRST_STEP, LONGEST_STEP = 0.05, 0.3, 2.0  # in ln alpha
SMALL_CHANGE, LARGE_CHANGE = 0.4, 1.6  # change of log evidence that lengthens or shortens steps
STRETCH = 1.7
FINE_POINTS = 801  # points of the interpolated curve for the integral
TRIALS, NEAR = 80, 1e-8  # trials per minimum, and the bound on its Newton decrement


def integrated(posterior, minimum, settings):
    """Integrate Occam factors numerically where few weights determine a precision.

    The posterior has the layout of the minimum.
    """
    method, free = Method.choose(posterior, settings), settings.free
    if minimum.trouble is not None or not method.profiled:
        return minimum
    n_groups, logs = len(minimum.hyper.alpha), np.log(np.concatenate(minimum.hyper))
    by_level = minimum.noise_counts - minimum.noise_gamma
    degrees = np.concatenate([minimum.gamma, by_level]) + free.prior.counts
    if not posterior.likelihood.linear:  # with known errors the profile is never Gaussian
        degrees[n_groups:] = 0.0
    present = [
        free.alpha & (posterior.groups.sizes > 0),
        free.beta & posterior.likelihood.quadratic,
    ]
    occam = np.zeros(len(logs))
    for i in np.flatnonzero(np.concatenate(present)):
        if settings.deadline.passed:
            return minimum
        prior = free.prior[i]
        if gaussian_serves(prior, logs[i], degrees[i]):
            occam[i] = log_occam_gaussian(prior, logs[i], degrees[i])
        else:
            curve = profile(posterior, method, minimum, i, prior)
            if curve is None:
                return minimum
            occam[i] = log_occam(prior, logs[i], np.log(_area(*curve)))
    terms = replace(minimum.terms, weight_precision_occam=float(occam[:n_groups].sum()))
    if posterior.likelihood.quadratic:
        terms = replace(terms, noise_occam=float(occam[n_groups:].sum()))
    return replace(minimum, terms=terms)


def _area(values, heights):
    """Area below a curve whose logarithm is interpolated by monotone cubic polynomials."""
    fine = np.linspace(values[0], values[-1], FINE_POINTS)
    return np.trapezoid(np.exp(PchipInterpolator(values, heights)(fine)), fine)


def profile(posterior, method, minimum, index, prior):
    """Log evidence along one precision, hyperprior included, relative to the minimum.

    Returns rising values ``ln lambda`` and the heights there, both of shape (m,), or ``None`` if
    the minimum cannot be continued at all.
    """
    start = np.log(np.concatenate(minimum.hyper))
    here = minimum_at(posterior, method, minimum.theta, minimum.hyper)
    found = [(start[index], 0.0)]
    for sign, end in zip((-1.0, 1.0), prior.log_range, strict=True):
        theta, value, height, step = minimum.theta, start[index], 0.0, FIRST_STEP
        slope = np.zeros_like(theta)
        while abs(end - value) > 1e-9 and step > LEAST_STEP and height > DEPTH:
            logs = start.copy()
            logs[index] = value + sign * min(step, abs(end - value))
            hyper = Hyperparameters(*np.split(np.exp(logs), [len(minimum.hyper.alpha)]))
            towards = theta + slope * (logs[index] - value)
            there = here and minimum_at(posterior, method, theta, hyper, towards)
            if there is None:  # no minimum continues this one so far: shorten the step
                step *= 0.25
                continue
            slope = (there[0].theta - theta) / (logs[index] - value)
            theta, value = there[0].theta, logs[index]
            rise = prior.log_kernel(value) - prior.log_kernel(start[index])
            rise = there[1] - here[1] + rise
            change, height = abs(rise - height), rise
            found.append((value, height))
            if change < SMALL_CHANGE:
                step = min(STRETCH * step, LONGEST_STEP)
            elif change > LARGE_CHANGE:
                step /= STRETCH
    if len(found) == 1:
        return None
    values, heights = np.array(sorted(found)).T
    return values, heights


def minimum_at(posterior, method, theta, hyper, towards=None):
    """Continue a minimum to other precisions: its `Point`, and its log evidence there.

    ``theta`` are the weights at the present precisions, ``towards`` predicted ones at the new
    precisions, see `find_mode`. Returns ``None`` if there is no minimum.
    """
    search = find_mode(posterior, method, theta, hyper, TRIALS, NEAR, towards=towards)
    point = search.point
    if not (search.converged and point.precision.definite):
        return None
    return point, log_evidence_fixed(posterior, point)
