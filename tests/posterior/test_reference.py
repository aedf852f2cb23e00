import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayesnn.network import outputs
from skbayesnn.posterior import Bernoulli, Categorical
from tests.reference import CASES, POINTS, load
from tests.tools import assert_near


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return load(request.param)


@pytest.fixture(params=POINTS)
def point(request, case):
    return getattr(case, request.param)


def test_errors(case, point):
    energies = case.posterior.energies(point.theta, point.hyper.beta)
    np.testing.assert_allclose(energies.misfit, point.beta * point.E_D, rtol=1e-10)
    expected = np.full(case.posterior.likelihood.n_levels, point.E_D)
    np.testing.assert_allclose(energies.errors, expected, rtol=1e-10)
    np.testing.assert_allclose(energies.weights, point.E_W, rtol=1e-10)
    np.testing.assert_allclose(energies.total(point.hyper), point.E_total, rtol=1e-10)


def test_outputs(case, point):
    network, likelihood = case.posterior.network, case.posterior.likelihood
    assert_near(outputs(network, point.theta, case.X_test), point.test_activation, 1e-10)
    transform = {Bernoulli: expit, Categorical: lambda a: softmax(a, axis=1)}
    transform = transform.get(type(likelihood), lambda f: f)
    for X, expected in ((case.X_test, point.test_output), (case.posterior.X, point.train_output)):
        assert_near(transform(outputs(network, point.theta, X)), expected, 1e-10)


def test_gradient(case, point):
    flat = point.hyper._replace(alpha=0 * point.alpha)
    gradient = case.posterior.energies_and_gradient(point.theta, flat)[1]
    assert_near(gradient, point.beta * point.gradient_data)
    assert_near(
        case.posterior.energies_and_gradient(point.theta, point.hyper)[1], point.gradient_total
    )


def test_hessian(case, point):
    one = np.ones_like(point.hyper.beta)
    assert_near(case.posterior.data_expansion(point.theta, one, exact=True)[2], point.hessian_data)
    A = case.posterior.hessian(point.theta, point.hyper)
    assert_near(np.diag(A), point.hessian_total_diagonal)
    off_diagonal = ~np.eye(len(A), dtype=bool)
    assert_near(A[off_diagonal], point.beta * point.hessian_data[off_diagonal])
