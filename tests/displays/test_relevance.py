"""Relevance of inputs."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.displays import RelevanceDisplay
from tests.tools import draws_of

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((60, 4)), columns=["one", "two", "three", "four"])
Y = np.sin(2 * X["three"]) + 0.5 * X["one"] + 0.1 * RNG.standard_normal(60)


def network(**options):
    options = {"prior": "ard", "n_restarts": 1, "random_state": 0} | options
    return EvidenceMLPRegressor((4,), **options)


@cache
def fitted():
    return network().fit(X, Y)


def bars(display):
    """Lengths of the bars by name."""
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    return dict(zip(names, [bar.get_width() for bar in display.bars_], strict=True))


def error_bars(display):
    """Ends of the error bars, from the top."""
    (lines,) = display.ax_.collections
    return np.array([s[:, 0] if len(s) else [np.nan, np.nan] for s in lines.get_segments()])


def test_bars_are_the_relevances_sorted(readable):
    display = RelevanceDisplay.from_estimator(fitted())
    found = bars(display)
    assert found == dict(zip(X.columns, fitted().feature_relevance_, strict=True))
    assert_array_equal(list(found.values()), np.sort(fitted().feature_relevance_)[::-1])
    assert next(iter(found)) == "three"
    readable(display)


def test_error_bars_are_those_of_the_report():
    report = fitted().evidence_report_.minima[0]
    display = RelevanceDisplay.from_estimator(fitted())
    drawn = 0
    for name, length, ends in zip(
        bars(display), bars(display).values(), error_bars(display), strict=True
    ):
        if report.gamma[f"input_{name}"] < 1:
            assert np.isnan(ends).all()
            continue
        # one standard deviation of ln alpha on either side, from the precision itself
        alpha, std = (
            report.weight_precisions[f"input_{name}"],
            report.log_precision_std[f"input_{name}"],
        )
        assert_allclose(ends, np.exp(np.log(alpha) + np.array([std, -std])) ** -0.5)
        assert ends[0] < length < ends[1]
        drawn += 1
    assert drawn >= 2


@pytest.mark.parametrize("fixed", [1.0, {"input_three": 1.0}])
def test_fixed_precisions_have_no_error_bars(fixed):
    display = RelevanceDisplay.from_estimator(
        network(prior=Prior("ard", precision=fixed)).fit(X, Y)
    )
    without = np.isnan(display.interval).all(axis=1)
    assert without[2]
    assert without.all() == (fixed == 1.0)


def test_error_bars_of_samplers_are_quantiles():
    few = {"n_chains": 2, "n_warmup": 10, "n_draws": 20, "measure_evidence": False}
    model = HMCMLPRegressor((2,), prior="ard", random_state=0, **few).fit(X, Y)
    display = RelevanceDisplay.from_estimator(model)
    draws = draws_of(model).alpha[..., :4].reshape(-1, 4) ** -0.5
    inside = np.mean((draws >= display.interval[:, 0]) & (draws <= display.interval[:, 1]), axis=0)
    assert_allclose(inside, 0.68, atol=0.05)
    assert_allclose(display.relevance, draws.mean(axis=0))


def test_names():
    plain = network().fit(X.to_numpy(), Y)
    assert set(bars(RelevanceDisplay.from_estimator(plain))) == {"x0", "x1", "x2", "x3"}
    named = RelevanceDisplay.from_estimator(plain, names=list("abcd"))
    assert next(iter(bars(named))) == "c"
    scaled = make_pipeline(StandardScaler(), network()).fit(X, Y)
    assert set(bars(RelevanceDisplay.from_estimator(scaled))) == set(X.columns)
    nameless = make_pipeline(FunctionTransformer(np.asarray), network()).fit(X, Y)
    assert set(bars(RelevanceDisplay.from_estimator(nameless))) == {"x0", "x1", "x2", "x3"}


def test_bad_input():
    with pytest.raises(ValueError, match="need a fit with prior='ard'; this one has prior='layer'"):
        RelevanceDisplay.from_estimator(network(prior="layer").fit(X, Y))
    with pytest.raises(ValueError, match="3 names for 4 inputs"):
        RelevanceDisplay.from_estimator(fitted(), names=list("abc"))
