"""Search under other noise models: tests of residuals, Student-t noise of stopped networks."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference import DensePrecision, Limits, Problem, fit_evidence
from skbayesnn.inference.minima._search import find_minima
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._noise_search import p_values_of
from skbayesnn.inference.noise._student_t_noise import _with_noise_reestimated
from skbayesnn.posterior import Gaussian


def make_problem(n, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    y = np.sin(X[:, :1]) + 0.2 * rng.standard_t(3, (n, 1))
    return Problem(X, y, np.ones(n), Gaussian.per_output(1), **options)


def test_flat_directions_of_the_hessian_do_not_matter():
    """Where it is nearly singular, rows would have negative degrees of freedom."""
    fit = fit_evidence(make_problem(100), (3,), entropy=0, n_restarts=1)
    best = fit.best
    flat = DensePrecision(1e-6 * np.eye(best.network.n_weights))
    nearly_singular = replace(fit, minima=[replace(best, precision=flat)])
    assert p_values_of(nearly_singular) == p_values_of(fit)


@pytest.mark.parametrize("degrees_of_freedom", [2.5, 10.0])
def test_noise_level_at_fixed_weights(degrees_of_freedom):
    """The level of the largest likelihood, but for the well-determined weights."""
    early = Limits(batch_rows=200, batch_rows_per_weight=10**6)
    problem = make_problem(400, limits=early)
    posed = problem.posed((3,))
    (minimum,) = find_minima(*posed, np.random.SeedSequence(0).spawn(1))
    posterior, settings = NOISE_MODELS["student_t"].pose(posed)
    likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
    own = replace(
        posterior.with_network(minimum.network, minimum.groups.labels), likelihood=likelihood
    )
    without = replace(minimum, gamma=np.zeros_like(minimum.gamma))
    found = _with_noise_reestimated(own, without, settings)
    assert_allclose(found.theta, minimum.theta)

    def log_likelihood(factor):
        beta = found.hyper.beta * factor
        return (
            own.likelihood.log_normaliser(beta, own.n_rows) - own.energies(found.theta, beta).misfit
        )

    best = log_likelihood(1.0)
    assert_allclose(found.terms.misfit + found.terms.noise_normaliser, best)
    assert best > max(log_likelihood(0.98), log_likelihood(1.02))
    fewer = _with_noise_reestimated(own, minimum, settings)
    assert fewer.hyper.beta < found.hyper.beta
