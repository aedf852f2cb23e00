"""Every way of going about a fit, with every likelihood, noise model and prior.

Small problems are treated as large ones, so that what is reached by size alone is tried with all
the rest. Cases cover all pairs of the product, some of them with ``-m slow``.
"""

import pickle
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
    Solver,
)
from skbayesnn.inference import Method
from skbayesnn.inference.curvature._method import Curvature
from tests.tools import BRIEF, result_of, set_limits

pytestmark = pytest.mark.usefixtures("laplace")


class Regime(NamedTuple):
    """Limits that make a small problem a large one, and the method that must follow."""

    limits: dict
    curvature: Curvature = Curvature.DENSE
    traits: str = "dense exact cheap refines"

    @property
    def words(self):
        return set(self.traits.split())


STRUCTURED = {"dense": 0, "dual_work": 0}
REGIMES = {
    "dense": Regime({}),
    "not_refined": Regime({"refined": -1}, traits="dense exact cheap"),
    "not_cheap": Regime({"cheap_work": 0}, traits="dense exact"),
    "by_gradients": Regime({"softmax_work": 0}, traits="dense exact by_gradients"),
    "dual_steps": Regime({"dual": 0}, Curvature.DUAL),
    "dual": Regime({"dense": 0, "dual": 0}, Curvature.DUAL, ""),
    "structured": Regime(STRUCTURED, Curvature.KRONECKER, "by_gradients"),
    "batches": Regime(
        {**STRUCTURED, "batch_rows": 1, "batch_steps": 900},
        Curvature.KRONECKER,
        "by_gradients by_batches early",
    ),
    "early": Regime({"batch_rows": 1, "batch_rows_per_weight": 10**6}, traits="dense early"),
    "largest": Regime({**STRUCTURED, "moderation_work": 0}, Curvature.KRONECKER, "by_gradients"),
}
TRAITS = "dense", "exact", "cheap", "refines", "by_gradients", "by_batches", "early"
REGRESSIONS = "one output", "two outputs"
CLASSIFICATIONS = "two classes", "three classes"
TASKS = REGRESSIONS + CLASSIFICATIONS
NOISES = "constant", "shared", "student_t", "input_dependent", "auto"
HIDDEN = (), (3,), (2, 2)
PRIORS = "single", "layer", "ard"


def reaches(regime, task, hidden):
    """Only softmax networks with hidden units are ever trained by gradients with dense matrices."""
    return regime != "by_gradients" or (task == "three classes" and hidden)


def covering():
    """Cases in which every value meets every other one, by Latin squares of layers and priors.

    In those of them that are not slow, regimes and noise models do so.
    """
    for r, regime in enumerate(REGIMES):
        for t, task in enumerate(TASKS):
            classes = task in CLASSIFICATIONS
            for m, noise in enumerate(["none"] * 3 if classes else NOISES):
                hidden, prior = HIDDEN[(r + m + t + 1) % 3], PRIORS[(r + 2 * m + 1) % 3]
                fast = m == 0 if classes else (r + m) % 2 == t
                marks = [] if fast else pytest.mark.slow
                if reaches(regime, task, hidden):
                    yield pytest.param(regime, task, noise, hidden, prior, marks=marks)


each_regime = pytest.mark.parametrize("regime", REGIMES)


def make_rows(task, n=30, seed=0):
    """Noise that grows with an input, an outlier, and an input of another scale."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2)) * [1.0, 30.0]
    y = np.sin(1.5 * X[:, 0]) + X[:, 1] / 60.0
    if task in CLASSIFICATIONS:
        y = y + 0.3 * rng.standard_normal(n)
        return X, (y > 0).astype(str) if task == "two classes" else np.digitize(y, [-0.5, 0.5])
    y += np.where(X[:, 0] > 0, 0.4, 0.05) * rng.standard_normal(n)
    y[3] += 3.0
    y = 10.0 * y + 50.0
    second = np.cos(X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, y if task == "one output" else np.column_stack([y, second])


def make_model(task, noise="auto", hidden=(3,), prior="layer", **options):
    options = {"hidden_layer_sizes": hidden, "prior": prior, "n_restarts": 1} | options
    options = {"random_state": 0, "solver": Solver(max_iter=30)} | options
    if task in CLASSIFICATIONS:
        return EvidenceMLPClassifier(**options)
    model = EvidenceMLPRegressor(noise=Noise(noise, hidden_layer_sizes=(2,)))
    return model.set_params(**options)


def fit(model, X, y, sample_weight=None):
    """Fit; nothing may be warned of but what the report says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight)
    best = model.evidence_report_.minima[0]
    expected = [] if best.converged else ["The hyperparameters of the best minimum did not"]
    if np.isnan(model.log_evidence_):
        assert best.verdict.startswith("no evidence: ")
        reason = best.verdict.removeprefix("no evidence: ")
        expected = [] if "many rows" in reason else [f"log_evidence_ is nan: {reason}"]
    assert all(warning.category is ConvergenceWarning for warning in caught)
    messages = [str(warning.message) for warning in caught]
    about_predictions = "The fit explains nothing", "The 95 % intervals", "The fit predicts"
    messages = [m for m in messages if not m.startswith(about_predictions)]
    assert len(messages) == len(expected)
    assert all(m.startswith(start) for m, start in zip(messages, expected, strict=True))
    return model


