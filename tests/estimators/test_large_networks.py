import numpy as np
import pytest
from sklearn.datasets import load_digits

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, Solver
from skbayesnn.inference import Method
from tests.tools import result_of, set_limits

pytestmark = pytest.mark.usefixtures("laplace")


def method_of(model):
    return Method.choose(*result_of(model).posed)


def test_more_weights_than_a_dense_hessian_allows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(40)
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


@pytest.mark.parametrize(
    "limits", [{"softmax_work": 0}, {"dense": 0, "dual_work": 0}], ids=["dense", "kronecker"]
)
@pytest.mark.filterwarnings("ignore:log_evidence_ is nan")
def test_softmax_networks_are_trained_by_gradients(monkeypatch, limits):
    """Four of the ten digits."""
    set_limits(monkeypatch, **limits)
    X, y = load_digits(n_class=4, return_X_y=True)
    train, test = np.split(np.random.default_rng(0).permutation(len(X)), [200])
    model = EvidenceMLPClassifier((5,), n_restarts=1, random_state=0).fit(X[train], y[train])
    method = method_of(model)
    assert method.by_gradients
    assert np.isfinite(model.log_evidence_) == method.dense
    assert model.n_iter_ < 20
    assert model.score(X[test], y[test]) > 0.92
    assert -np.mean(model.log_predictive_density(X[test], y[test])) < 0.5
