"""Sensitivity indices of functions whose indices are known."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.displays import SensitivityDisplay
from skbayesnn.metrics import derivative_indices, sobol_indices

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3)) * [1.0, 10.0, 0.1]
NOISE = RNG.standard_normal((200, 2))


def linear(y):
    return EvidenceMLPRegressor((), noise="constant", random_state=0).fit(X, y)


def test_indices_of_a_linear_function():
    model = linear(X @ np.array([[2.0, 0.0], [0.1, 0.0], [0.0, 30.0]]) + 0.5 * NOISE)
    caused = model.coefs_[0].T ** 2 * np.var(X, axis=0)
    index, std = derivative_indices(model, X, n_draws=1000)
    assert_allclose(index, caused, rtol=1e-9)
    relative = model.coefs_std_[0].T / np.abs(model.coefs_[0].T)
    sure = relative < 0.1  # of c^2 with c normal: variance c^4 (4 r^2 + 2 r^4)
    expected = caused * np.sqrt(4.0 * relative**2 + 2.0 * relative**4)
    assert sure.sum() == 3
    assert np.all(np.abs(std / expected - 1.0)[sure] < 4 / np.sqrt(2 * 1000))
    first, first_std, total, _ = sobol_indices(model, X, n_points=2**12)
    shares = caused / caused.sum(axis=1, keepdims=True)
    assert_allclose(first, shares, atol=0.005)
    assert_allclose(total, shares, atol=0.005)
    assert first_std.shape == (2, 3)


def test_effects_rank_otherwise_than_widths_of_priors():
    """A strong linear effect needs small weights, a weak curved one large ones."""
    y = 3.0 * X[:, 0] + 0.3 * np.sin(0.5 * X[:, 1]) + 0.02 * NOISE[:, 0]
    model = EvidenceMLPRegressor((4,), prior="ard", noise="constant", random_state=0).fit(X, y)
    shares = np.array([9.0 * np.var(X[:, 0]), 0.09 * np.var(np.sin(0.5 * X[:, 1])), 0.0])
    indices = sobol_indices(model, X)
    assert_allclose(indices.total, shares / shares.sum(), atol=0.003)
    assert_allclose(indices.first, indices.total, atol=0.003)
    assert model.input_prior_std_[1] > 2.0 * model.input_prior_std_[0]
    assert np.all(indices.first_std + indices.total_std < 0.02)


def test_interaction_counts_in_the_total_alone():
    """First-order indices of a product of two centred inputs vanish, the total ones are 1."""
    y = X[:, 0] * X[:, 1] + 0.05 * NOISE[:, 0]
    steps = PolynomialFeatures(2), EvidenceMLPRegressor((), noise="constant", random_state=0)
    model = make_pipeline(*steps).fit(X, y)
    balanced = np.vstack([X, -X])
    first, _, total, _ = sobol_indices(model, balanced, n_points=2**12)
    assert_allclose(first, 0.0, atol=0.02)
    assert_allclose(total, [1.0, 1.0, 0.0], atol=0.02)


def test_categories_of_a_table_count_as_one_input():
    town = np.where(X[:, 0] > 0, "York", "Ely")
    table = pd.DataFrame({"width": X[:, 1], "town": pd.Categorical(town)})
    y = 2.0 * (town == "York") + 0.02 * X[:, 1] + 0.05 * NOISE[:, 0]
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, EvidenceMLPRegressor((), noise="constant")).fit(table, y)
    expected = 0.02**2 * 100 / 3, np.var(2.0 * (town == "York"))
    assert_allclose(sobol_indices(model, table).first, expected / np.sum(expected), atol=0.01)
    numbers = EvidenceMLPRegressor(()).fit(table.assign(town=X[:, 0]), y)
    with pytest.raises(ValueError, match=r"'town'\. Encode categories in a pipeline"):
        sobol_indices(numbers, table)


def test_classifiers_have_no_functions_to_draw():
    model = EvidenceMLPClassifier((), method="laplace").fit(X, X[:, 1] > 0)
    with pytest.raises(TypeError, match="For classifiers use derivative_indices"):
        sobol_indices(model, X)


def test_display_orders_the_inputs():
    pytest.importorskip("matplotlib").use("Agg")
    model = linear(X @ [0.5, 0.2, 0.0] + 0.1 * NOISE[:, 0])
    display = SensitivityDisplay.from_estimator(model, X, n_points=256)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["x1", "x0", "x2"]
    widths = [bar.get_width() for bar in display.bars_[1]]
    assert_allclose(widths, np.sort(display.indices[2])[::-1])
    with pytest.raises(ValueError, match="There is no output 1"):
        SensitivityDisplay.from_estimator(model, X, output=1)