def check_method(model, regime):
    """Check that the limits have chosen the method."""
    method, (_, curvature, _) = Method.choose(*result_of(model).posed), REGIMES[regime]
    assert method.curvature is curvature
    expected = REGIMES[regime].words
    if not model.hidden_layer_sizes_ and "early" in expected:  # linear models are trained as ever
        expected = {"by_gradients"} if "by_gradients" in expected else REGIMES["dense"].words
    assert {name for name in TRAITS if getattr(method, name)} == expected
    if not method.has_evidence:
        assert np.isnan(model.log_evidence_)


def predictions(model, X, y):
    """Everything that a model says about some rows."""
    found = {"density": model.log_predictive_density(X, y), "std": model.predict_std(X)}
    if is_classifier(model):
        found["proba"] = model.predict_proba(X)
        return found
    found["mean"], found["interval"] = model.predict(X), model.predict_interval(X)
    found["cdf"], found["functions"] = model.predict_distribution(X).cdf(y), model.sample_y(X, 3)
    for kind in ("epistemic", "aleatoric"):
        found[kind] = model.predict_std(X, kind=kind)
    return found


def check_predictions(model, X, y):
    """At the training rows and far from them."""
    for rows in (X, 100.0 * X):
        found = predictions(model, rows, y)
        assert all(np.all(np.isfinite(values)) for values in found.values())
        assert model.predict(rows).shape == y.shape
        if is_classifier(model):
            assert np.all(found["proba"] >= 0)
            assert_allclose(found["proba"].sum(axis=1), 1.0, rtol=1e-12)
            assert found["std"].shape == found["proba"].shape
            assert np.all(found["std"] >= 0)
            continue
        assert found["mean"].shape == found["std"].shape == y.shape
        assert np.all(found["epistemic"] >= 0)
        assert np.all(found["aleatoric"] > 0)
        assert_allclose(np.hypot(found["epistemic"], found["aleatoric"]), found["std"], rtol=1e-6)
        assert np.all(found["interval"][..., 0] < found["interval"][..., 1])
        assert np.all((found["cdf"] >= 0) & (found["cdf"] <= 1))
    assert np.all(np.isfinite(model.sample_prior(X, 2)))


def check_report(model):
    """Finite but for an evidence that is said to be missing, and error bars of all weights."""
    report = model.evidence_report_
    assert "Log evidence" in repr(report)
    assert np.all(np.isfinite(model.weight_precisions_))
    assert np.isfinite(model.n_effective_weights_)
    assert sum(m.weight for m in report.minima) == pytest.approx(1.0)
    assert np.all(np.isfinite(model.leave_one_out_log_density_))
    for stds in (model.coefs_std_, model.intercepts_std_):
        assert all(np.all(np.isfinite(std) & (std > 0)) for std in stds)
    check_posterior(model, model.posterior_[0])
    if np.isfinite(model.log_evidence_):
        assert model.log_evidence_ >= report.minima[0].log_evidence - 1e-9


def check_posterior(model, posterior):
    """The Gaussian that made the error bars, whatever its form."""
    layers = zip(model.coefs_std_, model.intercepts_std_, strict=True)
    stds = np.concatenate([np.vstack(layer).ravel() for layer in layers])
    assert_allclose(posterior.std, stds, rtol=5e-4)
    assert_allclose(np.sqrt(np.diag(posterior.covariance)), stds, rtol=5e-4)
    assert posterior.sample(3).shape == (3, len(posterior.names))


def check(model, regime, X, y):
    check_method(fit(model, X, y), regime)
    check_predictions(model, X, y)
    check_report(model)


def assert_same(first, second):
    for key, values in first.items():
        assert_array_equal(values, second[key], err_msg=key)


