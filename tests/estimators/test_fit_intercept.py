"""Outputs without intercepts: closed forms, and the same model in other ways."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
)
from skbayesnn.inference.evidence._evidence import symmetries
from skbayesnn.inference.minima._redundancy import prune
from skbayesnn.network import outputs
from tests.estimators.common import linear_model
from tests.tools import make_problem

pytestmark = pytest.mark.usefixtures("laplace")

rng = np.random.default_rng(5)
X = rng.standard_normal((30, 2)) + np.array([0.5, -1.0])
y = X @ [1.0, -0.4] + 0.3 * rng.standard_normal(30)
AS_GIVEN = {"standardize": False, "noise": "constant"}
FEW = {"n_chains": 4, "n_warmup": 100, "n_draws": 250, "random_state": 0}


def test_a_saturated_unit_is_an_intercept():
    """It is off where there are biases, but here it does what these would."""
    posterior, theta, _ = make_problem("student_t", (2,), output_bias=False)
    theta = np.array([1.0, 0.0, 0.5, 0.0, 0.0, 9.0, 2.0, 3.0])
    smaller, _, pruned = prune(posterior, theta, np.array([0.1]))
    assert pruned == []
    assert smaller.network.output_bias is False
    theta[7] = 0.0
    smaller, kept, pruned = prune(posterior, theta, np.array([0.1]))
    assert [unit.reason for unit in pruned] == ["off"]
    assert_allclose(
        outputs(smaller.network, kept, posterior.X), outputs(posterior.network, theta, posterior.X)
    )
    assert len(symmetries(posterior.network, posterior.groups)[0].kinds) == 2


# --- linear models --------------------------------------------------------------------------------


def test_closed_form_of_a_linear_model():
    given = AS_GIVEN | {"prior": Prior(precision=2.0), "noise": 0.5, "fit_intercept": False}
    model = EvidenceMLPRegressor((), **given).fit(X, y)
    evidence, mean, S = linear_model(X, y, 2.0, 0.25)
    assert_allclose(model.log_evidence_, evidence, rtol=0, atol=1e-9)
    assert_allclose(model.coefs_[0][:, 0], mean, rtol=1e-10)
    ridge = Ridge(alpha=2.0 * 0.5**2, fit_intercept=False, solver="cholesky").fit(X, y)
    assert_allclose(model.coefs_[0][:, 0], ridge.coef_, rtol=1e-10)
    assert_array_equal(model.intercepts_[0], [0.0])
    assert_array_equal(model.intercepts_std_[0], [0.0])
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, ridge.predict(X))
    assert_allclose(std, np.sqrt(0.25 + np.sum(X @ S * X, axis=1)))
    assert_allclose(model.coefs_std_[0][:, 0], np.sqrt(np.diag(S)))
    sampled = HMCMLPRegressor((), **given, **FEW).fit(X, y)
    assert sampled.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-6)
    drawn = [network.coefs[0][:, 0] for network in sampled.networks_]
    assert_allclose(np.mean(drawn, axis=0), model.coefs_[0][:, 0], atol=4 * 0.1 / 1000**0.5)


def test_scaled_but_not_shifted():
    given = {"fit_intercept": False, "noise": Noise("constant", std=0.5)}
    model = EvidenceMLPRegressor((), prior=Prior(precision=2.0), **given).fit(X, y)
    scale = X.std(axis=0) / y.std()
    precision = np.diag(2.0 * scale**2)
    given |= {"prior": Prior(base_precision=precision), "standardize": False}
    as_given = EvidenceMLPRegressor((), **given).fit(X, y)
    assert_allclose(model.log_evidence_, as_given.log_evidence_, atol=1e-6)
    assert_allclose(model.predict(X), as_given.predict(X), atol=1e-7)
    assert_allclose(model.predict(np.zeros((1, 2))), 0.0, atol=1e-15)


def test_logistic_regression():
    c = y > 0.2
    given = {"prior": Prior(precision=2.0), "fit_intercept": False, "standardize": False}
    model = EvidenceMLPClassifier((), **given).fit(X, c)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(X, c)
    assert_allclose(model.coefs_[0][:, 0], theirs.coef_[0], atol=1e-5)
    assert_array_equal(model.intercepts_[0], [0.0])
    sampled = HMCMLPClassifier((), **given, **FEW).fit(X, c)
    assert sampled.log_evidence_ == pytest.approx(model.log_evidence_, abs=0.2)  # Laplace, 30 rows
    assert_allclose(sampled.predict_proba(X), model.predict_proba(X), atol=0.05)
    three = np.digitize(y, [0.0, 1.0])
    several = [EvidenceMLPClassifier((), **given), HMCMLPClassifier((), **given, **FEW)]
    found = [one.fit(X, three).predict_proba(X) for one in several]
    assert_allclose(*found, atol=0.05)


def test_a_constant_column_is_an_intercept_group():
    """A basis with a column of ones, against intercepts in a group of their own."""
    ones = np.column_stack([X, np.ones(len(X))])
    labels = ["slopes", "slopes", "constant"]
    own = EvidenceMLPRegressor((), prior=labels, fit_intercept=False, **AS_GIVEN).fit(ones, y)
    group = EvidenceMLPRegressor((), prior="single+intercept", **AS_GIVEN).fit(X, y)
    assert_allclose(own.log_evidence_, group.log_evidence_, atol=1e-7)
    assert_allclose(own.predict(ones), group.predict(X), atol=1e-6)
    single = EvidenceMLPRegressor((), prior="single", fit_intercept=False, **AS_GIVEN).fit(ones, y)
    both = EvidenceMLPRegressor((), prior="single", **AS_GIVEN).fit(X, y)
    assert_allclose(single.log_evidence_, both.log_evidence_, atol=1e-7)
    fixed = {"prior": Prior("single+intercept", precision={"intercept": 1e10})}
    almost = EvidenceMLPRegressor((), **fixed, **AS_GIVEN).fit(X, y)  # nearly none
    without = EvidenceMLPRegressor((), prior="single", fit_intercept=False, **AS_GIVEN).fit(X, y)
    assert_allclose(almost.log_evidence_, without.log_evidence_, atol=1e-4)


# --- networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["constant", "input_dependent"])
def test_networks(noise):
    """Predictions from the weights in the users' units; two engines."""
    t = np.column_stack([np.tanh(1.5 * X[:, 0]), X[:, 1]]) + 0.2 * rng.standard_normal((30, 2))
    given = {"fit_intercept": False, "noise": noise, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EvidenceMLPRegressor((2,), n_restarts=1, combine="best", **given).fit(X, t)
        few = {"n_chains": 2, "n_warmup": 30, "n_draws": 30}
        sampled = HMCMLPRegressor((2,), measure_evidence=False, **few, **given).fit(X, t)
    assert_array_equal(model.intercepts_[1], [0.0, 0.0])
    hidden = np.tanh(X @ model.coefs_[0] + model.intercepts_[0])
    assert_allclose(hidden @ model.coefs_[1], model.predict(X), atol=1e-10)
    assert not any(name.startswith("output[bias") for name in model.posterior_[0].names)
    draws = model.posterior_[0].sample(3, random_state=0)
    assert draws.shape == (3, len(model.posterior_[0].names))
    assert np.all(np.isfinite(model.predict_std(X)))
    assert sampled.networks_[0].outputs(X).shape == t.shape
    assert np.mean((sampled.predict(X) - t) ** 2) < 0.5 * np.mean(t**2)


def test_what_does_not():
    with pytest.raises(ValueError, match="for outputs with intercepts"):
        EvidenceMLPRegressor((), fit_intercept=False, prior="single+intercept").fit(X, y)
    with pytest.raises(TypeError, match="fit_intercept must be True or False"):
        HMCMLPRegressor((), fit_intercept=1).fit(X, y)
    earlier = EvidenceMLPRegressor(()).fit(X, y)
    with pytest.raises(ValueError, match="learnt with fit_intercept=True"):
        EvidenceMLPRegressor(prior=earlier, fit_intercept=False).fit(X, y)
