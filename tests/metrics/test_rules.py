"""Scoring rules against their definitions, by quadrature and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from skbayesnn.metrics import crps_gaussian, crps_samples, interval_score, log_density_gaussian

RNG = np.random.default_rng(0)
Y, MEAN, STD = RNG.normal(size=5) * 3, RNG.normal(size=5), RNG.uniform(0.1, 3.0, 5)


def crps_by_quadrature(cdf, y, low, high):
    """The integral of ``(F(x) - 1{x >= y})^2``."""
    below = quad(lambda x: cdf(x) ** 2, low, y, epsabs=1e-12, limit=200)[0]
    return below + quad(lambda x: (1.0 - cdf(x)) ** 2, y, high, epsabs=1e-12, limit=200)[0]


def test_log_density():
    assert_allclose(log_density_gaussian(Y, MEAN, STD), norm.logpdf(Y, MEAN, STD), rtol=1e-12)


@pytest.mark.parametrize("y", [-4.0, 0.3, 1.0, 20.0])
def test_crps_of_a_gaussian(y):
    expected = crps_by_quadrature(norm(1.0, 2.0).cdf, y, -40.0, 60.0)
    assert_allclose(crps_gaussian([y], [1.0], [2.0]), expected, rtol=1e-8)


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=8),
    st.floats(-100, 100),
    st.sampled_from([0.0, 1e6]),
)
def test_crps_of_draws(draws, y, offset):
    """Against all pairs, and against the distribution function, which is a staircase."""
    draws, m = np.array(draws), len(draws)
    apart = np.mean(np.abs(draws - y))
    pairs = np.sum(np.abs(draws[:, None] - draws))
    score = crps_samples([y + offset], [draws + offset])[0]
    assert_allclose(score, apart - 0.5 * pairs / m**2, atol=1e-7)
    knots = np.sort(np.append(draws, y))
    heights = np.mean(draws <= knots[:-1, None], axis=1)
    stairs = np.sum(np.diff(knots) * (heights - (knots[:-1] >= y)) ** 2)
    assert_allclose(score, stairs, atol=1e-7)
    if m > 1:
        fair = crps_samples([y + offset], [draws + offset], fair=True)[0]
        assert_allclose(fair, apart - 0.5 * pairs / (m * (m - 1)), atol=1e-7)


def test_fair_crps_is_unbiased():
    samples = np.random.default_rng(1).normal(1.0, 2.0, (40_000, 3))
    y = np.full(len(samples), 0.5)
    exact = crps_gaussian([0.5], [1.0], [2.0])[0]
    fair, plain = crps_samples(y, samples, fair=True), crps_samples(y, samples)
    assert abs(fair.mean() - exact) < 4 * fair.std() / np.sqrt(len(y))
    assert plain.mean() - exact > 0.1


def test_several_outputs_and_blocks_of_rows(monkeypatch):
    y = RNG.normal(size=(7, 2))
    samples = RNG.normal(size=(7, 2, 5))
    single = [[crps_samples(y[[i], o], samples[[i], o])[0] for o in range(2)] for i in range(7)]
    monkeypatch.setattr("skbayesnn.network._network.BLOCK_DOUBLES", 25)
    assert_allclose(crps_samples(y, samples), single, rtol=1e-12)
    mean, std = samples.mean(axis=-1), samples.std(axis=-1)
    assert crps_gaussian(y, mean, std).shape == (7, 2)
    interval = np.sort(samples[..., :2])
    by_output = [interval_score(y[:, o], interval[:, o]) for o in range(2)]
    assert_allclose(interval_score(y, interval), np.transpose(by_output))


def test_interval_score():
    interval = [[0.0, 2.0]] * 4
    scores = interval_score([-0.5, 0.0, 1.0, 3.0], interval, coverage=0.9)
    assert_allclose(scores, [2.0 + 20.0 * 0.5, 2.0, 2.0, 2.0 + 20.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crps_gaussian([1.0], [1.0, 2.0], [1.0]), r"mean must have shape \(1,\) for"),
        (lambda: crps_gaussian([1.0], [1.0], [0.0]), "std must be positive everywhere"),
        (lambda: log_density_gaussian([np.nan], [1.0], [1.0]), "y_true contains NaN"),
        (lambda: log_density_gaussian(1.0, 1.0, 1.0), "y_true must be an array"),
        (lambda: crps_samples([1.0], [1.0]), r"samples must have shape \(1, 'n_draws'\)"),
        (lambda: crps_samples([1.0], [[1.0]], fair=True), "at least 2 draws, got 1"),
        (lambda: interval_score([1.0], [[2.0, 1.0]]), "lies above its upper end"),
        (lambda: interval_score([1.0], [[1.0, 2.0, 3.0]]), r"interval must have shape \(1, 2\)"),
        (lambda: interval_score([1.0], [[1.0, 2.0]], coverage=1.0), "coverage must lie between"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
