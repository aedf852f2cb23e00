"""Networks with the Gaussian posterior of the output layer given drawn hidden weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

from skbayesnn.network import forward, outputs
from skbayesnn.predictive import GaussianNoise, GivenHidden
from skbayesnn.predictive._combination import mixture_of_draws
from tests.posterior.joints import make_joint

N_DRAWN = 40_000
ERRORS = 4.5  # standard errors


def make_part(name="gaussian", hidden=(9,), n=5):
    """Make a part of three networks, its joint posterior and the positions."""
    joint, q = make_joint(name, hidden, n=n)
    hyper = joint.place(q).hyper
    noise = GaussianNoise(1.0 / joint.posterior.likelihood.precisions(hyper.beta))
    network, layers = joint.posterior.network, joint.output_layers(q)
    return GivenHidden(network, joint.mean_weights(q), noise, layers=layers), joint, q


def new_rows(part, n=4):
    return np.random.default_rng(9).standard_normal((n, part.network.layer_sizes[0]))


each_size = pytest.mark.parametrize("n", [5, 30])
each_depth = pytest.mark.parametrize("hidden", [(9,), (3, 4)])


@each_size
@each_depth
def test_moments_by_the_curvature_of_the_energy(n, hidden):
    part, joint, q = make_part(hidden=hidden, n=n)
    X, last = new_rows(part), part.network.slices[-1]
    f, covariances = part.moments(X)
    between = part.joint_covariances(X)
    n_outputs = part.network.n_outputs
    for i, theta in enumerate(part.theta):
        hyper = joint.place(q[i]).hyper
        S = np.linalg.inv(joint.posterior.hessian(theta, hyper)[last, last])
        trace = forward(part.network, theta, X)
        assert_allclose(f[i], trace.outputs, atol=1e-12)
        J = np.kron(trace.inputs[-1], np.eye(n_outputs)).reshape(len(X), n_outputs, -1)
        assert_allclose(covariances[i], J @ S @ np.swapaxes(J, 1, 2), atol=1e-9)
        exact = np.einsum("aok,kl,bol->oab", J, S, J)
        assert_allclose(between[i], exact, atol=1e-9)


@each_size
def test_density_is_that_of_the_mixture(n):
    part, *_ = make_part(n=n)
    X, ensemble = new_rows(part), mixture_of_draws([part])
    f, covariances = part.moments(X)
    sd = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1) + part.noise.squared_scales[:, None])
    y = np.random.default_rng(1).standard_normal((len(X), part.network.n_outputs))
    logs = norm.logpdf(y, f, sd)
    assert_allclose(
        ensemble.log_density(X, y), logsumexp(logs.sum(axis=-1), axis=0) - np.log(3), rtol=1e-10
    )
    assert_allclose(ensemble.cdf(X, y), norm.cdf(y, f, sd).mean(axis=0), rtol=1e-10)
    ((median),) = ensemble.quantiles(X, [0.5])
    assert_allclose(ensemble.cdf(X, median), 0.5, atol=1e-8)
    errors = np.full(y.shape, 0.3)
    logs = norm.logpdf(y, f, np.sqrt(sd**2 + 0.3))
    found = ensemble.log_density(X, y, errors)
    assert_allclose(found, logsumexp(logs.sum(axis=-1), axis=0) - np.log(3), rtol=1e-10)


@each_size
def test_drawn_functions_have_these_moments(n):
    """Laws of total expectation and of total variance, also for derivatives by the inputs."""
    part, *_ = make_part("gaussian_shared", n=n)
    X, ensemble, rng = new_rows(part), mixture_of_draws([part]), np.random.default_rng(2)
    f = ensemble.draw(X, rng, N_DRAWN)
    mean, covariance = ensemble.moments(X, "epistemic")
    assert_moments(f, mean, np.diagonal(covariance, axis1=1, axis2=2))
    assert_moments(
        ensemble.draw(X, rng, N_DRAWN, noisy=True),
        mean,
        np.diagonal(ensemble.moments(X)[1], axis1=1, axis2=2),
    )
    assert_moments(ensemble.draw_gradients(X, rng, N_DRAWN), *ensemble.gradient_moments(X))
    _, between = ensemble.joint_moments(X)
    products = (f[:, 0] - mean[0]) * (f[:, 1] - mean[1])
    error = products.std(axis=0) / np.sqrt(N_DRAWN)
    assert np.all(np.abs(products.mean(axis=0) - between[0, 1]) < ERRORS * error)
    total = np.diagonal(ensemble.moments(X)[1], axis1=1, axis2=2)
    assert_allclose(np.einsum("aao->ao", between), total, rtol=1e-10)


def assert_moments(drawn, mean, variance):
    squares = (drawn - mean) ** 2
    error = drawn.std(axis=0) / np.sqrt(N_DRAWN)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < ERRORS * error)
    error = squares.std(axis=0) / np.sqrt(N_DRAWN)
    assert np.all(np.abs(squares.mean(axis=0) - variance) < ERRORS * error)


def test_whitened_outputs():
    part, *_ = make_part()
    X = new_rows(part)
    mean, V = part.whitened(X)
    expected, covariance = mixture_of_draws([part]).moments(X, "epistemic")
    assert V.shape[-1] == part.n_unknowns
    assert_allclose(mean, expected)
    assert_allclose(np.sum(V**2, -1), np.diagonal(covariance, axis1=1, axis2=2), rtol=1e-10)
    assert_allclose(part.whitened(X[:2])[1], V[:2])  # the same functions at every call


def test_first_networks():
    part, *_ = make_part()
    X, two = new_rows(part), part.first(2)
    assert two.size == 2
    for some, all_of_them in zip(two.moments(X), part.moments(X), strict=True):
        assert_allclose(some, all_of_them[:2], rtol=1e-12)
    assert_allclose(two.outputs(X), outputs(part.network, part.theta[:2], X), rtol=1e-12)
