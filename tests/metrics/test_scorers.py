"""Scorers on estimators, pipelines and searches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn.basis import LegendreFeatures
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
from skbayesnn.metrics._scorers import _crps
from tests.tools import BRIEF

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FOR_REGRESSORS = {"log_density": log_density_scorer, "neg_crps": neg_crps_scorer}
FEW = BRIEF | {"sampler": "langevin", "n_draws": 20}
RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (60, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(60)
TRAIN, TEST = slice(0, 40), slice(40, 60)
LABELS = np.where(Y > 0.7, "high", np.where(Y < -0.7, "low", "middle"))
REGRESSORS = [
    EvidenceMLPRegressor((3,), n_restarts=2, combine="equal", random_state=0),
    HMCMLPRegressor((3,), **FEW),
]
CLASSIFIERS = [
    EvidenceMLPClassifier((2,), n_restarts=1, random_state=0),
    HMCMLPClassifier((2,), **FEW),
]


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda r: type(r).__name__)
def test_regressors(regressor):
    model = regressor.fit(X[TRAIN], Y[TRAIN])
    rows, y = X[TEST], Y[TEST]
    found = log_density_scorer(model, rows, y)
    assert_allclose(found, model.log_predictive_density(rows, y).mean())
    step = 2e-3
    for target in (y[0], 50.0):
        at = target + step * (np.arange(-30_000, 30_000) + 0.5)  # midpoints on both sides
        below = model.predict_distribution(np.repeat(rows[:1], len(at), axis=0)).cdf(at)
        integral = step * np.sum((below - (at > target)) ** 2)
        assert_allclose(-neg_crps_scorer(model, rows[:1], [target]), integral, rtol=1e-5)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_classifiers(classifier):
    model = classifier.fit(X[TRAIN], LABELS[TRAIN])
    y = LABELS[TEST]
    expected = np.mean(model.log_predictive_density(X[TEST], y))
    assert_allclose(log_density_scorer(model, X[TEST], y), expected)
    with pytest.raises(TypeError, match="other scores are for regressors only"):
        neg_crps_scorer(model, X[TEST], y)


def test_several_outputs():
    both = np.column_stack([Y, -3.0 * Y + 1.0 + np.random.default_rng(1).standard_normal(60)])
    model = EvidenceMLPRegressor(()).fit(X[TRAIN], both[TRAIN])
    mean, std = model.predict(X[TEST], return_std=True)
    expected = -_crps(norm(mean, std), both[TEST]).mean()
    assert_allclose(neg_crps_scorer(model, X[TEST], both[TEST]), expected, rtol=1e-12)
    for scorer in FOR_REGRESSORS.values():
        assert np.isfinite(scorer(model, X[TEST], both[TEST]))


@pytest.mark.parametrize("name", FOR_REGRESSORS)
def test_weights_are_repetitions(name):
    scorer, model = FOR_REGRESSORS[name], EvidenceMLPRegressor(()).fit(X[TRAIN], Y[TRAIN])
    times = np.random.default_rng(1).integers(0, 4, 20)
    rows, y = X[TEST], Y[TEST]
    repeated = scorer(model, rows.repeat(times, axis=0), y.repeat(times))
    assert_allclose(scorer(model, rows, y, sample_weight=times), repeated, rtol=1e-12)
    assert abs(repeated - scorer(model, rows, y)) > 1e-6
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        scorer(model, rows, y, sample_weight=times[1:])


def test_pipelines_and_searches():
    scorer = neg_crps_scorer
    bare = EvidenceMLPRegressor((), standardize=False, random_state=0)
    model = make_pipeline(StandardScaler(), make_pipeline(LegendreFeatures(3), bare))
    model.fit(X[TRAIN], Y[TRAIN])
    features = model[1][0].transform(model[0].transform(X[TEST]))
    expected = scorer(model[1][1], features, Y[TEST])
    assert_allclose(scorer(model, X[TEST], Y[TEST]), expected, rtol=1e-12)
    assert_allclose(scorer(make_pipeline(model[1][1]), features, Y[TEST]), expected, rtol=1e-12)
    grid = {"pipeline__legendrefeatures__degree": [3]}
    search = GridSearchCV(model, grid, scoring=scorer, cv=2).fit(X[TRAIN], Y[TRAIN])
    assert_allclose(scorer(search, X[TEST], Y[TEST]), expected, rtol=1e-12)


def test_other_regressors_count_as_gaussian():
    kernel = RBF() + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[TRAIN], Y[TRAIN])
    y, law = Y[TEST], norm(*model.predict(X[TEST], return_std=True))
    expected = {"log_density": law.logpdf(y).mean(), "neg_crps": -_crps(law, y).mean()}
    for name, scorer in FOR_REGRESSORS.items():
        assert_allclose(scorer(model, X[TEST], y), expected[name], rtol=1e-9)
        with pytest.raises(TypeError, match="LinearRegression gives no predictive distribution"):
            scorer(LinearRegression().fit(X, Y), X, Y)


def test_other_classifiers():
    with pytest.raises(TypeError, match="neg_log_loss"):
        log_density_scorer(LogisticRegression().fit(X, LABELS), X, LABELS)
