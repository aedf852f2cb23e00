"""The two likelihoods of input-dependent noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skbayesnn.posterior import Gaussian, Hyperparameters, RowGaussian, SquaredResiduals
from tests.tools import assert_near, difference, make_problem


def draw(name, n=6, p=2, lead=(), seed=0):
    """Outputs, targets with their further columns, row weights and precisions."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((*lead, n, p))
    y = rng.standard_normal((n, 2 * p))
    beta = np.exp(rng.uniform(-1, 1, (*lead, p)))
    likelihood = RowGaussian.per_output(p)
    if name == "squares":
        y = np.hstack([y[:, :p] ** 2, rng.uniform(0.2, 1.0, (n, p))])
        likelihood, beta = SquaredResiduals(), np.ones((*lead, 1))
    return likelihood, f, y, rng.uniform(0.5, 3.0, n), beta


both = pytest.mark.parametrize("name", ["rows", "squares"])


def test_log_density_of_rows():
    likelihood, f, y, weight, beta = draw("rows")
    g = y[:, 2:] - weight @ y[:, 2:] / weight.sum()
    y[:, 2:] = g
    sd = (beta * np.exp(g)) ** -0.5
    expected = weight @ np.sum(stats.norm.logpdf(y[:, :2], f, sd), axis=1)
    misfit = beta @ likelihood.errors(f, y, weight)
    assert likelihood.log_normaliser(beta, weight.sum()) - misfit == pytest.approx(expected)


def test_equal_rows_are_gaussian():
    likelihood, f, y, weight, beta = draw("rows", lead=(3,))
    y[:, 2:] = 0.0
    gaussian, targets = Gaussian.per_output(2), y[:, :2]
    assert_near(likelihood.errors(f, y, weight), gaussian.errors(f, targets, weight), 1e-14)
    pairs = zip(
        likelihood.derivatives(f, y, weight, beta),
        gaussian.derivatives(f, targets, weight, beta),
        strict=True,
    )
    for mine, other in pairs:
        assert_near(mine, other, 1e-14)


def test_most_probable_level_of_the_squares():
    """A constant log precision: gamma over the sum of squares, unbiased where gamma counts."""
    likelihood, _, y, weight, _ = draw("squares", n=50)
    level = np.log(weight @ y[:, 2:] / (weight @ y[:, :2]))
    gradient, curvature = likelihood.derivatives(np.tile(level, (50, 1)), y, weight, np.ones(1))
    np.testing.assert_allclose(gradient.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(curvature.sum(axis=0), 0.5 * weight @ y[:, 2:])
    _, expected = likelihood.derivatives(np.tile(level, (50, 1)), y, weight, np.ones(1), False)
    np.testing.assert_allclose(expected, 0.5 * weight[:, None] * y[:, 2:])


@both
@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_derivatives(name, lead):
    likelihood, f, y, weight, beta = draw(name, lead=lead)
    gradient, curvature = likelihood.derivatives(f, y, weight, beta)
    errors, same = likelihood.errors_and_gradient(f, y, weight, beta)
    np.testing.assert_array_equal(same, gradient)
    np.testing.assert_array_equal(errors, likelihood.errors(f, y, weight))
    for i in np.ndindex(lead):

        def misfit(flat, b=beta[i]):
            return b @ likelihood.errors(flat.reshape(6, 2), y, weight)

        def slope(flat, b=beta[i]):
            return likelihood.derivatives(flat.reshape(6, 2), y, weight, b)[0].ravel()

        assert_near(gradient[i].ravel(), difference(misfit, f[i].ravel()))
        assert_near(np.diag(curvature[i].ravel()), difference(slope, f[i].ravel()))


@both
def test_sample_weight_is_repetition(name):
    likelihood, f, y, _, beta = draw(name)
    times = np.array([1, 3, 2, 1, 4, 1])
    some = np.repeat(np.arange(6), times)
    weighted = likelihood.errors(f, y, times.astype(float))
    np.testing.assert_allclose(weighted, likelihood.errors(f[some], y[some], np.ones(12)))
    r, _ = likelihood.derivatives(f, y, times.astype(float), beta)
    r_repeated, _ = likelihood.derivatives(f[some], y[some], np.ones(12), beta)
    np.testing.assert_allclose(r.sum(axis=0), r_repeated.sum(axis=0))


def test_enormous_log_precisions_do_not_overflow():
    likelihood = SquaredResiduals()
    with np.errstate(over="raise", invalid="raise"):
        errors = likelihood.errors(np.full((1, 1), 1e4), np.array([[1.0, 1.0]]), np.ones(1))
    assert errors[0] > 1e100


@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_best_outputs_of_unequal_rows(lead):
    """Variable projection: the output layer's gradient vanishes after one step."""
    posterior, theta, hyper = make_problem("gaussian", lead=lead)
    rng = np.random.default_rng(1)
    y = np.hstack([posterior.y, rng.standard_normal(posterior.y.shape)])
    likelihood = RowGaussian.per_output(posterior.network.n_outputs)
    posterior = replace(posterior, likelihood=likelihood, y=y)
    best = posterior.with_best_outputs(theta, hyper)
    last = posterior.network.slices[-1]
    assert np.max(np.abs(posterior.gradient(best, hyper)[..., last])) < 1e-11
    np.testing.assert_array_equal(best[..., : last.start], theta[..., : last.start])
    # equal rows take a way of their own
    y[:, posterior.network.n_outputs :] = 0.0
    plain = replace(posterior, likelihood=Gaussian.per_output(2), y=y[:, :2])
    assert_near(
        replace(posterior, y=y).with_best_outputs(theta, hyper),
        plain.with_best_outputs(theta, hyper),
        1e-12,
    )
    assert isinstance(hyper, Hyperparameters)
