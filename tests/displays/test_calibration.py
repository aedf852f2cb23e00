"""Coverage of regressors, reliability of classifiers."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.displays import CalibrationDisplay

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((160, 2))
NOISE = RNG.standard_normal((160, 2))
Y = np.column_stack([X[:, 0], 5.0 * X[:, 1]]) + NOISE
TRAIN, TEST = slice(0, 60), slice(60, None)
CLASSES = np.digitize(Y[:, 0], [-0.5, 0.5])


@cache
def regressor(engine="evidence", n_outputs=1):
    y = Y[TRAIN, 0] if n_outputs == 1 else Y[TRAIN]
    if engine == "evidence":
        return EvidenceMLPRegressor((), random_state=0).fit(X[TRAIN], y)
    few = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "measure_evidence": False}
    return HMCMLPRegressor((2,), random_state=0, **few).fit(X[TRAIN], y)


@cache
def classifier(n_classes=2):
    y = CLASSES if n_classes == 3 else CLASSES > 0
    return EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X[TRAIN], y[TRAIN])


@pytest.mark.parametrize("engine", ["evidence", "sampling"])
def test_coverage_is_that_of_predictive_intervals(engine, readable):
    model = regressor(engine)
    display = CalibrationDisplay.from_estimator(model, X[TEST], Y[TEST, 0])
    coverage, observed = display.lines_[0].get_data()
    for i in range(4, len(coverage) - 1, 6):
        low, high = model.predict_interval(X[TEST], coverage[i]).T
        assert observed[i] == np.mean((low <= Y[TEST, 0]) & (Y[TEST, 0] <= high))
    assert (coverage[0], coverage[-1], observed[-1]) == (0.0, 1.0, 1.0)
    pit = model.predictive_cdf(X[TEST], Y[TEST, 0])
    assert_array_equal(display.curves[0].values, pit)
    heights = display.histograms_[0][0].get_xy()[:, 1]
    assert set(heights) - {0.0} <= set(np.histogram(pit, 10, (0, 1))[0])
    assert heights.max() == np.histogram(pit, 10, (0, 1))[0].max()
    readable(display)


def test_every_output_has_a_curve():
    model = regressor(n_outputs=2)
    display = CalibrationDisplay.from_estimator(model, X[TEST], Y[TEST])
    assert [curve.name for curve in display.curves] == ["y0", "y1"]
    assert len(display.lines_) == len(display.histograms_) == 2
    pit = model.predictive_cdf(X[TEST], Y[TEST])
    for line, u in zip(display.lines_, pit.T, strict=True):
        coverage, observed = line.get_data()
        assert_allclose(observed, [np.mean(np.abs(u - 0.5) <= c / 2) for c in coverage])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 5, 12])
def test_reliability_is_that_of_scikit_learn(strategy, n_bins):
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 0.8, 300)
    hits = rng.uniform(size=300) < p**2
    display = CalibrationDisplay.from_predictions(
        hits, {"mine": p, "half": np.full(300, 0.5)}, n_bins=n_bins, strategy=strategy
    )
    observed, predicted = calibration_curve(hits, p, n_bins=n_bins, strategy=strategy)
    assert_allclose(display.lines_[0].get_xdata(), predicted)
    assert_allclose(display.lines_[0].get_ydata(), observed)
    assert_allclose(display.lines_[1].get_data(), [[0.5], [hits.mean()]])


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 9), (40, 40)])
def test_error_bars_are_wilsons(k, n):
    expected = binomtest(k, n).proportion_ci(0.95, "wilson")
    hits, p = np.arange(n) < k, {"p": np.full(n, 0.3)}
    display = CalibrationDisplay.from_predictions(hits, p, n_bins=1)
    assert_allclose(display.curves[0].interval[0], expected, atol=1e-12)


def test_moderated_beside_most_probable(readable):
    model = make_pipeline(StandardScaler(), EvidenceMLPClassifier((), random_state=0))
    y = np.where(CLASSES > 0, "up", "down")
    model.fit(X[TRAIN], y[TRAIN])
    display = CalibrationDisplay.from_estimator(model, X[TEST], y[TEST], n_bins=5)
    inputs = model[:-1].transform(X[TEST])
    for curve, line, moderated in zip(display.curves, display.lines_, (True, False), strict=True):
        p = model[-1].predict_proba(inputs, moderated=moderated)[:, 1]
        assert_array_equal(curve.values, p)
        observed, predicted = calibration_curve(y[TEST] == "up", p, n_bins=5)
        assert_allclose(line.get_data(), [predicted, observed])
    assert [curve.name for curve in display.curves] == ["moderated", "most probable"]
    assert display.ax_.get_xlabel() == "predicted probability of\nup"
    readable(display)


def test_more_classes(readable):
    model = classifier(3)
    display = CalibrationDisplay.from_estimator(model, X[TEST], CLASSES[TEST])
    p = model.predict_proba(X[TEST])
    hits = model.predict(X[TEST]) == CLASSES[TEST]
    observed, predicted = calibration_curve(hits, p.max(axis=1), n_bins=10)
    assert_allclose(display.lines_[0].get_data(), [predicted, observed])
    readable(display)
    display = CalibrationDisplay.from_estimator(model, X[TEST], CLASSES[TEST], class_of_interest=0)
    assert_array_equal(display.curves[0].values, p[:, 0])


FROM = CalibrationDisplay.from_estimator, CalibrationDisplay.from_predictions


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: FROM[0](classifier(3), X, CLASSES[:-1]), "inconsistent"),
        (lambda: FROM[0](classifier(3), X, CLASSES, n_bins=0), "n_bins must be at least 1, got 0"),
        (lambda: FROM[0](classifier(3), X, CLASSES, strategy="odd"), "strategy must be"),
        (
            lambda: FROM[0](classifier(3), X, CLASSES, class_of_interest=7),
            "must be one of 0, 1, 2; got 7",
        ),
        (lambda: CalibrationDisplay.from_pit([0.2, 1.2]), "between 0 and 1"),
        (lambda: CalibrationDisplay.from_pit([0.2, np.nan]), "between 0 and 1"),
        (lambda: CalibrationDisplay.from_pit([]), "at least one row"),
        (lambda: CalibrationDisplay.from_pit([0.2], names=["a", "b"]), "2 names for 1 outputs"),
        (lambda: FROM[1]([0, 2], {"p": [0.5, 0.5]}), "booleans"),
        (lambda: FROM[1]([0, 1], {"p": [0.5, 1.5]}), "'p' do not lie between 0 and 1"),
        (lambda: FROM[1]([0, 1], {"p": [0.5]}), "inconsistent"),
        (lambda: FROM[1](["no", "yes"], [0.1, 0.8]), "give pos_label, one of no, yes"),
        (
            lambda: FROM[1](["no", "yes"], [0.1, 0.8], pos_label="maybe"),
            "pos_label must be one of no, yes; got 'maybe'",
        ),
    ],
)
def test_bad_input(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_arrays_of_predictions():
    hits, p = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.7, 0.3, 0.9])
    display = CalibrationDisplay.from_predictions(hits, p, n_bins=2)
    assert_allclose(display.line_.get_data(), [[0.2, 0.8], [0.0, 1.0]])
    assert display.line_ is display.lines_[0]
    labels = np.where(hits, "yes", "no")
    named = CalibrationDisplay.from_predictions(
        labels, p.tolist(), n_bins=2, pos_label="yes", name="mine"
    )
    assert_allclose(named.line_.get_data(), display.line_.get_data())
    assert named.curves[0].name == "mine"
    assert named.quantity == "yes"


def test_transformed_targets_have_their_own_distribution():
    model = TransformedTargetRegressor(EvidenceMLPRegressor(()), func=np.exp, inverse_func=np.log)
    model.fit(X[TRAIN], Y[TRAIN, 0])
    display = CalibrationDisplay.from_estimator(model, X[TEST], Y[TEST, 0])
    assert_array_equal(display.curves[0].values, model.predictive_cdf(X[TEST], Y[TEST, 0]))


def test_rivals_in_the_same_axes(readable):
    display = CalibrationDisplay.from_estimator(regressor(), X[TEST], Y[TEST, 0])
    rival = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[TRAIN], Y[TRAIN, 0])
    other = CalibrationDisplay.from_estimator(
        rival, X[TEST], Y[TEST, 0], ax=display.axes_, name="ridge"
    )
    mean, std = rival.predict(X[TEST], return_std=True)
    assert_allclose(other.curves[0].values, norm.cdf(Y[TEST, 0], mean, std))
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels.count("calibrated") == 1
    assert labels[-1] == "ridge"
    assert other.line_.get_color() != display.line_.get_color()
    assert len(display.figure_.legends) == 1  # the one of both
    readable(other)
