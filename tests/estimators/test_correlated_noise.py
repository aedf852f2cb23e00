"""Noise that is correlated between outputs: closed forms, and bad input."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.frozen import FrozenEstimator

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Noise, Prior, Sampler, Solver
from skbayesnn.posterior import log_prior_of_correlations
from tests.estimators.common import quadrature
from tests.tools import BRIEF, set_limits

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SD = np.array([0.3, 4.0])
BOUND = 2.0 * np.log(1e3)


def make_rows(n=80, correlation=0.9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    truth = np.column_stack([np.sin(1.5 * X[:, 0]), 10.0 * np.cos(X[:, 0])])
    root = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    return X, truth + SD * (rng.standard_normal((n, 2)) @ root.T)


def make_linear_rows(n=50, correlation=0.7, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    root = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    return X, X @ [[0.5, -1.0], [0.2, 0.4]] + [0.4, 0.8] * (rng.standard_normal((n, 2)) @ root.T)


def fit(rows, hidden=(), **options):
    options = {"n_restarts": 2, "random_state": 0, "noise": "correlated"} | options
    return EvidenceMLPRegressor(hidden, **options).fit(*rows)


FIXED = {"prior": Prior("single", precision=0.7), "standardize": False}


def log_marginal(rows, sigma, alpha=0.7):
    """Of all outputs of all rows together: weights and noise integrated out."""
    Z, y = np.column_stack([rows[0], np.ones(len(rows[0]))]), rows[1]
    covariance = np.kron(np.eye(len(Z)), sigma) + np.kron(Z @ Z.T / alpha, np.eye(len(sigma)))
    return multivariate_normal.logpdf(y.ravel(), cov=covariance)


@cache
def highest():
    """The covariance of highest evidence, by a search that knows no equations."""
    rows = make_linear_rows()

    def sigma_of(x):
        root = np.array([[np.exp(x[0]), 0.0], [x[1], np.exp(x[2])]])
        return root @ root.T

    best = minimize(
        lambda x: -log_marginal(rows, sigma_of(x)),
        [-0.5, 0.0, -0.5],
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 2000},
    )
    return sigma_of(best.x), -best.fun


def test_covariance_of_highest_evidence():
    rows, (sigma, value) = make_linear_rows(), highest()
    model = fit(rows, **FIXED)
    found = model.predict_output_cov(rows[0][:1], kind="aleatoric")[0]
    assert_allclose(found, sigma, rtol=1e-4)
    assert_allclose(model.noise_std_, np.sqrt(np.diag(sigma)), rtol=1e-4)
    expected = sigma[0, 1] / np.sqrt(np.prod(np.diag(sigma)))
    assert_allclose(model.noise_correlation_[0, 1], expected, rtol=1e-5)
    at_best = model.log_evidence_ - model.evidence_report_.noise_occam
    assert at_best == pytest.approx(value, abs=1e-6)


def test_predictions_in_closed_form():
    (X, y), (sigma, _) = make_linear_rows(), highest()
    model = fit((X, y), **FIXED)
    Z, z = np.column_stack([X, np.ones(len(X))]), np.array([0.3, -1.0, 1.0])
    inverse = np.linalg.inv(sigma)
    A = np.kron(Z.T @ Z, inverse) + 0.7 * np.eye(6)
    weights = np.linalg.solve(A, (Z.T @ y @ inverse).ravel())
    J = np.kron(z, np.eye(2))
    epistemic = J @ np.linalg.solve(A, J.T)
    assert_allclose(model.predict([z[:2]])[0], J @ weights, rtol=1e-4)
    assert_allclose(model.predict_output_cov([z[:2]], "epistemic")[0], epistemic, rtol=1e-3)
    assert_allclose(model.predict_output_cov([z[:2]])[0], epistemic + sigma, rtol=1e-3)
    target = np.array([1.0, 0.0])
    expected = multivariate_normal.logpdf(target, J @ weights, epistemic + sigma)
    assert_allclose(model.log_predictive_density([z[:2]], [target])[0], expected, atol=1e-3)


def test_evidence_by_quadrature():
    """Over both log precisions and the correlation."""
    rows = make_linear_rows(25)

    def log_density(place):
        sd, rho = np.exp(-0.5 * place[:2]), place[2]
        prior = -2.0 * np.log(2.0 * BOUND) - np.log(2.0)
        values = [
            log_marginal(rows, np.outer(s, s) * [[1.0, r], [r, 1.0]])
            for s, r in zip(sd.T, np.clip(rho, -0.999, 0.999), strict=True)
        ]
        return np.where(np.abs(rho) < 1.0, np.array(values) + prior, -np.inf)

    exact, _, _ = quadrature(log_density, [(-2.0, 4.0), (-2.0, 4.0), (-0.99, 0.99)], 11)
    assert fit(rows, **FIXED).log_evidence_ == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_evidence_prefers_correlated_noise_where_it_is(n_outputs):
    gains = []
    for correlation in (0.8, 0.0):
        rng = np.random.default_rng(5)
        X = rng.standard_normal((100, 2))
        covariance = np.full((n_outputs, n_outputs), correlation) + (1 - correlation) * np.eye(
            n_outputs
        )
        noise = rng.multivariate_normal(np.zeros(n_outputs), covariance, 100)
        rows = X, X @ rng.standard_normal((2, n_outputs)) + 0.5 * noise
        own, other = (fit(rows, noise=noise) for noise in ("correlated", "constant"))
        gains.append(own.log_evidence_ - other.log_evidence_)
        off = own.noise_correlation_[np.tril_indices(n_outputs, -1)]
        assert np.max(np.abs(off - correlation)) < 4.0 * (1 - correlation**2) / 10.0
    assert gains[0] > 20.0
    assert gains[1] < -1.0


def test_prior_is_uniform_over_correlation_matrices():
    """The volume of all of three outputs (Joe 2006, Journal of Multivariate Analysis 97)."""
    assert_allclose(np.exp(-log_prior_of_correlations(3)), 0.5 * np.pi**2)


# --- networks ------------------------------------------------------------------------------------


# --- promises and bad input ----------------------------------------------------------------------


def test_exact_copies_of_an_output():
    """Their noise is perfectly correlated; everything stays finite."""
    X, y = make_rows()
    model = fit((X, y[:, [0, 0]]), (2,))
    assert model.noise_correlation_[0, 1] > 0.999
    assert np.all(np.isfinite(model.predict_output_cov(X)))


def test_bad_input():
    X, y = make_rows()
    with pytest.raises(ValueError, match="for several outputs"):
        fit((X, y[:, 0]))
    with pytest.raises(ValueError, match="infers the whole covariance"):
        fit((X, y), noise=Noise("correlated", std=0.1))
    with pytest.raises(ValueError, match="not possible with noise='correlated'"):
        EvidenceMLPRegressor((), noise="correlated").fit(X, y, measurement_std=0.1)


def test_samplers_refuse():
    X, y = make_rows()
    with pytest.raises(ValueError, match="noise='correlated' is not sampled"):
        HMCMLPRegressor((), noise="correlated").fit(X, y)
    fitted = fit((X, y))
    with pytest.raises(ValueError, match="is not sampled"):
        HMCMLPRegressor.from_evidence(fitted).fit(X, y)
    sampler = HMCMLPRegressor((), sampler=Sampler(init=FrozenEstimator(fitted)), **BRIEF)
    assert sampler.fit(X, y).noise_model_ == "constant"


def test_correlation_is_told_of_this_noise_only():
    model = fit(make_rows(), noise="constant")
    with pytest.raises(AttributeError, match="only with noise='correlated'"):
        _ = model.noise_correlation_


def test_without_an_evidence_there_are_correlations(monkeypatch):
    set_limits(monkeypatch, dense=0, batch_rows=100, batch_steps=3000)
    X, y = make_rows(n=1500)
    model = fit((X, y), (6,), n_restarts=1, solver=Solver(max_iter=60))
    assert np.isnan(model.log_evidence_)
    assert model.noise_correlation_[0, 1] > 0.6
