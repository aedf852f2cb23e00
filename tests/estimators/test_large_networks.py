import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, Noise, Prior, Solver
from skbayesnn.inference import Method
from skbayesnn.inference.curvature._method import Curvature
from tests.tools import result_of, set_limits

pytestmark = pytest.mark.usefixtures("laplace")

KRONECKER = {"dense": 0, "dual_work": 0}


def rows(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def method_of(model):
    return Method.choose(*result_of(model).posed)


def test_more_weights_than_a_dense_hessian_allows():
    X, y = rows()
    options = {"n_restarts": 2, "combine": "best", "solver": Solver(max_iter=30), "random_state": 0}
    model = EvidenceMLPRegressor((60, 60), **options).fit(X, y)  # 4021 weights
    assert not method_of(model).dense
    smaller = EvidenceMLPRegressor((8, 8), **options).fit(X, y)
    # Units that do nothing must not add to the evidence, as copies of one another would.
    assert model.log_evidence_ == pytest.approx(smaller.log_evidence_, abs=6.0)  # another size
    assert len(model.evidence_report_.minima[0].pruned) > 100
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    assert model.score(X, y) > 0.9
    far = model.predict_std(10 * X[:5], kind="epistemic")
    assert np.all(far > np.max(model.predict_std(X, kind="epistemic")))


@pytest.mark.parametrize("n", [20, 200])
def test_dual_path_agrees_with_the_gauss_newton_one(monkeypatch, n):
    # Everything fixed, so that both must find the same minimum and the same Gaussian.
    X, y = rows(n)
    settings = {"prior": Prior(precision=1.0), "noise": 0.3, "n_restarts": 1, "random_state": 3}
    usual = EvidenceMLPRegressor((4,), solver="gauss_newton", **settings).fit(X, y)
    set_limits(monkeypatch, dense=0, dual=0)
    large = EvidenceMLPRegressor((4,), **settings).fit(X, y)
    assert method_of(large).curvature is Curvature.DUAL
    np.testing.assert_allclose(large.predict(X), usual.predict(X), atol=1e-2)
    np.testing.assert_allclose(large.predict_std(X), usual.predict_std(X), rtol=1e-2)
    assert large.log_evidence_ == pytest.approx(usual.log_evidence_, abs=0.05)


@pytest.mark.parametrize("std", [0.3, "auto"])
def test_kronecker_path_agrees_with_the_gauss_newton_one(monkeypatch, std):
    X, y = rows(800)
    y = y + 0.3 * np.random.default_rng(1).standard_normal(len(y))
    settings = {
        "prior": Prior(precision=10.0),
        "n_restarts": 1,
        "random_state": 1,
        "noise": Noise("constant", std=std),
    }
    usual = EvidenceMLPRegressor((30,), solver="gauss_newton", **settings).fit(X, y)
    set_limits(monkeypatch, **KRONECKER)
    model = EvidenceMLPRegressor((30,), **settings)
    with pytest.warns(ConvergenceWarning, match="Kronecker factors"):
        model.fit(X, y)
    assert method_of(model).by_gradients
    std = usual.predict_std(X, kind="epistemic")
    assert np.sqrt(np.mean((model.predict(X) - usual.predict(X)) ** 2)) < 0.5 * np.mean(std)
    assert 0.9 < np.median(model.predict_std(X, kind="epistemic") / std) < 1.6
    assert model.noise_std_ == pytest.approx(usual.noise_std_, rel=0.05)
    assert model.n_effective_weights_ == pytest.approx(
        usual.n_effective_weights_, rel=0.25
    )  # signs


BY_GRADIENTS = [{"softmax_work": 0}, KRONECKER]
each_curvature = pytest.mark.parametrize("limits", BY_GRADIENTS, ids=["dense", "kronecker"])
without_evidence = pytest.mark.filterwarnings("ignore:log_evidence_ is nan")


def digits(n_train):
    """Four of the ten digits."""
    X, y = load_digits(n_class=4, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:n_train], order[n_train:]
    return X[train], y[train], X[test], y[test]


@each_curvature
@without_evidence
def test_softmax_networks_are_trained_by_gradients(monkeypatch, limits):
    set_limits(monkeypatch, **limits)
    X, y, X_test, y_test = digits(200)
    model = EvidenceMLPClassifier((5,), n_restarts=1, random_state=0).fit(X, y)
    method = method_of(model)
    assert method.by_gradients
    assert np.isfinite(model.log_evidence_) == method.dense
    assert model.n_iter_ < 20
    assert model.score(X_test, y_test) > 0.92
    assert -np.mean(model.log_predictive_density(X_test, y_test)) < 0.5
