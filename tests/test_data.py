import numpy as np
import pytest

from skbayesnn._data import Scaling, canonical_rows
from tests.tools import assert_same_bits


def table(n=20):
    """Rows with ties in single columns, and some that are repeated."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (n, 2)) * 0.1
    y = rng.integers(-1, 2, (n, 1)) * 0.3
    return X, y, rng.integers(1, 4, n).astype(float)


def test_rows_are_sorted_and_merged():
    X = np.array([[2.0, 0.0], [1.0, 5.0], [2.0, 0.0], [1.0, 4.0], [2.0, 0.0]])
    y = np.array([[1.0], [0.0], [1.0], [9.0], [0.0]])
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    rows = canonical_rows(X, y, weight)
    np.testing.assert_array_equal(rows.X, [[1, 4], [1, 5], [2, 0], [2, 0]])
    np.testing.assert_array_equal(rows.y, [[9], [0], [0], [1]])
    np.testing.assert_array_equal(rows.weight, [4, 2, 5, 4])
    assert rows.X.flags.c_contiguous
    assert rows.y.flags.c_contiguous
    apart = canonical_rows(X, y, weight, known=np.eye(5)[:, 2:3])  # another error of one row
    np.testing.assert_array_equal(apart.weight, [4, 2, 5, 1, 3])


def test_index_leads_from_given_rows_to_distinct_ones():
    X, y, weight = table()
    weight[::3] = 0.0
    rows = canonical_rows(X, y, weight)
    kept = weight > 0
    assert np.all(rows.index[~kept] == -1)
    np.testing.assert_array_equal(rows.X[rows.index[kept]], X[kept])
    np.testing.assert_array_equal(rows.y[rows.index[kept]], y[kept])
    np.testing.assert_array_equal(np.bincount(rows.index[kept], weight[kept]), rows.weight)


@pytest.mark.parametrize("seed", range(2))
def test_order_and_memory_layout_do_not_matter(seed):
    X, y, _ = table(n=300)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, len(X))  # sums depend on their order
    rows = canonical_rows(X, y, weight)[:3]  # without the index of given rows
    order = np.random.default_rng(seed).permutation(len(X))
    assert_same_bits(rows, canonical_rows(X[order], y[order], weight[order])[:3])
    wide = np.repeat(y, 2, axis=1)[:, ::2]
    assert_same_bits(rows, canonical_rows(np.asfortranarray(X), wide, weight)[:3])


def test_negative_zero_is_zero():
    X, y = np.array([[0.0], [-0.0], [1.0]]), np.array([[-0.0], [0.0], [-0.0]])
    rows = canonical_rows(X, y, np.ones(3))
    np.testing.assert_array_equal(rows.weight, [2.0, 1.0])
    assert not np.any(np.signbit(rows.X))
    assert not np.any(np.signbit(rows.y))


def scaled_columns():
    """A standard normal sample times scales from 1e-8 to 1e8, tiny and huge ones included."""
    scales = np.array([1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e300])
    return np.random.default_rng(0).standard_normal((50, 1)) * scales


def test_standard_scaling_is_the_weighted_mean_and_deviation():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6, 3)) * [1.0, 3.0, 10.0] + [0.0, -5.0, 100.0]
    times = np.array([1, 3, 2, 1, 5, 1])
    scaling = Scaling.standard(values, times.astype(float))
    repeated = np.repeat(values, times, axis=0)
    np.testing.assert_allclose(scaling.shift, repeated.mean(0), rtol=1e-13)
    np.testing.assert_allclose(scaling.scale, repeated.std(0), rtol=1e-13)


def test_scales_from_tiny_to_huge():
    values = scaled_columns()
    scaling = Scaling.standard(values, np.ones(len(values)))
    with np.errstate(all="raise"):
        z = scaling.transform(values)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-13)
    np.testing.assert_allclose(z.std(0), 1, rtol=1e-13)
    np.testing.assert_allclose(z, np.repeat(z[:, 3:4], z.shape[1], axis=1), atol=1e-12)
    np.testing.assert_allclose(scaling.inverse(z), values, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_large_offsets(offset):
    # multiples of 2^-20, so that adding the offset loses nothing
    values = np.round(np.random.default_rng(0).standard_normal((50, 1)) * 2**20) / 2**20
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 50)
    scaling = Scaling.standard(values + offset, weight)
    plain = Scaling.standard(values, weight)
    np.testing.assert_allclose(scaling.scale, plain.scale, rtol=1e-13)
    np.testing.assert_allclose(scaling.shift, plain.shift + offset, rtol=1e-15)
    z = scaling.transform(values + offset)
    np.testing.assert_allclose(z, plain.transform(values), atol=3e-8)  # the shift's last bit
    np.testing.assert_allclose(scaling.inverse(z), values + offset, rtol=1e-15)


@pytest.mark.parametrize("value", [0.0, -0.1, 1e-300, 1e8 + 0.1, 1e300])
@pytest.mark.parametrize("n", [1, 50])
def test_constant_columns(value, n):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    values = np.full((n, 1), value)
    scaling = Scaling.standard(values, weight)
    assert scaling.scale[0] == 1.0
    assert scaling.shift[0] == value
    np.testing.assert_array_equal(scaling.transform(values), np.zeros((n, 1)))


def test_columns_that_vary_by_rounding_alone_are_constant():
    values = np.array([[1.0], [1.0 + 2e-16], [1.0], [1.0 - 1e-16]])
    assert Scaling.standard(values, np.ones(4)).scale[0] == 1.0
    values = np.array([[1.0], [1.0 + 1e-12], [1.0], [1.0 - 1e-12]])
    assert Scaling.standard(values, np.ones(4)).scale[0] < 1e-11
