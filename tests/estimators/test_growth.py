"""hidden_layer_sizes="auto": the rule, and what it finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Sampler,
)
from skbayesnn.inference import Problem
from skbayesnn.inference._evidence_fit import seeds_of
from skbayesnn.inference.choice._growth import BY_EVIDENCE, Candidate, Ladder, best_of, grow
from skbayesnn.inference.minima._search import find_minima
from skbayesnn.inference.minima._widening import widened
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import Gaussian
from tests.tools import result_of

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(3)
X = RNG.uniform(-3, 3, (90, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(90)
AUTO = EvidenceMLPRegressor("auto", n_restarts=3, random_state=0)
FEW = slice(40)
PROBLEM = Problem(X[FEW], Y[FEW, None], np.ones(40), Gaussian.per_output(1))


def path_of(evidences, n_targets=1000, ladder=BY_EVIDENCE):
    """Run the rule on invented evidences; also the narrower networks that were offered."""
    offered = {}

    def attempt(sizes, narrower):
        offered[sizes] = narrower
        return Candidate(sizes, 10 * sum(sizes), evidences.get(sizes, -1000.0))

    return grow(attempt, lambda sizes: 10 * sum(sizes) <= n_targets, ladder), offered


ALWAYS = [(), (2,), (4,), (8,), (16,), (4, 4)]


class TestRule:
    def tried(self, evidences, n_targets=1000):
        path, _ = path_of(evidences, n_targets)
        return [candidate.hidden_layer_sizes for candidate in path]

    def test_deeper_then_wider(self):
        evidences = {(4,): -60, (4, 4): -50, (8, 8): -40, (16, 16): -39.5}
        path, offered = path_of({(): -90, (2,): -80, (8,): -10, **evidences}, n_targets=1500)
        sizes = [candidate.hidden_layer_sizes for candidate in path]
        assert sizes == [*ALWAYS, (8, 8), (16, 16)]
        assert best_of(path).hidden_layer_sizes == (8,)
        assert offered[(2,)] is None
        assert offered[(4,)] == (2,)
        assert offered[(4, 4)] is None
        assert offered[(16, 16)] == (8, 8)
        assert path[6][:3] == ((8, 8), 160, -40)

    def test_linear_targets_end_the_search_early(self):
        path, _ = path_of({(): -50})
        assert [c.hidden_layer_sizes for c in path] == ALWAYS
        assert best_of(path).hidden_layer_sizes == ()

    def test_no_more_weights_than_targets(self):
        evidences = {(2**i,): 10 * i for i in range(1, 9)}
        assert self.tried(evidences, n_targets=80) == [(), (2,), (4,), (8,), (4, 4)]
        assert self.tried(evidences, n_targets=10) == [()]

    def test_third_layer_where_two_are_better_than_one(self):
        ladder = Ladder(widths=(2,), narrow=2, deepest=3, least_gain=1.0)
        evidences = {(2,): -60, (2, 2): -50, (4, 4): -40, (8, 8): -41, (4, 4, 4): -30}
        path, _ = path_of(evidences, ladder=ladder)
        sizes = [candidate.hidden_layer_sizes for candidate in path]
        assert sizes == [(), (2,), (2, 2), (4, 4), (8, 8), (4, 4, 4)]
        path, _ = path_of({(2,): -50}, ladder=ladder)
        assert [c.hidden_layer_sizes for c in path] == [(), (2,), (2, 2), (4,)]

    def test_smaller_networks_are_preferred_within_a_margin(self):
        path, _ = path_of({(): -90, (2,): -80.5, (4,): -80})
        assert best_of(path).hidden_layer_sizes == (4,)
        assert best_of(path, 1.0).hidden_layer_sizes == (2,)
        assert best_of(path, 0.1).hidden_layer_sizes == (4,)

    def test_no_evidence(self):
        path, _ = path_of({(): np.nan, (2,): np.nan, (4,): -70})
        assert best_of(path).hidden_layer_sizes == (4,)
        path, _ = path_of(dict.fromkeys([(), (2,), (4,)], np.nan), n_targets=60)
        assert best_of(path).hidden_layer_sizes == ()


class TestWidening:
    def test_function_and_evidence_are_kept(self):
        posterior, settings = PROBLEM.posed((3,))
        (old,) = find_minima(posterior, settings, seeds_of(0, (3,), 1))
        wide = Network((2, 6, 1))
        theta = widened(old, wide, np.random.default_rng(0))
        for new, kept in zip(wide.layers(theta), old.network.layers(old.theta), strict=True):
            assert_array_equal(new[: len(kept) - 1, : kept.shape[1]], kept[:-1])
            assert_array_equal(new[-1, : kept.shape[1]], kept[-1])
            assert np.all(new != 0)
        f = outputs(old.network, old.theta, posterior.X)
        assert np.max(np.abs(outputs(wide, theta, posterior.X) - f)) < 0.1 * np.std(f)


class TestGivingUp:
    """Training whose evidence falls far, with as many weights as rows."""

    def test_growth_goes_on_without(self):
        inputs, targets = make_friedman1(120, n_features=5, noise=0.1, random_state=0)
        model = clone(AUTO).fit(inputs, targets)
        lost = [c.hidden_layer_sizes for c in model.candidates_ if np.isinf(c.value)]
        assert lost
        assert model.hidden_layer_sizes_ not in lost
        assert np.isfinite(model.log_evidence_)


@pytest.fixture(scope="module")
def auto():
    return clone(AUTO).fit(X, Y)


def test_choice_and_prediction(auto):
    best = max(auto.candidates_, key=lambda candidate: candidate.laplace_log_evidence)
    assert auto.hidden_layer_sizes_ == best.hidden_layer_sizes != ()
    assert auto.log_evidence_ >= best.laplace_log_evidence
    linear = EvidenceMLPRegressor(()).fit(X, Y)
    first = auto.candidates_[0].laplace_log_evidence
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


BRIEF = {"n_chains": 2, "n_warmup": 5, "n_draws": 5, "measure_evidence": False, "random_state": 0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestSamplers:
    @pytest.mark.parametrize(
        ("sampler", "evidence", "y"),
        [
            (HMCMLPRegressor, EvidenceMLPRegressor, Y),
            (HMCMLPClassifier, EvidenceMLPClassifier, Y > 0),
        ],
    )
    def test_they_choose_as_evidence_does(self, sampler, evidence, y):
        model = sampler("auto", **BRIEF).fit(X[FEW], y[FEW])
        other = evidence("auto", n_restarts=2, random_state=0).fit(X[FEW], y[FEW])
        assert model.candidates_ == other.candidates_
        assert model.hidden_layer_sizes_ == other.hidden_layer_sizes_ != ()
        assert clone(model).hidden_layer_sizes == "auto"

    def test_a_fitted_estimator_has_chosen_already(self, auto):
        model = HMCMLPRegressor("auto", sampler=Sampler(init=auto), **BRIEF).fit(X, Y)
        assert model.hidden_layer_sizes_ == auto.hidden_layer_sizes_
        assert not hasattr(model, "candidates_")
        assert hasattr(model, "comparison_")

    def test_warm_start_keeps_the_choice(self, capsys):
        rows = X[FEW], Y[FEW]
        model = HMCMLPRegressor("auto", warm_start=True, verbose=1, **BRIEF).fit(*rows)
        assert "hidden layers ()" in capsys.readouterr().out
        model.set_params(n_draws=9).fit(*rows)
        assert "hidden layers" not in capsys.readouterr().out  # nothing was searched again
        once = HMCMLPRegressor("auto", **{**BRIEF, "n_draws": 9}).fit(*rows)
        assert_array_equal(model.predict(X), once.predict(X))
