from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import information_gain, select, thin_training_set
from tests.active_learning.fitted import candidates, data, evidence, sampled

pytestmark = pytest.mark.usefixtures("laplace")

X, X_INTEREST = candidates(), candidates(3, seed=2)


def test_pipelines():
    A, y = data("one")
    steps = StandardScaler(), PolynomialFeatures(2, include_bias=False)
    pipeline = make_pipeline(*steps, EvidenceMLPRegressor((), random_state=0)).fit(A, y)
    inner = pipeline[-1]
    rows = [pipeline[:-1].transform(some) for some in (X, X_INTEREST)]
    for kind in ("total", "marginal", "joint"):
        gains = information_gain(pipeline, X, X_INTEREST, kind=kind)
        assert_allclose(gains, information_gain(inner, *rows, kind=kind))
    assert_array_equal(select(pipeline, X, 3, X_INTEREST), select(inner, rows[0], 3, rows[1]))
    assert_array_equal(thin_training_set(pipeline, X, 3), thin_training_set(inner, rows[0], 3))


@pytest.mark.parametrize("task", ["one", "two", "binary", "three"])
@pytest.mark.parametrize("make", [evidence, sampled])
def test_gains_far_outside_are_finite(task, make):
    model, far = make(task), np.vstack([X[:2], 1e8 * X[:2], [[0.0, 1e-8]]])
    kinds = ["total", "mean_marginal", "predicted_target"]
    kinds += ["joint", "q_optimal"] if task in ("one", "two") else []
    for kind in kinds:
        for method in ("approximation", "exact"):
            gains = information_gain(model, far, far, kind=kind, method=method)
            assert np.all(np.isfinite(gains))
            assert np.all(gains >= 0)
    assert len(select(model, far, 5, far)) == 5


def test_estimators_are_left_as_they_are():
    model = evidence("one")
    before = dict(vars(model))
    select(model, X, 3, X_INTEREST)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), EvidenceMLPRegressor, None, GridSearchCV(LinearRegression(), {})],
)
@pytest.mark.parametrize("function", [information_gain, partial(select, n=2)])
def test_unsuitable_estimators(estimator, function):
    with pytest.raises(TypeError, match="must be a fitted estimator of this package"):
        function(estimator, X)


WEIGHTED = {"X_interest": X_INTEREST}
QUESTIONS = [
    ({"kind": "marginal"}, "kind='marginal' needs X_interest"),
    ({"interest_weight": [1.0]}, "only with X_interest"),
    ({"kind": "mean"}, "kind must be one of 'total', 'marginal'"),
    ({"kind": 3}, "kind must be one of"),
    ({"method": "mc"}, "method must be one of 'approximation', 'exact'; got 'mc'"),
    ({"X_candidates": np.ones((4, 3))}, "3 features"),
    ({"X_candidates": np.full((2, 2), np.nan)}, "NaN"),
    ({"X_interest": np.ones((4, 1))}, "1 features"),
    (WEIGHTED | {"interest_weight": [1.0, 2.0]}, r"shape \(3,\)"),
    (WEIGHTED | {"interest_weight": [1.0, -2.0, 1.0]}, "not be negative"),
    (WEIGHTED | {"interest_weight": [0.0, 0.0, 0.0]}, "must not be negative"),
    (WEIGHTED | {"interest_weight": [1.0, np.nan, 1.0]}, "NaN"),
    (WEIGHTED | {"model": evidence, "kind": "joint"}, "kind='joint' exists for regression only"),
    (WEIGHTED | {"model": sampled, "kind": "q_optimal"}, "kind='q_optimal' exists for regressi"),
]
NUMBERS = [
    ({"n": 8}, ValueError, "n=8 is larger than the number of rows"),
    ({"n": 0}, ValueError, "n must be at least 1"),
    ({"n": 2.0}, TypeError, "n must be an integer"),
    ({"price": "cheap"}, ValueError, "price must be a number"),
    ({"price": -1.0}, ValueError, "price must be a number"),
]


@pytest.mark.parametrize(("arguments", "message"), QUESTIONS)
@pytest.mark.parametrize("function", [information_gain, partial(select, n=2)])
def test_wrong_questions(function, arguments, message):
    arguments = {"X_candidates": X, **arguments}
    make = arguments.pop("model", None)
    with pytest.raises(ValueError, match=message):
        function(make("binary") if make else evidence("one"), **arguments)


@pytest.mark.parametrize(("arguments", "error", "message"), NUMBERS)
@pytest.mark.parametrize("function", [select, thin_training_set])
def test_wrong_numbers(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(evidence("one"), X, **({"n": 2} | arguments))


def test_refusals_of_one_function():
    with pytest.raises(ValueError, match="kind='marginal' gives several gains"):
        select(evidence("one"), X, 2, X_INTEREST, kind="marginal")
    with pytest.raises(TypeError, match="best_estimator_"):
        thin_training_set(make_pipeline(StandardScaler(), LinearRegression()), X, 2)
    for estimator in (EvidenceMLPRegressor(), make_pipeline(EvidenceMLPRegressor())):
        with pytest.raises(NotFittedError):
            information_gain(estimator, X)
