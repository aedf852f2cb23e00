"""Values of any magnitude, bounds that do not suit the units, threads, and pickles."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Sampler
from tests.tools import BRIEF

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40)
chains_are_short = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@chains_are_short
@pytest.mark.parametrize("noise", ["constant", "student_t", "input_dependent"])
@pytest.mark.parametrize("kind", [EvidenceMLPRegressor, HMCMLPRegressor])
def test_predictions_anywhere_are_numbers(kind, noise):
    options = BRIEF | {"sampler": Sampler(init="prior")}
    if kind is EvidenceMLPRegressor:
        options = {"random_state": 0, "n_restarts": 1, "method": "laplace"}
    for hidden in ((), (2,)):
        model = kind(hidden, noise=noise, **options).fit(X, Y)
        directions = np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, 0.0]])
        rows = np.concatenate([far * directions for far in (1e120, 1e200, 1.7e308)])
        with warnings.catch_warnings(action="error"):
            assert np.all(np.isfinite(model.predict(rows, return_std=True)))
            assert np.all(np.isfinite(model.predict(rows, return_cov=True)[1]))
            assert np.all(np.isfinite(model.predict_interval(rows)))
            assert not np.any(np.isnan(model.log_predictive_density(rows, np.zeros(6))))


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ((1.0, 1e-5), "noise is at its lower bound of 0.001, .*other units"),
        ((1e5, 1.0), "prior of output is at its lower bound"),
        ((1e-5, 1.0), "columns of X vary by so little"),
    ],
)
def test_units_that_the_bounds_do_not_suit(scales, message):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 1))
    t = x[:, 0] + 0.1 * rng.standard_normal(50)
    model = EvidenceMLPRegressor((), noise="constant", standardize=False)
    with pytest.warns(UserWarning, match=message):
        model.fit(scales[0] * x, scales[1] * t)
    model.fit(x, t)  # suits them
    EvidenceMLPRegressor((), noise="constant").fit(scales[0] * x, scales[1] * t)


OVERLAPPING = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import scipy.linalg
from threadpoolctl import threadpool_info

from skbayesnn._threads import one_blas_thread


def n_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def overlapping(is_first, entered, left):
    with one_blas_thread():
        entered.wait()
        if not is_first:
            left.wait()
            assert n_threads() == {1}  # although the other one has left
    if is_first:
        left.wait()


if n_threads() != {2}:
    print("one thread at most")
else:
    with ThreadPoolExecutor(2) as pool:  # its threads live on
        for order in ((True, False), (False, True)):
            given = Barrier(2), Barrier(2)
            for done in [pool.submit(overlapping, is_first, *given) for is_first in order]:
                done.result()
            assert n_threads() == {2}
    with one_blas_thread():
        assert n_threads() == {1}
    assert n_threads() == {2}
"""


@pytest.mark.slow
def test_limits_of_overlapping_fits_end():
    """In a process of its own: the tests have one thread."""
    two = {f"{name}_NUM_THREADS": "2" for name in ("OPENBLAS", "OMP", "MKL", "BLIS")}
    command = [sys.executable, "-c", OVERLAPPING]
    found = subprocess.run(command, env=os.environ | two, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    if found.stdout:
        pytest.skip(found.stdout)


def test_other_versions_are_noticed():
    model = EvidenceMLPRegressor(()).fit(X, Y)
    with warnings.catch_warnings(action="error"):
        again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    state = model.__getstate__()
    with pytest.warns(InconsistentVersionWarning, match="0.0.1"):
        EvidenceMLPRegressor().__setstate__({**state, "_skbayesnn_version": "0.0.1"})
    del state["_skbayesnn_version"]
    with pytest.warns(InconsistentVersionWarning, match="unknown"):
        EvidenceMLPRegressor().__setstate__(state)
