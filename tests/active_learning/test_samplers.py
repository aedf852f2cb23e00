from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import rel_entr
from scipy.stats import norm

from skbayesnn.active_learning import information_gain
from skbayesnn.active_learning._mixtures import indicator_information, spread_information
from tests.active_learning.exact import gaussian_information, table_information
from tests.active_learning.fitted import candidates, sampled

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


def integral(function, means, sds):
    """Over the line, between edges near every component."""
    edges = np.unique(np.concatenate([means + k * sds for k in (-12, -4, -1, 0, 1, 4, 12)]))
    return sum(quad(function, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairwise(edges))


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0, 3000.0])
def test_information_about_the_component(spread):
    rng = np.random.default_rng(0)
    means, sds = spread * rng.standard_normal(5), rng.uniform(0.5, 2.0, 5)
    weights = rng.dirichlet(np.ones(5))

    def integrand(y):
        densities = norm.pdf(y, means, sds)
        densities[densities < 1e-300] = 0.0
        mixed = weights @ densities
        return np.sum(weights * rel_entr(densities, np.maximum(mixed, 1e-300)))

    exact = integral(integrand, means, sds)
    assert_allclose(spread_information(means, sds, weights), exact, rtol=1e-7, atol=1e-9)


def test_draws_that_lie_far_apart():
    """Each is recognised at once; with hardly any noise they are widened to fit the grid."""
    means = np.array([0.0, 1.0, 5.0, 1e3])
    weights = np.full(4, 0.25)
    for sd in (1e-2, 1e-12):
        assert_allclose(spread_information(means, np.full(4, sd), weights), np.log(4), rtol=1e-9)


def test_information_about_the_mixture():
    mixtures = [
        (np.array([0.0, 1.0]), np.array([0.5, 1.0]), np.array([0.3, 0.7])),
        (np.array([0.5]), np.array([2.0]), np.array([1.0])),
    ]
    P = np.array([0.4, 0.6])

    def integrand(y):
        p = [w @ norm.pdf(y, m, s) for m, s, w in mixtures]
        return sum(P[i] * p[i] * np.log(p[i] / (P @ p)) for i in range(2) if p[i] > 0)

    exact = integral(integrand, np.array([0.0, 0.5, 1.0]), np.array([0.5, 1.5, 1.0]))
    assert_allclose(indicator_information(mixtures, P), exact, rtol=1e-8)


@pytest.mark.parametrize("noise", ["constant", "input_dependent"])
def test_total_gain_of_regression(noise):
    model, X = sampled("one", noise), candidates(3)
    gains = information_gain(model, X)
    rows = model._X_scaling.transform(X)
    f = model._activations(rows, False)[0]
    scales = np.broadcast_to(model._drawn_noise.scales(rows), f.shape)
    for row, gain in enumerate(gains):
        means, sds = f[:, row, 0], scales[:, row, 0]
        y = np.linspace(means.min() - 12 * sds.max(), means.max() + 12 * sds.max(), 20_001)
        density = norm.pdf(y[:, None], means, sds).mean(axis=1)
        density = np.maximum(density, 1e-300)
        entropy = -np.sum(density * np.log(density)) * (y[1] - y[0])
        assert_allclose(gain, entropy - np.mean(norm.entropy(0, sds)), rtol=1e-8)
    assert np.all(gains > 0)


@pytest.mark.parametrize("task", ["one", "two"])
@pytest.mark.parametrize("noise", ["constant", "input_dependent"])
def test_gains_of_regression_by_moments_of_the_draws(task, noise):
    model, X = sampled(task, noise), candidates()
    rows = model._X_scaling.transform(np.vstack([X, X_INTEREST]))
    networks = model._activations(rows, False)[0]
    p, n = networks.shape[2], len(X)
    S = np.cov(networks.reshape(len(networks), -1).T, bias=True)
    noise = np.broadcast_to(model._drawn_noise.variances(rows), networks.shape).mean(axis=0).ravel()
    noise[n * p :] = 0.0
    S = S + np.diag(noise)
    points = [list(range((n + u) * p, (n + u + 1) * p)) for u in range(3)]
    rows = [list(range(row * p, (row + 1) * p)) for row in range(n)]
    marginal = [[gaussian_information(S, row, point) for point in points] for row in rows]
    joint = [gaussian_information(S, row, list(range(n * p, (n + 3) * p))) for row in rows]
    gains = {
        kind: information_gain(model, X, X_INTEREST, kind=kind) for kind in ("joint", "marginal")
    }
    assert_allclose(gains["marginal"], marginal, rtol=1e-7)
    assert_allclose(gains["joint"], joint, rtol=1e-6)
    mean = information_gain(model, X, X_INTEREST, interest_weight=WEIGHT)
    assert_allclose(mean, np.array(marginal) @ WEIGHT / WEIGHT.sum(), rtol=1e-7)


def test_total_gain_of_several_outputs():
    model, X = sampled("two"), candidates()
    f = model._activations(model._X_scaling.transform(X), False)[0]
    noise = model._noise_variances
    expected = [
        0.5 * np.linalg.slogdet(np.cov(f[:, row].T, bias=True) + np.diag(noise.mean(axis=0)))[1]
        - 0.5 * np.mean(np.sum(np.log(noise), axis=1))
        for row in range(len(X))
    ]
    assert_allclose(information_gain(model, X), expected, rtol=1e-9)


@pytest.mark.parametrize("task", ["binary", "three"])
def test_gains_of_classification(task):
    model, X = sampled(task), candidates()
    n_classes = len(model.classes_)
    a = model._activations(model._X_scaling.transform(np.vstack([X, X_INTEREST])), False)[0]
    p = model._most_probable(a)
    marginal = information_gain(model, X, X_INTEREST, kind="marginal")
    total = information_gain(model, X)
    for row in range(len(X)):
        for point in range(3):
            table = np.zeros((n_classes, n_classes))
            for draw in p:
                table += np.outer(draw[row], draw[len(X) + point]) / len(p)
            assert_allclose(marginal[row, point], table_information(table), rtol=1e-8, atol=1e-15)
        # the draw as the other variable
        table = p[:, row] / len(p)
        assert_allclose(total[row], table_information(table), rtol=1e-8)
    mean = information_gain(model, X, X_INTEREST, interest_weight=WEIGHT)
    assert_allclose(mean, marginal @ WEIGHT / WEIGHT.sum(), rtol=1e-10)
    assert np.all(marginal <= total[:, None])


def test_joint_gain_needs_draws():
    with pytest.raises(ValueError, match="draw at least 410"):
        information_gain(sampled("one"), candidates(), candidates(41), kind="joint")
