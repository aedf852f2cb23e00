"""Basis transformers are scikit-learn transformers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayesnn import basis
from skbayesnn.basis import HermiteFunctionFeatures, LegendreFeatures, RadialBasisFeatures

ALL = [getattr(basis, name) for name in basis.__all__]
SMALL = [
    HermiteFunctionFeatures(2),
    LegendreFeatures(2),
    RadialBasisFeatures(3, kernel="cauchy"),
    LegendreFeatures(2, orthonormal=True),
]
X = np.random.default_rng(0).uniform(-2.0, 5.0, (20, 2))


@parametrize_with_checks([cls() for cls in ALL])
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("transformer", "names"),
    [
        (SMALL[0], ["time_hermite0", "time_hermite1", "depth_hermite0", "depth_hermite1"]),
        (SMALL[1], ["time_legendre1", "time_legendre2", "depth_legendre1", "depth_legendre2"]),
        (SMALL[2], ["radial0", "radial1", "radial2"]),
    ],
    ids=repr,
)
def test_names_of_the_columns(transformer, names):
    frame = pd.DataFrame(X, columns=["time", "depth"])
    transformer = clone(transformer).set_output(transform="pandas").fit(frame)
    values = transformer.transform(frame)
    assert list(values.columns) == names
    assert_array_equal(values.to_numpy(), clone(transformer).fit(X).transform(X))
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        transformer.get_feature_names_out(["depth", "time"])
    with pytest.raises(ValueError, match="feature names should match"):
        transformer.transform(frame[["depth", "time"]])


@pytest.mark.parametrize("transformer", SMALL, ids=repr)
@pytest.mark.parametrize("n_columns", [1, 2])
def test_order_and_repetition_do_not_matter(transformer, n_columns):
    rows = X[:, :n_columns]
    again = np.vstack([rows[::-1], rows[3:9]])
    once = clone(transformer).fit(rows).transform(rows)
    assert_array_equal(clone(transformer).fit(again).transform(rows), once)


@pytest.mark.parametrize("transformer", SMALL, ids=repr)
@pytest.mark.parametrize("rows", [[[3.0]], [[3.0], [3.0]]], ids=["one row", "constant"])
def test_nothing_to_spread_over(transformer, rows):
    values = clone(transformer).fit(rows).transform([[3.0], [4.0], [1e150]])
    assert np.all(np.isfinite(values))


@pytest.mark.parametrize(
    ("transformer", "error", "message"),
    [
        (LegendreFeatures(0), ValueError, "degree must be at least 1, got 0"),
        (LegendreFeatures(2.0), TypeError, "degree must be an integer, got 2.0"),
        (LegendreFeatures(orthonormal=1), TypeError, "orthonormal must be True or False, got 1"),
        (HermiteFunctionFeatures(0), ValueError, "n_functions must be at least 1"),
        (RadialBasisFeatures(0), ValueError, "n_centers must be at least 1"),
        (RadialBasisFeatures(kernel="box"), ValueError, "kernel must be one of 'gaussian'"),
        (RadialBasisFeatures(width=-1), ValueError, "width must be a positive number"),
        (RadialBasisFeatures(centers=[1.0]), ValueError, "Expected 2D array"),
        (RadialBasisFeatures(centers=[[1.0]]), ValueError, "2 columns; got 1"),
        (RadialBasisFeatures(centers=[[0, np.inf]]), ValueError, "centers contains infinity"),
    ],
    ids=repr,
)
def test_mistakes_are_named(transformer, error, message):
    with pytest.raises(error, match=message):
        transformer.fit(X)
