"""Regression on hidden units in units of the prior: inverses by Cholesky or by eigenvalues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn.posterior import ridge
from skbayesnn.posterior.likelihoods._output_layer import OutputLayer, Rows, integrated


def system(n, width, scale=1.0, lead=(3, 2), seed=0):
    """Gram matrices ``(*lead, width, width)`` of rank ``min(n, width)``, and moments."""
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal((*lead, n, width))
    return np.swapaxes(z, -1, -2) @ z, rng.standard_normal((*lead, width))


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_solution(n, scale):
    gram, moment = system(n, 6, scale)
    mean, inverse, log_det = ridge(gram, moment, n)
    B = gram + np.eye(6)
    assert_allclose(B @ inverse, np.broadcast_to(np.eye(6), B.shape), atol=1e-7)
    assert_allclose(inverse, np.swapaxes(inverse, -1, -2), rtol=1e-12, atol=1e-20)
    assert_allclose((B @ mean[..., None])[..., 0], moment, atol=1e-7)
    assert_allclose(log_det, np.linalg.slogdet(B)[1], rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 3e3])
def test_both_ways_agree(scale, monkeypatch):
    gram, moment = system(30, 6, scale)
    by_cholesky = ridge(gram, moment, 30)
    monkeypatch.setattr("skbayesnn.posterior.likelihoods._output_layer.LEAST_PIVOT", np.inf)
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


@pytest.mark.parametrize("n_factors", [None, 1, 2])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_fewer_rows_than_units(lead, n_factors):
    """Rows of zeros change nothing, but the units are then fewer than the rows."""
    n, width, rng = 5, 9, np.random.default_rng(0)
    z, y = rng.standard_normal((*lead, n, width)), rng.standard_normal((n, 2))
    sd, precision = rng.gamma(2.0, size=(*lead, 2, width)), rng.gamma(2.0, size=(*lead, 2))
    weight, factors = 1.0 + rng.random(n), None
    if n_factors:
        factors = rng.gamma(2.0, size=(*lead, n, n_factors))
    rows = Rows(y, weight, precision, factors)
    more = np.ones((*lead, width, n_factors or 1))
    padded = Rows(
        np.concatenate([y, np.zeros((width, 2))]),
        np.append(weight, np.ones(width)),
        precision,
        None if factors is None else np.concatenate([factors, more], axis=-2),
    )
    z_padded = np.concatenate([z, np.zeros((*lead, width, width))], axis=-2)
    found = integrated(rows, z, sd)
    expected = integrated(padded, z_padded, sd)
    for name in ("value", "log_alpha", "log_precision"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)
    for name in ("gradient", "log_factors", "residual"):
        assert_allclose(getattr(found, name), getattr(expected, name)[..., :n, :], atol=1e-10)


@pytest.mark.parametrize("n", [5, 30])
@pytest.mark.parametrize("n_factors", [None, 2])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_output_layer_by_inverses(lead, n, n_factors):
    """Bishop 2006, equations 3.53 and 3.54, for every output by itself."""
    width, rng = 9, np.random.default_rng(0)
    z, y = rng.standard_normal((*lead, n, width)), rng.standard_normal((n, 2))
    sd, precision = rng.gamma(2.0, size=(*lead, 2, width)), rng.gamma(2.0, size=(*lead, 2))
    factors = None if n_factors is None else rng.gamma(2.0, size=(*lead, n, n_factors))
    rows = Rows(y, 1.0 + rng.random(n), precision, factors)
    columns = np.swapaxes(np.broadcast_to(rows.weights, (*lead, n, 2)), -1, -2)
    weighted = np.swapaxes(z, -1, -2)[..., None, :, :] * columns[..., None, :]
    weighted = weighted * precision[..., None, None]
    S = np.linalg.inv(weighted @ z[..., None, :, :] + np.eye(width) / sd[..., None] ** 2)
    mean = (S @ (weighted @ y.T[..., None]))[..., 0]

    layer = OutputLayer.of(rows, z, sd)
    assert_allclose(layer.mean, mean, atol=1e-10)
    assert_allclose(layer.weights(np.zeros_like(sd)), mean, atol=1e-10)
    columns = [layer.weights(np.broadcast_to(i, sd.shape)) - mean for i in np.eye(width)]
    assert_allclose(np.einsum("i...j,i...k", columns, columns), S, atol=1e-10)
    other = rng.standard_normal((*lead, 4, width))
    exact = other[..., None, :, :] @ S @ np.swapaxes(other, -1, -2)[..., None, :, :]
    root, known = layer.roots(other)
    found = root @ np.swapaxes(root, -1, -2) - known @ np.swapaxes(known, -1, -2)
    assert_allclose(found, exact, atol=1e-10)
    variances = np.diagonal(exact, axis1=-2, axis2=-1)
    assert_allclose(layer.variances(other), np.swapaxes(variances, -1, -2), atol=1e-10)
