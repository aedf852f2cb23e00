"""Noise model for targets with outliers: Student-t noise.

Its degrees of freedom are chosen by the evidence on a grid.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import EvidenceTerms, integrated
from skbayesnn.inference.minima._minimum import OF_SIZE, polish
from skbayesnn.inference.minima._search import ALONE, distinct, own_posterior, trained_further
from skbayesnn.inference.noise._constant_noise import ConstantNoise
from skbayesnn.inference.optimise._reestimation import noise_precisions
from skbayesnn.posterior import (
    CensoredGaussian,
    CensoredStudentT,
    LogUniform,
    StudentT,
    StudentTJoint,
)

MAX_REESTIMATIONS, SETTLED = 50, 1e-3  # of noise levels; change of their logarithms at the end
IMPROBABLE = 10.0  # nats below the best at which minima with Student-t noise are dropped
DEGREES_OF_FREEDOM = (2.5, 5.0, 10.0, 20.0, 40.0)  # of equal prior probability
FIRST = 5.0  # value used in training
FOR_OUTLIERS = 1.0  # value used in training with outliers, which then have little influence


@dataclass(frozen=True, repr=False)
class StudentTTerms(EvidenceTerms):
    """Terms of the log evidence with Student-t noise, in addition to those of `EvidenceTerms`."""

    # log of the evidence averaged over the grid of degrees of freedom, less the log evidence of the
    # best value; never positive
    degrees_of_freedom_occam: float = 0.0


class StudentTNoise(ConstantNoise):
    """Noise model with a Student-t density, whose degrees of freedom maximise the evidence."""

    plain = False
    heavy_tails = True

    def pose(self, posed):
        """Pose the model, see `ConstantNoise.pose`; convert fixed noise levels to scales."""
        posterior, settings = posed
        old = posterior.likelihood
        if isinstance(old, StudentT):  # already chosen because of gross outliers
            return posed
        law = CensoredStudentT if isinstance(old, CensoredGaussian) else StudentT
        likelihood = law(old.levels, old.relative, FIRST)
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
        return distinct(workers.results(_over_degrees_of_freedom, [(posed, m) for m in minima]))

    def for_outliers(self, posed):
        """Pose the model so that outliers have little influence; ``None`` for given noise levels.

        Given levels are standard deviations, which `FOR_OUTLIERS` degrees of freedom do not have.
        Levels have an upper bound where values are common or targets span decades: the largest of
        such targets are no outliers.
        """
        likelihood, free = posed.posterior.likelihood, posed.settings.free
        bounded = np.any(free.beta_prior.low > -2.0 * np.log(LogUniform().upper))
        if likelihood.bends or bounded or not np.all(free.beta):
            return None
        likelihood = replace(likelihood, degrees_of_freedom=FOR_OUTLIERS)
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def joint(self, problem, posed, integrate_outputs):
        """Joint posterior, see `ConstantNoise.joint`, with degrees of freedom."""
        plain = super().joint(problem, posed, integrate_outputs)
        grid = grid_with(plain.posterior.likelihood.degrees_of_freedom)
        return StudentTJoint(
            plain.posterior, plain.free, plain.fixed, plain.information, integrate_outputs, grid
        )


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
    for _ in range(MAX_REESTIMATIONS):
        misfit = own.energies(start.theta, hyper.beta)
        gamma = np.nan_to_num(start.gamma)
        beta = noise_precisions(own, hyper.beta, misfit, gamma, free.beta_prior)
        beta = np.where(free.beta, beta, hyper.beta)
        moved, hyper = np.abs(np.log(beta / hyper.beta)), hyper._replace(beta=beta)
        if np.all(moved < SETTLED):
            break
    misfit = own.energies(start.theta, hyper.beta)
    normaliser = float(own.likelihood.log_normaliser(hyper.beta, own.n_rows))
    terms = replace(start.terms, misfit=-float(misfit.misfit), noise_normaliser=normaliser)
    return replace(
        start, likelihood=own.likelihood, hyper=hyper, terms=terms, data_errors=misfit.errors
    )


def grid_with(first):
    """Grid of values of equal prior probability, including the one used in training."""
    return tuple(sorted({first, *DEGREES_OF_FREEDOM}))


def best_degrees_of_freedom(minimum, first, minimum_at):
    """Follow a minimum along the grid of degrees of freedom.

    Starts with the minimum at the value ``first``. ``minimum_at`` takes degrees of freedom and the
    minimum at a neighbouring value. Returns the minimum of highest evidence, whose
    ``degrees_of_freedom_occam`` averages over the grid.
    """
    grid = grid_with(first)
    n, start = len(grid), grid.index(first)
    found = {start: minimum}
    for direction, end in ((1, n), (-1, -1)):
        for place in range(start + direction, end, direction):
            found[place] = minimum_at(grid[place], found[place - direction])
    evidences = {place: _evidence(m) for place, m in found.items()}
    best = max(evidences, key=evidences.get)
    if np.isinf(evidences[best]):
        return minimum
    occam = logsumexp(list(evidences.values())) - np.log(n) - evidences[best]
    terms = vars(found[best].terms) | {"degrees_of_freedom_occam": float(min(occam, 0.0))}
    return replace(found[best], terms=StudentTTerms(**terms))


def _evidence(minimum):
    """Log evidence of a minimum, or its log likelihood where the evidence is not available."""
    value = minimum.log_evidence
    if minimum.trouble in OF_SIZE:  # with many rows the likelihood dominates
        value = minimum.terms.misfit + minimum.terms.noise_normaliser
    return -np.inf if np.isnan(value) else value
