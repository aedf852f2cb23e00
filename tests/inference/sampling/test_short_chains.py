"""Short chains beside the minima of a fit."""

from dataclasses import replace

import numpy as np
import pytest

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.inference import Limits, Problem, fit_evidence
from skbayesnn.inference._short_chains import N_CHAINS, N_DRAWS, sizes_of_chains
from skbayesnn.network import outputs
from skbayesnn.posterior import Bernoulli, Gaussian
from skbayesnn.predictive._draws import Draws
from tests.tools import set_limits

LAPLACE = {"checked_seconds": 0.0, "few_targets_per_weight": 0.0}  # no populations


def wave(n):
    """Noisy sine, whose noise grows with the input."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-2.0, 2.0, (n, 1)), axis=0)
    sd = 0.05 + 0.1 * (X[:, 0] + 2.0)
    return X, np.sin(2.0 * X[:, 0]) + sd * rng.standard_normal(n)


def problem_of(n, **limits):
    """Problem of a wave under constant noise."""
    X, y = wave(n)
    likelihood = Gaussian.per_output(1)
    return Problem(X, y[:, None], np.ones(n), likelihood, limits=Limits(**limits))


@pytest.fixture(scope="module")
def fit():
    """Default fit by Laplace's approximation."""
    return fit_evidence(problem_of(60, **LAPLACE), "auto", 0, 2, "auto", measured="auto")


def test_every_noise_model_that_was_tried_is_sampled(fit):
    assert "input_dependent" in fit.chained
    assert list(fit.chained) == [name for name in fit.noise_log_evidences if name != "constant"]
    shapes = [sampled.draws.theta.shape[:2] for sampled in fit.chained.values()]
    assert set(shapes) == {(N_CHAINS, N_DRAWS)}


def test_chains_fit_the_function(fit):
    sampled, X = fit.chained["input_dependent"], np.linspace(-2.0, 2.0, 50)[:, None]
    theta = sampled.draws.theta.reshape(N_CHAINS * N_DRAWS, -1)
    mean = outputs(sampled.joint.posterior.network, theta, X).mean(axis=0)[:, 0]
    assert np.mean((mean - np.sin(2.0 * X[:, 0])) ** 2) < 0.02  # of a variance of 0.5


def test_networks_are_narrower_where_targets_are_few():
    assert sizes_of_chains(problem_of(98)) == (16,)  # 49 weights, two targets for each
    assert sizes_of_chains(problem_of(97)) == (8,)


@pytest.mark.parametrize(
    ("sizes", "measured", "limits"),
    [((2,), "auto", {}), ("auto", False, {}), ("auto", "auto", {"sampled_seconds": 1e-3})],
)
def test_no_chains_where_none_are_wanted_or_affordable(sizes, measured, limits):
    problem = problem_of(30, **LAPLACE, **limits)
    assert fit_evidence(problem, sizes, 0, 1, measured=measured).chained == {}


def test_no_chains_where_few_large_targets_mislead_networks():
    problem = replace(problem_of(30, **LAPLACE), linear_share=0.5)
    assert fit_evidence(problem, "auto", 0, 1, measured="auto").chained == {}


def test_no_chains_with_fewer_targets_than_weights():
    """As many inputs as rows: with half of the predictions by chains R2 is -1.9."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(560, 60))
    function = X[:, :3] @ [1, -1, 0.5]
    y = function + 0.3 * rng.normal(size=560)
    model = EvidenceMLPRegressor(random_state=0).fit(X[:60], y[:60])
    assert not any(isinstance(part, Draws) for part in model._ensemble.parts)
    assert model.score(X[60:], function[60:]) > 0.65


def test_classes_have_no_chains():
    X, y = wave(30)
    limits = Limits(**LAPLACE)
    problem = Problem(X, (y > 0.0)[:, None] * 1.0, np.ones(30), Bernoulli(), limits=limits)
    assert fit_evidence(problem, "auto", 0, 1, measured="auto").chained == {}


@pytest.mark.slow
def test_predictions_of_minima_and_chains_are_mixed(monkeypatch):
    set_limits(monkeypatch, **(LAPLACE | {"sampled_seconds": 10.0}))
    X, y = wave(30)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
    alone = EvidenceMLPRegressor(random_state=0, combine="tempered").fit(X, y)
    n_minima = sum(map(len, alone._ensemble.weights))
    weights = model._ensemble.member_weights
    assert weights.sum() == pytest.approx(1.0)
    share = weights[n_minima:].sum()
    assert 0.2 < share <= 0.65 + 1e-12  # the chains are hardly behind
    assert model.log_evidence_ == alone.log_evidence_
    report = model.evidence_report_
    tried = ", ".join(str(candidate.hidden_layer_sizes) for candidate in model.candidates_)
    assert f"tried: {tried}" in " ".join(str(report).split())
    sizes = sizes_of_chains(model._result.problem)
    beside = f"{len(weights) - n_minima} drawn networks of {sizes} share"
    assert beside in " ".join(repr(report).split())
    assert "drawn networks" not in " ".join(repr(alone.evidence_report_).split())
    drawn = model._ensemble.outputs(model._X_scaling.bounded(X))[n_minima:]
    mean = model._y_scaling.inverse(np.tensordot(weights[n_minima:] / share, drawn, 1))[:, 0]
    expected = (1.0 - share) * alone.predict(X) + share * mean
    assert model.predict(X) == pytest.approx(expected, abs=1e-12)


def test_chains_that_miss_the_function_have_a_small_share(monkeypatch):
    set_limits(monkeypatch, **(LAPLACE | {"sampled_seconds": 10.0}))
    monkeypatch.setattr("skbayesnn.inference.sampling._sampling.FAR_BEHIND", np.inf)
    monkeypatch.setattr("skbayesnn.inference.sampling._sampling.BRIEF", 1)
    for name in ("N_WARM_UP", "MAX_STEPS"):  # they stay near random networks
        monkeypatch.setattr(f"skbayesnn.inference._short_chains.{name}", 1)
    X, y = wave(60)
    model = EvidenceMLPRegressor(random_state=0, noise="constant").fit(X, y)
    weights = [some.sum() for some in model._ensemble.weights]
    assert weights[-1] < 0.25
