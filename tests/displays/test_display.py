"""Common behaviour of all displays."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import CalibrationDisplay, PredictiveDisplay
from skbayesnn.model_selection import EvidenceSearch

pytestmark = pytest.mark.usefixtures("laplace")

X = np.random.default_rng(0).standard_normal((8, 2))
Y = np.arange(8) % 2


def predictive(**options):
    return PredictiveDisplay(X[:, 0], X[:, 0], np.ones(8), np.ones(8)).plot(**options)


def calibration(**options):
    return CalibrationDisplay.from_pit(np.linspace(0, 1, 30), **options)


def test_package_does_not_load_matplotlib():
    code = "import sys, skbayesnn.displays; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install skbayesnn\[plot\]"):
        predictive()


def test_own_figures_have_small_letters_and_leave_the_settings_alone():
    before = dict(plt.rcParams)
    display = predictive()
    assert dict(plt.rcParams) == before
    display.figure_.canvas.draw()
    assert display.ax_.xaxis.label.get_size() == 8
    assert {label.get_size() for label in display.ax_.get_xticklabels()} == {8}
    assert display.figure_.get_size_inches()[0] == 3.5


def test_one_axes_takes_the_first_panel_alone():
    _, ax = plt.subplots()
    display = calibration(ax=ax)
    assert len(display.lines_) == 1
    assert display.histograms_ == []
    _, axes = plt.subplots(1, 2)
    display = calibration(ax=axes)
    assert_array_equal(display.axes_, axes)
    assert len(display.histograms_) == 1


@pytest.mark.parametrize("ax", ["here", [1, 2], 3.0])
def test_anything_else_as_axes_is_refused(ax):
    with pytest.raises(ValueError, match="must be a matplotlib Axes"):
        calibration(ax=ax)


DRAWN = {
    "predictive": (EvidenceMLPRegressor, lambda e: PredictiveDisplay.from_estimator(e, X)),
    "calibration": (EvidenceMLPRegressor, lambda e: CalibrationDisplay.from_estimator(e, X, Y)),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_unfitted_estimators_are_refused(name, in_pipeline):
    estimator, draw = DRAWN[name]
    estimator = estimator()
    if in_pipeline:
        estimator = make_pipeline(StandardScaler(), estimator)
    with pytest.raises(NotFittedError):
        draw(estimator)


@pytest.mark.parametrize("name", ["predictive", "calibration"])
def test_estimators_of_others_need_probabilities(name):
    with pytest.raises(TypeError, match="return_std"):
        DRAWN[name][1](LinearRegression().fit(X, Y))
    with pytest.raises(NotFittedError):
        DRAWN[name][1](BayesianRidge())


def test_search_that_averages():
    model = EvidenceMLPRegressor(noise="constant", n_restarts=1, random_state=0)
    grid = {"hidden_layer_sizes": [(), (1,)], "prior": ["layer", "single"]}
    rows, y = np.repeat(X, 3, axis=0), np.repeat(X[:, 0], 3)
    search = EvidenceSearch(model, grid, combine="equal").fit(rows, y + 0.1 * np.arange(24) % 3)
    display = PredictiveDisplay.from_estimator(search, X, grid_resolution=5, fixed={1: 0.0})
    at = np.column_stack([display.x, np.zeros(5)])
    assert_allclose(display.mean, search.predict(at))
    assert_allclose(display.epistemic_std, search.predict_std(at, kind="epistemic"))
    pit = CalibrationDisplay.from_estimator(search, rows, y).pit[:, 0]
    assert_allclose(pit, search.predict_distribution(rows).cdf(y))


@pytest.mark.parametrize("layout", ["constrained", None])
def test_long_labels_stay_inside_the_figure(layout):
    figure, ax = plt.subplots(figsize=(3.5, 2.5), layout=layout)
    display = predictive()
    display.x_data = display.y_data = X[:, 0]
    display.data_name = "a very long name of many words " * 4
    display.plot(ax)
    figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0
    assert box.y1 <= figure.bbox.y1 + 1
