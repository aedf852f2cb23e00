"""Promises 1-3 of the estimators: what must not change a fit, and what must change it exactly."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from tests.estimators.common import KINDS, make_rows
from tests.tools import BRIEF, draws_of, set_limits

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore:The chains have not converged"),
]


def integer_weights(X):
    """From 0 to 3."""
    return np.random.default_rng(4).integers(0, 4, len(X))


def make_model(kind, **options):
    """Evidence estimator; a sampling one if ``options`` name a sampler."""
    sampled = "sampler" in options
    few = BRIEF if sampled else {"n_restarts": 2, "random_state": 0}
    options = {"hidden_layer_sizes": (3,)} | few | options
    if "classes" in kind:
        return (HMCMLPClassifier if sampled else EvidenceMLPClassifier)(**options)
    return (HMCMLPRegressor if sampled else EvidenceMLPRegressor)(**{"noise": "constant"} | options)


def predictions(model, X):
    """Everything that a model says about rows, and its evidence; the draws of a sampler."""
    if hasattr(model, "diagnostics_"):
        return list(draws_of(model))
    if hasattr(model, "classes_"):
        return [model.predict_proba(X), model.predict_std(X), model.log_evidence_]
    return [*model.predict(X, return_std=True), model.log_evidence_]


def assert_same_bits(model, other, X):
    for mine, its in zip(predictions(model, X), predictions(other, X), strict=True):
        no_evidence = np.ndim(mine) == 0 and model._best.trouble
        assert np.all(np.isfinite(mine)) or no_evidence
        assert_array_equal(mine, its)


GRID = np.random.default_rng(99).uniform(-3, 3, (17, 2))
BY_BATCHES = {"dense": 0, "dual_work": 0, "batch_rows": 1, "early_work": 0, "batch_steps": 300}
CHAINED = {"hidden_layer_sizes": (3,), "method": "chains"}
VARIANTS = [
    ("one output", {}),
    ("two outputs", {"hidden_layer_sizes": ()}),
    ("two classes", {"prior": "ard", "combine": "evidence"}),
    ("three classes", {"hidden_layer_sizes": (12,), "n_restarts": 1}),  # more weights than rows
    ("one output", {"noise": "student_t", "n_restarts": 1}),
    ("one output", {"noise": "input_dependent", "n_restarts": 1}),
    ("one output", {"noise": "auto", "n_restarts": 1}),
    ("two outputs", {"noise": "correlated", "hidden_layer_sizes": (1,)}),
    *((kind, {"sampler": s}) for kind, s in zip(KINDS, ["auto", "langevin"] * 2, strict=True)),
    ("one output", {"sampler": "auto", "noise": "student_t"}),
    ("one output", {"sampler": "langevin", "noise": "input_dependent"}),
    *((kind, CHAINED) for kind in KINDS),
    # trained by gradients with dense matrices, by those of all rows, and by batches of rows
    ("three classes", {"limits": {"softmax_work": 0}}),
    ("three classes", {"limits": {"dense": 0, "dual_work": 0}}),
    ("one output", {"limits": BY_BATCHES}),
]


@pytest.mark.parametrize(("kind", "options"), VARIANTS, ids=str)
@pytest.mark.filterwarnings("ignore:log_evidence_ is nan", "ignore:.*did not converge")
def test_integer_weights_are_repeated_rows_in_any_order(monkeypatch, kind, options):
    if "limits" in options:
        options = options.copy()
        set_limits(monkeypatch, **options.pop("limits"))
    X, y = make_rows(kind)
    weight = integer_weights(X)
    weighted = make_model(kind, **options).fit(X, y, sample_weight=weight)
    order = np.random.default_rng(1).permutation(weight.sum())
    repeated = make_model(kind, **options)
    repeated.fit(np.repeat(X, weight, axis=0)[order], np.repeat(y, weight, axis=0)[order])
    assert_same_bits(weighted, repeated, GRID)


@pytest.mark.filterwarnings("ignore:Only 34 of 106 rows are different")
@pytest.mark.parametrize("name", ["measurement_std", "exposure", "censored"])
@pytest.mark.parametrize("options", [{}, {"sampler": "langevin"}], ids=["evidence", "chains"])
def test_rows_are_equal_where_all_that_is_known_of_them_is(name, options):
    X, y = make_rows("one output")
    options = options | {"hidden_layer_sizes": (1,)}
    known = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    if name == "exposure":
        y, options = np.round(np.exp(y)), options | {"noise": "poisson"}
    elif name == "censored":
        known = np.where(known > 1.0, 1, 0)
    X, y, known = (np.concatenate([rows, rows[:6]]) for rows in (X, y, known))
    known[30:34] = -1 if name == "censored" else 3  # of four of six repetitions
    weight = 1 + integer_weights(X)
    weighted = make_model("one output", **options).fit(X, y, weight, **{name: known})
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(36), weight))
    repeated = make_model("one output", **options).fit(X[order], y[order], **{name: known[order]})
    assert_same_bits(weighted, repeated, GRID)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("two outputs", {"n_restarts": 3, "combine": "equal"}),
        ("two classes", {"n_restarts": 3, "combine": "equal"}),
        ("one output", {"sampler": "auto", "n_chains": 3}),
        ("three classes", {"sampler": "hmc", "n_chains": 3}),
        ("one output", {"sampler": "auto", "n_chains": 3, "hidden_layer_sizes": ()}),
    ],
    ids=str,
)
def test_number_of_processes(kind, options):
    X, y = make_rows(kind)
    model, parallel = (make_model(kind, n_jobs=n, **options).fit(X, y) for n in (1, 2))
    assert_same_bits(model, parallel, GRID)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("one output", {}),
        ("three classes", {}),
        ("one output", {"sampler": "auto"}),
        ("one output", {"sampler": "langevin"}),
    ],
    ids=str,
)
def test_random_state(kind, options):
    X, y = make_rows(kind)
    model = make_model(kind, **options | {"random_state": 5}).fit(X, y)
    assert_same_bits(model, clone(model).fit(X, y), GRID)
    seeded = make_model(kind, **options | {"random_state": np.random.RandomState(5)}).fit(X, y)
    assert_same_bits(model, seeded, GRID)
    if options:  # draws differ between seeds, fits of the same generator and chains
        theta = [draws_of(some).theta for some in (model, make_model(kind, **options).fit(X, y))]
        assert np.all(theta[0] != theta[1])
        assert np.all(draws_of(seeded.fit(X, y)).theta != theta[0])
        assert np.all(np.any(theta[0][0] != theta[0][1], axis=-1))
    assert_same_bits(clone(model).fit(X, y), model.fit(X, y), GRID)


CHANGES = {  # of all values of a column: the change, and the way back
    "one ulp": (lambda v: np.nextafter(v, np.inf), 1.0, 0.0),
    "moved far": (lambda v: 1e6 * v + 1e8, 1e6, 1e8),
}
MOVED = [
    ("one output", {"hidden_layer_sizes": "auto", "noise": "auto"}),
    ("one output", {"hidden_layer_sizes": (1,), "method": "population"}),
    ("one output", {"hidden_layer_sizes": (2,), "noise": "input_dependent"}),
    ("one output", {"hidden_layer_sizes": (1,), "sampler": "auto"}),
    ("three classes", {"hidden_layer_sizes": "auto"}),
    ("three classes", {"hidden_layer_sizes": (1,), "sampler": "auto"}),
]


@pytest.mark.parametrize(("kind", "options"), MOVED, ids=str)
@pytest.mark.parametrize("changes", [("one ulp", "moved far"), ("moved far", "one ulp")], ids=str)
def test_units_and_last_bits(kind, options, changes):
    """Of inputs and targets, each changed in a way of its own."""
    X, y = (some[:20] for some in make_rows(kind))
    model = make_model(kind, **options).fit(X, y)
    (move_X, _, _), (move, scale, shift) = (CHANGES[name] for name in changes)
    if "classes" in kind:
        moved = clone(model).fit(move_X(X), y).predict_proba(move_X(X))
        assert_allclose(moved, model.predict_proba(X), atol=1e-6)
    else:
        mean, sd = model.predict(X, return_std=True)
        moved, moved_sd = clone(model).fit(move_X(X), move(y)).predict(move_X(X), return_std=True)
        assert np.max(np.abs((moved - shift) / scale - mean) / sd) < 1e-6
        assert_allclose(moved_sd / scale, sd, rtol=1e-6)


@pytest.mark.parametrize("noise", ["constant", "shared", "correlated"])
def test_units_of_several_targets(noise):
    X, y = make_rows("two outputs", n=60)
    scales = np.array([1e3, 1e3]) if noise == "shared" else np.array([1e6, 1e-4])
    model = make_model("two outputs", noise=noise, hidden_layer_sizes=(1,))
    mean, std, log_evidence = predictions(model.fit(X, y), GRID)
    scaled = clone(model).fit(X, scales * y)
    scaled_mean, scaled_std, scaled_log_evidence = predictions(scaled, GRID)
    assert_allclose(scaled_mean / scales, mean, rtol=0, atol=1e-6 * np.std(y))
    assert_allclose(scaled_std / scales, std, rtol=1e-6)
    assert abs(scaled_log_evidence + len(y) * np.sum(np.log(scales)) - log_evidence) < 1e-6


@pytest.mark.parametrize("kind", ["two outputs", "two classes"])
def test_data_frames(kind):
    X, y = make_rows(kind)
    frame = pd.DataFrame(X, columns=["length", "width"])
    target = pd.DataFrame(y) if y.ndim == 2 else pd.Series(y, index=np.arange(len(y))[::-1])
    model = make_model(kind, prior="ard").fit(frame, target)
    assert list(model.feature_names_in_) == ["length", "width"]
    assert model.weight_group_names_[:2] == ["input_length", "input_width"]
    plain = make_model(kind, prior="ard").fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    grid = pd.DataFrame(GRID, columns=["length", "width"])
    for mine, its in zip(predictions(model, grid), predictions(plain, GRID), strict=True):
        assert_array_equal(mine, its)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(grid[["width", "length"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(GRID)
