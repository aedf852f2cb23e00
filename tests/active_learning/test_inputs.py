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
def test_unsuitable_estimators(estimator):
    for function in (information_gain, lambda *args: select(*args, 2)):
        with pytest.raises(TypeError, match="must be a fitted estimator of this package"):
            function(estimator, X)
    with pytest.raises(TypeError, match="best_estimator_"):
        thin_training_set(make_pipeline(StandardScaler(), LinearRegression()), X, 2)


def test_unfitted():
    pipeline = make_pipeline(StandardScaler(), EvidenceMLPRegressor())
    for estimator in (EvidenceMLPRegressor(), pipeline):
        with pytest.raises(NotFittedError):
            information_gain(estimator, X)


def test_other_features():
    model = evidence("one")
    with pytest.raises(ValueError, match="3 features"):
        information_gain(model, np.ones((4, 3)))
    with pytest.raises(ValueError, match="1 features"):
        information_gain(model, X, np.ones((4, 1)))
    with pytest.raises(ValueError, match="NaN"):
        information_gain(model, np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "marginal"}, "kind='marginal' needs X_interest"),
        ({"interest_weight": [1.0]}, "only with X_interest"),
        ({"kind": "mean"}, "kind must be one of 'total', 'marginal'"),
        ({"kind": 3}, "kind must be one of"),
        ({"method": "mc"}, "method must be one of 'approximation', 'exact'; got 'mc'"),
        ({"X_interest": X_INTEREST, "interest_weight": [1.0, 2.0]}, r"shape \(3,\)"),
        ({"X_interest": X_INTEREST, "interest_weight": [1.0, -2.0, 1.0]}, "not be negative"),
        ({"X_interest": X_INTEREST, "interest_weight": [0.0, 0.0, 0.0]}, "must not be negative"),
        ({"X_interest": X_INTEREST, "interest_weight": [1.0, np.nan, 1.0]}, "NaN"),
    ],
)
def test_wrong_questions(arguments, message):
    for function in (information_gain, lambda *args, **kw: select(*args, 2, **kw)):
        with pytest.raises(ValueError, match=message):
            function(evidence("one"), X, **arguments)


@pytest.mark.parametrize("kind", ["joint", "q_optimal"])
def test_kinds_of_regression_only(kind):
    for make in (evidence, sampled):
        with pytest.raises(ValueError, match=f"kind='{kind}' exists for regression only"):
            information_gain(make("binary"), X, X_INTEREST, kind=kind)


def test_wrong_numbers():
    model = evidence("one")
    for function in (select, thin_training_set):
        with pytest.raises(ValueError, match="n=8 is larger than the number of rows"):
            function(model, X, 8)
        with pytest.raises(ValueError, match="n must be at least 1"):
            function(model, X, 0)
        with pytest.raises(TypeError, match="n must be an integer"):
            function(model, X, 2.0)
        for price in ("cheap", -1.0):
            with pytest.raises(ValueError, match="price must be a number"):
                function(model, X, 2, price=price)
    with pytest.raises(ValueError, match="kind='marginal' gives several gains"):
        select(model, X, 2, X_INTEREST, kind="marginal")
