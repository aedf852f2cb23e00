"""Draws for ArviZ: names, units, and what they say about the training rows."""

import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp

from skbayesnn import HMCMLPClassifier, HMCMLPRegressor

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2)) * [1.0, 30.0] + [0.0, 100.0]
F = 10.0 * np.sin(X[:, 0]) + 50.0
Y = np.column_stack([F + RNG.standard_normal(30), 3.0 * F - X[:, 1] + RNG.standard_normal(30)])
FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 15, "measure_evidence": False, "random_state": 0}


def from_dict_before_1(posterior=None, *, coords=None, dims=None, **groups):
    return {"posterior": posterior, **groups}, coords, dims


def from_dict_since_1(data, *, coords=None, dims=None):
    return data, coords, dims


@cache
def fitted(noise="constant", n_outputs=1):
    y = Y[:, 0] if n_outputs == 1 else Y
    return HMCMLPRegressor((2,), noise=noise, **FEW).fit(X, y)


@cache
def classifier(n_classes=2):
    labels = np.array(["no", "perhaps", "yes"])[np.digitize(Y[:, 0], [50, 55][: n_classes - 1])]
    return HMCMLPClassifier((2,), **FEW).fit(X, labels), labels


@pytest.fixture
def handed_over(monkeypatch):
    """Arguments that ArviZ gets."""
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict_since_1))
    return lambda model, **options: model.to_inference_data(**options)


@pytest.mark.parametrize("from_dict", [from_dict_before_1, from_dict_since_1])
def test_weights_are_named_and_in_units_of_the_user(monkeypatch, from_dict):
    """By either version of ArviZ."""
    model = fitted()
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
    data, coords, dims = model.to_inference_data()
    names, weights = coords["weight"], data["posterior"]["weights"].reshape(30, -1)
    into_units = [f"hidden1[{a} -> {unit}]" for a in ("x0", "x1", "bias") for unit in (0, 1)]
    assert names == [*into_units, *(f"output[{a}]" for a in (0, 1, "bias"))]
    for draw, network in zip(weights, model.networks_, strict=True):
        coefs, intercepts = network.coefs, network.intercepts
        expected = [coefs[0].ravel(), intercepts[0], coefs[1].ravel(), intercepts[1]]
        assert_allclose(draw, np.concatenate(expected), rtol=1e-9, atol=1e-9)
    assert dims["weights"] == ["weight"]
    assert coords["group"] == model.weight_group_names_
    assert_array_equal(data["sample_stats"]["lp"], -model.diagnostics_.energy)


