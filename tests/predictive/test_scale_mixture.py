import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.predictive._noise import log_scale_mixture_density, noise_scales

FAR = np.concatenate([[0.0, 0.5, 1.0, 2.0, 4.0], 10.0 ** np.arange(1, 4)])
each_degree = pytest.mark.parametrize("degrees", DEGREES_OF_FREEDOM)


def density(residual, covariance, variances, degrees):
    return log_scale_mixture_density(*map(np.asarray, (residual, covariance, variances)), degrees)


@each_degree
def test_without_uncertainty_it_is_the_student_t_density(degrees):
    n = len(FAR)
    found = density(FAR[:, None], np.zeros((n, 1, 1)), np.full((n, 1), 4.0), degrees)
    np.testing.assert_allclose(found, stats.t.logpdf(FAR, degrees, scale=2.0), atol=1e-4)
    np.testing.assert_allclose(found[:6], stats.t.logpdf(FAR[:6], degrees, scale=2.0), atol=1e-6)


@pytest.mark.parametrize("degrees", [2.5, 10.0])
@pytest.mark.parametrize("sd", [0.1, 3.0])
def test_convolution_with_a_gaussian(degrees, sd):
    for residual in (0.0, 1.5, 8.0):
        exact = quad(
            lambda f, r=residual: stats.norm.pdf(f, 0.0, sd) * stats.t.pdf(r - f, degrees),
            -12.0 * sd,
            12.0 * sd,
            points=[0.0, min(residual, 11.0 * sd)],
            limit=200,
        )[0]
        found = density([[residual]], [[[sd**2]]], [[1.0]], degrees)
        assert found[0] == pytest.approx(np.log(exact), abs=1e-6)


def test_several_outputs_share_their_scale():
    rng = np.random.default_rng(0)
    variances = np.array([0.5, 2.0, 1.0])
    residual = 2.0 * rng.standard_normal((4, 3))
    found = density(residual, np.zeros((4, 3, 3)), np.tile(variances, (4, 1)), 4.0)
    exact = stats.multivariate_t(shape=np.diag(variances), df=4.0).logpdf(residual)
    np.testing.assert_allclose(found, exact, atol=1e-7)
    root = rng.standard_normal((3, 3))
    covariance = root @ root.T
    found = density(residual, np.tile(covariance, (4, 1, 1)), np.tile(variances, (4, 1)), 4.0)
    weights, factors = noise_scales(4.0)
    parts = [
        stats.multivariate_normal(np.zeros(3), covariance + u * np.diag(variances)).pdf(residual)
        for u in factors
    ]
    np.testing.assert_allclose(found, np.log(weights @ np.array(parts)), atol=1e-9)
