"""Gaussian noise correlated between outputs, with a re-estimated covariance matrix.

Let ``S = sum_n s_n (e_n e_n^T + J_n A^-1 J_n^T)``, the sum of the outer products of the residuals
and of the posterior covariances of the outputs over all rows. The evidence is maximal over the
noise covariance at ``Sigma = S / N``. The iteration is expectation maximisation (Dempster, Laird &
Rubin 1977); its fixed point for one output is MacKay's ``beta = (N - gamma) / 2 E_D`` (1992;
section 4.3 of the thesis derives it for full matrices).
"""

from dataclasses import replace

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import integrated
from skbayesnn.inference.minima._minimum import polish
from skbayesnn.inference.minima._search import ALONE, distinct, own_posterior, trained_further
from skbayesnn.inference.noise._constant_noise import ConstantNoise, residuals_and_covariances
from skbayesnn.posterior import CorrelatedGaussian, correlation_of, log_prior_of_correlations

ROUNDS, EARLY_ROUNDS = 40, 3  # of expectation maximisation; with early stopping
REFINING_ROUNDS = 4  # first rounds, in which weight precisions are refined as well
SETTLED = 1e-6  # change of correlations at which the rounds have converged


class CorrelatedNoise(ConstantNoise):
    """Gaussian noise with one covariance matrix of the outputs for all rows."""

    plain = False
    sampled = False

    def pose(self, posed):
        """Replace the likelihood by correlated Gaussian noise, initially without correlations."""
        old = posed.posterior.likelihood
        likelihood = CorrelatedGaussian(old.levels, old.relative, np.eye(len(old.levels)))
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def search(self, problem, posed, previous, workers=ALONE):
        """Find minima from given ones by `with_correlations`."""
        tasks, deadline = [(posed, old) for old in previous], posed.settings.deadline
        with workers.searching(*posed, len(previous)) as report:
            return distinct(workers.collect(report, with_correlations, tasks, deadline))


def with_correlations(posed, old):
    """Re-estimate the noise covariance together with the weights and weight precisions."""
    posterior, settings = posed
    method = Method.choose(posterior, settings)
    with method.threads():
        correlation = getattr(old.likelihood, "correlation", posterior.likelihood.correlation)
        found = replace(old, likelihood=replace(posterior.likelihood, correlation=correlation))
        if found.precision is None:  # of an earlier fit
            found = _followed(own_posterior(posterior, found), found, settings, refine=False)
        moved = np.inf
        for i in range(EARLY_ROUNDS if method.early else ROUNDS):
            if found.precision is None or moved < SETTLED or (i and settings.deadline.passed):
                break
            own = own_posterior(posterior, found)
            weight, parts = own.sample_weight, (own, found.theta, found.precision)
            residuals, covariances = residuals_and_covariances(*parts)
            total = (residuals.T * weight) @ residuals + np.tensordot(weight, covariances, 1)
            covariance = 0.5 * (total + total.T) / own.n_rows
            before, correlation = correlation, correlation_of(covariance)
            moved = np.max(np.abs(correlation - before))
            own = replace(own, likelihood=replace(own.likelihood, correlation=correlation))
            beta = settings.free.beta_prior.clip(1.0 / np.diagonal(covariance))
            found = replace(found, hyper=found.hyper._replace(beta=beta))
            found = _followed(own, found, settings, refine=i < REFINING_ROUNDS)
        found = _with_occam(own_posterior(posterior, found), found, settings)
        settled = found.converged and bool(moved < 100.0 * SETTLED)
        return replace(found, n_iter=old.n_iter, pruned=old.pruned, converged=settled)


def _followed(posterior, minimum, settings, refine):
    """Find the minimum of a changed posterior near a given one, starting at its precisions."""
    if Method.choose(posterior, settings).early:
        return trained_further(posterior, minimum, settings)
    return polish(posterior, minimum.theta, minimum.hyper, settings, refine)


def _with_occam(posterior, minimum, settings):
    """Add the Occam factor of the noise covariance, and integrate over weight precisions.

    The prior is uniform over the logarithm of every output's precision and over correlation
    matrices. In these coordinates the Fisher information of ``nu`` rows (the number of rows less
    the effective number of parameters per output) has the determinant
    ``2^-p nu^(p(p+1)/2) (det R)^-(p+1)``.
    """
    if minimum.trouble is not None:
        return minimum
    minimum = integrated(posterior, minimum, settings)
    correlation = minimum.likelihood.correlation
    p = len(correlation)
    n_free, degrees = p * (p + 1) / 2, posterior.n_rows - np.sum(minimum.gamma) / p
    log_det = n_free * np.log(max(degrees, 1e-3)) - p * np.log(2.0)
    log_det -= (p + 1) * np.linalg.slogdet(correlation)[1]
    density = log_prior_of_correlations(p) - np.sum(settings.free.beta_prior.log_width)
    occam = min(density + 0.5 * (n_free * np.log(2.0 * np.pi) - log_det), 0.0)
    return replace(minimum, terms=replace(minimum.terms, noise_occam=float(occam)))
