"""Noise of several networks at once, as predictions see it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skbayesnn.inference import DensePrecision
from skbayesnn.network import Network
from skbayesnn.posterior import squared_scales
from skbayesnn.predictive import GaussianNoise, NoiseNetworks, StudentTNoise

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


@each_kind
def test_certain_outputs_have_no_covariance(kind):
    noise = make(kind)
    r = residuals(noise)
    certain = noise.log_density(r, np.zeros((*r.shape, 2)), X)
    assert_allclose(certain, noise.log_density(r, None, X), rtol=1e-12, atol=1e-6)


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
