"""Gross outliers in y: how they are told, units without them, Student-t noise from the start."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn._data import Scaling, canonical_rows
from skbayesnn.estimators.inputs._target_summary import TargetSummary
from tests.tools import parts_of

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL = {"hidden_layer_sizes": (4,), "n_restarts": 3, "random_state": 0}


def truth(X):
    return np.sin(5 * X[:, 0]) + X[:, 1] ** 2


def make_rows(n=100, share=0.15, size=1000.0, seed=0):
    """Targets of which a share is off by up to ``size``."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    y = truth(X) + 0.05 * rng.standard_normal(n)
    wrong = rng.choice(n, round(share * n), replace=False)
    y[wrong] += size * rng.uniform(0.3, 1, len(wrong)) * rng.choice([-1, 1], len(wrong))
    return X, y, wrong


def found(X, y):
    """Which of the given rows are told."""
    rows = canonical_rows(X, y[:, None], np.ones(len(y)))
    return np.flatnonzero(rows.of_given(outliers_of(rows).astype(float)))


def outliers_of(rows):
    return TargetSummary.of(rows).outliers.any(axis=1)


def common_value(X, y):
    return TargetSummary.of(canonical_rows(X, y[:, None], np.ones(len(y)))).common[0]


def error(model):
    X = np.random.default_rng(9).uniform(0, 1, (300, 2))
    return np.sqrt(np.mean((model.predict(X) - truth(X)) ** 2))


# --- which rows they are -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "share", "one_sided"),
    [(20, 0.15, False), (30, 0.05, False), (100, 0.3, True), (3000, 0.15, False)],
)
def test_large_outliers_are_told(n, share, one_sided):
    X, y, wrong = make_rows(n, share)
    y = np.abs(y) if one_sided else y
    assert list(found(X, y)) == sorted(wrong)


@pytest.mark.parametrize(("value", "share"), [(99.0, 0.03), (-999.0, 0.15), (20.0, 0.3)])
def test_one_far_value_is_told(value, share):
    """Sensors get stuck, and tables code missing values by a number."""
    X, y, wrong = make_rows(100, share)
    y[wrong] = value
    assert list(found(X, y)) == sorted(wrong)
    assert common_value(X, y).is_outlier


def test_a_code_among_ratings_is_told():
    """More than a third of the ratings equal their median."""
    X, y, wrong = make_rows(200, 0.12)
    y = np.round(2 * truth(X))
    y[wrong] = 99.0
    assert list(found(X, y)) == sorted(wrong)


def regular_targets():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 3))
    noise = rng.standard_normal(400)
    yield "normal", X, noise
    yield "lognormal", X, np.exp(noise)
    yield "eight decades", X, np.exp(4.6 * noise)
    yield "steep function", X, np.exp(1.5 * X[:, 0] + 0.1 * noise)
    yield "Student-t, 3 degrees of freedom", X, rng.standard_t(3, 400)
    yield "uneven noise", X, np.exp(X[:, 0]) * noise
    zeros = rng.random(400) < 0.7
    yield "zeros", X, np.where(zeros, 0.0, np.exp(1 + X[:, 0] + 0.3 * noise))
    yield "half zeros, large values", X, np.where(zeros, noise * 0.0, 1000 * np.exp(2 * noise))
    yield "zeros and a code", X, np.select([zeros, noise > 1], [0.0, 1e4], noise)
    yield "counts", X, rng.poisson(0.3, 400).astype(float)
    yield "constant", X, np.ones(400)
    yield "a region far off", X, np.where(X[:, 0] > 1, 1000.0, 0.0) + noise


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=i) for i, X, y in regular_targets()])
def test_regular_targets_have_none(X, y):
    assert len(found(X, y)) == 0


def test_repetition_is_weight():
    X, y, _ = make_rows(60, 0.1)
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = canonical_rows(X, y[:, None], weight)
    twice = np.r_[np.arange(60), np.arange(20)]
    repeated = canonical_rows(X[twice], y[twice, None], np.ones(80))
    assert np.array_equal(outliers_of(weighted), outliers_of(repeated))


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "share", "noise"), [(100, 0.05, "auto"), (100, 0.3, "student_t")])
def test_signal_is_found(noise, n, share):
    X, y, wrong = make_rows(n, share)
    model = EvidenceMLPRegressor(noise=noise, method="laplace", **SMALL).fit(X, y)
    assert error(model) < 0.05
    assert model.noise_model_ == "student_t"
    assert model.degrees_of_freedom_ == 1.0
    rest = np.setdiff1d(np.arange(n), wrong)
    assert_allclose(model._y_scaling.scale, np.std(y[rest]), rtol=1e-12)
    assert model.evidence_report_.predictions.share > 0.9
    assert "no finite sd" in repr(model.evidence_report_)


