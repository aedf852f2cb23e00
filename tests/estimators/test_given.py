"""What is known of every target, promise by promise: errors of measurements, exposures, limits."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Noise, Prior
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.displays import CalibrationDisplay
from skbayesnn.estimators import AveragedRegressor
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
from skbayesnn.model_selection import EvidenceSearch
from tests.estimators.common import assert_left_out_like_refits

FIXED = {"prior": Prior(precision=0.7), "standardize": False}
SCORERS = {"log_density": log_density_scorer, "neg_crps": neg_crps_scorer}
NOISE = {"measurement_std": 0.5, "exposure": "poisson", "censored": 0.5}
each_name = pytest.mark.parametrize("name", NOISE)
each_scored = pytest.mark.parametrize("name", ["exposure", "censored"])


def make_rows(name, n=60):
    """A line, or the logarithm of a rate, and what is known of its targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 1))
    f = 0.8 + X[:, 0]
    if name == "exposure":
        exposure = rng.uniform(0.5, 3.0, n)
        return X, rng.poisson(exposure * np.exp(f)).astype(float), exposure
    y = f + 0.5 * rng.standard_normal(n)
    if name == "censored":
        return X, np.minimum(y, 1.2), np.where(y > 1.2, 1, 0)
    errors = 10.0 ** rng.uniform(-1.5, 0.5, n)
    return X, y + errors * rng.standard_normal(n), errors


def make(name, **options):
    options = {"noise": NOISE[name], "method": "laplace", "random_state": 0} | options
    return EvidenceMLPRegressor((), **options)


def fit(name, rows, **options):
    X, y, known = rows
    return make(name, **options).fit(X, y, **{name: known})


@pytest.mark.parametrize(
    ("name", "noise", "tol"),
    [
        ("measurement_std", 0.5, 1e-6),
        ("exposure", "poisson", 0.03),
        ("exposure", "negative_binomial", 0.1),  # dispersions of fits without a row are others
        ("censored", 0.5, 0.01),
    ],
)
def test_left_out_rows_against_fits_without_them(name, noise, tol):
    rows = make_rows(name, 40)

    def log_density(rest, left):
        X, y, known = left
        other = fit(name, rest, noise=noise, **FIXED)
        return other.log_predictive_density(X, y, **{name: known})[0]

    model = fit(name, rows, noise=noise, **FIXED)
    assert_left_out_like_refits(model, rows, range(0, 40, 6), tol, log_density)


@each_name
def test_units(name):
    """Exposures have no units, errors and limits those of the targets."""
    X, y, known = make_rows(name)
    free = {} if name == "exposure" else {"noise": "constant"}
    scaled = (y, 0.1 * known) if name == "exposure" else (10.0 * y, known)
    if name == "measurement_std":
        scaled = (10.0 * y, 10.0 * known)
    one, other = (fit(name, (X, *rest), **free) for rest in ((y, known), scaled))
    assert_allclose(other.predict(X), 10.0 * one.predict(X), rtol=1e-6)
    assert_allclose(other.predict_std(X, "epistemic"), 10.0 * one.predict_std(X, "epistemic"))
    measured = {"measurement_std": len(y), "exposure": 0, "censored": np.sum(known == 0)}[name]
    for gap in (
        one.log_evidence_ - other.log_evidence_,
        np.sum(one.leave_one_out_log_density_ - other.leave_one_out_log_density_),
    ):
        assert gap == pytest.approx(measured * np.log(10.0), abs=1e-5)


@pytest.mark.parametrize(("name", "tol"), [("measurement_std", 1e-9), ("exposure", 0.3)])
def test_batches_equal_one_fit(name, tol):
    """By `partial_fit`, and by an estimator that is the prior of the next; Laplace's twice."""
    rows = X, y, known = make_rows(name, 200)
    whole, parts = fit(name, rows, **FIXED), make(name, **FIXED)
    for i in np.split(np.arange(200), 4):
        parts.partial_fit(X[i], y[i], **{name: known[i]})
    first = fit(name, [some[:80] for some in rows], **FIXED)
    last = fit(name, [some[80:] for some in rows], **FIXED | {"prior": first})
    for evidence in (parts.log_evidence_, first.log_evidence_ + last.log_evidence_):
        assert evidence == pytest.approx(whole.log_evidence_, abs=tol)
    for model in (parts, last):
        assert_allclose(model.predict(X), whole.predict(X), rtol=0.1 * tol)
        assert_allclose(model.predict_std(X), whole.predict_std(X), rtol=0.1 * tol)


@each_name
def test_pipelines_and_searches_take_it_along(name):
    X, y, known = make_rows(name)
    scored = name != "measurement_std"
    scoring = SCORERS if scored else None
    with config_context(enable_metadata_routing=True):
        model = make(name).set_fit_request(**{name: True})
        if scored:
            model.set_score_request(**{name: True})
        pipeline = Pipeline([("scale", StandardScaler()), ("line", model)])
        found = cross_validate(pipeline, X, y, cv=3, scoring=scoring, params={name: known})
        for search in (GridSearchCV, EvidenceSearch):
            grid = {"line__prior": ["single", "layer"]}
            best = search(pipeline, grid).fit(X, y, **{name: known}).best_estimator_
    assert np.all(np.isfinite(best.predict(X)))
    for scorer_name in scoring or ["score"]:
        expected = []
        for train, test in KFold(3).split(X):
            pipeline.fit(X[train], y[train], **{f"line__{name}": known[train]})
            if scored:
                score = SCORERS[scorer_name](pipeline, X[test], y[test], **{name: known[test]})
            else:
                score = pipeline.score(X[test], y[test])
            expected.append(score)
        assert_allclose(found[f"test_{scorer_name}"], expected, rtol=1e-10)


