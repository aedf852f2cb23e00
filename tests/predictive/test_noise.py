"""Noise of several networks at once, as predictions see it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from skbayesnn.inference import DensePrecision
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Posterior, squared_scales, weight_groups
from skbayesnn.predictive import GaussianNoise, Member, NoiseNetworks, StudentTNoise, left_out

X = np.random.default_rng(0).standard_normal((5, 2))
SQUARED_SCALES = np.array([[0.5, 2.0], [1.0, 0.1], [3.0, 0.7]])  # of three networks
DEGREES = np.array([2.5, 5.0, 20.0])
KINDS = ["gaussian", "student_t", "networks", "uncertain"]

each_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind):
    """Noise of three networks, or of one whose log precision is uncertain."""
    if kind == "gaussian":
        return GaussianNoise(SQUARED_SCALES)
    if kind == "student_t":
        return StudentTNoise(SQUARED_SCALES, degrees_of_freedom=DEGREES)
    network, rng = Network((2, 3, 2)), np.random.default_rng(1)
    m = 1 if kind == "uncertain" else 3
    precision = DensePrecision(30.0 * np.eye(network.n_weights)) if m == 1 else None
    theta = rng.standard_normal((m, network.n_weights))
    return NoiseNetworks(SQUARED_SCALES[:m], network, theta, (-2.0, 2.0), precision)


def residuals(noise, seed=2):
    shape = len(noise.squared_scales), len(X), 2
    return np.random.default_rng(seed).standard_normal(shape)


def covariances(noise):
    root = np.random.default_rng(3).standard_normal((len(noise.squared_scales), len(X), 2, 2))
    return root @ np.swapaxes(root, -1, -2)


@pytest.mark.parametrize("kind", KINDS[:3])  # those of drawn networks
def test_certain_outputs_have_no_covariance(kind):
    noise = make(kind)
    r, scales = residuals(noise), noise.scales(X)
    certain = noise.log_density(r, np.zeros((*r.shape, 2)), X)
    found = noise.scaled_log_density(r / scales, np.log(scales))
    assert_allclose(certain, found, rtol=1e-12, atol=1e-6)
    assert_allclose(certain, noise.pointwise(r, np.zeros_like(r), 0.0, X)[0], atol=1e-6)


@each_kind
def test_density_is_that_of_the_mixture(kind):
    noise = make(kind)
    r, C = residuals(noise), covariances(noise)
    shares, variances = noise.mixture(X)
    assert shares.shape[0] == len(r)
    assert shares.shape[1] <= noise.n_gaussians
    assert_allclose(shares.sum(axis=1), 1.0)
    variances = np.broadcast_to(variances, (*shares.shape, len(X), 2))
    found = noise.log_density(r, C, X)
    for i, n in np.ndindex(len(r), len(X)):
        parts = [
            share * stats.multivariate_normal(cov=C[i, n] + np.diag(variance[n])).pdf(r[i, n])
            for share, variance in zip(shares[i], variances[i], strict=True)
        ]
        assert found[i, n] == pytest.approx(np.log(np.sum(parts)), abs=1e-9)


@each_kind
def test_variances_are_those_of_the_mixture(kind):
    noise = make(kind)
    shares, variances = noise.mixture(X)
    expected = np.sum(shares[..., None, None] * variances, axis=1)
    # few Gaussians leave out some of the far tails of Student-t noise
    assert_allclose(noise.variances(X), expected, rtol=0.02 if kind == "student_t" else 1e-12)


def test_typical_variances():
    assert_array_equal(make("networks").typical_variances, SQUARED_SCALES)
    factor = np.array([5.0, 5.0 / 3.0, 20.0 / 18.0])[:, None]
    assert_allclose(make("student_t").typical_variances, factor * SQUARED_SCALES)
    heavy = StudentTNoise(SQUARED_SCALES, degrees_of_freedom=np.array([1.0, 2.0, 3.0]))
    end = 1e3  # scales within which the variance is taken where there is none
    factor = [end / np.arctan(end) - 1.0, squared_scales(2.0), 3.0]
    assert_allclose(heavy.typical_variances / SQUARED_SCALES, np.transpose([factor, factor]))


# --- Student-t noise as a mixture ----------------------------------------------------------------

FAR = np.concatenate([[0.0, 0.5, 1.0, 2.0, 4.0], 10.0 ** np.arange(1, 4)])
each_degree = pytest.mark.parametrize("degrees", DEGREES_OF_FREEDOM)


def density(residual, covariance, variances, degrees):
    noise = StudentTNoise(np.asarray(variances)[:1], degrees_of_freedom=np.array([degrees]))
    return noise.log_density(np.asarray(residual)[None], np.asarray(covariance)[None], residual)[0]


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


# --- a log precision that is uncertain -----------------------------------------------------------

ROWS = np.array([[0.5], [2.0]])
SLOPE, BIAS, SD = 0.4, 1.0, 0.3  # of the log precision


def make_member(sd=SD, n_outputs=1, log_range=(-50.0, 50.0)):
    """A line whose log precision is a line, with uncertain weights of both."""
    network, k = Network((1, n_outputs)), 2 * n_outputs
    noise = NoiseNetworks(
        np.full((1, n_outputs), np.exp(-BIAS)),
        network=network,
        theta=np.repeat([SLOPE, BIAS], n_outputs)[None],
        log_range=log_range,
        precision=DensePrecision(np.eye(k) / sd**2),
    )
    precision = DensePrecision(25.0 * np.eye(k))
    return Member(network, np.repeat([2.0, 0.0], n_outputs), precision, noise)


def log_density(member, residual):
    """Of targets that are so far from the mean outputs."""
    return member.log_densities(ROWS, member.outputs(ROWS)[0] + residual)[0]


def log_precision(x, sd=SD):
    """Its mean and standard deviation."""
    return SLOPE * x + BIAS, sd * np.sqrt(1 + x**2)


@pytest.mark.parametrize("residual", [0.0, 1.0, -4.0])
def test_density_averages_over_the_log_precision(residual):
    member = make_member()
    _, (covariance,) = member.moments(ROWS)
    found = log_density(member, np.full((2, 1), residual))
    for i, x in enumerate(ROWS[:, 0]):
        centre, sd = log_precision(x)
        exact = quad(
            lambda g, i=i, centre=centre, sd=sd: (
                stats.norm.pdf(g, centre, sd)
                * stats.norm.pdf(residual, 0, np.sqrt(covariance[i, 0, 0] + np.exp(-g)))
            ),
            centre - 9 * sd,
            centre + 9 * sd,
        )[0]
        assert found[i] == pytest.approx(np.log(exact), abs=1e-3)


def test_mean_variance_of_the_noise():
    centre, sd = log_precision(ROWS)
    variances = make_member().noise.variances(ROWS)[0]
    assert_allclose(variances, np.exp(-centre + sd**2 / 2), rtol=1e-6)


def test_noise_stays_in_its_range():
    far = np.array([[1e5]])
    variances = make_member(log_range=(-3.0, 2.0)).noise.mixture(far)[1]
    assert_allclose([variances.min(), variances.max()], np.exp([-2.0, 3.0]))


def test_leave_one_out_has_the_uncertain_noise():
    y, network = 2.0 * ROWS + np.array([[0.1], [-3.0]]), Network((1, 1))
    groups = weight_groups(network, "single")
    posterior = Posterior(network, Gaussian.per_output(1), groups, ROWS, y, np.ones(2))
    uncertain, certain = (
        left_out(make_member(sd=sd), posterior, np.exp([BIAS])).log_density for sd in (SD, 1e-8)
    )
    assert uncertain[1] > certain[1] + 0.1  # a distant row is less of a surprise
