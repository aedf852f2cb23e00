"""Noise that differs between rows, and what its level is learned from."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skbayesnn.posterior import Gaussian, SquaredResiduals, Targets
from tests.tools import assert_near, make_problem


def draw(name, n=6, p=2, lead=(), seed=0):
    """A likelihood, outputs, targets with factors and row weights, and precisions."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((*lead, n, p))
    y, log_factors = rng.standard_normal((2, n, p))
    factors = np.exp(log_factors)
    beta = np.exp(rng.uniform(-1, 1, (*lead, p)))
    likelihood = Gaussian.per_output(p)
    if name == "squares":
        factors = rng.uniform(0.2, 1.0, (n, p))  # degrees of freedom
        y, likelihood, beta = y**2 / factors, SquaredResiduals(), np.ones((*lead, 0))
    return likelihood, f, Targets(y, rng.uniform(0.5, 3.0, n), factors), beta


def test_log_density_of_rows():
    likelihood, f, targets, beta = draw("rows")
    y, weight, factors, *_ = targets
    factors = np.exp(np.log(factors) - weight @ np.log(factors) / weight.sum())
    expected = weight @ np.sum(stats.norm.logpdf(y, f, (beta * factors) ** -0.5), axis=1)
    misfit = likelihood.misfit(f, Targets(y, weight, factors), beta).value
    assert likelihood.log_normaliser(beta, weight.sum()) - misfit == pytest.approx(expected)


def test_misfit_of_squares():
    """One half of ``exp(h) q - gamma h`` for every squared residual ``q``."""
    likelihood, h, targets, beta = draw("squares")
    gamma, q = targets.factors, targets.y * targets.factors
    expected = targets.weight @ np.sum(0.5 * (np.exp(h) * q - gamma * h), axis=1)
    misfit = likelihood.misfit(h, targets, beta)
    assert misfit.value == pytest.approx(expected, rel=1e-13)
    assert misfit.errors.shape == (0,)
    assert likelihood.n_levels == 0


def test_enormous_log_precisions_do_not_overflow():
    targets = Targets(np.ones((1, 1)), np.ones(1), np.ones((1, 1)))
    with np.errstate(over="raise", invalid="raise"):
        misfit = SquaredResiduals().misfit(np.full((1, 1), 1e4), targets, np.ones(0))
    assert misfit.value > 1e100


@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_best_outputs_of_unequal_rows(lead):
    """Variable projection: the output layer's gradient vanishes after one step."""
    posterior, theta, hyper = make_problem("gaussian", lead=lead)
    rng = np.random.default_rng(1)
    posterior = replace(posterior, factors=np.exp(rng.standard_normal(posterior.y.shape)))
    best = posterior.with_best_outputs(theta, hyper)
    last = posterior.network.slices[-1]
    assert np.max(np.abs(posterior.gradient(best, hyper)[..., last])) < 1e-11
    np.testing.assert_array_equal(best[..., : last.start], theta[..., : last.start])
    # equal rows take a way of their own
    assert_near(
        replace(posterior, factors=np.ones(posterior.y.shape)).with_best_outputs(theta, hyper),
        replace(posterior, factors=None).with_best_outputs(theta, hyper),
        1e-12,
    )
