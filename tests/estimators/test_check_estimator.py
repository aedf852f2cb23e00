"""scikit-learn's own checks, with no expected failure."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Solver,
)
from tests.tools import set_limits

LEAST_CHECKS = {  # of scikit-learn 1.9
    EvidenceMLPRegressor: 59,
    EvidenceMLPClassifier: 62,
    HMCMLPRegressor: 59,
    HMCMLPClassifier: 62,
}
SAMPLERS = [HMCMLPRegressor, HMCMLPClassifier]
NOISES = ["student_t", "input_dependent"]
FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "measure_evidence": False}


def run(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SkipTestWarning)
        return check_estimator(estimator, on_skip=None, on_fail=None)


def assert_all_pass(estimator):
    results = run(estimator)
    statuses = [result["status"] for result in results]
    failed = [
        f"{result['check_name']}: {result['exception']!r}"
        for result in results
        if result["status"] not in ("passed", "skipped")
    ]
    assert failed == []
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert all("array_api" in name for name in skipped), skipped
    assert not any(result["expected_to_fail"] for result in results)
    assert statuses.count("passed") >= LEAST_CHECKS[type(estimator)]


@pytest.mark.parametrize("estimator", [EvidenceMLPRegressor, EvidenceMLPClassifier])
def test_small_networks(estimator, monkeypatch):
    set_limits(monkeypatch)  # Laplace's approximation alone
    assert_all_pass(estimator((2,), n_restarts=1, solver=Solver(max_iter=30)))


@pytest.mark.parametrize("estimator", SAMPLERS)
def test_few_draws(estimator, monkeypatch):
    set_limits(monkeypatch)  # or chains start at networks that were sampled before
    model = estimator((2,), sampler="langevin", **FEW)
    if estimator is HMCMLPRegressor:
        model.set_params(noise="constant")  # "auto" is a matter of the evidence estimator
    assert_all_pass(model)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [EvidenceMLPRegressor, EvidenceMLPClassifier])
def test_defaults(estimator):
    assert_all_pass(estimator())


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_defaults_of_noise_models(noise):
    assert_all_pass(EvidenceMLPRegressor(noise=noise))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", SAMPLERS)
def test_defaults_of_the_samplers(estimator):
    """Takes half an hour or more each: some fifty fits."""
    assert_all_pass(estimator())
