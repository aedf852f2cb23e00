"""Callbacks of scikit-learn see the stages of a fit."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Sampler
from tests.tools import BRIEF

callback = pytest.importorskip("sklearn.callback")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 2))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)


class Recorder:
    """Keeps the names of tasks in the order in which they begin and end."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name.split(':')[0]}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name.split(':')[0]}")


def test_stages_and_steps_are_tasks():
    recorder = Recorder()
    model = EvidenceMLPRegressor((2,), n_restarts=2, noise="constant", method="laplace")
    model.set_params(random_state=0)
    plain = clone(model).fit(X, Y)
    model.set_callbacks(recorder).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert recorder.events == [
        "setup",
        "begin fit",
        "begin starts",
        *("begin start 1 of 2", "end start 1 of 2", "begin start 2 of 2", "end start 2 of 2"),
        "end starts",
        "end fit",
        "teardown",
    ]
    assert not [name for name in vars(model) if "callback_fit" in name]
    pickle.loads(pickle.dumps(model))


@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_transitions_are_steps(laplace):
    recorder = Recorder()
    HMCMLPRegressor((2,), sampler=Sampler(thin=1), **BRIEF).set_callbacks(recorder).fit(X, Y)
    assert recorder.events.count("begin sampling") == 1
    inside = [e for e in recorder.events if e.startswith(("begin step", "begin transition"))]
    assert len(inside) == 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_failed_fit_is_torn_down():
    recorder = Recorder()
    model = EvidenceMLPRegressor((0,)).set_callbacks(recorder)
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        model.fit(X, Y)
    assert recorder.events == ["setup", "begin fit", "teardown"]
    assert not hasattr(model, "_callback_fit_ctx")
