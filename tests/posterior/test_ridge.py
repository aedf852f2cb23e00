"""Regression on hidden units in units of the prior: inverses by Cholesky or by eigenvalues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.posterior import ridge


def system(n, width, scale=1.0, lead=(3, 2), seed=0):
    """Gram matrices ``(*lead, width, width)`` of rank ``min(n, width)``, and moments."""
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal((*lead, n, width))
    return np.swapaxes(z, -1, -2) @ z, rng.standard_normal((*lead, width))


@pytest.mark.parametrize("scale", [1.0, 3e3])
def test_both_ways_agree(scale, monkeypatch):
    gram, moment = system(30, 6, scale)
    by_cholesky = ridge(gram, moment, 30)
    monkeypatch.setattr("skbayesnn.posterior.likelihoods._output_layer.MIN_PIVOT", np.inf)
    for found, expected in zip(by_cholesky, ridge(gram, moment, 30), strict=True):
        assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.max(np.abs(expected)))


def test_matrices_do_not_feel_each_other():
    gram, moment = system(30, 6)
    gram[1, 0], gram[2, 1] = np.nan, 1e200 * np.eye(6)
    gram[0, 1] = -np.eye(6) * 5.0  # not positive definite
    together = ridge(gram, moment, 30)
    for index in np.ndindex(3, 2):
        if index != (1, 0):
            alone = ridge(gram[index][None], moment[index][None], 30)
            for a, b in zip(together, alone, strict=True):
                assert_array_equal(a[index], b[0])


def test_rank_below_width():
    gram, moment = system(3, 6, scale=1e7)
    _, inverse, log_det = ridge(gram, moment, 3)
    # three directions that the rows leave open, and three that they determine
    assert_allclose(np.trace(inverse, axis1=-2, axis2=-1), 3.0, rtol=1e-10)
    nonzero = np.linalg.eigvalsh(gram)[..., 3:]
    assert_allclose(log_det, np.sum(np.log1p(nonzero), axis=-1), rtol=1e-12)
