import os
import tracemalloc

import numpy as np
import pytest

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.estimators.inputs._memory import machine_memory
from skbayesnn.inference import Problem, memory_of_search
from skbayesnn.posterior import Gaussian
from tests.tools import result_of, set_limits

pytestmark = pytest.mark.usefixtures("laplace")


def make_rows(n_rows, n_features, n_units):
    """From a network of as many units as will be fitted, so that hardly any is pruned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    hidden = np.tanh(2.0 * X @ rng.standard_normal((n_features, n_units)) / n_features**0.5)
    f = hidden @ rng.standard_normal(n_units)
    return X, f + 0.02 * rng.standard_normal(n_rows)


FIXED = {"prior": Prior(precision=1.0), "noise": 0.1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("n_rows", "n_features", "hidden", "options", "limits"),
    [
        pytest.param(9_000, 8, 3, {}, {}, marks=pytest.mark.slow),  # many rows
        (1_500, 8, 16, {"n_restarts": 2, "solver__hessian": "gauss_newton"}, {}),
        (300, 10, 24, FIXED, {}),  # large matrices
        (200, 30, 20, FIXED, {"dense": 0}),  # in dual form
        (3_000, 8, 20, {"prior": Prior(precision=100.0), "noise": 1.0}, {"dense": 0}),  # factors
    ],
)
def test_estimate_within_a_factor_of_two(monkeypatch, n_rows, n_features, hidden, options, limits):
    set_limits(monkeypatch, **limits)
    X, y = make_rows(n_rows, n_features, hidden)
    options = {"n_restarts": 1, "solver__max_iter": 2, "random_state": 0} | options
    model = EvidenceMLPRegressor((hidden,)).set_params(**options)
    model.set_params(n_restarts=1).fit(X[:50], y[:50])  # caches and late imports
    model.set_params(n_restarts=options["n_restarts"])
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = memory_of_search(*result_of(model).posed, options["n_restarts"])
    assert 0.5 < told / peak < 2.0


def test_warning_only_where_memory_is_short(monkeypatch):
    X, y = make_rows(40, 2, 2)
    model = EvidenceMLPRegressor((2,), n_restarts=1, random_state=0)
    model.fit(X, y)  # warnings are errors
    monkeypatch.setattr("skbayesnn.estimators.inputs._memory.machine_memory", lambda: 2.0**20)
    with pytest.warns(UserWarning, match=r"needs about .* MiB .* machine has 1.0 MiB.*hidden"):
        model.fit(X, y)


def test_covariances_that_do_not_fit(monkeypatch):
    X, y = make_rows(40, 2, 2)
    model = EvidenceMLPRegressor(()).fit(X, y)
    monkeypatch.setattr("skbayesnn.estimators.inputs._memory.machine_memory", lambda: 2.0**15)
    with pytest.raises(MemoryError, match=r"covariance of 40 rows needs about .* return_std"):
        model.predict(X, return_cov=True)
    model.predict(X[:20], return_cov=True)


def test_processes_need_memory_each():
    X, y = make_rows(2_000, 2, 2)
    posed = Problem(X, y[:, None], np.ones(len(X)), Gaussian.per_output(1)).posed((2,))
    alone, both, third = (memory_of_search(*posed, 2, n_jobs) for n_jobs in (1, 2, 3))
    assert both > 1.2 * alone
    assert third == both  # no more than there are starts


def test_no_check_where_the_system_does_not_tell(monkeypatch):
    assert machine_memory() > 2.0**20
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert machine_memory() == np.inf
