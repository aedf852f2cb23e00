"""Traces of chains."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn.displays import TraceDisplay
from skbayesnn.samplers import r_hat

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2)) * [1.0, 10.0] + 3.0
Y = 20.0 * X[:, 0] + X[:, 1] + RNG.standard_normal(30)
FEW = {"n_chains": 3, "n_warmup": 10, "n_draws": 12, "evidence": False, "random_state": 0}


@cache
def fitted(kind="regression", **options):
    if kind == "regression":
        return HMCMLPRegressor((2,), **(FEW | options)).fit(X, Y)
    if kind == "two outputs":
        return HMCMLPRegressor((2,), **(FEW | options)).fit(X, np.column_stack([Y, -Y + X[:, 0]]))
    return HMCMLPClassifier((2,), **(FEW | options)).fit(X, np.digitize(Y, [40.0, 70.0]))


def outputs(network, X):
    """Of a drawn network with one hidden layer of tanh units, by hand."""
    hidden = np.tanh(X @ network.coefs[0] + network.intercepts[0])
    return hidden @ network.coefs[1] + network.intercepts[1]


def by_name(display):
    return {trace.name: trace for trace in display.traces}


def test_lines_are_the_draws_chain_by_chain(readable):
    model = fitted()
    display = TraceDisplay.from_estimator(model, X[:2])
    traces = by_name(display)
    for trace, lines in zip(display.traces, display.lines_, strict=True):
        assert_array_equal([line.get_ydata() for line in lines], trace.values)
        assert_array_equal(lines[0].get_xdata(), np.arange(1, 13))
    assert_array_equal(traces["energy (nats)"].values, model.diagnostics_.energy)
    assert np.mean(traces["noise sd"].values) == pytest.approx(model.noise_std_)
    names = [name for name in traces if name.startswith("prior sd")]
    assert len(names) == 3
    for name in names:
        group = model.weight_group_names_.index(name.removeprefix("prior sd, "))
        geometric = np.exp(np.mean(np.log(traces[name].values)))
        assert geometric == pytest.approx(model.weight_precisions_[group] ** -0.5)
    f = np.array([outputs(network, X[:2])[:, 0] for network in model.networks_])
    for row in range(2):
        assert_allclose(traces[f"f, row {row}"].values.ravel(), f[:, row])
    readable(display)


def test_r_hat_is_that_of_the_diagnostics():
    model = fitted()
    display = TraceDisplay.from_estimator(model)
    known = model.diagnostics_.hyper_r_hat
    traces = by_name(display)
    # distances from a median are not ranked alike for a noise level and its logarithm, and have
    # ties which units of y may break otherwise
    assert traces["noise sd"].r_hat == pytest.approx(known["noise_0"], abs=0.02)
    precisions = [t for name, t in traces.items() if name.startswith("prior sd")]
    for trace in precisions:
        assert trace.r_hat == known[trace.name.removeprefix("prior sd, ")]
    assert [t.r_hat for t in precisions] == sorted((t.r_hat for t in precisions), reverse=True)
    rows = [trace for name, trace in traces.items() if name.startswith("f, ")]
    assert rows[0].name == "f, worst row"
    assert rows[0].r_hat == pytest.approx(model.diagnostics_.r_hat, abs=0.02)
    assert rows[1].r_hat <= rows[0].r_hat
    for axes, trace in zip(display.axes_, display.traces, strict=True):
        title = axes.get_title().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")
        assert title == f"{trace.name}: R-hat {trace.r_hat:.2f}"
    energy = model.diagnostics_.energy
    assert traces["energy (nats)"].r_hat == pytest.approx(float(r_hat(energy)))


def test_classifiers_and_pipelines(readable):
    model = fitted("classes")
    display = TraceDisplay.from_estimator(model, X[:1], output=0, n_precisions=1)
    trace = by_name(display)["P(class 0), row 0"]
    assert trace.values.shape == (3, 12)
    assert trace.values.mean() == pytest.approx(model.predict_proba(X[:1])[0, 0])
    assert not [name for name in by_name(display) if "noise" in name]
    readable(display)
    piped = make_pipeline(StandardScaler(), HMCMLPClassifier((2,), **FEW)).fit(X, Y > 50)
    trace = by_name(TraceDisplay.from_estimator(piped, X[:1]))["P(class True), row 0"]
    assert trace.values.mean() == pytest.approx(piped.predict_proba(X[:1])[0, 1])


def test_several_outputs(readable):
    model = fitted("two outputs")
    display = TraceDisplay.from_estimator(model, X[:1], output=1)
    traces = by_name(display)
    assert traces["f1, row 0"].values.mean() == pytest.approx(model.predict(X[:1])[0, 1])
    noise = [traces[f"noise sd of y{i}"].values.mean() for i in (0, 1)]
    assert_allclose(noise, model.noise_std_)
    readable(display)


def test_fixed_precisions_are_left_out():
    model = fitted(noise_std=1.0, weight_precision=0.5)
    display = TraceDisplay.from_estimator(model, n_rows=1)
    assert list(by_name(display)) == ["energy (nats)", "f, worst row"]


def test_too_few_draws_for_r_hat():
    display = TraceDisplay.from_estimator(fitted(n_draws=5))
    assert all(np.isnan(trace.r_hat) for trace in display.traces)
    assert len(display.traces) == 7


def test_one_input_names_the_row():
    model = HMCMLPRegressor((2,), **FEW).fit(X[:, :1], Y)
    display = TraceDisplay.from_estimator(model, n_rows=1)
    name = display.traces[-1].name
    assert float(name.removeprefix("f, x = ")) == pytest.approx(
        X[np.argmin(np.abs(X[:, 0] - float(name.removeprefix("f, x = ")))), 0], rel=5e-3
    )
    # Two draws are equally far from the median: rounding decides which has the higher rank.
    assert display.traces[-1].r_hat == pytest.approx(model.diagnostics_.r_hat, rel=5e-3)


def test_one_axes_shows_the_energy():
    _, ax = plt.subplots()
    display = TraceDisplay.from_estimator(fitted(), ax=ax, line_kw={"lw": 2.0})
    assert ax.get_title().startswith("energy")
    assert {line.get_linewidth() for line in display.lines_[0]} == {2.0}


def test_bad_input():
    with pytest.raises(TypeError, match="Only samplers have chains"):
        TraceDisplay.from_estimator(EvidenceMLPRegressor((), random_state=0).fit(X, Y))
    with pytest.raises(ValueError, match="3 features"):
        TraceDisplay.from_estimator(fitted(), np.column_stack([X, Y]))
    with pytest.raises(ValueError, match="no output 1; the model has 1"):
        TraceDisplay.from_estimator(fitted(), output=1)
