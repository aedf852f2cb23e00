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
)
from skbayesnn.inference import Deadline
from tests.tools import result_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(60)


def broken_off(model, y):
    with pytest.warns(ConvergenceWarning, match="max_time=0.001 seconds and uses"):
        return model.fit(X, y)


@pytest.mark.parametrize("noise", ["auto", "input_dependent", "student_t"])
@pytest.mark.parametrize("hidden", ["auto", (), (4,), (3, 3)])
def test_evidence_regressor(hidden, noise):
    model = EvidenceMLPRegressor(hidden, noise=noise, max_time=1e-3, random_state=0)
    broken_off(model, Y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    assert len(result_of(model).minima) <= 2  # of five starts
    if hidden == "auto":
        assert [c.hidden_layer_sizes for c in model.growth_] == [()]


def test_evidence_classifier():
    model = broken_off(EvidenceMLPClassifier((3,), max_time=1e-3, random_state=0), Y > 0)
    assert np.all(np.isfinite(model.predict_proba(X)))


@pytest.mark.parametrize("kind", [HMCMLPRegressor, HMCMLPClassifier])
def test_samplers_keep_their_draws(kind):
    options = {"n_chains": 2, "n_warmup": 20, "n_draws": 100_000, "random_state": 0}
    y = Y if kind is HMCMLPRegressor else Y > 0
    start = monotonic()
    model = broken_off(kind((2,), max_time=1e-3, evidence=True, **options), y)
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


@pytest.mark.parametrize("max_time", [0, -1.0, np.nan, "long", np.inf])
def test_only_positive_seconds(max_time):
    with pytest.raises(ValueError, match="max_time must be a positive number"):
        EvidenceMLPRegressor((), max_time=max_time).fit(X, Y)


def test_deadlines():
    assert not Deadline().passed
    assert not Deadline.after(None).passed
    assert not Deadline.after(1000.0).passed
    assert Deadline.after(0.0).passed
