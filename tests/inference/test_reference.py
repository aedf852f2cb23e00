import numpy as np
import pytest

from skbayesnn.inference._evidence import log_evidence_fixed, log_symmetry, well_determined
from skbayesnn.inference._gaussian import DenseGaussian
from skbayesnn.inference._newton import find_mode
from skbayesnn.inference._training import FreeHyperparameters, reestimate
from skbayesnn.network import forward, jacobian
from skbayesnn.posterior import LogUniform
from tests.reference import CASES, MINIMA, POINTS, load
from tests.tools import assert_near

each_minimum = pytest.mark.parametrize("name", MINIMA)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return load(request.param)


def exact_gaussian(case, point):
    return DenseGaussian.from_precision(case.posterior.hessian(point.theta, point.hyper))


@each_minimum
def test_log_determinant_and_evidence(case, name):
    point = getattr(case, name)
    gaussian = exact_gaussian(case, point)
    np.testing.assert_allclose(gaussian.log_det, point.logdet_A, rtol=0, atol=1e-8)
    energies = case.posterior.energies(point.theta)
    value = log_evidence_fixed(case.posterior, point.hyper, energies, gaussian.log_det)
    np.testing.assert_allclose(value, point.laplace_logev_no_symmetry, rtol=0, atol=1e-8)


def test_initial_point_is_no_minimum(case):
    assert exact_gaussian(case, case.initial) is None


@pytest.mark.parametrize("name", POINTS)
def test_gauss_newton_form(case, name):
    point = getattr(case, name)
    determined = well_determined(case.posterior, point.theta, point.hyper)
    assert_near(determined.gamma, point.gamma_per_group_gauss_newton)
    assert_near(determined.noise_gamma, [point.gamma_per_group_gauss_newton.sum()])
    log_det = determined.gaussian.log_det
    np.testing.assert_allclose(log_det, point.logdet_A_gauss_newton, rtol=0, atol=1e-8)
    energies = case.posterior.energies(point.theta)
    value = log_evidence_fixed(case.posterior, point.hyper, energies, log_det)
    np.testing.assert_allclose(
        value, point.laplace_logev_no_symmetry_gauss_newton, rtol=0, atol=1e-8
    )


@each_minimum
def test_gamma_with_the_exact_hessian(case, name):
    point, groups = getattr(case, name), case.posterior.groups
    variances = exact_gaussian(case, point).variances()
    gamma = groups.sizes - point.alpha * groups.sums(variances)
    np.testing.assert_allclose(gamma, point.gamma_per_group, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", CASES[:3])
def test_reestimation_formulae(name):
    # With the exact Hessian, as the other program; its gamma for the softmax case is negative.
    case = load(name)
    point, posterior = case.evidence_converged, case.posterior
    n_groups = len(point.alpha)
    free = FreeHyperparameters(
        np.ones(n_groups, bool), np.array([posterior.likelihood.has_noise]), LogUniform()
    )
    variances = exact_gaussian(case, point).variances()
    energies = posterior.energies(point.theta)
    new, gamma = reestimate(posterior, point.hyper, energies, variances, free)
    np.testing.assert_allclose(gamma, point.gamma_per_group, rtol=1e-8)
    np.testing.assert_allclose(new.alpha, point.alpha_reestimated, rtol=1e-8)
    expected = getattr(point, "beta_reestimated", 1.0)
    np.testing.assert_allclose(new.beta, [expected], rtol=1e-8)


def test_symmetry_factor(case):
    network, groups = case.posterior.network, case.posterior.groups
    np.testing.assert_allclose(
        log_symmetry(network, groups.labels), case.trained_fixed.log_symmetry, rtol=1e-12
    )


@each_minimum
def test_error_bars(case, name):
    point = getattr(case, name)
    J = jacobian(forward(case.posterior.network, point.theta, case.X_test, 1))
    covariance = exact_gaussian(case, point).project(J)
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    assert_near(variances, point.test_activation_variance)
    if covariance.shape[1] > 1:
        assert_near(covariance.reshape(len(J), -1), point.test_activation_covariance)


@each_minimum
def test_find_mode_stays_at_a_minimum(case, name):
    point = getattr(case, name)
    mode = find_mode(case.posterior, point.theta, point.hyper)
    assert mode.converged
    np.testing.assert_allclose(mode.theta, point.theta, rtol=0, atol=1e-8)


@each_minimum
def test_find_mode_returns_to_a_minimum(case, name):
    point = getattr(case, name)
    noise = np.random.default_rng(0).standard_normal(len(point.theta))
    mode = find_mode(case.posterior, point.theta + 1e-3 * noise, point.hyper)
    assert mode.converged
    np.testing.assert_allclose(mode.energies.total(point.hyper), point.E_total, rtol=1e-8)
    np.testing.assert_allclose(mode.theta, point.theta, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", POINTS)
def test_find_mode_from_the_initial_weights(case, name):
    hyper = getattr(case, name).hyper
    mode = find_mode(case.posterior, case.initial.theta, hyper)
    assert mode.converged
    gradient = case.posterior.gradient(mode.theta, hyper)
    A = case.posterior.hessian(mode.theta, hyper)
    assert np.linalg.eigvalsh(A)[0] > 0
    decrement = 0.5 * gradient @ np.linalg.solve(A, gradient)
    assert decrement < 1e-11  # nats above the minimum
    np.testing.assert_allclose(mode.decrement, decrement, rtol=1e-6, atol=1e-18)
    np.testing.assert_allclose(mode.gradient_norm, np.linalg.norm(gradient), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(mode.hessian, A, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(mode.gaussian.log_det, np.linalg.slogdet(A)[1], rtol=1e-10)
