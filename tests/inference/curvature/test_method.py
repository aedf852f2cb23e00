"""Which method serves which size, and the forms of curvature that it makes."""

import numpy as np
import pytest

from skbayesnn.inference import DensePrecision, DualPrecision, Limits, Method
from skbayesnn.inference.curvature import _method
from skbayesnn.inference.curvature._method import Curvature
from skbayesnn.inference.curvature._precision_kronecker import KroneckerPrecision
from skbayesnn.network import Network
from skbayesnn.posterior import (
    Bernoulli,
    Gaussian,
    Hyperparameters,
    Posterior,
    StudentT,
    weight_groups,
)
from tests.inference.common import method_of, settings_of
from tests.tools import DEPTHS, make_problem

DENSE, DUAL, KRONECKER = Curvature
ONE = Gaussian.per_output(1)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
@pytest.mark.parametrize("hidden", DEPTHS, ids=str)
def test_dense_and_dual_curvature_agree(name, hidden):
    posterior, theta, hyper = make_problem(name, hidden, n=40)
    dense, dual = (
        method_of(posterior, limits=limits).point(posterior, theta, hyper)
        for limits in (Limits(), Limits(dual=0))
    )
    assert isinstance(dense.precision, DensePrecision)
    assert isinstance(dual.precision, DualPrecision)
    A = posterior.hessian(theta, hyper, exact=False)
    np.testing.assert_allclose(dense.precision.matrix, A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dual.precision.covariance(), np.linalg.inv(A), atol=1e-9)
    for point in (dense, dual):
        np.testing.assert_allclose(
            point.gradient, posterior.energies_and_gradient(theta, hyper)[1], atol=1e-10
        )
        energies = posterior.energies(theta, hyper.beta)
        assert point.energy == pytest.approx(energies.total(hyper), rel=1e-12)


def many_rows(n, sizes=(4, 20, 20, 1)):
    """A network of 541 weights, of which the rows determine some 60."""
    rng = np.random.default_rng(0)
    network = Network(sizes)
    X = rng.standard_normal((n, sizes[0]))
    X = X[np.lexsort(X.T[::-1])]
    theta = np.concatenate([rng.standard_normal(i * o) * i**-0.5 for i, o in network.shapes])
    y = np.sin(X[:, :1]) + rng.standard_normal((n, 1))
    weight = rng.integers(1, 4, n).astype(float)
    groups = weight_groups(network, "layer")
    return Posterior(network, Gaussian.per_output(1), groups, X, y, weight), theta


def kronecker_and_whole(n, alpha, beta, limits):
    """The method, a point with Kronecker factors, and the whole matrix there."""
    posterior, theta = many_rows(n)
    hyper = Hyperparameters(np.full(len(posterior.groups.names), alpha), np.full(1, beta))
    method = Method.choose(posterior, settings_of(posterior, limits=limits))
    assert method.curvature is KRONECKER
    point = method.point(posterior, theta, hyper)
    assert isinstance(point.precision, KroneckerPrecision)
    whole = DensePrecision(posterior.hessian(theta, hyper, exact=False))
    return posterior, method, point, whole


WITHOUT = Limits(dense=0, dual_work=0)  # matrices and roots


@pytest.mark.parametrize("alpha", [10.0, 0.1])
def test_kronecker_factors_beside_the_whole_matrix(alpha, monkeypatch):
    posterior, method, point, whole = kronecker_and_whole(3000, alpha, 15.0, WITHOUT)
    some = posterior.of_rows(slice(None, None, 50))
    J = next(some.weighted_jacobians(point.theta, point.hyper))[:, None]
    ratio = np.sqrt(point.precision.project(J) / whole.project(J)).ravel()
    assert 0.8 < np.median(ratio) < 1.6
    given = posterior.groups, point.hyper.alpha
    exact, alone = (matrix.determined(*given).sum() for matrix in (whole, point.precision))
    of_sample = method.determined(posterior, point)
    np.testing.assert_allclose(of_sample, whole.determined(*given), rtol=0.05)
    monkeypatch.setattr(_method, "MAX_OF_SAMPLE", 0)
    found = method.determined(posterior, point)
    assert 20.0 < exact < 0.8 * alone  # by the factors alone there are too many
    assert found.sum() == pytest.approx(exact, rel=0.2)  # by few random signs
    np.testing.assert_allclose(found / found.sum(), point.precision.determined(*given) / alone)


# --- curvature that is lost in rounding -----------------------------------------------------------


def twice_the_same_input(likelihood, hidden=()):
    """Inputs so large that the prior drowns in the sums of their squares."""
    network, rng = Network((2, *hidden, 1), "identity"), np.random.default_rng(0)
    X = np.full((4, 2), 2.0**30)
    groups = weight_groups(network, "single")
    posterior = Posterior(network, likelihood, groups, X, np.zeros((4, 1)), np.ones(4))
    theta = np.zeros(network.n_weights)
    if hidden:
        theta = rng.standard_normal(network.n_weights)
    return posterior, theta, Hyperparameters(np.ones(1), np.ones(likelihood.n_levels))


@pytest.mark.parametrize(
    ("likelihood", "hidden", "exact", "definite"),
    [
        (ONE, (), False, True),
        (ONE, (), True, True),
        (Bernoulli(), (), True, True),
        (StudentT.per_output(1), (), False, True),
        (StudentT.per_output(1), (), True, False),  # may be indefinite for other reasons
        (ONE, (2,), False, True),
        (ONE, (2,), True, False),
    ],
)
def test_matrix_is_definite_where_only_rounding_is_to_blame(likelihood, hidden, exact, definite):
    posterior, theta, hyper = twice_the_same_input(likelihood, hidden)
    assert not DensePrecision(posterior.hessian(theta, hyper, exact)).definite
    precision = method_of(posterior).point(posterior, theta, hyper, exact).precision
    assert precision.definite == definite
    if definite and not hidden:
        difference = np.array([1.0, -1.0, 0.0])  # which no row tells anything about
        assert difference @ precision.solve(difference) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("likelihood", [ONE, Bernoulli()])
def test_linear_models_of_many_inputs_lose_nothing_in_dual_form(likelihood):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((15, 700))
    y = X[:, :1] + 0.3 * rng.standard_normal((15, 1))
    if not likelihood.n_levels:
        y = (y > 0.0).astype(float)
    network = Network((700, 1))
    posterior = Posterior(network, likelihood, weight_groups(network, "layer"), X, y, np.ones(15))
    hyper = Hyperparameters(np.full(2, 5.0), np.full(likelihood.n_levels, 4.0))
    method = method_of(posterior, limits=Limits())
    dense = method_of(posterior, limits=Limits(dense_linear=1000))
    assert (method.dense, dense.dense) == (False, True)
    theta = 0.1 * rng.standard_normal(701)
    ours = method.point(posterior, theta, hyper).precision
    exact = dense.point(posterior, theta, hyper, exact=True).precision
    assert type(ours) is DualPrecision
    assert ours.log_det == pytest.approx(exact.log_det, rel=1e-9)
    np.testing.assert_allclose(ours.variances(), exact.variances(), rtol=1e-7)
