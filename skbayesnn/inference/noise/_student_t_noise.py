"""Noise model for targets with outliers: Student-t noise."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._profile import integrated
from skbayesnn.inference.minima._minimum import polish
from skbayesnn.inference.minima._search import ALONE, distinct, own_posterior, trained_further
from skbayesnn.inference.noise._constant_noise import ConstantNoise
from skbayesnn.inference.noise._degrees_of_freedom import (
    FIRST,
    best_degrees_of_freedom,
    grid_with,
)
from skbayesnn.inference.noise._residual_tests import heavy_tails
from skbayesnn.inference.optimise._reestimation import noise_precisions
from skbayesnn.posterior import StudentT, StudentTJoint

MOST_REESTIMATIONS, SETTLED = 50, 1e-3  # of noise levels; change of their logarithms at the end
IMPROBABLE = 10.0  # nats below the best at which minima with Student-t noise are dropped


class StudentTNoise(ConstantNoise):
    """Noise model with a Student-t density, whose degrees of freedom maximise the evidence."""

    tried_below = 0.5  # p value: the model is cheap, and networks that fit outliers hide them
    hides = True
    plain = False

    def p_value(self, X, residuals, sample_weight):
        """P value of the test for this noise, `heavy_tails`."""
        return heavy_tails(residuals, sample_weight)

    def pose(self, posed):
        """Pose the model, see `ConstantNoise.pose`; convert fixed noise levels to scales."""
        posterior, settings = posed
        old = posterior.likelihood
        if isinstance(old, StudentT):  # already chosen because of gross outliers
            return posed
        likelihood = StudentT(old.levels, old.relative, FIRST)
        beta = settings.fixed.beta * np.where(settings.free.beta, 1, likelihood.variance_factor)
        settings = settings._replace(fixed=settings.fixed._replace(beta=beta))
        return posed._replace(
            posterior=replace(posterior, likelihood=likelihood), settings=settings
        )

    def search(self, problem, posed, previous, workers=ALONE):
        """Search for minima, see `ConstantNoise.search`, and optimise degrees of freedom."""
        minima = super().search(problem, posed, previous, workers)
        # an improbable minimum that enters mixtures by its wide tails would spoil means and levels
        minima = [m for m in minima if not m.log_evidence < minima[0].log_evidence - IMPROBABLE]
        return distinct(workers.run(_over_degrees_of_freedom, [(posed, m) for m in minima]), posed)

    def joint(self, problem, posed, tuned):
        """Joint posterior, see `ConstantNoise.joint`, with a factor of every row's precision."""
        plain = super().joint(problem, posed, tuned)
        first = posed.posterior.likelihood.degrees_of_freedom
        return StudentTJoint(**vars(plain), degrees_of_freedom=grid_with(first))


def _over_degrees_of_freedom(posed, minimum):
    """Optimise the degrees of freedom of a minimum with Student-t noise.

    Networks trained with early stopping keep their weights meanwhile, and are trained further at
    the best value.
    """
    posterior, settings = posed
    first = posterior.likelihood.degrees_of_freedom

    def at(degrees_of_freedom, start):
        own, there = _posed_at(degrees_of_freedom, start, posterior, settings)
        if Method.choose(own, there).early:
            return _with_noise_reestimated(own, start, there)
        found = polish(own, start.theta, there.with_fixed(start.hyper), there, refine=True)
        return replace(found, n_iter=start.n_iter, pruned=start.pruned)

    with Method.choose(posterior, settings).threads():
        found = best_degrees_of_freedom(minimum, first, at)
        chosen = found.likelihood.degrees_of_freedom
        own, there = _posed_at(chosen, found, posterior, settings)
        if Method.choose(own, there).early and chosen != first and not settings.deadline.passed:
            found = replace(trained_further(own, found, there), pruned=found.pruned)
        return integrated(own_posterior(posterior, found), found, settings)


def _posed_at(degrees_of_freedom, start, posterior, settings):
    """Posterior in the layout of a minimum and settings at other degrees of freedom."""
    likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
    own = replace(own_posterior(posterior, start), likelihood=likelihood)
    ratio = likelihood.variance_factor / posterior.likelihood.variance_factor
    fixed = settings.fixed._replace(beta=settings.fixed.beta * ratio)
    return own, settings._replace(fixed=fixed)


def _with_noise_reestimated(own, start, settings):
    """Minimum with the same weights and the noise levels of highest evidence."""
    hyper, free = settings.with_fixed(start.hyper), settings.free
    for _ in range(MOST_REESTIMATIONS):
        misfit = own.energies(start.theta, hyper.beta)
        gamma = np.nan_to_num(start.gamma)
        beta = noise_precisions(own, hyper.beta, misfit, gamma, free.beta_prior)
        beta = np.where(free.beta, beta, hyper.beta)
        moved, hyper = np.abs(np.log(beta / hyper.beta)), hyper._replace(beta=beta)
        if np.all(moved < SETTLED):
            break
    misfit = own.energies(start.theta, hyper.beta)
    normaliser = float(own.noise_normaliser(hyper.beta))
    terms = replace(start.terms, misfit=-float(misfit.misfit), noise_normaliser=normaliser)
    return replace(
        start, likelihood=own.likelihood, hyper=hyper, terms=terms, data_errors=misfit.errors
    )
