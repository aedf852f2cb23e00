"""hidden_layer_sizes="auto": the rule, and what it finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Sampler,
)
from skbayesnn.inference.choice._growth import BY_EVIDENCE, OF_MANY_ROWS, Candidate, best_of, grow
from tests.tools import BRIEF, result_of

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(3)
X = RNG.uniform(-3, 3, (90, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(90)
AUTO = EvidenceMLPRegressor("auto", n_restarts=3, random_state=0)
FEW = slice(40)


def path_of(evidences, n_targets=1000, ladder=BY_EVIDENCE):
    """Sizes that the rule tries on invented evidences, the best one, and what was offered."""
    offered = {}

    def attempt(sizes, narrower):
        offered[sizes] = narrower
        return Candidate(sizes, 10 * sum(sizes), evidences.get(sizes, -1000.0))

    path = grow(attempt, lambda sizes: 10 * sum(sizes) <= n_targets, ladder)
    return [c.hidden_layer_sizes for c in path], best_of(path).hidden_layer_sizes, offered


ALWAYS = [(), (2,), (4,), (8,), (16,), (4, 4)]


def test_the_rule():
    """Deeper, then wider; no more weights than targets; the best one is chosen."""
    evidences = {(4,): -60, (4, 4): -50, (8, 8): -40, (16, 16): -39.5}
    sizes, best, offered = path_of({(): -90, (2,): -80, (8,): -10, **evidences}, n_targets=1500)
    assert sizes == [*ALWAYS, (8, 8), (16, 16)]
    assert best == (8,)
    assert [offered[some] for some in ((2,), (4,), (4, 4), (16, 16))] == [None, (2,), None, (8, 8)]
    sizes, best, _ = path_of({(): -50})
    assert sizes == ALWAYS
    assert best == ()
    evidences = {(2**i,): 10 * i for i in range(1, 9)}
    assert path_of(evidences, n_targets=80)[0] == [(), (2,), (4,), (8,), (4, 4)]
    assert path_of(evidences, n_targets=10)[0] == [()]
    assert path_of({(): -90, (2,): -80.5, (4,): -80})[1] == (4,)
    assert path_of({(): -90, (2,): -89.5})[1] == ()


def test_all_widths_of_one_layer_compete_with_two_layers():
    """With many rows two layers of 16 units must be better than one of 32, or of 8.

    They are chosen if that is by more than the least gain (here of evidences, 1 nat).
    """
    always = [(), (4,), (8,), (16,), (32,), (16, 16)]
    values = {(4,): -9, (8,): -8, (16,): -7, (32,): -5, (16, 16): -6, (64,): -5}
    sizes, best, _ = path_of(values, ladder=OF_MANY_ROWS)
    assert sizes == [*always, (64,)]
    assert best == (32,)
    assert path_of(values | {(16, 16): -4.5}, ladder=OF_MANY_ROWS)[1] == (32,)
    sizes, best, _ = path_of(values | {(16, 16): -3.5}, ladder=OF_MANY_ROWS)
    assert sizes == [*always, (32, 32), (16, 16, 16)]
    assert best == (16, 16)
    values |= {(8,): -3, (16, 16): -4, (32,): -9}
    assert path_of(values, ladder=OF_MANY_ROWS)[:2] == (always, (8,))


@pytest.fixture(scope="module")
def auto():
    return clone(AUTO).fit(X, Y)


def test_choice_and_prediction(auto):
    tried = auto._result.growth
    best = max(tried, key=lambda candidate: candidate.laplace_log_evidence)
    assert auto.hidden_layer_sizes_ == best.hidden_layer_sizes != ()
    assert auto.log_evidence_ >= best.laplace_log_evidence
    linear = EvidenceMLPRegressor(()).fit(X, Y)
    first = tried[0].laplace_log_evidence
    assert first == pytest.approx(linear.log_evidence_, rel=1e-12)
    assert auto.log_evidence_ > linear.log_evidence_ + 50
    assert np.sqrt(np.mean((auto.predict(X) - Y) ** 2)) < 0.12
    assert clone(auto).hidden_layer_sizes == "auto"


def test_all_that_was_tried_predicts(auto):
    alone = clone(AUTO).set_params(combine="best").fit(X, Y)
    assert alone.log_evidence_ == auto.log_evidence_
    minima = auto.evidence_report_.minima
    assert len(minima) == len(auto.networks_) > len(alone.evidence_report_.minima)
    sizes = {minimum.hidden_layer_sizes for minimum in minima if minimum.weight > 0}
    assert len(sizes) > 1
    assert sum(network.weight for network in auto.networks_) == pytest.approx(1)
    assert_array_equal(auto.networks_[0].coefs[0], alone.coefs_[0])
    assert len(result_of(auto).minima) + len(result_of(auto).others) == len(minima)


def test_linear_data_get_a_linear_model():
    y = X @ [1.0, -1.0] + 0.3 * np.random.default_rng(0).standard_normal(90)
    model = clone(AUTO).fit(X, y)
    assert model.hidden_layer_sizes_ == ()
    assert_allclose(model.coefs_[0][:, 0], [1, -1], atol=4 * 0.3 / np.sqrt(270))
    assert "Network: linear, 3 weights" in str(model.evidence_report_)


def test_classifier_and_second_fit():
    labels = np.where(np.linalg.norm(X, axis=1) < 2, "in", "out")
    model = EvidenceMLPClassifier("auto", n_restarts=2, random_state=0).fit(X, labels)
    assert model.hidden_layer_sizes_ != ()
    assert model.score(X, labels) > 0.95
    used = [minimum for minimum in model.evidence_report_.minima if minimum.weight > 0]
    assert len({minimum.hidden_layer_sizes for minimum in used}) > 1
    scores = np.array([minimum.log_evidence for minimum in used]) / len(X)
    weights = np.exp(scores / 0.05)
    assert_allclose([minimum.weight for minimum in used], weights / weights.sum(), rtol=1e-6)
    model.set_params(hidden_layer_sizes=(2,)).fit(X, labels)
    assert not hasattr(model, "candidates_")
    assert model.hidden_layer_sizes_ == (2,)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestSamplers:
    @pytest.mark.parametrize(
        ("sampler", "evidence", "y"),
        [
            pytest.param(HMCMLPRegressor, EvidenceMLPRegressor, Y, marks=pytest.mark.slow),
            (HMCMLPClassifier, EvidenceMLPClassifier, Y > 0),
        ],
    )
    def test_they_choose_as_evidence_does(self, sampler, evidence, y):
        model = sampler("auto", **BRIEF).fit(X[FEW], y[FEW])
        other = evidence("auto", n_restarts=2, random_state=0).fit(X[FEW], y[FEW])
        assert model._result.growth == other._result.growth
        assert model.hidden_layer_sizes_ == other.hidden_layer_sizes_
        assert clone(model).hidden_layer_sizes == "auto"

    def test_a_fitted_estimator_has_chosen_already(self, auto):
        model = HMCMLPRegressor("auto", sampler=Sampler(init=auto), **BRIEF).fit(X, Y)
        assert model.hidden_layer_sizes_ == auto.hidden_layer_sizes_
        assert not hasattr(model, "candidates_")
        assert hasattr(model, "comparison_")

    @pytest.mark.slow
    def test_warm_start_keeps_the_choice(self, capsys):
        rows = X[FEW], Y[FEW]
        model = HMCMLPRegressor("auto", warm_start=True, verbose=1, **BRIEF).fit(*rows)
        assert "hidden layers ()" in capsys.readouterr().out
        model.set_params(n_draws=15).fit(*rows)
        assert "hidden layers" not in capsys.readouterr().out  # nothing was searched again
        once = HMCMLPRegressor("auto", **{**BRIEF, "n_draws": 15}).fit(*rows)
        assert_array_equal(model.predict(X), once.predict(X))
