"""Missing inputs: refused by default, else drawn at fit and averaged over in predictions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
)
from skbayesnn.active_learning import information_gain
from skbayesnn.model_selection import EvidenceSearch

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.multivariate_normal([1.0, 2.0], [[1.0, 0.7], [0.7, 1.0]], 60)
Y = X @ [1.0, 2.0] + 0.3 * RNG.standard_normal(60)
LABELS = (Y > 5.0).astype(int)
GAPS = np.where(RNG.random(X.shape) < [0.1, 0.3], np.nan, X)
ROWS = np.array([[1.5, np.nan], [1.5, 2.2], [np.nan, 1.0], [np.nan, np.nan]])
FEW = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "evidence": False, "random_state": 0}
MODELS = {
    "evidence": EvidenceMLPRegressor((), noise="constant", random_state=0),
    "samples": HMCMLPRegressor((2,), noise="constant", **FEW),
    "evidence, classes": EvidenceMLPClassifier((), n_restarts=1, random_state=0),
    "samples, classes": HMCMLPClassifier((2,), **FEW),
}


def targets(model):
    return LABELS if hasattr(model, "predict_proba") else Y


def answers(model, rows):
    if hasattr(model, "predict_proba"):
        return [model.predict_proba(rows), model.predict_std(rows), model.decision_function(rows)]
    return [
        *model.predict(rows, return_std=True),
        model.predict_interval(rows, [0.5, 0.9]),
        model.predict_output_cov(rows),
        model.predict_expectation(rows, np.tanh),
        model.predictive_cdf(rows, np.full(len(rows), 5.0)),
        model.log_predictive_density(rows, np.full(len(rows), 5.0)),
    ]


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param]).set_params(missing="impute")


def test_refused_by_default(model):
    model.set_params(missing="error")
    with pytest.raises(ValueError, match=r"contains NaN\. Use missing='impute'"):
        model.fit(GAPS, targets(model))
    model.fit(X, targets(model))
    with pytest.raises(ValueError, match=r"contains NaN\. Use missing='impute'"):
        model.predict(ROWS)


def test_complete_rows_are_predicted_as_ever(model):
    plain = clone(model).set_params(missing="error").fit(X, targets(model))
    model.fit(X, targets(model))
    for found, expected in zip(answers(model, X), answers(plain, X), strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(model.log_evidence_, plain.log_evidence_)


def test_rows_do_not_depend_on_each_other(model):
    model.fit(GAPS, targets(model))
    together = answers(model, ROWS)
    for i in range(4):
        for some, all_of_them in zip(answers(model, ROWS[[i]]), together, strict=True):
            assert np.all(np.isfinite(some))
            assert_allclose(some, all_of_them[[i]], rtol=1e-9)


def test_order_and_repetition_do_not_matter(model):
    weight = np.random.default_rng(1).integers(0, 3, 60)
    index = np.random.default_rng(2).permutation(np.repeat(np.arange(60), weight))
    one = clone(model).fit(GAPS, targets(model), sample_weight=weight)
    other = model.fit(GAPS[index], targets(model)[index])
    for some, theirs in zip(answers(one, ROWS), answers(other, ROWS), strict=True):
        assert_allclose(some, theirs, rtol=1e-7)


def test_a_known_distribution():
    """Of a linear model at a row with a gap: mean and variance are those of a sum of normals."""
    model = EvidenceMLPRegressor((), noise="constant", missing="impute", random_state=0).fit(X, Y)
    mean, C = X.mean(axis=0), np.cov(X.T, ddof=0)
    at = mean[1] + C[1, 0] / C[0, 0] * (1.5 - mean[0])
    left = C[1, 1] - C[1, 0] ** 2 / C[0, 0]
    centre, std = model.predict([[1.5, np.nan]], return_std=True)
    assert centre[0] == pytest.approx(model.predict([[1.5, at]])[0], rel=1e-6)
    known = model.predict_std([[1.5, at]])[0] ** 2
    slope, slope_std = model.coefs_[0][1, 0], model.coefs_std_[0][1, 0]
    assert std[0] ** 2 == pytest.approx(known + (slope**2 + slope_std**2) * left, rel=1e-5)


def test_slopes_are_not_attenuated():
    """As what is missing is drawn given the targets, too."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((2000, 2))
    y = rows @ [1.0, 2.0] + 0.5 * rng.standard_normal(2000)
    gaps = rows.copy()
    gaps[rng.random(2000) < 0.4, 1] = np.nan
    model = EvidenceMLPRegressor((), noise="constant", missing="impute", random_state=0)
    model.fit(gaps, y)
    assert_allclose(model.coefs_[0][:, 0], [1.0, 2.0], atol=0.06)
    assert model.noise_std_ == pytest.approx(0.5, abs=0.05)


