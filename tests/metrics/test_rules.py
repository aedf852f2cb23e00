"""Scores and measures of calibration against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from skbayesnn.metrics import interval_coverage
from skbayesnn.metrics._scorers import _crps


@pytest.mark.parametrize("y", [-4.0, 0.3, 1.0, 20.0])
def test_crps_of_a_gaussian(y):
    """The integral of ``(F(x) - 1{x >= y})^2``."""
    cdf = norm(1.0, 2.0).cdf
    below = quad(lambda x: cdf(x) ** 2, -40.0, y, epsabs=1e-12, limit=200)[0]
    above = quad(lambda x: (1.0 - cdf(x)) ** 2, y, 60.0, epsabs=1e-12, limit=200)[0]
    assert_allclose(_crps(norm([1.0], [2.0]), [y]), below + above, rtol=1e-8)


def test_coverage():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    interval = np.column_stack([np.full(4, 1.0), np.full(4, 2.5)])
    assert interval_coverage(y, interval) == 0.5
    assert interval_coverage(y, interval, sample_weight=[1, 2, 3, 0]) == pytest.approx(5 / 6)
    both = np.stack([interval, interval + 2.0], axis=1)
    assert interval_coverage(np.column_stack([y, y]), both) == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interval_coverage([1.0], [[0, 2]], sample_weight=[0]), "must not be negative"),
        (lambda: interval_coverage([1.0], [[0, 2]], sample_weight=[1, 1]), r"shape \(1,\)"),
        (lambda: interval_coverage([np.nan], [[1.0, 2.0]]), "y_true contains NaN"),
        (lambda: interval_coverage(1.0, [[1.0, 2.0]]), "y_true must be an array"),
        (lambda: interval_coverage([1.0], [[2.0, 1.0]]), "lies above its upper end"),
        (lambda: interval_coverage([1.0], [[1.0, 2.0, 3.0]]), r"interval must have shape \(1, 2\)"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
