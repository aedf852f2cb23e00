"""The Occam hill."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.displays import EvidenceDisplay
from skbayesnn.model_selection import EvidenceSearch

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (90, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(90)
TRAIN, TEST = slice(0, 40), slice(40, None)
SIZES, STEP = "hidden_layer_sizes", "evidencemlpregressor__"
WIDTHS = [(4,), (), (2,), (1,)]


MODEL = EvidenceMLPRegressor(noise="constant", n_restarts=2, random_state=0)


@cache
def widths():
    return EvidenceSearch(MODEL, {SIZES: WIDTHS}).fit(X[TRAIN], Y[TRAIN])


@cache
def widths_and_priors():
    grid = {f"{STEP}{SIZES}": [(3,), (1,), (2,)], f"{STEP}prior": ["single", "layer"]}
    return EvidenceSearch(make_pipeline(StandardScaler(), MODEL), grid).fit(X[TRAIN], Y[TRAIN])


def changed(search, **columns):
    """Copy of a search with other results."""
    return SimpleNamespace(results_=search.results_ | columns, estimators_=search.estimators_)


def rmse(model):
    return np.sqrt(np.mean((model.predict(X[TEST]) - Y[TEST]) ** 2))


def test_drawn_numbers_are_those_of_the_search(readable):
    search = widths()
    display = EvidenceDisplay.from_estimator(search, SIZES, X[TEST], Y[TEST])
    order = [1, 3, 2, 0]
    units, evidence = display.lines_[0].get_data()
    assert_array_equal(units, [0, 1, 2, 4])
    assert_array_equal(evidence, search.results_["log_evidence"][order])
    errors = [rmse(search.estimators_[i]) for i in order]
    assert_allclose(display.error_lines_[0].get_data(), [[0, 1, 2, 4], errors])
    assert [axes.get_ylabel() for axes in display.axes_][::2] == [
        "log evidence (nats)",
        "test RMSE",
    ]
    assert display.axes_[-1].get_xlabel() == "hidden units"
    readable(display)


def test_misfit_and_occam_factor_add_up_to_the_evidence():
    search = widths()
    display = EvidenceDisplay.from_estimator(search, SIZES)
    lines = {name: line.get_ydata() for name, line in display.term_lines_.items()}
    assert list(lines) == ["log evidence", "misfit to the data", "Occam factor"]
    assert_allclose(lines["misfit to the data"] + lines["Occam factor"], lines["log evidence"])
    evidence = display.hills[0].log_evidence
    assert_allclose(lines["log evidence"], evidence - evidence.max())
    reports = [search.estimators_[i].evidence_report_ for i in (1, 3, 2, 0)]
    likelihood = np.array([r.misfit + r.noise_normaliser + r.target_scale for r in reports])
    assert_allclose(lines["misfit to the data"], likelihood - likelihood[np.argmax(evidence)])
    assert EvidenceDisplay.from_estimator(search, SIZES, terms=False).term_lines_ == {}


def test_one_line_per_combination_of_other_parameters(readable):
    search = widths_and_priors()
    display = EvidenceDisplay.from_estimator(search, STEP + SIZES, X[TEST], Y[TEST])
    assert [hill.name for hill in display.hills] == ["prior=single", "prior=layer"]
    for line, errors, prior in zip(
        display.lines_, display.error_lines_, ("single", "layer"), strict=True
    ):
        found = {
            p[STEP + SIZES][0]: i
            for i, p in enumerate(search.results_["params"])
            if p[STEP + "prior"] == prior
        }
        rows = [found[width] for width in (1, 2, 3)]
        assert_array_equal(line.get_ydata(), search.results_["log_evidence"][rows])
        assert_allclose(errors.get_ydata(), [rmse(search.estimators_[i]) for i in rows])
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names[:2] == ["prior=single", "prior=layer"]
    best = max(display.hills, key=lambda hill: hill.log_evidence.max())
    top = best.log_evidence - best.log_evidence.max()
    assert_allclose(display.term_lines_["log evidence"].get_ydata(), top)
    readable(display)
    display = EvidenceDisplay.from_estimator(search, STEP + "prior")
    labels = [label.get_text() for label in display.axes_[-1].get_xticklabels()]
    assert labels == ["single", "layer"]
    assert [hill.name for hill in display.hills] == [
        f"hidden_layer_sizes={width}" for width in (3, 1, 2)
    ]


def test_doubts_and_failures_are_shown(readable):
    search = widths()
    evidence = search.results_["log_evidence"].copy()
    evidence[2] = np.nan
    verdict = np.array(["doubtful: few targets", "trusted", "failed: no", "trusted"])
    search = changed(search, log_evidence=evidence, verdict=verdict)
    search.estimators_ = [*search.estimators_[:2], None, search.estimators_[3]]
    display = EvidenceDisplay.from_estimator(search, SIZES, X[TEST], Y[TEST])
    assert_array_equal(display.hills[0].doubtful, [False, False, False, True])
    shown = {line.get_marker(): line.get_xdata() for line in display.ax_.lines[1:3]}
    assert_array_equal(shown["o"], [4])
    assert_array_equal(shown["x"], [2])
    assert np.isnan(display.error_lines_[0].get_ydata()[2])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["log evidence", "doubtful", "not available"]
    readable(display)
    with pytest.raises(ValueError, match="No candidate has a log evidence"):
        EvidenceDisplay.from_estimator(changed(search, log_evidence=np.full(4, np.nan)), SIZES)


def test_sampled_evidences_have_error_bars_and_no_terms(readable):
    options = {"noise": "constant", "n_chains": 2, "n_warmup": 10, "n_draws": 10}
    model = HMCMLPRegressor((1,), random_state=0, **options)
    search = EvidenceSearch(model, {"activation": ["logistic", "tanh"]}).fit(X[:8], Y[:8])
    display = EvidenceDisplay.from_estimator(search, "activation")
    assert len(display.axes_) == 1
    (bars,) = display.ax_.collections
    for segment, e, std in zip(
        bars.get_segments(),
        search.results_["log_evidence"],
        search.results_["log_evidence_std"],
        strict=True,
    ):
        assert std > 0
        assert_allclose(segment[:, 1], [e - std, e + std])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["logistic", "tanh"]
    readable(display)


@pytest.mark.parametrize(
    ("name", "values", "position", "label", "log_scale"),
    [
        ("m__hidden_layer_sizes", [(8, 4), (3,), ()], [0, 1, 2], "units of the hidden layers", 0),
        ("prior__precision", [0.1, 10.0, 1.0], [0.1, 10.0, 1.0], "prior precision", 1),
        ("n_restarts", [1, 2, 3], [1, 2, 3], "n restarts", 0),
        ("standardize", [True, False, True], [0, 1, 0], "standardize", 0),
        ("m__noise__std", ["auto", 0.5, 1.0], [0, 1, 2], "noise std", 0),
    ],
)
def test_axes_of_parameters(name, values, position, label, log_scale):
    params = [{name: value} for value in values]
    verdicts = np.full(3, "trusted")
    results = {"params": params, "log_evidence": np.arange(3.0), "verdict": verdicts}
    results["log_evidence_std"] = np.zeros(3)
    display = EvidenceDisplay.from_estimator(
        SimpleNamespace(results_=results, estimators_=[None] * 3), name
    )
    order = np.argsort(position, kind="stable")
    assert_array_equal(display.lines_[0].get_data(), [np.array(position)[order], order])
    assert display.ax_.get_xlabel() == label
    assert (display.ax_.get_xscale() == "log") == log_scale
    if name.endswith(SIZES):
        assert list(display.ticks.values()) == ["8-4", "3", "linear"]


def test_bad_searches():
    with pytest.raises(ValueError, match="parameter 'alpha'; there are: hidden_layer_sizes"):
        EvidenceDisplay.from_estimator(widths(), "alpha")
    with pytest.raises(TypeError, match="needs a fitted EvidenceSearch"):
        EvidenceDisplay.from_estimator(EvidenceMLPRegressor(), SIZES)
    with pytest.raises(ValueError, match="belong together"):
        EvidenceDisplay.from_estimator(widths(), SIZES, X[TEST])
    with pytest.raises(ValueError, match="inconsistent"):
        EvidenceDisplay.from_estimator(widths(), SIZES, X[TEST], Y[:3])
    with pytest.raises(ValueError, match="2 features"):
        EvidenceDisplay.from_estimator(widths(), SIZES, np.hstack([X, X]), Y)


def test_test_errors_of_classifiers_and_of_choice():
    y = np.where(Y > 0, "yes", "no")
    model = EvidenceMLPClassifier(n_restarts=1, random_state=0)
    search = EvidenceSearch(model, {SIZES: [(), (1,)]}).fit(X[TRAIN], y[TRAIN])
    display = EvidenceDisplay.from_estimator(search, SIZES, X[TEST], y[TEST])
    expected = [log_loss(y[TEST], fit.predict_proba(X[TEST])) for fit in search.estimators_]
    assert_allclose(display.error_lines_[0].get_ydata(), expected)
    assert display.axes_[-1].get_ylabel() == "test log loss (nats)"

    def error_rate(estimator, X, y):
        return np.mean(estimator.predict(X) != y)

    display = EvidenceDisplay.from_estimator(search, None, X[TEST], y[TEST], error=error_rate)
    expected = [1 - fit.score(X[TEST], y[TEST]) for fit in search.estimators_]
    assert_allclose(display.error_lines_[0].get_ydata(), expected)
    assert display.axes_[-1].get_ylabel() == "test error rate"