def test_classes_at_gaps():
    model = EvidenceMLPClassifier((), n_restarts=1, missing="impute", random_state=0)
    model.fit(X, LABELS)
    mean, C = X.mean(axis=0), np.cov(X.T, ddof=0)
    z = np.random.default_rng(0).standard_normal(20_000)
    at = mean[1] + C[1, 0] / C[0, 0] * (1.5 - mean[0])
    second = at + np.sqrt(C[1, 1] - C[1, 0] ** 2 / C[0, 0]) * z
    expected = model.predict_proba(np.column_stack([np.full(20_000, 1.5), second])).mean(axis=0)
    assert_allclose(model.predict_proba([[1.5, np.nan]])[0], expected, atol=0.02)
    drawn = model.predict_proba([[1.5, 2.0]])[0]
    assert not np.allclose(drawn, expected, atol=0.02)


def test_leave_one_out_has_an_entry_for_every_row():
    weight = np.arange(60) % 3
    model = clone(MODELS["evidence"]).set_params(missing="impute")
    model.fit(GAPS, Y, sample_weight=weight)
    found = model.leave_one_out_log_density_
    assert_array_equal(np.isnan(found), weight == 0)
    shares = np.column_stack([1 - expit(Y - 5), expit(Y - 5)])
    classifier = clone(MODELS["evidence, classes"]).set_params(missing="impute")
    found = classifier.fit(GAPS, shares, sample_weight=weight).leave_one_out_log_density_
    assert_array_equal(np.isnan(found), weight == 0)
    assert classifier.evidence_report_.n_targets == pytest.approx(weight.sum())


def test_functions_are_drawn_at_drawn_inputs():
    model = clone(MODELS["evidence"]).set_params(missing="impute").fit(X, Y)
    drawn = model.sample_y(ROWS[[0, 0, 1]], 600, random_state=0)
    std = model.predict_std(ROWS[:1], kind="epistemic")[0]
    assert np.std(drawn[0]) == pytest.approx(std, rel=0.12)
    assert abs(np.corrcoef(drawn[0], drawn[1])[0, 1]) < 0.17  # gaps of two rows are two unknowns


def test_frames_pickles_scores_and_searches():
    frame = pd.DataFrame(GAPS, columns=["a", "b"])
    model = clone(MODELS["evidence"]).set_params(missing="impute").fit(frame, Y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(frame), model.predict(frame))
    assert np.all(cross_val_score(model, GAPS, Y, cv=3) > 0.3)
    search = EvidenceSearch(model, {"prior": ["layer", "ard"]}).fit(frame, Y)
    assert np.all(np.isfinite(search.predict_interval(frame)))


def test_what_needs_complete_rows():
    model = clone(MODELS["evidence"]).set_params(missing="impute").fit(GAPS, Y)
    calls = [
        lambda: model.predict(ROWS, return_cov=True),
        lambda: model.sample_prior(ROWS),
        lambda: information_gain(model, ROWS),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="contains NaN, but this method needs complete rows"):
            call()


def test_bad_input(model):
    y, empty = targets(model), np.column_stack([np.full(60, np.nan), X[:, 1]])
    with pytest.raises(ValueError, match=r"Columns \[0\] of X hold NaN in all rows"):
        model.fit(empty, y)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(np.isnan(GAPS), np.inf, GAPS), y)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(GAPS, np.where(np.arange(60) == 3, np.nan, y))
    with pytest.raises(ValueError, match="missing must be one of 'error', 'impute'"):
        model.set_params(missing="drop").fit(GAPS, y)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("evidence", {}),
        ("evidence, classes", {"measure_evidence": False}),
        pytest.param("samples", {"sampler": "langevin"}, marks=pytest.mark.slow),
        pytest.param("samples, classes", {"sampler": "langevin"}, marks=pytest.mark.slow),
    ],
)
def test_check_estimator(name, options):
    model = clone(MODELS[name]).set_params(missing="impute", hidden_layer_sizes=(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_skip=None, on_fail=None)
    failed = [
        f"{r['check_name']}: {r['exception']!r}"
        for r in results
        if r["status"] not in ("passed", "skipped")
    ]
    assert failed == []
