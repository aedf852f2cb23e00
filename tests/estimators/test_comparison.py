"""Verdicts on predictions, error bars and evidence of an evidence fit beside samples."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.estimators.reports._comparison import (
    _in_margin,
    compare_classifiers,
    compare_regressors,
)

X = np.concatenate([np.linspace(-3, -1, 10), np.linspace(1, 3, 10)])[:, None]


def fake(bar_in_gap=0.1, evidence=-10.0, p_in_gap=0.9, converged=True, outside=1.0):
    """Predictions that are constant at the rows.

    Error bars and probabilities are others between -1 and 1, and beyond 3 by a factor ``outside``.
    """

    def std(X, kind="total"):
        beyond = np.where(np.abs(X[:, 0]) > 3.0, outside, 1.0)
        return beyond * np.where(np.abs(X[:, 0]) < 0.99, bar_in_gap, 0.1)

    def proba(X):
        p = np.where(np.abs(X[:, 0]) < 0.99, p_in_gap, 0.9)
        p = np.where(np.abs(X[:, 0]) > 3.0, p / outside, p)
        return np.column_stack([p, 1 - p])

    return SimpleNamespace(
        predict=lambda X: np.zeros(len(X)),
        predict_std=std,
        predict_proba=proba,
        noise_model_="constant",
        noise_std_=0.1,
        log_evidence_=evidence,
        log_evidence_std_=np.nan,
        diagnostics_=SimpleNamespace(converged=converged),
    )


def test_other_evidence_is_no_doubt_about_predictions():
    found = compare_regressors(fake(), fake(evidence=-15.0), X)
    assert found.adequate
    assert found.doubts == ()
    text = repr(found)
    assert "adequate here" in text
    assert "Use the evidence of the samples: log evidences differ by 5.0 +- 0.0 nats" in text
    assert "nan" not in text


def test_predictive_deviations_in_a_gap_count():
    found = compare_regressors(fake(), fake(bar_in_gap=0.3), X)
    assert found.quantities["typical error bar (weights)"] == pytest.approx((0.1, 0.1))
    assert found.adequate is False
    assert "predictive sd between rows" in found.doubts[0]
    assert found.evidence_doubt is None
    assert repr(found).endswith(f"Predict with the samples: {found.doubts[0]}.")


def test_class_probabilities_in_a_gap_count():
    assert compare_classifiers(fake(), fake(), X).adequate
    found = compare_classifiers(fake(), fake(p_in_gap=0.6), X)
    assert found.shift == 0.0
    assert "between rows differ by" in found.doubts[0]


def test_a_margin_around_the_range_counts():
    wider = fake(outside=1.5)
    found = compare_regressors(fake(), wider, X)
    assert found.quantities["predictive sd in a margin"] == pytest.approx((0.1, 0.15))
    assert [doubt.split(":")[0] for doubt in found.doubts] == ["predictive sd in a margin"]
    (doubt,) = compare_classifiers(fake(), wider, X).doubts
    assert doubt == "class probabilities in a margin differ by 0.300 on average"


def test_the_margin_keeps_correlations():
    first = np.linspace(2.0, 4.0, 21)
    moved = _in_margin(np.column_stack([first, -10.0 * first]))
    assert_allclose(moved[:, 0].min(), 1.8)
    assert_allclose(moved[:, 0].max(), 4.2)
    assert_allclose(moved[:, 1], -10.0 * moved[:, 0])
    assert np.all((moved[:, 0] < 2.0) | (moved[:, 0] > 4.0))
    assert_allclose(_in_margin(np.ones((4, 2))), 1.0)


def test_without_convergence_there_is_no_verdict():
    found = compare_regressors(fake(), fake(bar_in_gap=0.3, converged=False), X)
    assert found.adequate is None
    assert "No verdict" in repr(found)


def test_other_rows_leave_out_the_evidence():
    found = compare_regressors(fake(), fake(evidence=-15.0, bar_in_gap=0.3), X, same_rows=False)
    assert "log evidence" not in found.quantities
    assert found.evidence_doubt is None
    assert found.adequate is None
    assert repr(found).endswith("other rows, targets or weights.")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # brief chains
@pytest.mark.parametrize("change", ["nothing", "order", "rows", "targets", "weights"])
def test_a_sampler_of_other_data_than_the_evidence_fit_warns(change):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2, 2, (40, 1))
    y, weight = rows[:, 0] + 0.1 * rng.standard_normal(40), np.ones(40)
    fitted = EvidenceMLPRegressor((), noise="constant", random_state=0).fit(rows, y)
    data = {
        "nothing": (rows, y),
        "order": (rows[::-1], y[::-1], weight),
        "rows": (rows[:30], y[:30]),
        "targets": (rows, 5.0 - 3.0 * y),
        "weights": (rows, y, 2.0 * weight),
    }[change]
    brief = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "random_state": 0}
    sampler = HMCMLPRegressor.from_evidence(fitted, **brief)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        comparison = sampler.fit(*data).comparison_
    same = change in ("nothing", "order")
    assert comparison.same_rows is same
    assert ("log evidence" in comparison.quantities) is same
    about_rows = [w for w in caught if "other rows, targets or weights" in str(w.message)]
    assert len(about_rows) == (not same)
