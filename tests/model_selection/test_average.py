"""Predictions of averages against those of the models averaged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Sampler, Solver
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.model_selection import EvidenceSearch
from skbayesnn.predictive._combination import stacking_weights, tempered_weights

RNG = np.random.default_rng(1)
X = RNG.uniform(-3, 3, (40, 2))
Y = 1e3 + 5.0 * np.sin(X[:, 0]) * X[:, 1] + RNG.standard_normal(40)
Y2 = np.column_stack([Y, X[:, 0] + 0.5 * RNG.standard_normal(40)])
LABELS = (X[:, 0] * X[:, 1] + RNG.standard_normal(40) > 0).astype(int)
GRID = RNG.uniform(-4, 4, (7, 2))
MODEL = EvidenceMLPRegressor(n_restarts=2, solver=Solver(max_iter=100), random_state=0)
pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def searched(y, combine="equal", model=MODEL, **grid):
    grid = grid or {"hidden_layer_sizes": [(), (2,), (4,)]}
    return EvidenceSearch(model, grid, combine=combine).fit(X, y)


@pytest.fixture(
    scope="module", params=["one output", "two outputs", "pipelines", "samplers", "noises"]
)
def regressors(request):
    if request.param == "samplers":
        few = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "sampler": Sampler(thin=1)}
        sampler, grid = HMCMLPRegressor((), random_state=0, **few), {"prior__precision": [0.1, 1.0]}
        return EvidenceSearch(sampler, grid, combine="equal").fit(X[:12], Y2[:12])
    if request.param == "noises":
        linear = clone(MODEL).set_params(hidden_layer_sizes=(), noise__hidden_layer_sizes=())
        return searched(Y2, model=linear, noise=["constant", "student_t", "input_dependent"])
    if request.param == "pipelines":
        linear = clone(MODEL).set_params(hidden_layer_sizes=())
        pipeline = make_pipeline(PolynomialFeatures(2), linear)
        features = [PolynomialFeatures(2), SplineTransformer(4, extrapolation="linear")]
        return searched(Y, model=pipeline, polynomialfeatures=features)
    return searched(Y if request.param == "one output" else Y2)


def by_model(search, method, *args, **kwargs):
    """Predictions of all models, stacked."""
    models = [predictor(model, args[0]) for model in search.estimators_]
    return np.stack([getattr(m, method)(rows, *args[1:], **kwargs) for m, rows in models])


def cdf_by_model(search, X, y):
    """Distribution functions of all models, stacked."""
    models = [predictor(model, X) for model in search.estimators_]
    return np.stack([m.predict_distribution(rows).cdf(y) for m, rows in models])


def test_moments(regressors):
    mean, std = regressors.predict(GRID, return_std=True)
    means, stds = by_model(regressors, "predict", GRID), by_model(regressors, "predict_std", GRID)
    assert_allclose(mean, means.mean(axis=0), rtol=1e-12)
    assert_allclose(std**2, (stds**2).mean(axis=0) + means.var(axis=0), rtol=1e-9)
    parts = [regressors.predict_std(GRID, kind) ** 2 for kind in ("epistemic", "aleatoric")]
    assert_allclose(sum(parts), std**2, rtol=1e-9)
    noises = by_model(regressors, "predict_std", GRID, "aleatoric")
    assert_allclose(parts[1], (noises**2).mean(axis=0), rtol=1e-9)


def test_joint_covariance(regressors):
    mean, cov = regressors.predict(GRID, return_cov=True)
    means = by_model(regressors, "predict", GRID)
    covs = np.stack([m.predict(GRID, return_cov=True)[1] for m in regressors.estimators_])
    apart = means - means.mean(axis=0)
    spread = np.einsum("mi...,mj...->ij...", apart, apart) / len(means)
    assert_allclose(mean, means.mean(axis=0), rtol=1e-12)
    assert_allclose(cov, covs.mean(axis=0) + spread, rtol=1e-8, atol=1e-9)
    assert_allclose(np.diagonal(cov).T, regressors.predict_std(GRID) ** 2, rtol=1e-8)


def test_densities_and_quantiles(regressors):
    y = regressors.predict(X) + 0.3
    densities = by_model(regressors, "log_predictive_density", X, y)
    expected = logsumexp(densities, axis=0) - np.log(len(densities))
    assert_allclose(regressors.log_predictive_density(X, y), expected, rtol=1e-10)
    cdf = cdf_by_model(regressors, X, y).mean(axis=0)
    assert_allclose(regressors.predict_distribution(X).cdf(y), cdf, rtol=1e-10)
    low = regressors.predict_interval(X, 0.9)[..., 0]
    assert_allclose(cdf_by_model(regressors, X, low).mean(axis=0), 0.05, rtol=1e-7)


@pytest.mark.parametrize("kind", ["sample_y", "sample_prior"])
def test_drawn_functions(regressors, kind):
    size = 4000
    draws = getattr(regressors, kind)(GRID, size, random_state=0)
    assert draws.shape == (*regressors.predict(GRID).shape, size)
    parts = by_model(regressors, kind, GRID, size, random_state=1)
    mean, var = parts.mean(axis=(0, -1)), parts.var(axis=(0, -1))
    error = np.sqrt(var / size + parts.var(axis=-1).mean(axis=0) / size / len(parts))
    assert np.all(np.abs(draws.mean(axis=-1) - mean) < 5 * error)
    if kind == "sample_y":
        epistemic = regressors.predict_std(GRID, "epistemic")
        assert_allclose(draws.std(axis=-1), epistemic, rtol=0.15)  # few networks: large kurtosis


@pytest.mark.parametrize("labels", [LABELS, LABELS + (X[:, 0] > 1)], ids=["two", "three"])
def test_classes(labels):
    model = EvidenceMLPClassifier(n_restarts=1, solver=Solver(max_iter=100), random_state=0)
    search = searched(labels, combine="stacking", model=model)
    weights = search.weights_[:, None, None]
    p = by_model(search, "predict_proba", GRID)
    sd = by_model(search, "predict_std", GRID)
    mean = (weights * p).sum(axis=0)
    assert_allclose(search.predict_proba(GRID), mean, rtol=1e-12)
    variance = (weights * (sd**2 + p**2)).sum(axis=0) - mean**2
    assert_allclose(search.predict_std(GRID) ** 2, variance, rtol=1e-9, atol=1e-15)
    assert_array_equal(search.predict(GRID), search.classes_[np.argmax(mean, axis=1)])
    most = by_model(search, "predict_proba", GRID, moderated=False)
    assert_allclose(search.predict_proba(GRID, moderated=False), (weights * most).sum(axis=0))
    assert_allclose(search.sample_prior(GRID, 5).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("combine", ["evidence", "equal", "stacking", "tempered"])
@pytest.mark.parametrize("classes", [False, True])
def test_shares(combine, classes):
    """Those of `combination_weights`, whose ways have closed forms of their own."""
    y, model = (
        (LABELS, EvidenceMLPClassifier(n_restarts=1, random_state=0)) if classes else (Y, MODEL)
    )
    search = searched(y, combine=combine, model=model)
    evidences, weights = search.results_["log_evidence"], np.ones(len(y))
    densities = np.stack([m.leave_one_out_log_density_ for m in search.estimators_])
    expected = {
        "evidence": lambda: softmax(evidences),
        "equal": lambda: np.full(3, 1 / 3),
        "stacking": lambda: stacking_weights(densities, weights),
        "tempered": lambda: tempered_weights(evidences, weights, None if classes else densities),
    }
    assert_allclose(search.weights_, expected[combine](), atol=2e-6)
    if combine == "tempered" and not classes:
        assert evidences[0] < evidences.max() - 20.0  # the linear model
        assert search.weights_[0] == 0.0
