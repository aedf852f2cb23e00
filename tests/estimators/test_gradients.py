"""Derivatives of predictions by the inputs: differences, linear models, drawn functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("laplace"),
]

FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "evidence": False, "random_state": 0}
STEP = 1e-5


def make_rows(n_outputs=1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2)) * [1.0, 50.0] + [3.0, 0.0]
    y = np.column_stack([np.sin(X[:, 0]) + 0.02 * X[:, 1], X[:, 0] ** 2])[:, :n_outputs]
    y = 7.0 * y + 0.3 * rng.standard_normal(y.shape)
    return X, y[:, 0] if n_outputs == 1 else y


def differences(function, X):
    """Central differences ``(n, ..., n_features)``; the step is relative to the spread."""
    found = []
    for j, spread in enumerate(X.std(axis=0)):
        h = STEP * spread * np.eye(X.shape[1])[j]
        found.append((function(X + h) - function(X - h)) / (2 * STEP * spread))
    return np.stack(found, axis=-1)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    "model",
    [
        EvidenceMLPRegressor((4, 3), noise="constant", n_restarts=2, random_state=0),
        EvidenceMLPRegressor((4,), noise="input_dependent", n_restarts=2, random_state=0),
        HMCMLPRegressor((4,), noise="constant", **FEW),
    ],
    ids=["two layers", "input-dependent", "sampled"],
)
def test_differences_of_predictions(model, n_outputs):
    X, y = make_rows(n_outputs)
    model.fit(X, y)
    gradient, std = model.predict_gradient(X, return_std=True)
    assert gradient.shape == std.shape == (*y.shape, 2)
    scale = np.abs(gradient).max(axis=0)
    assert_allclose(gradient / scale, differences(model.predict, X) / scale, atol=1e-5)
    assert_allclose(model.predict_gradient(X), gradient, rtol=1e-9)
    assert np.all(std > 0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("engine", ["evidence", "hmc"])
def test_differences_of_log_odds(engine, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes][::2], y[y < n_classes][::2]
    model = HMCMLPClassifier((3,), **FEW)
    if engine == "evidence":
        model = EvidenceMLPClassifier((3,), n_restarts=1, random_state=0)
    model.fit(X, y)

    def log_odds(X):
        if engine == "hmc":
            f = np.mean([network.outputs(X) for network in model.networks_], axis=0)
        else:  # means of the activations, about which each network is linearised
            ensemble, Z = model._ensemble, model._check_X(X)
            means = [part.linearised(Z)[0] for part in ensemble.parts]
            f = np.tensordot(ensemble.member_weights, means, 1)
        return f[:, 0] if n_classes == 2 else f - f.mean(axis=1, keepdims=True)

    gradient = model.predict_gradient(X)
    assert gradient.shape == ((len(X), 4) if n_classes == 2 else (len(X), 3, 4))
    assert_allclose(gradient, differences(log_odds, X), rtol=1e-4, atol=1e-4)


def test_linear_models_have_the_error_bars_of_their_coefficients():
    X, y = make_rows()
    model = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    gradient, std = model.predict_gradient(X[:5], return_std=True)
    assert_allclose(gradient, np.tile(model.coefs_[0].T, (5, 1)), rtol=1e-9)
    assert_allclose(std, np.tile(model.coefs_std_[0].T, (5, 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        EvidenceMLPRegressor((4,), noise="constant", n_restarts=1, random_state=0),
        HMCMLPRegressor((4,), noise="constant", **FEW),
    ],
    ids=["linearised", "sampled"],
)
def test_drawn_derivatives(model):
    X, y = make_rows()
    model.fit(X, y)
    gradient, std = model.predict_gradient(X[:6], return_std=True)
    drawn = model.sample_gradient(X[:6], 4000)
    assert drawn.shape == (6, 2, 4000)
    assert np.all(np.abs(drawn.mean(axis=-1) - gradient) < 4 * std / np.sqrt(4000))
    kurtosis = np.mean((drawn - gradient[..., None]) ** 4, axis=-1) / std**4
    error = 0.5 * np.sqrt((kurtosis - 1) / 4000)
    assert np.all(np.abs(drawn.std(axis=-1) / std - 1) < 4 * error)


def test_drawn_derivatives_belong_to_the_drawn_functions():
    X, y = make_rows()
    model = HMCMLPRegressor((4,), noise="constant", **FEW).fit(X, y)

    def functions(X):
        return model.sample_y(X, 3, random_state=5)

    gradient = np.moveaxis(model.sample_gradient(X, 3, random_state=5), -1, 1)
    scale = np.abs(gradient).max(axis=(0, 1))
    assert_allclose(gradient / scale, differences(functions, X) / scale, atol=1e-5)
