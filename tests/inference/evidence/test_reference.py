import numpy as np
import pytest

from skbayesnn.inference import DensePrecision, well_determined
from skbayesnn.inference.curvature._method import Point
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.inference.optimise._reestimation import reestimate
from skbayesnn.network import forward, jacobian
from tests.inference.common import free_all, method_of, mode_of
from tests.reference import CASES, MINIMA, POINTS, load
from tests.tools import assert_near

each_minimum = pytest.mark.parametrize("name", MINIMA)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return load(request.param)


def exact_precision(case, point):
    return DensePrecision(case.posterior.hessian(point.theta, point.hyper))


@each_minimum
def test_log_determinant_and_evidence(case, name):
    point = getattr(case, name)
    precision = exact_precision(case, point)
    np.testing.assert_allclose(precision.log_det, point.logdet_A, rtol=0, atol=1e-8)
    energies = case.posterior.energies(point.theta, point.hyper.beta)
    there = Point(point.theta, point.hyper, energies, None, precision)
    value = log_evidence_fixed(case.posterior, there)
    np.testing.assert_allclose(value, point.laplace_logev_no_symmetry, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", POINTS)
def test_gauss_newton_form(case, name):
    point, posterior = getattr(case, name), case.posterior
    determined = well_determined(posterior, method_of(posterior), point.theta, point.hyper)
    total = point.gamma_per_group_gauss_newton.sum()
    assert_near(determined.gamma, point.gamma_per_group_gauss_newton)
    assert_near(determined.noise_gamma, np.full(posterior.likelihood.n_levels, total))
    np.testing.assert_allclose(
        determined.precision.log_det, point.logdet_A_gauss_newton, rtol=0, atol=1e-8
    )
    energies = posterior.energies(point.theta, point.hyper.beta)
    there = Point(point.theta, point.hyper, energies, None, determined.precision)
    value = log_evidence_fixed(posterior, there)
    np.testing.assert_allclose(
        value, point.laplace_logev_no_symmetry_gauss_newton, rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("name", CASES[:3])
def test_reestimation_formulae(name):
    # With the exact Hessian, as the other program; its gamma for the softmax case is negative.
    case = load(name)
    point, posterior = case.evidence_converged, case.posterior
    gamma = exact_precision(case, point).determined(posterior.groups, point.alpha)
    energies = posterior.energies(point.theta, point.hyper.beta)
    new = reestimate(posterior, point.hyper, energies, gamma, free_all(posterior))
    np.testing.assert_allclose(new.alpha, point.alpha_reestimated, rtol=1e-8)
    expected = np.full(posterior.likelihood.n_levels, getattr(point, "beta_reestimated", np.nan))
    np.testing.assert_allclose(new.beta, expected, rtol=1e-8)


@each_minimum
def test_error_bars(case, name):
    point = getattr(case, name)
    J = jacobian(forward(case.posterior.network, point.theta, case.X_test, 1))
    covariance = exact_precision(case, point).project(J)
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    assert_near(variances, point.test_activation_variance)
    if covariance.shape[1] > 1:
        assert_near(covariance.reshape(len(J), -1), point.test_activation_covariance)


@pytest.mark.parametrize("name", POINTS)
def test_find_mode_from_the_initial_weights(case, name):
    hyper = getattr(case, name).hyper
    search = mode_of(case.posterior, case.initial.theta, hyper)
    assert search.converged
    theta, _, energies, gradient, precision = search.point
    expected = case.posterior.energies_and_gradient(theta, hyper)[1]
    A = case.posterior.hessian(theta, hyper)
    assert np.linalg.eigvalsh(A)[0] > 0
    assert 0.5 * expected @ np.linalg.solve(A, expected) < 1e-11  # nats above the minimum
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(precision.matrix, A, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(precision.log_det, np.linalg.slogdet(A)[1], rtol=1e-10)
    total = case.posterior.energies(theta, hyper.beta).total(hyper)
    np.testing.assert_allclose(energies.total(hyper), total, rtol=1e-12)
