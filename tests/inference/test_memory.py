import tracemalloc
import warnings

import numpy as np
import pytest

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.estimators import _growth
from skbayesnn.inference import _memory
from skbayesnn.inference._memory import machine_memory, readable


def make_rows(n_rows, n_features, n_units):
    """From a network of as many units as will be fitted, so that hardly any is pruned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    hidden = np.tanh(2.0 * X @ rng.standard_normal((n_features, n_units)) / n_features**0.5)
    f = hidden @ rng.standard_normal(n_units)
    return X, f + 0.02 * rng.standard_normal(n_rows)


@pytest.fixture
def told(monkeypatch):
    """What fits say about themselves beforehand."""
    requirements, original = [], _growth.requirements

    def listening(*args):
        requirements.append(original(*args))
        return requirements[-1]

    monkeypatch.setattr(_growth, "requirements", listening)
    return requirements


FIXED = {"weight_precision": 1.0, "noise_std": 0.1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("n_rows", "n_features", "hidden", "options"),
    [
        (13_000, 8, 3, {}),  # many Hessians at once
        (50_000, 2, 2, {}),  # begun on a part
        (4_000, 4, 3, {"n_restarts": 4, "hessian": "gauss_newton"}),
        (1_500, 8, 16, {"hessian": "gauss_newton"}),
        (300, 10, 24, FIXED),  # large matrices
    ],
)
def test_estimate_within_a_factor_of_two(told, n_rows, n_features, hidden, options):
    X, y = make_rows(n_rows, n_features, hidden)
    options = {"n_restarts": 1, "max_iter": 5, "random_state": 0} | options
    model = EvidenceMLPRegressor((hidden,), **options)
    model.set_params(n_restarts=1).fit(X[:50], y[:50])  # caches and late imports
    model.set_params(n_restarts=options["n_restarts"])
    told.clear()
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 < told[0].n_bytes / peak < 2.0


@pytest.mark.parametrize(
    ("n_rows", "hidden", "options", "words"),
    [
        (40, (2,), {}, "training by Gauss-Newton steps, exact Hessian at the minima"),
        (40, (2,), {"hessian": "gauss_newton"}, "Gauss-Newton curvature at the minima"),
        (8, (4,), {}, "Gauss-Newton steps in dual form, as weights outnumber the targets"),
    ],
)
def test_message_before_the_fit(capsys, n_rows, hidden, options, words):
    X, y = make_rows(n_rows, 2, 2)
    model = EvidenceMLPRegressor(hidden, n_restarts=1, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(verbose=1).fit(X, y)
        first = capsys.readouterr().out.splitlines()[0]
        model.set_params(verbose=0).fit(X, y)
    n_weights = 4 * hidden[0] + 1
    assert first.startswith(f"{n_rows} rows, {n_weights} weights: ")
    assert words in first
    assert first.endswith("MiB of memory")
    assert capsys.readouterr().out == ""


def test_descents_are_announced(told, monkeypatch):
    monkeypatch.setattr("skbayesnn.inference._descent.DEAR_HESSIAN", 0.0)
    X, y = make_rows(60, 2, 2)
    label = np.digitize(y, [-0.5, 0.5])
    EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X, label)
    assert "training by descents by gradients" in told[0].plan


def test_warning_only_where_memory_is_short(monkeypatch):
    X, y = make_rows(40, 2, 2)
    model = EvidenceMLPRegressor((2,), n_restarts=1, random_state=0)
    model.fit(X, y)  # warnings are errors
    monkeypatch.setattr(_growth, "machine_memory", lambda: 2.0**20)
    with pytest.warns(UserWarning, match=r"needs about .* MiB .* machine has 1.0 MiB .*hidden"):
        model.fit(X, y)


def test_no_check_where_the_system_does_not_tell(monkeypatch):
    assert machine_memory() > 2.0**20
    monkeypatch.delattr(_memory.os, "sysconf", raising=False)
    assert machine_memory() == np.inf


def test_processes_need_memory_each(told, monkeypatch):
    def stop(*args):
        raise InterruptedError

    monkeypatch.setattr(_growth, "find_minima", stop)
    X, y = make_rows(2_000, 2, 2)
    for n_jobs in (1, 2):
        with pytest.raises(InterruptedError):
            EvidenceMLPRegressor((2,), n_restarts=2, n_jobs=n_jobs).fit(X, y)
    assert told[1].n_bytes > 1.2 * told[0].n_bytes


def test_readable():
    assert readable(1536.0) == "1.5 KiB"
    assert readable(200 * 2.0**20) == "200 MiB"
    assert readable(3.0e13) == "27940 GiB"
