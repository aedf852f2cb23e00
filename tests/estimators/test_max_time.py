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
from skbayesnn.estimators import _evidence
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
    options = {"hidden_layer_sizes": (3,), "n_restarts": 2, "random_state": 0}
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


def test_a_warm_up_that_was_cut_short_is_told(monkeypatch):
    """Also if all draws were made in time."""
    monkeypatch.setattr("skbayesnn.inference.sampling._sampling.WARM_UP_SHARE", 0.0)
    model = HMCMLPRegressor((2,), max_time=1000.0, **BRIEF | {"n_warmup": 50, "n_draws": 4})
    with pytest.warns(ConvergenceWarning, match="max_time=1000 seconds"):
        model.fit(X, Y)
    assert all(chains.count < 50 for chains in model._result.sampled.chains)


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


def test_minima_after_a_drawn_fit_have_the_time_and_the_processes_of_a_fit(monkeypatch):
    model = EvidenceMLPRegressor(max_time=1000.0, n_jobs=2, random_state=0, **SMALL).fit(X, Y)
    assert model._predicts_by_draws
    searches, search = [], _evidence.fit_evidence

    def spied(problem, *args, workers, **kwargs):
        searches.append((problem.deadline.left, workers.n_jobs))
        return search(problem, *args, workers=workers._replace(n_jobs=1), **kwargs)

    monkeypatch.setattr(_evidence, "fit_evidence", spied)
    before, again = model.predict(X), pickle.loads(pickle.dumps(model))
    for fitted in (model, again):
        repr(fitted.evidence_report_)
        assert all(np.all(np.isfinite(w)) for w in fitted.coefs_)
    ((left, n_jobs), _) = searches  # once for each
    assert 900.0 < left <= 1000.0
    assert n_jobs == 2
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(again.coefs_[0], model.coefs_[0])


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


def test_a_fit_that_combines_minima_searches_in_its_own_time(monkeypatch):
    deadlines, search = [], EvidenceMLPRegressor._searched

    def spied(self, workers, deadline):
        deadlines.append((self._unsearched[0].problem.deadline, deadline))
        return search(self, workers, deadline)

    monkeypatch.setattr(EvidenceMLPRegressor, "_searched", spied)
    EvidenceMLPRegressor(combine="best", max_time=1000.0, n_restarts=1, **SMALL).fit(X, Y)
    ((of_fit, of_search),) = deadlines
    assert of_search == of_fit
