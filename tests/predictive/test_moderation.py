from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import entr, expit, softmax

from skbayesnn.predictive import softmax_information, softmax_slopes
from skbayesnn.predictive._moderation import (
    independent_softmax,
    moderated_sigmoid,
    moderated_softmax,
    sigmoid_variance,
)

MEANS = [-30.0, -8.0, -1.3, 0.0, 0.2, 4.0, 15.0, 100.0]
VARIANCES = [1e-6, 0.01, 0.5, 0.999, 1.001, 4.0, 50.0, 1e4]


def expectation(function, mean, variance):
    """Of a function of a Gaussian number, by adaptive quadrature between kinks of either scale."""
    sd = np.sqrt(variance)

    def integrand(x):
        z = (x - mean) / sd
        return function(x) * np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * sd)

    edges = np.concatenate([mean + sd * np.linspace(-12, 12, 25), np.linspace(-40, 40, 41)])
    edges = np.unique(edges[np.abs(edges - mean) <= 12.001 * sd])
    parts = [quad(integrand, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in pairwise(edges)]
    return sum(parts)


@pytest.mark.parametrize("variance", VARIANCES)
def test_sigmoid(variance):
    moments = []
    for mean in MEANS:
        p = expectation(expit, mean, variance)
        moments.append((p, expectation(lambda x, p=p: (expit(x) - p) ** 2, mean, variance)))
    given = np.array(MEANS), np.full(len(MEANS), variance)
    actual = np.column_stack([moderated_sigmoid(*given), sigmoid_variance(*given)])
    assert_allclose(actual, moments, rtol=0, atol=1e-10)


def test_softmax_of_two_classes_tells_as_much_as_the_sigmoid():
    """Moments, and the mutual information of the activation and a binary target."""

    def entropy(x):
        return entr(expit(x)) + entr(expit(-x))

    mean, variance = np.array([0.3, -2.0, 4.0]), np.array([0.5, 3.0, 20.0])
    means = np.column_stack([np.zeros(3), mean])
    covariances = np.zeros((3, 2, 2))
    covariances[:, 1, 1] = variance
    expected = []
    for case in zip(mean, variance, strict=True):
        p = expectation(expit, *case)
        expected.append(entr(p) + entr(1.0 - p) - expectation(entropy, *case))
    assert_allclose(softmax_information(means, covariances), expected, rtol=0, atol=1e-3)
    p, slopes = softmax_slopes(means, covariances)
    assert_allclose(p[:, 1], moderated_sigmoid(mean, variance), rtol=0, atol=1e-3)
    h = 1e-4
    upper, lower = (moderated_sigmoid(mean + step, variance) for step in (h, -h))
    assert_allclose(slopes[:, 1, 1], (upper - lower) / (2 * h), rtol=0, atol=1e-3)
    assert_allclose(slopes.sum(axis=1), 0.0, rtol=0, atol=1e-14)
    assert_allclose(slopes, np.swapaxes(slopes, 1, 2), rtol=0, atol=1e-15)


def test_sigmoid_keeps_its_identities():
    mean, variance = np.meshgrid(MEANS, [0.0, *VARIANCES])
    p = moderated_sigmoid(mean, variance)
    assert p.shape == mean.shape
    assert_allclose(p + moderated_sigmoid(-mean, variance), 1.0, rtol=1e-12)
    assert_allclose(p[0], expit(MEANS), rtol=1e-12)
    assert_array_equal(p > 0.5 + 1e-12, mean > 0)
    assert np.all(sigmoid_variance(mean, variance) >= 0)


def softmax_case(n_classes, sd, rng):
    root = rng.standard_normal((n_classes, n_classes))
    covariance = root @ root.T
    covariance *= sd**2 / np.mean(np.diag(covariance))
    return sd * rng.standard_normal(n_classes), covariance


@pytest.mark.parametrize(
    ("n_classes", "sd", "documented"),
    [
        (3, 2.0, 0.001),
        (6, 2.0, 0.002),
        (10, 2.0, 0.005),
        (3, 5.0, 0.002),
        (6, 5.0, 0.006),
        (10, 5.0, 0.012),
        (20, 2.0, 0.013),
        (40, 2.0, 0.013),
        (20, 5.0, 0.025),
        (40, 5.0, 0.025),
    ],
)
def test_softmax_against_monte_carlo(n_classes, sd, documented):
    rng = np.random.default_rng(n_classes)
    size = 200_000
    for _ in range(2):
        mean, covariance = softmax_case(n_classes, sd, rng)
        total, squares = np.zeros(n_classes), np.zeros(n_classes)
        for _ in range(4):
            draws = softmax(rng.multivariate_normal(mean, covariance, size // 4), axis=1)
            total += draws.sum(axis=0)
            squares += (draws**2).sum(axis=0)
        first = total / size
        std = np.sqrt(squares / size - first**2)
        p, p_std = moderated_softmax(mean[None], covariance[None])
        assert np.all(np.abs(p[0] - first) < documented + 4 * std / np.sqrt(size))
        # fewer points for many classes: at most 0.045 here
        assert_allclose(p_std[0], std, atol=0.02 if n_classes <= 10 else 0.05)


def test_softmax_of_many_classes():
    """Independent activations, with a common shift that changes nothing, against Monte Carlo."""
    rng, n_classes = np.random.default_rng(0), 60
    mean, sd = rng.standard_normal(n_classes), np.exp(rng.uniform(-1.0, 0.5, n_classes))
    relative = np.eye(n_classes) - 1.0 / n_classes
    variance = np.diagonal(relative @ (np.diag(sd**2) + 9.0) @ relative)
    p = softmax(mean + sd * rng.standard_normal((200_000, n_classes)), axis=1)
    found, spread = independent_softmax(mean[None], variance[None])
    assert_allclose(found.sum(), 1.0)
    assert_allclose(found[0], p.mean(axis=0), atol=0.003)
    assert_allclose(spread[0], p.std(axis=0), atol=0.003, rtol=0.2)  # of an approximation
