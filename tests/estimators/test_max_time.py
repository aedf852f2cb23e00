"""max_time: a fit that is broken off keeps what it has."""

import pickle
from time import monotonic

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Sampler,
    Solver,
)
from tests.tools import BRIEF, result_of

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(60)


def broken_off(model, y):
    with pytest.warns(ConvergenceWarning, match="max_time=0.001 seconds and uses"):
        return model.fit(X, y)


@pytest.mark.parametrize(
    ("hidden", "noise"),
    [("auto", "auto"), ((), "student_t"), ((4,), "input_dependent"), ((3, 3), "auto")],
)
def test_evidence_regressor(hidden, noise):
    model = EvidenceMLPRegressor(hidden, noise=noise, max_time=1e-3, random_state=0)
    broken_off(model, Y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    assert len(result_of(model).minima) <= 2  # of five starts


@pytest.mark.parametrize("method", ["population", "chains", "laplace"])
def test_evidence_classifier(method):
    options = {"max_time": 1e-3, "method": method, "random_state": 0}
    model = broken_off(EvidenceMLPClassifier((3,), **options), Y > 0)
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.parametrize("kind", [HMCMLPRegressor, HMCMLPClassifier])
def test_samplers_keep_their_draws(kind):
    options = {"n_chains": 2, "n_warmup": 20, "n_draws": 100_000, "random_state": 0}
    y = Y if kind is HMCMLPRegressor else Y > 0
    start = monotonic()
    model = broken_off(kind((2,), max_time=1e-3, measure_evidence=True, **options), y)
    assert monotonic() - start < 60
    assert 4 <= model.diagnostics_.n_draws < 100_000
    assert np.isnan(model.log_evidence_)
    assert np.all(np.isfinite(model.predict_std(X)))


def test_enough_time_changes_nothing():
    options = {"hidden_layer_sizes": (3,), "noise": "constant", "random_state": 0}
    usual = EvidenceMLPRegressor(**options).fit(X, Y)
    timed = EvidenceMLPRegressor(max_time=1e6, **options).fit(X, Y)
    np.testing.assert_array_equal(usual.predict(X), timed.predict(X))
    again = pickle.loads(pickle.dumps(timed))
    np.testing.assert_array_equal(again.predict(X), timed.predict(X))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_long_warm_up_leaves_time_for_draws(n_jobs):
    options = BRIEF | {"n_warmup": 10**6, "n_draws": 10**6, "sampler": Sampler(thin=1)}
    model = HMCMLPRegressor((2,), max_time=1.0, n_jobs=n_jobs, **options)
    start = monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time=1 seconds"):
        model.fit(X, Y)
    assert monotonic() - start < 60
    assert 4 <= model.diagnostics_.n_draws < 10**6
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("noise", ["input_dependent", "correlated", "student_t"])
def test_rounds_between_means_and_noise_end(noise):
    targets = np.column_stack([Y, Y**2]) if noise == "correlated" else Y
    options = {"n_restarts": 50, "solver": Solver(max_iter=10**6, tol=1e-12), "random_state": 0}
    model = EvidenceMLPRegressor((4,), noise=noise, max_time=0.5, **options)
    start = monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time=0.5 seconds"):
        model.fit(X, targets)
    assert monotonic() - start < 30
    assert np.all(np.isfinite(model.predict(X, return_std=True)[1]))


SMALL = {"hidden_layer_sizes": (2,), "noise": "constant", "method": "population"}


@pytest.mark.parametrize("kind", [EvidenceMLPRegressor, EvidenceMLPClassifier])
def test_minima_that_time_cuts_short_warn(kind):
    options = SMALL if kind is EvidenceMLPRegressor else {"hidden_layer_sizes": (2,)}
    y = Y if kind is EvidenceMLPRegressor else Y > 0
    options = options | {"method": "population", "n_restarts": 10**4, "random_state": 0}
    model = kind(**options).fit(X, y).set_params(max_time=1e-3)
    start = monotonic()
    with pytest.warns(ConvergenceWarning, match="search for minima.*max_time=0.001"):
        _ = model.evidence_report_.minima
    assert monotonic() - start < 60
    assert len(model.networks_) <= 2  # of 10,000 starts
    assert all(np.all(np.isfinite(w)) for w in model.coefs_)  # without another search