@pytest.mark.parametrize("noise", ["constant", "student_t", "input_dependent"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_noise_and_likelihoods_of_regressors(noise, n_outputs, handed_over):
    model = fitted(noise, n_outputs)
    y = Y[:, 0] if n_outputs == 1 else Y
    data, coords, dims = handed_over(model)
    sds = data["posterior"]["noise_sd"].reshape(30, n_outputs)
    assert_allclose(np.mean(sds, axis=0), np.atleast_1d(model.noise_std_))
    assert ("degrees_of_freedom" in data["posterior"]) == (noise == "student_t")
    assert ("noise_weights" in data["posterior"]) == (noise == "input_dependent")
    log_likelihood = data["log_likelihood"]["y"]
    assert log_likelihood.shape == (2, 15, 30)
    found = logsumexp(log_likelihood, axis=(0, 1)) - np.log(30)
    assert_allclose(found, model.log_predictive_density(X, y), rtol=1e-6, atol=1e-6)
    names = ["y"] if n_outputs == 1 else ["y0", "y1"]
    assert list(data["observed_data"]) == list(data["posterior_predictive"]) == names
    observed = np.column_stack(list(data["observed_data"].values()))
    assert_allclose(observed, Y[:, :n_outputs], atol=1e-7)  # rows are rounded inside
    assert_array_equal(coords["row"], np.arange(30))
    assert all(dims[name] == ["row"] for name in names)


def test_drawn_targets_have_the_predictive_distribution(handed_over):
    model = fitted("input_dependent")
    drawn = np.concatenate(
        [
            handed_over(model, random_state=seed)[0]["posterior_predictive"]["y"].reshape(30, 30)
            for seed in range(20)
        ]
    )
    at = model.predict_distribution(X)
    u = np.sort([at.cdf(y) for y in drawn], axis=0)  # uniform in every column
    even = (np.arange(600) + 0.5) / 600
    assert np.max(np.abs(u - even[:, None])) < 4 * 0.5 / np.sqrt(600)


def test_outliers_are_drawn_in_all_outputs_together():
    model = fitted("student_t", 2)
    noise = model._draws.noise
    n = 400
    residual = noise.draw(np.zeros((n, 2)), (30, n, 2), np.random.default_rng(0))
    squares = np.sum((residual / noise.scales(np.zeros((n, 2)))) ** 2, axis=-1) / 2.0
    levels = stats.f.cdf(squares, 2, noise.degrees_of_freedom[:, None])  # uniform
    assert stats.kstest(levels.ravel(), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes, handed_over):
    model, labels = classifier(n_classes)
    data, coords, _ = handed_over(model)
    assert set(data["posterior"]) == {"weights", "prior_sd"}
    assert_array_equal(model.classes_[data["observed_data"]["y"]], labels)
    means = np.mean(np.exp(data["log_likelihood"]["y"]), axis=(0, 1))
    assert_allclose(np.log(means), model.log_predictive_density(X, labels), atol=1e-9)
    drawn = np.stack(
        [
            handed_over(model, random_state=seed)[0]["posterior_predictive"]["y"]
            for seed in range(20)
        ]
    )
    p = model.predict_proba(X)
    for k in range(n_classes):
        share = np.mean(drawn == k, axis=(0, 1, 2))
        assert np.all(np.abs(share - p[:, k]) < 4.5 * 0.5 / np.sqrt(600))
    last = "" if n_classes == 2 else f" -> {model.classes_[-1]}"
    assert coords["weight"][-1] == f"output[bias{last}]"


def test_rows_are_those_of_the_user(handed_over):
    """One entry for each of positive weight, or for each class of positive probability."""
    weight = np.array([1.0, 0.0, 2.0] + [1.0] * 27)
    twice = np.vstack([X, X[:1]]), np.append(Y[:, 0], Y[0, 0]), np.append(weight, 1.0)
    model = HMCMLPRegressor((), noise="constant", **FEW).fit(*twice)
    data, coords, _ = handed_over(model)
    assert_array_equal(coords["row"], [0, *range(2, 31)])
    assert_allclose(data["observed_data"]["y"], np.delete(twice[1], 1), rtol=1e-9)
    log_likelihood = data["log_likelihood"]["y"]
    assert_array_equal(log_likelihood[..., 0], log_likelihood[..., -1])
    shares = np.tile([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]], (10, 1))
    model = HMCMLPClassifier((2,), **FEW).fit(X, shares)
    data, coords, _ = handed_over(model)
    rows, classes = np.nonzero(shares)
    assert_array_equal(coords["row"], rows)
    assert_array_equal(data["observed_data"]["y"], classes)
    means = np.mean(np.exp(data["log_likelihood"]["y"]), axis=(0, 1))
    assert_allclose(means, model.predict_proba(X)[rows, classes], atol=1e-9)


def test_without_rows_or_arviz(handed_over, monkeypatch):
    data, coords, _ = handed_over(fitted(), rows=False)
    assert set(data) == {"posterior", "sample_stats"}
    assert "row" not in coords
    monkeypatch.setitem(sys.modules, "arviz", None)  # its import fails
    with pytest.raises(ImportError, match=r"pip install skbayesnn\[arviz\]"):
        fitted().to_inference_data()


@pytest.mark.filterwarnings("ignore")  # of ArviZ: few draws, and its own changes to come
@pytest.mark.parametrize("kind", ["one output", "two outputs", "classes"])
def test_arviz_works_with_it(kind):
    arviz = pytest.importorskip("arviz")
    if kind == "classes":
        model = classifier(3)[0]
    else:
        model = fitted(n_outputs=1 if kind == "one output" else 2)
    data = model.to_inference_data()
    assert data["posterior"]["weights"].dims == ("chain", "draw", "weight")
    assert data["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    loo = arviz.loo(data)
    densities = np.sum(np.log(np.mean(np.exp(data["log_likelihood"]["y"].values), axis=(0, 1))))
    elpd = getattr(loo, "elpd_loo", None) or loo.elpd
    assert np.isfinite(elpd)
    assert elpd < densities  # without a row its density is smaller
