"""Derivatives by the inputs, and novelty: against differences, closed forms and drawn functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import is_classifier

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
)
from skbayesnn.estimators import AveragedClassifier, AveragedRegressor
from skbayesnn.predictive import Draws
from tests.tools import BRIEF, assert_near, difference

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
UNITS, CENTRE = np.array([1.0, 100.0, 0.01]), np.array([5.0, 0.0, 1.0])
Z = RNG.uniform(-2, 2, (60, 3))
X = CENTRE + UNITS * Z
Y = np.column_stack([50 * np.sin(Z[:, 0]) + 20 * Z[:, 1], Z[:, 1] ** 2])
Y += RNG.standard_normal((60, 2)) * [3.0, 0.1]
CLASSES = np.digitize(np.sin(Z[:, 0]) + 0.3 * RNG.standard_normal(60), [0.0, 0.5])
LAPLACE = {"method": "laplace", "n_restarts": 2, "random_state": 0}
SHORT = BRIEF | {"n_draws": 60, "n_warmup": 40, "sampler": Sampler(init="prior")}
MODELS = {
    "Laplace": (EvidenceMLPRegressor((4,), noise="constant", **LAPLACE), Y),
    "two layers": (EvidenceMLPRegressor((3, 2), noise="constant", **LAPLACE), Y[:, 0]),
    "drawn": (EvidenceMLPRegressor((2,), noise="constant", random_state=0), Y[:, 0]),
    "sampled": (HMCMLPRegressor((4,), noise="constant", **SHORT), Y),
    "two classes": (EvidenceMLPClassifier((3,), **LAPLACE), CLASSES > 0),
    "three classes": (EvidenceMLPClassifier((3,), **LAPLACE), CLASSES),
    "sampled classes": (HMCMLPClassifier((3,), **SHORT), CLASSES),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    estimator, y = MODELS[request.param]
    return estimator.fit(X, y)


def moved(f, rows):
    """Derivatives of ``f`` by every input of the rows, the inputs last."""
    return difference(lambda h: f(rows + UNITS * h), np.zeros(3), 2e-5) / UNITS


def log_odds(model, rows):
    """Mean of the activations; relative to their mean over three classes."""
    rows, total = model._check_X(rows), 0.0
    for part, weights in zip(model._ensemble.parts, model._ensemble.weights, strict=True):
        values = part.outputs(rows) if isinstance(part, Draws) else part.moments(rows)[0]
        total = total + np.tensordot(weights, values, 1)
    one = total.shape[1] == 1
    return total[:, 0] if one else total - total.mean(axis=1, keepdims=True)


def test_gradient_is_that_of_the_mean(model):
    f = (lambda rows: log_odds(model, rows)) if is_classifier(model) else model.predict
    gradient, std = model.predict_gradient(X[:9], return_std=True)
    assert_near(gradient * UNITS, moved(f, X[:9]) * UNITS, 1e-6)
    assert_allclose(model.predict_gradient(X[:9]), gradient, rtol=1e-9, atol=1e-12)
    assert std.shape == gradient.shape
    assert np.all(std > 0)


def test_error_bars_are_those_of_drawn_gradients(model):
    gradient, std = model.predict_gradient(X[:5], return_std=True)
    draws = model.sample_gradient(X[:5], 4000, random_state=1)
    z = (draws - gradient[..., None]) / std[..., None]
    error = z.std(axis=-1) / np.sqrt(4000)
    assert np.all(np.abs(z.mean(axis=-1)) < 4 * error)
    squares = z**2
    error = squares.std(axis=-1) / np.sqrt(4000)
    assert np.all(np.abs(squares.mean(axis=-1) - 1.0) < 4 * error)


def test_sampled_gradients_belong_to_sampled_functions(model):
    if is_classifier(model):
        pytest.skip("classifiers draw no functions")
    draws = moved(lambda rows: model.sample_y(rows, 5, random_state=3), X[:5])
    gradients = model.sample_gradient(X[:5], 5, random_state=3)
    assert_near(gradients * UNITS[:, None], np.moveaxis(draws * UNITS, -2, -1), 1e-6)


def test_novelty_of_a_linear_model_is_exact():
    """Without standardisation the function has the prior variance ``(x^2 + 1) / alpha``."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 1))
    y = x[:, 0] + 0.1 * rng.standard_normal(30)
    given = {"prior": Prior("single", precision=0.5), "noise": Noise("constant", std=0.3)}
    model = EvidenceMLPRegressor((), standardize=False, **given).fit(x, y)
    rows = np.array([[0.0], [2.0], [50.0]])
    phi, Phi = (np.column_stack([some, np.ones(len(some))]) for some in (rows, x))
    covariance = np.linalg.inv(0.5 * np.eye(2) + Phi.T @ Phi / 0.09)
    exact = np.einsum("ni,ij,nj->n", phi, covariance, phi) / (np.sum(phi**2, axis=1) / 0.5)
    novelty, distance = model.novelty(rows, return_distance=True)
    assert_allclose(novelty, exact, rtol=1e-6)
    assert_allclose(distance, np.min(np.abs(rows - x.T), axis=1), rtol=1e-6, atol=1e-12)


def test_prior_variance_is_that_of_drawn_functions():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = np.tanh(2.0 * X) + 0.1 * rng.standard_normal((30, 2))
    models = [EvidenceMLPRegressor(sizes, noise="constant", random_state=0) for sizes in ((3,), ())]
    average = AveragedRegressor([model.fit(X, y) for model in models], np.array([0.7, 0.3]))
    for model, rows in ((models[0], X), (average, np.hstack([X, X]))):
        drawn = np.var(model._draw_prior(rows, 20_000, rng), axis=0)
        assert_allclose(model._prior_variance(rows), drawn, rtol=0.1)


def test_novelty_lies_between_0_and_1_and_rises_outside(model):
    inside, near = model.novelty(X, return_distance=True)
    outside, far = model.novelty(CENTRE + 20.0 * (X - CENTRE), return_distance=True)
    for some in (inside, outside):
        assert np.all((some >= 0) & (some <= 1))
    assert_allclose(near, 0.0, atol=1e-8)
    assert np.median(far) > 1.0
    average = AveragedClassifier if is_classifier(model) else AveragedRegressor
    assert_allclose(average([model], np.ones(1)).novelty(X), inside)
    if not is_classifier(model):  # probabilities may be certain outside
        assert np.median(outside) > np.median(inside)
