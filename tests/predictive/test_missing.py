"""The normal distribution of inputs, and ensembles that average over what is missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.network import Network
from skbayesnn.predictive import Draws, Ensemble, FillingEnsemble, InputGaussian, Noise

RNG = np.random.default_rng(0)
MIX = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.5, 2.0]])
Z = RNG.standard_normal((60, 3)) @ MIX.T + [1.0, -2.0, 5e3]
WEIGHT = RNG.integers(1, 4, 60).astype(float)


def log_likelihood(gaussian, Z, weight):
    """Of the values that are known."""
    total = 0.0
    for z, w in zip(Z, weight, strict=True):
        o = ~np.isnan(z)
        C, apart = gaussian.covariance[np.ix_(o, o)], z[o] - gaussian.mean[o]
        total -= 0.5 * w * (apart @ np.linalg.solve(C, apart) + np.linalg.slogdet(C)[1])
    return total


def with_gaps(share=0.3, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(Z.shape) < share, np.nan, Z)


def test_complete_rows():
    found = InputGaussian.fitted(Z, WEIGHT)
    assert_allclose(found.mean, np.average(Z, axis=0, weights=WEIGHT), rtol=1e-12)
    expected = np.cov(Z.T, aweights=WEIGHT, ddof=0)
    assert_allclose(found.covariance, expected, rtol=1e-6, atol=1e-7)


def test_monotone_gaps_have_a_closed_form():
    """The regression of the second column on the first, from the rows that have both."""
    two = Z[:, :2].copy()
    two[40:, 1] = np.nan
    found = InputGaussian.fitted(two, np.ones(60))
    first, both = np.cov(two[:, 0], ddof=0), np.cov(two[:40].T, ddof=0)
    slope = both[0, 1] / both[0, 0]
    apart = two[:, 0].mean() - two[:40, 0].mean()
    assert found.mean[1] == pytest.approx(two[:40, 1].mean() + slope * apart, rel=1e-6)
    assert found.covariance[0, 1] == pytest.approx(slope * first, rel=1e-5)
    left = both[1, 1] - slope**2 * both[0, 0]
    assert found.covariance[1, 1] == pytest.approx(left + slope**2 * first, rel=1e-5)


def test_it_is_the_most_likely():
    rows = with_gaps()
    found = InputGaussian.fitted(rows, WEIGHT)
    best = log_likelihood(found, rows, WEIGHT)
    for _ in range(20):
        change = 0.05 * RNG.standard_normal((4, 3))
        stretch = np.eye(3) + change[1:]
        other = InputGaussian(found.mean + change[0], stretch @ found.covariance @ stretch.T)
        assert log_likelihood(other, rows, WEIGHT) < best


def test_units_and_repetition_do_not_matter():
    rows = with_gaps()
    found = InputGaussian.fitted(rows, WEIGHT)
    counts = WEIGHT.astype(int)
    repeated = InputGaussian.fitted(np.repeat(rows, counts, axis=0), np.ones(counts.sum()))
    assert_allclose(repeated.covariance, found.covariance, rtol=1e-8)
    units = np.array([1e-6, 1.0, 1e6])
    scaled = InputGaussian.fitted(rows * units, WEIGHT)
    assert_allclose(scaled.covariance, found.covariance * units[:, None] * units, rtol=1e-6)


def test_columns_that_are_constant_or_equal():
    rows = np.column_stack([Z[:, 0], Z[:, 0], np.full(60, 3.0)])
    rows[:10, 1], rows[5:20, 2] = np.nan, np.nan
    found = InputGaussian.fitted(rows, np.ones(60))
    filled = found.filled(rows, np.zeros((1, 3)))
    assert_allclose(filled[:, 1], Z[:, 0], atol=1e-3)
    assert_allclose(filled[:, 2], 3.0, atol=1e-3)


def test_draws_have_the_conditional_distribution():
    gaussian = InputGaussian(np.array([1.0, 2.0, 3.0]), MIX @ MIX.T)
    rows = np.tile([0.5, np.nan, np.nan], (40_000, 1))
    drawn = gaussian.filled(rows, RNG.standard_normal(rows.shape))[:, 1:]
    C = gaussian.covariance
    slopes = C[1:, :1] / C[0, 0]
    left = C[1:, 1:] - slopes @ C[:1, 1:]
    assert_allclose(drawn.mean(axis=0), gaussian.mean[1:] + slopes[:, 0] * -0.5, atol=0.05)
    assert_allclose(np.cov(drawn.T), left, atol=0.1)
    assert np.all(gaussian.filled(rows, np.ones((1, 3)))[:, 0] == 0.5)


def test_points():
    for d in (1, 3, 12):
        points = InputGaussian(np.zeros(d), np.eye(d)).points()
        assert_allclose(points.sum(axis=0), 0.0, atol=1e-12)
        n = min(d, 8)
        assert_allclose(points[:, :n].T @ points[:, :n] / len(points), np.eye(n), atol=1e-12)


def test_linear_networks_have_known_moments():
    """Mean and variance of a linear function of a normal distribution, noise added."""
    network, inputs = Network((3, 1)), InputGaussian(np.array([1.0, 2.0, 3.0]), MIX @ MIX.T)
    theta = np.array([[0.5, -1.0, 2.0, 0.3], [0.1, 0.2, 0.3, -1.0]])
    draws = Draws(network, theta, Noise(np.array([[0.04], [0.09]])))
    ensemble = FillingEnsemble((draws,), (np.array([0.25, 0.75]),), inputs)
    X = np.array([[1.0, 0.0, 2.0], [np.nan, 0.5, np.nan], [0.3, np.nan, 1.0], [np.nan] * 3])
    mean, covariance = ensemble.moments(X)
    for row, m, c in zip(X, mean[:, 0], covariance[:, 0, 0], strict=True):
        gap = np.isnan(row)
        at = inputs.filled(row[None], np.zeros((1, 3)))[0]
        outputs = theta[:, :3] @ at + theta[:, 3]
        left = np.zeros((3, 3))
        if gap.any():
            left[np.ix_(gap, gap)] = inputs._conditional(gap)[1]
        spread = np.einsum("mi,ij,mj->m", theta[:, :3], left, theta[:, :3])
        weights = np.array([0.25, 0.75])
        expected = weights @ outputs
        assert m == pytest.approx(expected, rel=1e-10)
        total = weights @ (spread + [0.04, 0.09] + (outputs - expected) ** 2)
        assert c == pytest.approx(total, rel=1e-9)
    assert_allclose(ensemble.mean(X), mean, rtol=1e-12)
    whole = Ensemble(ensemble.parts, ensemble.weights)
    assert_array_equal(ensemble.moments(X[:1])[0], whole.moments(X[:1])[0])


def test_curved_networks_against_simulation():
    network, inputs = Network((3, 4, 1), "tanh"), InputGaussian(np.zeros(3), MIX @ MIX.T)
    theta = RNG.standard_normal((1, network.n_weights))
    draws = Draws(network, theta, Noise(np.array([[0.25]])))
    ensemble = FillingEnsemble((draws,), (np.ones(1),), inputs)
    row = np.array([[0.4, np.nan, np.nan]])
    filled = inputs.filled(np.repeat(row, 100_000, axis=0), RNG.standard_normal((100_000, 3)))
    f = draws.outputs(filled)[0, :, 0]
    mean, covariance = ensemble.moments(row)
    assert mean[0, 0] == pytest.approx(f.mean(), abs=0.05 * f.std())
    assert covariance[0, 0, 0] == pytest.approx(f.var() + 0.25, rel=0.05)
    y = np.array([[0.5]])
    density = np.mean(np.exp(-0.5 * (y - f) ** 2 / 0.25) / np.sqrt(2 * np.pi * 0.25))
    assert ensemble.log_density(row, y)[0] == pytest.approx(np.log(density), abs=0.1)
    quantiles = ensemble.quantiles(row, [0.2, 0.7])
    assert_allclose([ensemble.cdf(row, q)[0, 0] for q in quantiles], [0.2, 0.7], rtol=1e-9)
