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


@pytest.mark.parametrize(
    ("compare", "changes", "doubt"),
    [
        (compare_regressors, {}, None),
        (compare_regressors, {"evidence": -15.0}, None),  # no doubt about predictions
        (compare_regressors, {"bar_in_gap": 0.3}, "predictive sd between rows"),
        (compare_regressors, {"outside": 1.5}, "predictive sd in a margin"),
        (compare_classifiers, {}, None),
        (compare_classifiers, {"p_in_gap": 0.6}, "class probabilities between rows differ by"),
        (compare_classifiers, {"outside": 1.5}, "class probabilities in a margin differ by 0.300"),
    ],
)
def test_doubts(compare, changes, doubt):
    found = compare(fake(), fake(**changes), X)
    assert found.adequate is (doubt is None)
    text = " ".join(repr(found).split())
    if doubt is None:
        assert found.doubts == ()
        assert "adequate here" in text
    else:
        (told,) = found.doubts
        assert told.startswith(doubt)
        assert text.endswith(f"Predict with the samples: {told}.")
    assert ("log evidences differ by 5.0 +- 0.0 nats" in text) == ("evidence" in changes)
    assert "nan" not in text


def test_without_convergence_or_equal_rows_there_is_no_verdict():
    found = compare_regressors(fake(), fake(bar_in_gap=0.3, converged=False), X)
    assert found.adequate is None
    assert "No verdict" in repr(found)
    found = compare_regressors(fake(), fake(evidence=-15.0, bar_in_gap=0.3), X, same_rows=False)
    assert "log evidence" not in found.quantities
    assert found.evidence_doubt is None
    assert found.adequate is None
    assert repr(found).endswith("other rows, targets or weights.")


def test_the_margin_keeps_correlations():
    first = np.linspace(2.0, 4.0, 21)
    moved = _in_margin(np.column_stack([first, -10.0 * first]))
    assert_allclose(moved[:, 0].min(), 1.8)
    assert_allclose(moved[:, 0].max(), 4.2)
    assert_allclose(moved[:, 1], -10.0 * moved[:, 0])
    assert np.all((moved[:, 0] < 2.0) | (moved[:, 0] > 4.0))
    assert_allclose(_in_margin(np.ones((4, 2))), 1.0)


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
