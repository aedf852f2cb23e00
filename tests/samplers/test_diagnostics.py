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
    x = autoregressive(0.6, np.random.default_rng(0).standard_normal((3, 101, 2, 3)))
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
