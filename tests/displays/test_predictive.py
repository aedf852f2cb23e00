"""Predictions along one input."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Solver
from skbayesnn.displays import PredictiveDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 3)) * [1.0, 10.0, 1.0]
Y = np.column_stack([5.0 * np.sin(X[:, 0]) + X[:, 2], X[:, 1]]) + 0.1 * RNG.standard_normal((40, 2))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def evidence():
    return EvidenceMLPRegressor((3,), n_restarts=1, solver=Solver(max_iter=50), random_state=0)


@cache
def fitted(engine="evidence", n_outputs=2):
    y = Y if n_outputs == 2 else Y[:, 0]
    if engine == "evidence":
        return evidence().fit(X, y)
    return HMCMLPRegressor(
        (2,), n_chains=2, n_warmup=10, n_draws=10, measure_evidence=False, random_state=0
    ).fit(X, y)


def band_edges(band):
    """Lowest and highest ordinates of a filled band at every abscissa."""
    vertices = band.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    columns = [vertices[vertices[:, 0] == value, 1] for value in x]
    return x, np.array([c.min() for c in columns]), np.array([c.max() for c in columns])


@pytest.mark.parametrize("engine", ["evidence", "sampling"])
@pytest.mark.parametrize(("n_outputs", "output"), [(1, 0), (2, 1)])
def test_drawn_numbers_are_the_estimators(engine, n_outputs, output, readable):
    model = fitted(engine, n_outputs)
    y = Y if n_outputs == 2 else Y[:, 0]
    display = PredictiveDisplay.from_estimator(
        model, X, y, feature=2, output=output, n_functions=3, grid_resolution=30
    )
    grid = np.tile(np.median(X, axis=0), (30, 1))
    width = np.ptp(X[:, 2])
    grid[:, 2] = np.linspace(X[:, 2].min() - 0.1 * width, X[:, 2].max() + 0.1 * width, 30)

    def column(values):
        return values if n_outputs == 1 else values[:, output]

    mean, total = (column(values) for values in model.predict(grid, return_std=True))
    assert_allclose(display.line_.get_xdata(), grid[:, 2])
    assert_allclose(display.line_.get_ydata(), mean)
    for band, std in zip(
        display.bands_, (total, column(model.predict_std(grid, kind="epistemic"))), strict=True
    ):
        x, low, high = band_edges(band)
        assert_allclose(x, grid[:, 2])
        assert_allclose(low, mean - 2 * std)
        assert_allclose(high, mean + 2 * std)
    draws = column(model.sample_y(grid, 3, random_state=0))
    assert_allclose(np.array([line.get_ydata() for line in display.functions_]).T, draws)
    assert_array_equal(display.data_.get_xdata(), X[:, 2])
    assert_array_equal(display.data_.get_ydata(), Y[:, output])
    assert display.ax_.get_ylabel() == ("y" if n_outputs == 1 else f"y{output}")
    readable(display)


def test_pipeline_of_a_data_frame():
    targets = pd.Series(Y[:, 0], name="yield")
    model = make_pipeline(StandardScaler(), evidence()).fit(FRAME, targets)
    display = PredictiveDisplay.from_estimator(
        model, FRAME, targets, feature="b", fixed={"a": 1.5}, grid_resolution=10
    )
    grid = pd.DataFrame({"a": 1.5, "b": display.x, "c": FRAME["c"].median()})
    assert_allclose(display.mean, model.predict(grid))
    assert display.ax_.get_xlabel() == "b"
    assert display.ax_.get_ylabel() == "yield"


def test_categories_are_held_at_the_most_frequent_one():
    frame = FRAME.assign(kind=np.resize(["u", "v", "v", "v"], len(FRAME)))
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encode, evidence()).fit(frame, np.linspace(0, 1, len(FRAME)))
    display = PredictiveDisplay.from_estimator(model, frame, feature="a", grid_resolution=5)
    grid = frame.iloc[:5].assign(
        a=display.x, b=frame["b"].median(), c=frame["c"].median(), kind="v"
    )
    assert_allclose(display.mean, model.predict(grid))
    with pytest.raises(ValueError, match="kind is not numeric"):
        PredictiveDisplay.from_estimator(model, frame, feature="kind")


@pytest.mark.parametrize(
    ("X_shown", "options", "message"),
    [
        (X, {"feature": 3}, "no feature 3; X has 3 features: x0, x1, x2"),
        (X, {"feature": "a"}, "no feature 'a'"),
        (X, {"output": 2}, "no output 2; the model has 2"),
        (X, {"fixed": {"z": 1.0}}, "no feature 'z'"),
        (X, {"fixed": {0: 1.0}}, "x0 cannot be fixed"),
        (X[:, :2], {}, "2 features"),
        (X[:, 0], {}, "2D array"),
        (X, {"y": Y[:-1]}, "inconsistent"),
        (X, {"y": Y[:, :1]}, "fitted with 2 outputs"),
        (X * [0.0, 1.0, 1.0], {}, "x0 has the same value"),
    ],
)
def test_bad_input(X_shown, options, message):
    with pytest.raises(ValueError, match=message):
        PredictiveDisplay.from_estimator(fitted(), X_shown, **options)


def test_classifiers_are_refused():
    model = EvidenceMLPClassifier((), random_state=0).fit(X, Y[:, 0] > 0)
    with pytest.raises(TypeError, match="needs a regressor"):
        PredictiveDisplay.from_estimator(model, X)


def test_rivals_with_error_bars(readable):
    rival = BayesianRidge().fit(X, Y[:, 0])
    display = PredictiveDisplay.from_estimator(rival, X, Y[:, 0], grid_resolution=11)
    assert display.epistemic_std is None
    assert display.functions is None
    assert len(display.bands_) == 1
    at = np.repeat(np.median(X, axis=0)[None], 11, axis=0)
    at[:, 0] = display.x
    mean, std = rival.predict(at, return_std=True)
    assert_allclose(display.mean, mean)
    assert_allclose(display.total_std, std)
    readable(display)


def test_counts_are_drawn_as_rates_and_without_negative_values():
    rng = np.random.default_rng(1)
    x, exposure = rng.uniform(0, 3, (80, 1)), rng.uniform(0.2, 2, 80)
    counts = rng.poisson(exposure * np.exp(x[:, 0]))
    model = EvidenceMLPRegressor((), noise="poisson").fit(x, counts, exposure=exposure)
    with pytest.raises(ValueError, match="Pass those of y as exposure"):
        PredictiveDisplay.from_estimator(model, x, counts)
    display = PredictiveDisplay.from_estimator(model, x, counts, exposure=exposure, n_functions=200)
    assert_allclose(display.y_data, counts / exposure)
    assert display.target_name == "rate"
    rate, noise = display.mean, display.total_std**2 - display.epistemic_std**2
    assert_allclose(noise, rate / np.median(exposure), rtol=0.01)  # of the Poisson distribution
    assert_allclose(display.functions.mean(axis=1), display.mean, rtol=0.03)  # by 200 draws
    assert_allclose(display.functions.std(axis=1), display.epistemic_std, rtol=0.3)
    lows = [band_edges(band)[1].min() for band in display.bands_]
    assert lows[0] == 0.0
    assert lows[1] > 0.0


def test_without_a_margin_amounts_stay_positive():
    X = np.random.default_rng(0).uniform(0.01, 1.0, (30, 1))
    logs = FunctionTransformer(np.log)
    model = make_pipeline(logs, EvidenceMLPRegressor((), noise="constant")).fit(X, np.log(X[:, 0]))
    display = PredictiveDisplay.from_estimator(model, X, margin=0.0, n_functions=0)
    assert display.x[0] == pytest.approx(X.min())
    assert display.x[-1] == pytest.approx(X.max())