# --- the product ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("regime", "task", "noise", "hidden", "prior"), covering(), ids=str)
def test_every_fit_is_usable(monkeypatch, regime, task, noise, hidden, prior):
    set_limits(monkeypatch, **REGIMES[regime].limits)
    # as many steps on these few rows as on a thousand
    monkeypatch.setattr("skbayesnn.inference.optimise._batches.EPOCHS", 20_000)
    X, y = make_rows(task)
    model = make_model(task, noise, hidden, prior)
    check(model, regime, X, y)
    if task in CLASSIFICATIONS:  # no worse than knowing nothing
        assert np.mean(model.log_predictive_density(X, y)) > -np.log(len(model.classes_)) - 0.1
    else:
        assert model.score(X, y) > -0.1


FIXED = {"prior": Prior(precision=1.0)}
GIVEN = {
    "one output": FIXED | {"noise__std": 3.0},
    "two outputs": FIXED | {"noise__std": {0: 3.0}},
    "two classes": FIXED,
    "three classes": FIXED,
}
COMBINATIONS = "best", "equal", "evidence", "stacking", "tempered"


KINDS = [  # two tasks in every regime
    (regime, task)
    for (r, regime), (t, task) in product(enumerate(REGIMES), enumerate(TASKS))
    if (r + t) % 2 == 0 and reaches(regime, task, (3,))
]
each_kind = pytest.mark.parametrize(("regime", "task"), KINDS)


@each_kind
def test_given_precisions(monkeypatch, regime, task):
    """In every way to combine minima, and with Gauss-Newton curvature, too."""
    set_limits(monkeypatch, **REGIMES[regime].limits)
    X, y = make_rows(task)
    combine = COMBINATIONS[(list(REGIMES).index(regime) + TASKS.index(task)) % 5]
    model = make_model(task, "constant", (2,), **GIVEN[task] | {"combine": combine})
    check(model.set_params(n_restarts=2), regime, X, y)
    assert_array_equal(model.weight_precisions_, 1.0)
    if task in REGRESSIONS:
        assert np.ravel(model.noise_std_)[0] == pytest.approx(3.0)
    fit(model.set_params(solver=Solver("gauss_newton", max_iter=20), n_restarts=1), X, y)
    assert not Method.choose(*result_of(model).posed).exact
    check_report(model)


@each_regime
def test_fits_can_be_repeated_continued_and_kept(monkeypatch, regime):
    set_limits(monkeypatch, **REGIMES[regime].limits)
    task = "two outputs" if reaches(regime, "two outputs", (2,)) else "three classes"
    X, y = make_rows(task, 20)
    model = fit(make_model(task, "student_t", (2,), solver=Solver(max_iter=10)), X, y)
    found = predictions(model, X, y)
    assert_same(predictions(fit(clone(model), X, y), X, y), found)
    assert_same(predictions(pickle.loads(pickle.dumps(model)), X, y), found)
    before = model.log_evidence_
    fit(model.set_params(warm_start=True), X, y)
    check_method(model, regime)
    check_predictions(model, X, y)
    if np.isfinite(before):
        assert model.log_evidence_ > before - 0.5


# --- samplers ------------------------------------------------------------------------------------

chains_are_too_short = pytest.mark.filterwarnings("ignore:The chains have not converged")


def make_sampler(task, noise="constant", **options):
    options = {"hidden_layer_sizes": (2,)} | BRIEF | options
    if task in CLASSIFICATIONS:
        return HMCMLPClassifier(**options)
    return HMCMLPRegressor(noise=Noise(noise, hidden_layer_sizes=(2,)), **options)


@chains_are_too_short
@pytest.mark.parametrize(
    ("task", "noise"), [("two outputs", "input_dependent"), ("three classes", "none")]
)
def test_samplers_of_large_networks(monkeypatch, task, noise):
    set_limits(monkeypatch, **REGIMES["largest"].limits)
    X, y = make_rows(task)
    fitted = fit(make_model(task, noise, (2,), solver=Solver(max_iter=10)), X, y)
    kind = HMCMLPClassifier if task in CLASSIFICATIONS else HMCMLPRegressor
    from_the_prior = make_sampler(task, noise, sampler=Sampler(init="prior"))
    for model in (kind.from_evidence(fitted, **BRIEF), from_the_prior):
        check_predictions(model.fit(X, y), X, y)


# --- what has failed before ----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_huge_weight(monkeypatch, task):
    set_limits(monkeypatch, dual_targets=0)
    X, y = make_rows(task, 10)
    with pytest.warns(UserWarning, match="adds up"):
        model = make_model(task, "constant", (16,)).fit(X, y, np.full(10, 1e9))
    assert Method.choose(*result_of(model).posed).curvature is Curvature.DUAL
    check_predictions(model, X, y)
    check_report(model)
