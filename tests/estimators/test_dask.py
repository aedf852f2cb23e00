"""Starts spread over a Dask cluster; skipped where Dask is not installed."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbayesnn import EvidenceMLPRegressor

distributed = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("default")  # of Dask and what it imports
def test_same_fit_on_a_local_cluster():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)
    model = EvidenceMLPRegressor((2,), n_restarts=2, random_state=0)
    here = model.fit(X, y).predict(X, return_std=True)
    evidence = model.log_evidence_
    options = {"n_workers": 2, "threads_per_worker": 1}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
        distributed.get_task_stream(client) as tasks,
    ):
        model.set_params(n_jobs=2).fit(X, y)
    assert len(tasks.data) >= 2  # the starts were trained by the workers
    assert_array_equal(model.predict(X, return_std=True), here)
    assert model.log_evidence_ == evidence
