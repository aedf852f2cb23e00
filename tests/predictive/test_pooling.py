"""Means under input-dependent noise that are pooled with those under constant noise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.inference import DensePrecision
from skbayesnn.network import Network
from skbayesnn.predictive import Ensemble, GaussianNoise, Member
from skbayesnn.predictive._combination import Pooled

pytestmark = pytest.mark.usefixtures("laplace")

NETWORK = Network((1, 2))


def member(rng, variances, pooled_with=None):
    """A linear model of two outputs with some posterior and noise."""
    root = rng.standard_normal((4, 8))
    theta, precision = rng.standard_normal(4), DensePrecision(root @ root.T)
    noise = GaussianNoise(variances[None])
    if pooled_with is None:
        return Member(NETWORK, theta, precision, noise)
    return Pooled(NETWORK, theta, precision, noise, others=pooled_with)


@pytest.fixture
def three(rng):
    """A pooled member, the same one by itself, and what it is pooled with."""
    one, other = (member(rng, rng.uniform(0.1, 2.0, 2)) for _ in range(2))
    others = Ensemble((one, other), (np.array([0.3]), np.array([0.7])))
    pooled = member(rng, np.array([0.5, 1.5]), others)
    plain = Member(pooled.network, pooled.theta, pooled.precision, pooled.noise)
    return pooled, plain, others


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_mean_has_the_smallest_variance_of_independent_errors(three, rng):
    pooled, plain, others = three
    X = rng.standard_normal((20, 1))
    own = Ensemble((plain,), (np.ones(1),)).moments(X)
    theirs = others.moments(X)
    precisions = [1.0 / np.diagonal(c, axis1=1, axis2=2) for _, c in (own, theirs)]
    expected = (precisions[0] * own[0] + precisions[1] * theirs[0]) / sum(precisions)
    assert_allclose(pooled.outputs(X)[0], expected, rtol=1e-12)


def test_all_of_the_protocol_has_the_same_mean_and_the_error_bars_of_the_network(three, rng):
    pooled, plain, _ = three
    X, y = rng.standard_normal((5, 1)), rng.standard_normal((5, 2))
    mean = pooled.outputs(X)
    for found in (pooled.moments(X)[0], pooled.marginals(X, np.ones(1))[0].means):
        assert_allclose(found, mean, rtol=1e-12)
    assert_allclose(pooled.whitened(X)[0], mean[0], rtol=1e-12)
    assert_allclose(pooled.moments(X)[1], plain.moments(X)[1], rtol=1e-12)
    shifted = y - mean[0] + plain.outputs(X)[0]
    assert_allclose(pooled.log_densities(X, y), plain.log_densities(X, shifted), rtol=1e-12)
    draws = pooled.draw(X, rng, 40_000)
    error = np.sqrt(np.diagonal(plain.moments(X)[1][0], axis1=1, axis2=2) / 40_000)
    assert np.all(np.abs(draws.mean(axis=0) - mean[0]) < 4.5 * error)


def test_chosen_noise_pools_means_and_noise_asked_for_does_not(rng):
    X = rng.uniform(-1, 1, (150, 1))
    y = np.sin(3 * X[:, 0]) + np.where(X[:, 0] > 0, 1.0, 0.05) * rng.standard_normal(150)
    options = {"hidden_layer_sizes": (4,), "n_restarts": 1, "random_state": 0}
    chosen = EvidenceMLPRegressor(**options).fit(X, y)
    asked = EvidenceMLPRegressor(noise="input_dependent", **options).fit(X, y)
    constant = EvidenceMLPRegressor(noise="constant", **options).fit(X, y)
    assert chosen.noise_model_ == "input_dependent"
    assert any(isinstance(part, Pooled) for part in chosen._ensemble.parts)
    assert not any(isinstance(part, Pooled) for part in asked._ensemble.parts)
    # where noise is small the pooled mean is that of the pair, elsewhere it moves to the other
    quiet, loud = np.array([[-0.5]]), np.array([[0.7]])
    share = [
        (chosen.predict(x) - asked.predict(x)) / (constant.predict(x) - asked.predict(x))
        for x in (quiet, loud)
    ]
    assert share[0] < 0.1 < share[1]