def test_signal_among_moderate_outliers():
    """Outliers that the targets alone do not tell: training with little influence finds them."""
    X, y, _ = make_rows(100, 0.3, 10.0, seed=2)
    assert len(found(X, y)) == 0
    options = {"noise": "student_t", "method": "laplace", "random_state": 0}
    model = EvidenceMLPRegressor((4,), **options).fit(X, y)
    assert error(model) < 0.05
    assert model.degrees_of_freedom_ == 1.0


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
def test_a_sampler_among_moderate_outliers():
    X, y, _ = make_rows(100, 0.3, 10.0, seed=2)
    model = HMCMLPRegressor((4,), noise="student_t", n_draws=100, random_state=0).fit(X, y)
    assert error(model) < 0.05


def test_a_code_for_missing_values_is_named():
    X, y, wrong = make_rows(100, 0.12)
    y[wrong] = 99.0
    model = EvidenceMLPRegressor(method="laplace", **SMALL)
    with pytest.warns(UserWarning, match="12 % of the targets equal 99, far.* missing values"):
        model.fit(X, y)
    assert error(model) < 0.05
    assert model.noise_model_ == "student_t"


@pytest.mark.slow
def test_default_fit_and_sampler():
    X, y, _ = make_rows(100, 0.3)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
    assert error(model) < 0.05
    assert model.noise_log_evidences_ == {"student_t": model.log_evidence_}
    sampler = HMCMLPRegressor((4,), n_draws=100, measure_evidence=False, random_state=0)
    assert error(sampler.fit(X, y)) < 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_fit")
@pytest.mark.parametrize(("size", "seed"), [(1000.0, 1), (30.0, 5)])
def test_drawn_fits(size, seed):
    """Linear models, which explain outliers by their wide noise, have no share."""
    X, y, _ = make_rows(100, 0.3, size, seed)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
    assert error(model) < 0.05
    assert [part.network.hidden_layer_sizes for part in parts_of(model)] == [(16,)]


def test_one_output_of_two():
    X, y, _ = make_rows(100, 0.1)
    y = np.column_stack([y, np.cos(3 * X[:, 1])])
    model = EvidenceMLPRegressor(method="laplace", **SMALL).fit(X, y)
    assert model.noise_model_ == "student_t"
    rest = np.abs(y[:, 0]) < 100
    # of a standard deviation of .8; the outliers are off by 300 to 1,000
    assert np.sqrt(np.mean((model.predict(X)[rest, 0] - truth(X)[rest]) ** 2)) < 0.2
    assert np.all(np.isfinite(model.predict_output_cov(X[:3])))


def test_other_noise_is_left_alone():
    """Where Student-t noise cannot be chosen, units are those of all rows."""
    X, y, _ = make_rows(60, 0.1)
    everything = Scaling.standard(canonical_rows(X, y[:, None], np.ones(60)).y, np.ones(60)).scale
    for options in ({"noise": "constant"}, {"noise": 0.05}):
        model = EvidenceMLPRegressor((), random_state=0, **options).fit(X, y)
        assert model.noise_model_ == "constant"
        assert_allclose(model._y_scaling.scale, everything, rtol=1e-12)


def test_batches_have_constant_noise():
    X, y, _ = make_rows(100, 0.05, size=30.0)
    model = EvidenceMLPRegressor((), random_state=0)
    model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    assert model.noise_model_ == "constant"
    assert np.all(np.isfinite(model.predict(X)))


# --- inputs --------------------------------------------------------------------------------------


def test_far_inputs_do_not_set_the_units():
    rng = np.random.default_rng(100)
    X = rng.uniform(0, 1, (100, 2))
    y = truth(X) + 0.05 * rng.standard_normal(100)
    X[:5, 0] *= 1000
    model = EvidenceMLPRegressor(method="laplace", **SMALL)
    with pytest.warns(UserWarning, match="far from all others in these columns of X: 0. The"):
        model.fit(X, y)
    assert error(model) < 0.1
    quartiles = np.quantile(X[:, 0], (0.25, 0.75), method="inverted_cdf")
    assert model._X_scaling.scale[0] == pytest.approx(np.ptp(quartiles) / 1.349, rel=1e-3)
    assert model._X_scaling.scale[1] == pytest.approx(np.std(X[:, 1]), rel=1e-12)


def test_rare_indicators_and_skewed_inputs_keep_their_scale():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(500)
    levels = np.select([normal > 1, normal < -1], [50.0, -50.0], np.round(normal) / 100)
    columns = (normal > 2.5, levels, np.exp(normal), rng.standard_t(3, 500), rng.poisson(0.2, 500))
    X = np.column_stack([column.astype(float) for column in columns])
    weight = np.ones(500)
    standard = Scaling.standard(X, weight)
    assert_array_equal(standard.without_far_rows(X, weight).scale, standard.scale)
