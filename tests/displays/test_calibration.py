"""Coverage of predictive intervals."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.displays import CalibrationDisplay
from skbayesnn.model_selection import EvidenceSearch

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((160, 2))
NOISE = RNG.standard_normal((160, 2))
Y = np.column_stack([X[:, 0], 5.0 * X[:, 1]]) + NOISE
TRAIN, TEST = slice(0, 60), slice(60, None)


@cache
def regressor(engine="evidence", n_outputs=1):
    y = Y[TRAIN, 0] if n_outputs == 1 else Y[TRAIN]
    if engine == "evidence":
        return EvidenceMLPRegressor((), random_state=0).fit(X[TRAIN], y)
    few = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "measure_evidence": False}
    return HMCMLPRegressor((2,), random_state=0, **few).fit(X[TRAIN], y)


@pytest.mark.parametrize("engine", ["evidence", "sampling"])
def test_coverage_is_that_of_predictive_intervals(engine, readable):
    model = regressor(engine)
    display = CalibrationDisplay.from_estimator(model, X[TEST], Y[TEST, 0])
    coverage, observed = display.lines_[0].get_data()
    for i in range(4, len(coverage) - 1, 6):
        low, high = model.predict_interval(X[TEST], coverage[i]).T
        assert observed[i] == np.mean((low <= Y[TEST, 0]) & (Y[TEST, 0] <= high))
    assert (coverage[0], coverage[-1], observed[-1]) == (0.0, 1.0, 1.0)
    pit = model.predict_distribution(X[TEST]).cdf(Y[TEST, 0])
    assert_array_equal(display.pit[:, 0], pit)
    heights = display.histograms_[0][0].get_xy()[:, 1]
    assert set(heights) - {0.0} <= set(np.histogram(pit, 10, (0, 1))[0])
    assert heights.max() == np.histogram(pit, 10, (0, 1))[0].max()
    readable(display)


def test_left_out_training_rows_are_those_of_refits():
    model = EvidenceMLPRegressor((), prior=Prior(precision=1.0), noise=1.0, standardize=False)
    rows, y = X[:20], Y[:20, 0]
    display = CalibrationDisplay.from_estimator(make_pipeline(clone(model)).fit(rows, y))
    refits = []
    for i in range(20):
        model.fit(np.delete(rows, i, axis=0), np.delete(y, i))
        refits.append(model.predict_distribution(rows[[i]]).cdf(y[[i]])[0])
    assert_allclose(np.sort(display.pit[:, 0]), np.sort(refits), rtol=1e-6)


def test_samplers_predict_left_out_rows_less_well_than_their_training_rows():
    model = regressor("sampling")
    left_out = CalibrationDisplay.from_estimator(model).pit
    assert np.std(left_out) > np.std(
        CalibrationDisplay.from_estimator(model, X[TRAIN], Y[TRAIN, 0]).pit
    )


def test_left_out_rows_of_searches():
    grid = {"prior": ["layer", "ard"]}
    search = EvidenceSearch(EvidenceMLPRegressor(()), grid).fit(X[TRAIN], Y[TRAIN, 0])
    of_best = CalibrationDisplay.from_estimator(search.best_estimator_).pit
    assert_array_equal(CalibrationDisplay.from_estimator(search).pit, of_best)
    average = search.set_params(combine="equal").fit(X[TRAIN], Y[TRAIN, 0])
    with pytest.raises(TypeError, match="Pass X and y"):
        CalibrationDisplay.from_estimator(average)


def test_every_output_has_a_curve():
    model = regressor(n_outputs=2)
    display = CalibrationDisplay.from_estimator(model, X[TEST], Y[TEST])
    assert display.names == ["y0", "y1"]
    assert len(display.lines_) == len(display.histograms_) == 2
    pit = model.predict_distribution(X[TEST]).cdf(Y[TEST])
    for line, u in zip(display.lines_, pit.T, strict=True):
        coverage, observed = line.get_data()
        assert_allclose(observed, [np.mean(np.abs(u - 0.5) <= c / 2) for c in coverage])


def fitted(model, y=Y[TRAIN, 0], **limits):
    return clone(model).fit(X[TRAIN], y, **limits)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda draw: draw(regressor(), X, Y[:-1, 0]), ValueError, "inconsistent"),
        (lambda draw: draw(regressor(), X=[[0.0]]), ValueError, "Pass X and y together"),
        (lambda draw: draw(regressor(), y=[0.0]), ValueError, "Pass X and y together"),
        (lambda draw: draw(fitted(BayesianRidge())), TypeError, "Pass X and y"),
        (
            lambda draw: draw(fitted(EvidenceMLPRegressor(()), censored=np.zeros(60, dtype=int))),
            TypeError,
            "Pass X and y",
        ),
        (
            lambda draw: draw(fitted(EvidenceMLPClassifier(()), Y[TRAIN, 0] > 0), X, Y[:, 0] > 0),
            TypeError,
            r"sklearn\.calibration\.CalibrationDisplay",
        ),
        (lambda _: CalibrationDisplay.from_pit([0.2, 1.2]), ValueError, "between 0 and 1"),
        (lambda _: CalibrationDisplay.from_pit([0.2, np.nan]), ValueError, "between 0 and 1"),
        (lambda _: CalibrationDisplay.from_pit([]), ValueError, "at least one row"),
        (lambda _: CalibrationDisplay.from_pit([0.2], names="ab"), ValueError, "2 names for 1"),
    ],
)
def test_bad_input(draw, error, message):
    with pytest.raises(error, match=message):
        draw(CalibrationDisplay.from_estimator)


def test_rivals_in_the_same_axes(readable):
    display = CalibrationDisplay.from_estimator(regressor(), X[TEST], Y[TEST, 0])
    rival = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[TRAIN], Y[TRAIN, 0])
    other = CalibrationDisplay.from_estimator(
        rival, X[TEST], Y[TEST, 0], ax=display.axes_, name="ridge"
    )
    mean, std = rival.predict(X[TEST], return_std=True)
    assert_allclose(other.pit[:, 0], norm.cdf(Y[TEST, 0], mean, std))
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels.count("calibrated") == 1
    assert labels[-1] == "ridge"
    assert other.lines_[0].get_color() != display.lines_[0].get_color()
    assert len(display.figure_.legends) == 1  # the one of both
    readable(other)
