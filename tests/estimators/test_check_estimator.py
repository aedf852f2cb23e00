"""scikit-learn's own checks, with no expected failure."""

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Solver,
)
from tests.tools import BRIEF, set_limits

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.SkipTestWarning"
)
SHORT = {"n_restarts": 1, "solver": Solver(max_iter=30)}
FEW = BRIEF | {"sampler": "langevin"}
# each engine and each task once; the other two with their defaults
SMALL = [EvidenceMLPRegressor((2,), noise="constant", **SHORT), HMCMLPClassifier((2,), **FEW)]
DEFAULTS = [EvidenceMLPClassifier(), HMCMLPRegressor()]
NOISY = [
    EvidenceMLPRegressor((2,), noise=noise, **SHORT) for noise in ("student_t", "input_dependent")
]


def assert_passes(estimator, check):
    try:
        check(estimator)
    except SkipTest:
        if "array_api" not in check.func.__name__:
            raise AssertionError(f"{check.func.__name__} was skipped") from None


@parametrize_with_checks(SMALL)
def test_small_fits(estimator, check, monkeypatch):
    set_limits(monkeypatch)  # Laplace's approximation alone, chains that start elsewhere
    assert_passes(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(NOISY)
def test_small_fits_of_other_noise(estimator, check, monkeypatch):
    set_limits(monkeypatch)
    assert_passes(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(DEFAULTS)
def test_defaults(estimator, check):
    assert_passes(estimator, check)
