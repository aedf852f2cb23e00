import numpy as np
import pytest

from skbayesnn.inference import _gauss_newton
from skbayesnn.inference._gauss_newton import (
    KroneckerCurvature,
    gauss_newton_forms,
    rows_of_curvature,
    serves_dual,
)
from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian, KroneckerGaussian
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Hyperparameters, Posterior, weight_groups

ROOTS = 260


@pytest.fixture
def many_rows():
    """A network of 541 weights, of which 3000 rows determine some 60."""
    rng = np.random.default_rng(0)
    network, n = Network((4, 20, 20, 1)), 3000
    X = rng.standard_normal((n, 4))
    X = X[np.lexsort(X.T[::-1])]
    theta = np.concatenate([rng.standard_normal(i * o) * i**-0.5 for i, o in network.shapes])
    y = np.sin(X[:, :1]) + rng.standard_normal((n, 1))
    weight = rng.integers(1, 4, n).astype(float)
    groups = weight_groups(network, "layer")
    posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, weight)
    hyper = Hyperparameters(np.full((1, len(groups.names)), 100.0), np.full((1, 1), 15.0))
    return posterior, theta[None], hyper


def gaussian_of(posterior, theta, hyper):
    gradient, (curvature,) = gauss_newton_forms(posterior, theta, hyper)
    return gradient, curvature.gaussian()


def test_curvature_of_some_rows_stands_for_that_of_all(many_rows, monkeypatch):
    posterior, theta, hyper = many_rows
    gradient, all_rows = gaussian_of(posterior, theta, hyper)
    assert isinstance(all_rows, DenseGaussian)
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", ROOTS)
    same_gradient, some_rows = gaussian_of(posterior, theta, hyper)
    assert isinstance(some_rows, DualGaussian)
    assert len(some_rows.S) == ROOTS
    np.testing.assert_allclose(same_gradient, gradient, rtol=1e-9, atol=1e-7)

    def gamma(gaussian):
        return theta.size - 100.0 * gaussian.variances().sum()

    prior = theta.size * np.log(100.0)
    # Fewer rows leave more undetermined: both are too small on average, never by much.
    assert 0.8 < gamma(some_rows) / gamma(all_rows) < 1.05
    assert 0.8 < (some_rows.log_det - prior) / (all_rows.log_det - prior) < 1.05
    J = posterior.weighted_jacobian(theta[0], hyper.select(0))[::50, None]
    ratio = np.sqrt(some_rows.project(J) / all_rows.project(J)).ravel()
    assert 1.0 < np.median(ratio) < 1.25
    assert np.all((ratio > 0.7) & (ratio < 1.6))


@pytest.mark.parametrize("alpha", [10.0, 0.1])
def test_kronecker_factors_where_rows_are_too_few(many_rows, monkeypatch, alpha):
    """They are nearer to all rows than the rows that could be taken."""
    posterior, theta, hyper = many_rows
    hyper = hyper._replace(alpha=np.full_like(hyper.alpha, alpha))
    _, all_rows = gaussian_of(posterior, theta, hyper)
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", ROOTS // 4)
    _, factors = gaussian_of(posterior, theta, hyper)
    assert isinstance(factors, KroneckerGaussian)
    monkeypatch.setattr(_gauss_newton, "OVERFULL", 1.0)
    _, some_rows = gaussian_of(posterior, theta, hyper)
    assert isinstance(some_rows, DualGaussian)
    J = posterior.weighted_jacobian(theta[0], hyper.select(0))[::50, None]
    ratios = [
        np.median(np.sqrt(gaussian.project(J) / all_rows.project(J)))
        for gaussian in (factors, some_rows)
    ]
    assert 0.8 < ratios[0] < 1.6 < 2.0 < ratios[1]


def test_forms_of_kronecker_factors(many_rows):
    posterior, theta, hyper = many_rows
    curvature = KroneckerCurvature(posterior.kronecker_factors(theta[0], hyper.select(0)))
    A = np.linalg.inv(curvature.gaussian().covariance())
    np.testing.assert_allclose(curvature.diagonal, np.diag(A), rtol=1e-8)
    step = np.random.default_rng(1).standard_normal(theta.size)
    np.testing.assert_allclose(curvature.quadratic(step), step @ A @ step, rtol=1e-8)
    damped = curvature.gaussian(0.5)
    np.testing.assert_allclose(damped.solve(step), np.linalg.solve(1.5 * A, step), rtol=1e-6)


def test_chosen_rows_count_for_all(many_rows, monkeypatch):
    posterior, *_ = many_rows
    assert rows_of_curvature(posterior) is posterior
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", ROOTS)
    part = rows_of_curvature(posterior)
    assert len(part.X) == ROOTS
    assert part.n_rows == pytest.approx(posterior.n_rows)
    assert part.X[0, 0] == posterior.X[0, 0]
    assert part.X[-1, 0] == posterior.X[-1, 0]
    ratios = part.sample_weight / posterior.sample_weight[np.isin(posterior.X, part.X).all(axis=1)]
    np.testing.assert_allclose(ratios, ratios[0])


def test_memory_bounds_the_number_of_rows(many_rows, monkeypatch):
    posterior, *_ = many_rows
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", ROOTS)
    monkeypatch.setattr(_gauss_newton, "ROOT_DOUBLES", 100 * posterior.network.n_weights)
    assert len(rows_of_curvature(posterior).X) == 100


def test_small_networks_keep_the_curvature_of_all_rows(many_rows, monkeypatch):
    posterior, *_ = many_rows
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", posterior.network.n_weights // 2 + 1)
    assert not serves_dual(posterior)


@pytest.mark.slow
def test_true_size(monkeypatch):
    """8343 weights, 6000 rows: 4000 of them against the dense matrix of all."""
    rng = np.random.default_rng(0)
    network, n = Network((8, 86, 86, 1)), 6000
    X = rng.standard_normal((n, 8))
    X = X[np.argsort(X[:, 0])]
    theta = np.concatenate([rng.standard_normal(i * o) * i**-0.5 for i, o in network.shapes])
    groups = weight_groups(network, "layer")
    posterior = Posterior(network, Gaussian.per_output(1), groups, X, X[:, :1], np.ones(n))
    hyper = Hyperparameters(np.full((1, len(groups.names)), 1000.0), np.full((1, 1), 10.0))
    _, some_rows = gaussian_of(posterior, theta[None], hyper)
    assert len(some_rows.S) == _gauss_newton.MOST_ROOTS
    monkeypatch.setattr(_gauss_newton, "MOST_ROOTS", n)
    _, all_rows = gaussian_of(posterior, theta[None], hyper)
    assert isinstance(all_rows, DenseGaussian)
    gammas = [theta.size - 1000.0 * g.variances().sum() for g in (some_rows, all_rows)]
    assert 20.0 < gammas[1] < 800.0
    assert 0.9 < gammas[0] / gammas[1] < 1.01
    J = posterior.weighted_jacobian(theta, hyper.select(0))[::600, None]
    ratio = np.sqrt(some_rows.project(J) / all_rows.project(J)).ravel()
    assert 0.95 < np.median(ratio) < 1.1
