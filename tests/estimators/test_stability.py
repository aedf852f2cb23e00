"""Changes without effect on a fit: rounding, units, other threads; and data that are refused."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import InconsistentVersionWarning

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
    Sampler,
)
from tests.tools import BRIEF

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40)
LABELS = np.digitize(Y, [-0.3, 0.3])
FEW = slice(20)
CHANGES = {  # of all values of a column: the change, and the way back
    "one ulp": (lambda v: np.nextafter(v, np.inf), 1.0, 0.0),
    "moved far": (lambda v: 1e6 * v + 1e8, 1e6, 1e8),
}
chains_are_short = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
REGRESSORS = {
    "evidence": EvidenceMLPRegressor(random_state=0, method="laplace"),
    "measured": EvidenceMLPRegressor((1,), noise="constant", n_restarts=1, random_state=0),
    "noise network": EvidenceMLPRegressor(
        (2,), noise="input_dependent", method="laplace", n_restarts=1, random_state=0
    ),
    "sampled": HMCMLPRegressor((1,), noise="constant", **BRIEF),
}
CLASSIFIERS = {
    "classes": EvidenceMLPClassifier(random_state=0, method="laplace"),
    "sampled classes": HMCMLPClassifier((1,), **BRIEF),
}


@chains_are_short
@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_units_and_last_bits(model):
    """Of inputs and targets, each changed in a way of its own."""
    x, y = X[FEW], Y[FEW]
    mean, sd = model.fit(x, y).predict(x, return_std=True)
    others = [*list(CHANGES)[1:], next(iter(CHANGES))]
    for change, other in zip(CHANGES, others, strict=True):
        move_X, (move, scale, shift) = CHANGES[other][0], CHANGES[change]
        moved, moved_sd = model.fit(move_X(x), move(y)).predict(move_X(x), return_std=True)
        assert np.max(np.abs((moved - shift) / scale - mean) / sd) < 1e-6, (other, change)
        assert_allclose(moved_sd / scale, sd, rtol=1e-6, err_msg=f"{other}, {change}")


@chains_are_short
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_units_and_last_bits_of_inputs_of_classes(model):
    x, labels = X[FEW], LABELS[FEW]
    expected = model.fit(x, labels).predict_proba(x)
    for change, (move, _, _) in CHANGES.items():
        found = model.fit(move(x), labels).predict_proba(move(x))
        assert_allclose(found, expected, atol=1e-6, err_msg=change)


# --- magnitudes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (X, 1e200 * Y, {}, "y has values up to .*e\\+200.* other units"),
        (1e200 * X, Y, {}, "X has values up to .*e\\+200.* other units"),
        (1e60 * X, Y, {"standardize": False}, "X has values .*standardize=True"),
    ],
)
def test_values_that_cannot_be_calculated_with(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        EvidenceMLPRegressor((), **options).fit(X, y)


def test_too_many_repetitions():
    with pytest.raises(ValueError, match="sample_weight adds up to more than 1e\\+15 rows"):
        EvidenceMLPRegressor(()).fit(X, Y, sample_weight=np.full(40, 1e300))


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


# --- noise ---------------------------------------------------------------------------------------


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


# --- deep networks -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_deep_networks_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=200)
    for seed in range(2):
        model = EvidenceMLPRegressor((4, 4, 4, 4), n_restarts=2, random_state=seed)
        assert model.set_params(noise="constant").fit(X, y).score(X, y) > 0.9


# --- weights that have to be large ---------------------------------------------------------------


def test_large_weights_are_not_taken_for_noise():
    """Waves whose weights must be large: from a strong prior they were all taken for noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-4, 4, 60))
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(60)
    h = np.arange(1, 51)
    phase = 2 * np.pi * np.outer(x, h) / 16
    X = np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(h**-2.0, 2)
    model = EvidenceMLPRegressor((), standardize=False).fit(X, y)
    precisions = np.exp(np.arange(-6.0, 2.0))
    fixed = [
        EvidenceMLPRegressor((), standardize=False, prior=Prior(precision=value))
        .fit(X, y)
        .log_evidence_
        for value in precisions
    ]
    assert abs(model.noise_std_ - 0.1) < 0.02
    weights = np.full(len(fixed), 1.0 / (12 * np.log(10)))  # trapezium rule of the prior's density
    assert_allclose(
        model.log_evidence_, np.log(weights @ np.exp(fixed)), atol=0.3
    )  # nats: 8 points for the integral


@pytest.mark.usefixtures("laplace")
def test_eight_periods_are_learnt():
    """By networks that start with larger weights: nine of ten learn them."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (150, 1))
    f = np.sin(16 * np.pi * x[:, 0])
    model = EvidenceMLPRegressor((16,), noise="constant", n_restarts=3, random_state=1)
    assert model.fit(x, f + 0.1 * rng.standard_normal(150)).score(x, f) > 0.95


# --- threads and pickles -------------------------------------------------------------------------


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
