"""The contract of `EvidenceMLPClassifier`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from sklearn.metrics import log_loss

from skbayesnn import EvidenceMLPClassifier, Prior
from tests.tools import assert_moments

pytestmark = pytest.mark.usefixtures("laplace")


def make_rows(n_classes=2, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2)) * [1.0, 30.0]
    a = 3 * np.sin(X[:, 0]) + X[:, 1] / 20.0 + 0.5 * rng.logistic(size=n)
    return X, np.digitize(a, [0.0] if n_classes == 2 else [-1.0, 1.0])


def fit(n_classes=2, X=None, y=None, sample_weight=None, **options):
    if X is None:
        X, y = make_rows(n_classes)
    options = {"hidden_layer_sizes": (2,), "n_restarts": 2, "random_state": 0} | options
    return EvidenceMLPClassifier(**options).fit(X, y, sample_weight)


GRID = make_rows(n=9, seed=5)[0]


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def model(request):
    return fit(request.param, combine="best")


def test_certain_probabilities_are_not_rounded_above_one():
    """Scikit-learn's `log_loss` refuses what is larger than 1 by a rounding error."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 1))
    y = X[:, 0] + 0.5 * rng.standard_normal(800) > 0
    model = EvidenceMLPClassifier(()).fit(X, y)
    far = np.linspace(-50, 50, 101)[:, None]
    assert model.predict_proba(far).max() == 1.0
    assert model.predict_log_proba(far).max() == 0.0
    assert log_loss(far[:, 0] > 0, model.predict_proba(far)) < 0.1


def test_methods_agree(model):
    p = model.predict_proba(GRID)
    assert p.shape == model.predict_std(GRID).shape == (9, len(model.classes_))
    assert_array_equal(p, model.predict_proba(GRID, moderated=True))
    assert_allclose(model.predict_log_proba(GRID), np.log(p), rtol=1e-12)
    assert_array_equal(model.predict(GRID), model.classes_[np.argmax(p, axis=1)])
    decision = model.decision_function(GRID)
    if len(model.classes_) == 2:
        assert_allclose(expit(decision), p[:, 1], rtol=1e-12)
        assert_array_equal(model.predict(GRID), (decision > 0).astype(int))
    else:
        assert_allclose(np.exp(decision), p, rtol=1e-12)
        assert_array_equal(model.predict(GRID), np.argmax(decision, axis=1))
    X, y = make_rows(len(model.classes_))
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    log_p = model.predict_log_proba(X)[np.arange(len(y)), y]
    assert_array_equal(model.log_predictive_density(X, y), log_p)


def linear_posterior(X, y, alpha, weight):
    """Mode and covariance of binary logistic regression, with nothing of the library's."""
    Phi, sign = np.column_stack([X, np.ones(len(X))]), 2.0 * y - 1.0

    def energy(w):
        return 0.5 * alpha * w @ w - np.sum(weight * log_expit(sign * (Phi @ w)))

    def gradient(w):
        return alpha * w - Phi.T @ (weight * sign * expit(-sign * (Phi @ w)))

    w = minimize(energy, np.zeros(Phi.shape[1]), jac=gradient, tol=1e-12).x
    p = expit(Phi @ w)
    A = alpha * np.eye(len(w)) + (Phi.T * (weight * p * (1 - p))) @ Phi
    return w, np.linalg.inv(A)


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_regression_against_monte_carlo(weighted):
    X, y = make_rows(n=25)
    X = X / [1.0, 15.0]
    weight = np.random.default_rng(0).uniform(0.2, 2.0, 25) if weighted else np.ones(25)
    options = {"hidden_layer_sizes": (), "standardize": False, "prior": Prior(precision=0.2)}
    model = fit(X=X, y=y, sample_weight=weight, **options)
    w, covariance = linear_posterior(X, y, 0.2, weight)
    assert_allclose(np.append(model.coefs_[0], model.intercepts_[0]), w, atol=1e-4)
    sd = np.append(model.coefs_std_[0], model.intercepts_std_[0])
    assert_allclose(sd, np.sqrt(np.diag(covariance)), rtol=1e-4)
    wide, size = 2.0 * covariance, 40_000
    draws = np.random.default_rng(1).multivariate_normal(w, wide, size)
    sign, Phi = 2.0 * y - 1.0, np.column_stack([X, np.ones(25)])
    log_share = log_expit(sign * (draws @ Phi.T)) @ weight - 0.1 * np.sum(draws**2, axis=1)
    away = draws - w
    log_share += 0.5 * np.sum(away * np.linalg.solve(wide, away.T).T, axis=1)
    share = np.exp(log_share - logsumexp(log_share))  # of the posterior itself
    grid = GRID / [1.0, 15.0]
    p = expit(np.column_stack([grid, np.ones(9)]) @ draws.T)
    moderated, std = model.predict_proba(grid)[:, 1], model.predict_std(grid)
    assert_allclose(moderated, p @ share, atol=0.015)
    assert_allclose(std[:, 0], std[:, 1], rtol=1e-9)
    assert_allclose(std[:, 1], np.sqrt((p - moderated[:, None]) ** 2 @ share), atol=0.02)


LABELS = [np.array([False, True]), np.array(["high", "low", "medium"], dtype=object)]


@pytest.mark.parametrize("names", LABELS)
def test_labels(names):
    X, y = make_rows(len(names))
    model, plain = fit(X=X, y=names[y]), fit(len(names))
    assert_array_equal(model.classes_, names)
    assert_array_equal(model.predict(GRID), names[plain.predict(GRID)])
    assert_array_equal(model.predict_proba(GRID), plain.predict_proba(GRID))
    assert model.score(X, names[y]) == plain.score(X, y)


def test_numbers_that_look_like_counts_are_told():
    X, _ = make_rows(n=300)
    counts = np.random.default_rng(1).negative_binomial(2, 0.05, 300)
    options = {"hidden_layer_sizes": (), "max_time": 0.1}
    with pytest.warns(UserWarning, match=r"^y has \d+ different.*EvidenceMLPRegressor"):
        fit(X=X, y=counts, **options)
    with pytest.warns(UserWarning, match="max_time"):  # names are classes
        fit(X=X, y=[f"kind {count}" for count in counts], **options)


def test_prior_of_logistic_regression(seed):
    X, y = make_rows()
    model = fit(X=X, y=y, hidden_layer_sizes=(), prior=Prior(precision=0.25))
    draws = model.sample_prior(GRID, 20_000, random_state=seed)
    assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-12)
    a = np.log(draws[:, 1]) - np.log(draws[:, 0])
    Phi = np.column_stack([(GRID - X.mean(axis=0)) / X.std(axis=0), np.ones(9)])
    assert_moments(a.T, np.zeros(9), Phi @ Phi.T / 0.25)
    assert_array_equal(draws, model.sample_prior(GRID, 20_000, random_state=seed))
