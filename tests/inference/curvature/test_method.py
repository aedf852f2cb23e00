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
    Categorical,
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
LIMITS = Limits(
    dense=3000,
    dense_work=3e10,
    dual=2.0,
    dual_work=2e10,
    softmax_work=1e9,
    cheap_work=2e9,
    refined=5000,
    batch_rows=10**9,
)


def of_size(likelihood, n, sizes):
    """A posterior of a network and as many rows, all the same, that takes no memory."""
    network = Network(sizes)
    X, y = np.broadcast_to(0.0, (n, sizes[0])), np.broadcast_to(0.0, (n, sizes[-1]))
    groups = weight_groups(network, "layer")
    return Posterior(network, likelihood, groups, X, y, np.broadcast_to(1.0, n))


@pytest.mark.parametrize(
    ("likelihood", "n", "sizes", "curvature", "traits"),
    [
        (ONE, 10, (4, 20, 1), DENSE, "dense exact cheap refines"),  # 121 weights
        (ONE, 101, (8, 20, 1), DENSE, "dense exact cheap refines"),  # 201 weights
        (ONE, 100, (8, 20, 1), DUAL, "dense exact cheap refines"),
        (ONE, 400, (2, 400, 1), DUAL, "dense exact cheap"),  # 1601 weights, many precisions
        (ONE, 1900, (8, 100, 1), DENSE, "dense exact cheap refines"),  # 1001 weights
        (ONE, 2000, (8, 100, 1), DENSE, "dense exact"),
        (ONE, 30_000, (8, 100, 1), KRONECKER, "by_gradients"),
        (ONE, 1_500, (8, 60, 50, 1), DUAL, ""),  # 3641 weights
        (ONE, 3_000, (8, 60, 50, 1), KRONECKER, "by_gradients"),
        (Categorical(), 29_000, (2, 30, 3), DENSE, "dense exact cheap refines"),
        (Categorical(), 30_000, (2, 30, 3), DENSE, "dense exact by_gradients"),
        (Categorical(), 2_000_000, (8, 3), DENSE, "dense exact cheap refines"),
        (Categorical(), 180, (2, 400, 3), DUAL, "dense exact by_gradients"),
        (Bernoulli(), 40_000, (2, 45, 1), DENSE, "dense exact cheap refines"),  # two classes
    ],
)
def test_which_method_is_chosen(likelihood, n, sizes, curvature, traits):
    posterior = of_size(likelihood, n, sizes)
    method = method_of(posterior, limits=LIMITS)
    assert method.curvature is curvature
    names = ["dense", "exact", "cheap", "refines", "by_gradients"]
    assert {name for name in names if getattr(method, name)} == set(traits.split())
    assert method.has_evidence == (curvature is not KRONECKER)
    approximate = method_of(posterior, exact=False, limits=LIMITS)
    assert not approximate.exact
    assert approximate.curvature is curvature


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


@pytest.mark.parametrize(
    ("n_classes", "n", "units", "early", "by_batches"),
    [
        (3, 1200, 32, True, False),  # 16 units have 1,027 weights, 32 units have 2,051
        (3, 3000, 32, False, False),  # about three rows for each of 1,027 weights
        (3, 6000, 32, True, True),
        (1, 1200, 16, False, False),  # two classes
        (3, 900, 16, False, False),  # a tenth of the rows compares networks too inaccurately
    ],
)
def test_networks_of_classes_with_few_rows_per_weight_stop_early(
    n_classes, n, units, early, by_batches
):
    """Gradients are those of all rows, as batches would fit the noise."""
    network = Network((60, units, n_classes))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 60)), np.eye(n_classes)[rng.integers(n_classes, size=n)]
    law = Categorical() if n_classes > 1 else Bernoulli()
    posterior = Posterior(network, law, weight_groups(network, "layer"), X, y, np.ones(n))
    limits = Limits(early_work=0.0)
    method = Method.choose(posterior, settings_of(posterior, limits=limits))
    assert (method.early, method.by_batches) == (early, by_batches)


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
    monkeypatch.setattr(_method, "MOST_OF_SAMPLE", 0)
    found = method.determined(posterior, point)
    assert 20.0 < exact < 0.8 * alone  # by the factors alone there are too many
    assert found.sum() == pytest.approx(exact, rel=0.2)  # by few random signs
    np.testing.assert_allclose(found / found.sum(), point.precision.determined(*given) / alone)


def test_determined_weights_without_a_rounding_error(monkeypatch):
    """Conjugate gradients that arrive at once stay there."""
    monkeypatch.setattr(_method, "MOST_OF_SAMPLE", 0)
    network = Network((1, 1))
    given = np.zeros((3, 1)), np.ones((3, 1)), np.ones(3)
    posterior = Posterior(network, ONE, weight_groups(network, "single"), *given)
    hyper = Hyperparameters(np.ones(1), np.ones(1))
    method = method_of(posterior, limits=WITHOUT)
    point = method.point(posterior, np.zeros(2), hyper)
    np.testing.assert_array_equal(point.precision.diagonal, [1.0, 4.0])
    np.testing.assert_allclose(method.determined(posterior, point), 0.75)


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
