import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, kstest

from skbayesnn.inference.noise._residual_tests import heavy_tails, noise_trend


def make_residuals(seed, n=60, sd=lambda X: np.ones(len(X)), law="standard_normal", n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    arguments = {"standard_t": (4.0,), "uniform": (-1.0, 1.0)}.get(law, ())
    return X, getattr(rng, law)(*arguments, (n, n_outputs)) * sd(X)[:, None], np.ones(n)


def growing(X):
    return np.exp(X[:, 0])


def test_against_a_regression_by_hand():
    X, residuals, weight = make_residuals(0)
    sizes = np.abs(residuals[:, 0])
    Z = np.column_stack([np.ones(60), X, X**2])
    rest = sizes - Z @ np.linalg.lstsq(Z, sizes)[0]
    r2 = 1 - rest.var() / sizes.var()
    assert noise_trend(X, residuals, weight) == pytest.approx(chi2.sf(60 * r2, 4))


@pytest.mark.parametrize("law", ["standard_normal", "standard_t"])
def test_uniform_under_constant_noise(law):
    """Also where the residuals have heavier tails than a Gaussian's."""
    p = [noise_trend(*make_residuals(seed, n=300, law=law)) for seed in range(400)]
    assert kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("n", [20, 300])
def test_tails_uniform_under_gaussian_noise(n):
    p = [heavy_tails(*make_residuals(seed, n=n)) for seed in range(400)]
    assert kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("sd", [growing, lambda X: 0.1 + np.abs(X[:, 1])])
def test_finds_a_trend(sd):
    """One that rises, and one that falls and rises again."""
    assert noise_trend(*make_residuals(1, n=200, sd=sd)) < 1e-4


def test_finds_outliers():
    X, residuals, weight = make_residuals(1, n=100)
    residuals[::20] *= 10.0
    assert heavy_tails(X, residuals, weight) < 1e-4
    assert heavy_tails(*make_residuals(1, n=300, law="uniform")) > 0.999


def test_rows_may_come_in_any_order_and_scale_and_repeated():
    X, residuals, weight = make_residuals(2, sd=growing)
    p, tails = noise_trend(X, residuals, weight), heavy_tails(X, residuals, weight)
    assert_allclose(noise_trend(1e3 * X[::-1] + 7.0, -5.0 * residuals[::-1], weight), p)
    assert_allclose(heavy_tails(X, -5.0 * residuals[::-1], weight), tails)
    times = np.random.default_rng(0).integers(0, 3, 60)
    repeated = [np.repeat(a, times, axis=0) for a in (X, residuals, weight)]
    assert_allclose(noise_trend(X, residuals, times), noise_trend(*repeated))
    assert_allclose(heavy_tails(X, residuals, times), heavy_tails(*repeated))


def test_several_outputs_pay_for_the_choice():
    X, residuals, weight = make_residuals(3, sd=growing)
    both = np.column_stack([make_residuals(4)[1], residuals])
    columns = [column[:, None] for column in both.T]
    single = [noise_trend(X, column, weight) for column in columns]
    assert noise_trend(X, both, weight) == pytest.approx(2 * min(single))
    single = [heavy_tails(X, column, weight) for column in columns]
    assert heavy_tails(X, both, weight) == pytest.approx(min(1, 2 * min(single)))


def test_nothing_to_test():
    X, residuals, weight = make_residuals(5)
    assert np.isnan(noise_trend(X[:5], residuals[:5], weight[:5]))
    assert np.isnan(noise_trend(np.ones((60, 2)), residuals, weight))
    none = np.zeros((60, 1))
    assert noise_trend(X, none, weight) == 1.0
    assert heavy_tails(X, none, weight) == 0.5
    constant = np.column_stack([X, np.ones(60)])
    assert_allclose(noise_trend(constant, residuals, weight), noise_trend(X, residuals, weight))
