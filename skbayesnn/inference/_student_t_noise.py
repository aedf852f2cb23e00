"""Student-t noise: where outliers are in the targets."""

from dataclasses import fields, replace

import numpy as np

from skbayesnn.inference._constant_noise import ConstantNoise
from skbayesnn.inference._degrees_of_freedom import (
    FIRST,
    best_degrees_of_freedom,
    grid_with,
)
from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import polish
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._residual_tests import heavy_tails
from skbayesnn.inference._search import ALONE, distinct, own_posterior, trained_further
from skbayesnn.posterior import StudentT, StudentTJoint

IMPROBABLE = 10.0  # nats below the best at which minima with Student-t noise are dropped


class StudentTNoise(ConstantNoise):
    """Student-t noise, whose degrees of freedom are chosen by the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import NOISE_MODELS
    >>> residuals = np.random.default_rng(0).standard_t(2, (100, 1))
    >>> bool(NOISE_MODELS["student_t"].p_value(None, residuals, np.ones(100)) < 0.001)
    True
    """

    tried_below = 0.5  # it costs little, and networks that have fitted outliers hide them
    hides = True
    plain = False

    def p_value(self, X, residuals, sample_weight):
        """Of a test for this noise: `heavy_tails`."""
        return heavy_tails(residuals, sample_weight)

    def pose(self, posed):
        """As `ConstantNoise.pose`; fixed noise levels are those of the noise, not of its scale."""
        posterior, settings = posed
        old = posterior.likelihood
        if isinstance(old, StudentT):  # because of gross outliers
            return posed
        likelihood = StudentT(old.levels, old.relative, FIRST)
        beta = settings.fixed.beta * np.where(settings.free.beta, 1, likelihood.variance_factor)
        settings = settings._replace(fixed=settings.fixed._replace(beta=beta))
        return posed._replace(
            posterior=replace(posterior, likelihood=likelihood), settings=settings
        )

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`."""
        minima = super().search(problem, posed, previous, workers)
        # in a mixture for the sake of its wide tails it would spoil means and noise levels
        minima = [m for m in minima if not m.log_evidence < minima[0].log_evidence - IMPROBABLE]
        return distinct(workers.run(_over_degrees_of_freedom, [(posed, m) for m in minima]), posed)

    def joint(self, posed, tuned):
        """As `ConstantNoise.joint`, with a factor of every row's precision."""
        plain = super().joint(posed, tuned)
        given = {field.name: getattr(plain, field.name) for field in fields(plain)}
        first = posed.posterior.likelihood.degrees_of_freedom
        return StudentTJoint(**given, degrees_of_freedom=grid_with(first))


def _over_degrees_of_freedom(posed, minimum):
    """The minimum of Student-t noise at the best degrees of freedom."""
    posterior, settings = posed

    def at(degrees_of_freedom, start):
        likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
        own = replace(own_posterior(posterior, start), likelihood=likelihood)
        ratio = likelihood.variance_factor / posterior.likelihood.variance_factor
        fixed = settings.fixed._replace(beta=settings.fixed.beta * ratio)
        there = settings._replace(fixed=fixed)
        if Method.choose(own, there).early:
            return trained_further(own, start, there)
        found = polish(own, start.theta, there.with_fixed(start.hyper), there, refine=True)
        return replace(found, n_iter=start.n_iter, pruned=start.pruned)

    with Method.choose(posterior, settings).threads():
        first = posterior.likelihood.degrees_of_freedom
        found = best_degrees_of_freedom(minimum, first, at)
        return integrated(own_posterior(posterior, found), found, settings)