@each_scored
def test_scores_without_it_warn(name):
    X, y, known = make_rows(name)
    model = fit(name, (X, y, known))
    fitted = [model]
    if name == "censored":
        moved = {"func": np.arcsinh, "inverse_func": np.sinh}
        transformed = TransformedTargetRegressor(make(name), **moved)
        fitted += [transformed.fit(X, y, censored=known)]
        fitted += [AveragedRegressor([model, model], weights=np.array([0.5, 0.5]))]
        with pytest.warns(UserWarning, match="set_score_request"):
            CalibrationDisplay.from_estimator(model, X, y)
    for one in fitted:
        scorers = SCORERS.values() if name == "censored" else ()
        calls = [one.score, one.log_predictive_density]
        calls += [lambda X, y, s=scorer, m=one: s(m, X, y) for scorer in scorers]
        for call in calls:
            with pytest.warns(UserWarning, match="fitted with (exposures|limits)"):
                call(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(X, y, **{name: known})
        y = y if name == "exposure" else X[:, 0]
        make(name).fit(X, y).score(X, y)  # fitted without it


@each_name
def test_it_is_kept_with_the_model(name):
    X, *rest = rows = make_rows(name)
    model = fit(name, rows)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    assert_array_equal(again.leave_one_out_log_density_, model.leave_one_out_log_density_)
    assert_array_equal(again.fit(X, rest[0], **{name: rest[1]}).predict(X), model.predict(X))


# --- what is refused -----------------------------------------------------------------------------

COUNTS = {"noise": "poisson"}
OUTPUTS = [[1, 2], [1, 2], [3, 4]]
REFUSED = [
    (COUNTS, [-1.0, 2.0, 3.0], {}, "1 of 3 values are not"),
    (COUNTS, [0.5, 2.5, 3.0], {}, "2 of 3 values are not"),
    (COUNTS, OUTPUTS, {}, "one output"),
    (COUNTS, None, {"exposure": [1.0, 0.0, 1.0]}, "positive"),
    (COUNTS, None, {"exposure": [1.0, 1.0]}, "shape"),
    ({}, None, {"exposure": np.ones(3)}, "exposure is for counts"),
    ({"noise": Noise("poisson", std=1.0)}, None, {}, "noise.std"),
    (COUNTS, None, {"measurement_std": 1.0}, "measurement_std"),
    (COUNTS, None, {"censored": [0, 0, 1]}, "censored is not possible"),
    ({"noise": "input_dependent"}, None, {"censored": [0, 0, 1]}, "censored is not possible"),
    ({"noise": "student_t"}, OUTPUTS, {"censored": np.ones((3, 2))}, "for one output"),
    ({}, None, {"censored": [0, 1]}, "shape"),
    ({}, None, {"censored": [0, 2, 0]}, "lies below"),
    ({}, None, {"censored": [False, True, False]}, "lies below"),
    ({}, None, {"censored": [-1, 1, 1]}, "at least some"),
    ({}, None, {"censored": [0, 0, 1], "measurement_std": 1.0}, "not both"),
    ({}, None, {"measurement_std": [0.1] * 2}, "must be one number, or have shape"),
    ({}, None, {"measurement_std": np.ones((3, 2))}, "must be one number, or have shape"),
    ({}, None, {"measurement_std": np.ones((1, 3))}, "must be one number, or have shape"),
    ({}, None, {"measurement_std": -0.1}, "must not be negative"),
    ({}, None, {"measurement_std": [np.nan] * 3}, "NaN or infinity"),
    ({}, None, {"measurement_std": np.inf}, "NaN or infinity"),
    ({}, None, {"measurement_std": "large"}, "must hold numbers"),
    ({}, None, {"measurement_std": [None, {}, 1.0]}, "must hold numbers"),
    ({}, None, {"measurement_std": 1e12}, "too many orders of magnitude"),
    ({"noise": 0}, None, {"measurement_std": [1.0, 0.0, 1.0]}, r"positive where noise\.std is 0"),
    ({"noise": 0}, None, {}, r"noise\.std must be positive"),
    ({"noise": "correlated"}, OUTPUTS, {"measurement_std": 0.1}, "not possible with noise='corr"),
]


@pytest.mark.parametrize(("parameters", "y", "given", "words"), REFUSED, ids=str)
def test_refusals(parameters, y, given, words):
    kinds = [EvidenceMLPRegressor]
    if parameters.get("noise") == 0:
        kinds.append(HMCMLPRegressor)
    for kind in kinds:
        with pytest.raises(TypeError if "must hold" in words else ValueError, match=words):
            kind((), **parameters).fit([[0.0], [1.0], [2.0]], y or [1, 2, 3], **given)
