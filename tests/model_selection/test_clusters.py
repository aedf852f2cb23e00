"""Starts and candidates spread over clusters; skipped where Dask or Ray is not installed."""

from contextlib import ExitStack, contextmanager

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Sampler
from skbayesnn.model_selection import EvidenceSearch

pytestmark = pytest.mark.filterwarnings("default")  # of Dask and Ray, and what they import

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(40)
FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "measure_evidence": False}
MODEL = EvidenceMLPRegressor((2,), n_restarts=2, random_state=0)
MODELS = [  # starts, chains and candidates are spread
    MODEL,
    HMCMLPRegressor((2,), sampler=Sampler(thin=1), random_state=0, **FEW),
    EvidenceSearch(MODEL, {"hidden_layer_sizes": [(), (1,), (2,)]}),
]


@contextmanager
def dask():
    """Two local workers; yields what counts the tasks that they have done."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with ExitStack() as stack:
        cluster = stack.enter_context(distributed.LocalCluster(**options))
        client = stack.enter_context(distributed.Client(cluster))
        stack.enter_context(joblib.parallel_config("dask"))
        client.get_task_stream()  # from now on tasks are kept account of
        yield lambda: len(client.get_task_stream())


@contextmanager
def ray():
    """Two local workers; Ray does not count tasks for others."""
    library = pytest.importorskip("ray")
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    library.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            yield None
    finally:
        library.shutdown()


def found(model):
    """Results that must not depend on where they were computed."""
    values = [*model.predict(X, return_std=True), np.array(model.log_evidence_)]
    if hasattr(model, "results_"):
        values += [model.results_["log_evidence"], model.weights_]
    return values


@pytest.mark.parametrize("cluster", [dask, ray], ids=["dask", "ray"])
def test_a_cluster_finds_the_same_to_the_last_bit(cluster, capsys):
    there = []
    with cluster() as n_tasks:
        for model in MODELS:
            before = n_tasks and n_tasks()
            there += found(clone(model).set_params(n_jobs=2, verbose=1).fit(X, Y))
            assert n_tasks is None or n_tasks() >= before + 2  # the workers have done it
    here = [value for model in MODELS for value in found(model.fit(X, Y))]
    for one, other in zip(here, there, strict=True):
        assert_array_equal(one, other)
    out = capsys.readouterr().out
    assert "start 2 of 2: log evidence " in out
    assert "[3/3] hidden_layer_sizes=(2,): log evidence " in out
