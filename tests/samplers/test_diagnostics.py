import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from skbayesnn.samplers import bulk_ess, effective_sample_size, r_hat, tail_ess

STORED = json.loads((Path(__file__).parents[1] / "reference" / "diagnostics.json").read_text())


def autoregressive(rho, normal):
    """Stationary AR(1) chains of unit variance along the second axis."""
    x = normal.copy()
    for t in range(1, x.shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1.0 - rho**2) * normal[:, t]
    return x


def chains_of_ar1(rho, n_chains, n_draws, *more, seed=0):
    normal = np.random.default_rng(seed).standard_normal((n_chains, n_draws, *more))
    return autoregressive(rho, normal)


def reproducible_normal(shape):
    """Normal numbers that need no library's generator: a linear congruential one, inverted."""
    state, uniform = 12345, []
    for _ in range(np.prod(shape)):
        state = (1103515245 * state + 12345) % 2**31
        uniform.append((state + 0.5) / 2**31)
    return ndtri(np.reshape(uniform, shape))


def stored_draws(case):
    x = autoregressive(case["rho"], reproducible_normal((4, 1000)))
    x = x * np.array(case["scale"])[:, None] + np.array(case["shift"])[:, None]
    return np.sinh(2.0 * x) if case["sinh"] else x


@pytest.mark.parametrize("name", STORED["cases"])
def test_against_another_program(name):
    case = STORED["cases"][name]
    x = stored_draws(case)
    np.testing.assert_allclose(r_hat(x), case["r_hat"], rtol=1e-12)
    # autocovariances over n or n - 1 (n = 500), and one more term where the sum is cut off
    np.testing.assert_allclose(effective_sample_size(x), case["ess"], rtol=0.008)
    np.testing.assert_allclose(bulk_ess(x), case["bulk_ess"], rtol=0.008)
    np.testing.assert_allclose(tail_ess(x), case["tail_ess"], rtol=0.008)


@pytest.mark.parametrize("rho", [0.5, 0.97], ids=str)
def test_autoregressive_chains(rho):
    n_sets, n_chains, n_draws = 200, 4, 1000
    x = chains_of_ar1(rho, n_chains, n_draws, n_sets)
    expected = n_chains * n_draws * (1.0 - rho) / (1.0 + rho)
    ess = effective_sample_size(x)
    assert ess.shape == (n_sets,)
    # cutting the sum off where it drowns in noise leaves a bias of up to 3 per cent
    error = np.std(ess) / np.sqrt(n_sets)
    assert abs(np.mean(ess) - expected) < 0.03 * expected + 4.0 * error


def test_antithetic_chains_count_for_more_than_independent_draws():
    x = chains_of_ar1(-0.5, 4, 1000, 20)
    ess = effective_sample_size(x)
    assert np.all(ess > 4000)
    # (1 - rho) / (1 + rho) = 3 times as many, and a bias of 9 per cent as the sum is so small
    assert abs(np.mean(ess) / 12000 - 1.0) < 0.09 + 4.0 * np.std(ess) / 12000 / np.sqrt(20)
    alternating = np.tile([1.0, -1.0], (4, 500)) + 1e-3 * x[..., 0]
    limit = 4000 * np.log10(4000)  # however negative the correlation
    np.testing.assert_allclose(effective_sample_size(alternating), limit, rtol=1e-12)


@pytest.mark.parametrize(
    "transform", [np.exp, np.arctan, lambda x: 3e5 - 1e4 * x], ids=["exp", "arctan", "linear"]
)
def test_ranks_do_not_see_monotone_transformations(transform):
    x = chains_of_ar1(0.7, 4, 200)
    np.testing.assert_allclose(bulk_ess(transform(x)), bulk_ess(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("shift", "least", "largest_ess"), [(0.5, 1.02, 400), (1.0, 1.08, 30), (10.0, 1.4, 12)], ids=str
)
def test_r_hat_of_chains_in_different_places(shift, least, largest_ess):
    x = np.random.default_rng(0).standard_normal((4, 1000))
    x[1] += shift  # a variance of 3/14 shift^2 between halves of chains
    assert r_hat(x) > least
    assert bulk_ess(x) < largest_ess


def test_r_hat_of_chains_of_different_widths():
    x = np.random.default_rng(0).standard_normal((4, 1000))
    assert r_hat(x) < 1.01
    x[1] *= 4.0  # means agree, only the folded draws tell
    assert r_hat(x) > 1.1
    assert bulk_ess(x) > 1000
    assert tail_ess(x) < 200


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6], ids=str)
def test_quantities_that_never_change(value):
    x = np.full((4, 100), value)
    assert r_hat(x) == 1.0
    assert bulk_ess(x) == tail_ess(x) == effective_sample_size(x) == 400.0


def test_chains_that_stand_still_in_different_places():
    x = np.repeat(np.arange(4.0), 100).reshape(4, 100)
    assert r_hat(x) > 1e6
    assert bulk_ess(x) < 5


@pytest.mark.parametrize("function", [r_hat, effective_sample_size, bulk_ess, tail_ess])
def test_every_quantity_by_itself(function):
    x = chains_of_ar1(0.6, 3, 101, 2, 3)
    x[..., 1, 2] = 7.0
    together = function(x)
    assert together.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = function(x[(..., *i)])
        assert np.shape(alone) == ()
        np.testing.assert_allclose(together[i], alone, rtol=1e-12)
    unchanged = x.copy()
    function(x)
    np.testing.assert_array_equal(x, unchanged)


@pytest.mark.parametrize("function", [r_hat, effective_sample_size, bulk_ess, tail_ess])
def test_order_of_chains_and_sign_do_not_matter(function):
    x = chains_of_ar1(0.6, 4, 200)
    np.testing.assert_allclose(function(x[[2, 0, 3, 1]]), function(x), rtol=1e-12)
    if function is not tail_ess:  # whose quantiles belong to the lower side
        np.testing.assert_allclose(function(-x), function(x), rtol=1e-12)
