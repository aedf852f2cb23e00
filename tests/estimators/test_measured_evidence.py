"""Evidences that populations of networks measure, and predictions by these networks."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp
from sklearn.base import clone

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.model_selection import compare
from skbayesnn.posterior import LogUniform
from tests.tools import parts_of

LOW, HIGH = LogUniform().log_range
MEASURED = {"method": "population", "n_restarts": 2, "random_state": 0}


def linear_rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, X @ [1, -0.7] + 0.3 * rng.standard_normal(n)


def class_rows(n=30, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, (rng.random(n) < expit(2 * X[:, 0])).astype(int)


@pytest.fixture(scope="module")
def regressor():
    return EvidenceMLPRegressor((3,), noise="constant", **MEASURED).fit(*linear_rows())


def test_logistic_regression_by_quadrature():
    """Two weights and one precision on a grid: the evidence itself, no approximation."""
    X, y = class_rows()
    Z, sign = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(30)]), 2 * y - 1
    u = np.linspace(-8, 8, 101)  # w = u times the prior's sd, or times a size the data allow
    logs = []
    for log_alpha in np.linspace(LOW, HIGH, 81):
        sd = min(np.exp(-0.5 * log_alpha), 6.0)
        w = sd * np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2)
        log_prior = -0.5 * np.exp(log_alpha) * np.sum(w**2, axis=1) + log_alpha - np.log(2 * np.pi)
        likelihood = -np.logaddexp(0.0, -(w @ Z.T) * sign).sum(axis=1)
        logs.append(logsumexp(log_prior + likelihood) + 2 * np.log(sd * (u[1] - u[0])))
    exact = logsumexp(logs) + np.log((HIGH - LOW) / 80) - np.log(HIGH - LOW)
    for seed in range(3):
        model = EvidenceMLPClassifier((), prior="single", method="population", random_state=seed)
        model.fit(X, y)
        assert abs(model.log_evidence_ - exact) < 4.0 * model.log_evidence_std_
        assert model.log_evidence_std_ < 0.6


def test_attributes(regressor):
    report = regressor.evidence_report_
    assert regressor.log_evidence_ == report.log_evidence
    assert regressor.log_evidence_std_ == report.log_evidence_std > 0.0
    assert report.verdict == "trusted"
    assert report.minima[0].verdict == "not measured"  # Laplace's approximation there
    assert abs(report.laplace_log_evidence - report.log_evidence) < 3.0
    lines = repr(report).splitlines()
    assert lines[0].startswith("Predictions: explain ")
    (line,) = (line for line in lines if line.startswith("Log evidence"))
    assert line.startswith(f"Log evidence: {report.log_evidence:.2f} +- ")
    table = compare([regressor])
    assert table["log_evidence_std"] == [regressor.log_evidence_std_]
    assert table["n_weights"] == [report.n_weights]
    assert np.isnan([table["bic"], table["gpe"], table["n_effective_weights"]]).all()
    text = " ".join(repr(report).split())
    assert "Method: 512 networks drawn from the posterior by sequential Monte Carlo" in text
    assert f"Network: hidden units (3,), {report.n_weights} weights, for 40 targets" in text
    assert f"Noise: constant, sd {regressor.noise_std_:.4g} (units of y)" in text


def test_linear_models_are_exact():
    X, y = linear_rows()
    model = EvidenceMLPRegressor((), noise="constant", method="population").fit(X, y)
    plain = clone(model).set_params(method="laplace").fit(X, y)
    assert model.log_evidence_ == plain.log_evidence_
    assert_array_equal(model.predict(X), plain.predict(X))
    assert model.evidence_report_.verdict == "trusted"


def test_predictions_are_those_of_drawn_networks(regressor):
    X, y = linear_rows()
    assert [part.size for part in parts_of(regressor)] == [512]
    mean, sd = regressor.predict(X, return_std=True)
    gaussian = clone(regressor).set_params(combine="best", method="laplace").fit(X, y)
    assert np.sqrt(np.mean((mean - gaussian.predict(X)) ** 2)) < 0.1
    assert 0.8 < np.median(sd / gaussian.predict(X, return_std=True)[1]) < 1.25
    assert regressor.sample_y(X, 5).shape == (40, 5)
    assert np.all(np.isfinite(regressor.log_predictive_density(X, y)))


def test_probabilities_are_those_of_drawn_networks():
    X, y = class_rows()
    model = EvidenceMLPClassifier((2,), **MEASURED).fit(X, y)
    p, most_probable = model.predict_proba(X), model.predict_proba(X, moderated=False)
    assert_allclose(p.sum(axis=1), 1.0)
    best = clone(model).set_params(combine="best", method="laplace").fit(X, y)
    expected = best.predict_proba(X, moderated=False)
    assert_allclose(most_probable, expected, atol=0.1)  # a draw near the mode
    assert np.all(model.predict_std(X) > 0.0)


def test_laplace_is_found_when_it_is_asked_for(regressor):
    X, y = linear_rows()
    drawn = pickle.loads(pickle.dumps(clone(regressor).set_params(method="auto").fit(X, y)))
    assert np.isfinite(drawn.log_evidence_std_)
    plain = clone(regressor).set_params(method="laplace").fit(X, y)
    for name in ("coefs_", "intercepts_", "coefs_std_"):
        for one, other in zip(getattr(drawn, name), getattr(plain, name), strict=True):
            assert_array_equal(one, other)
    assert drawn.evidence_report_.laplace_log_evidence == plain.log_evidence_
    assert drawn.n_effective_weights_ == plain.n_effective_weights_
    assert len(drawn.posterior_) == len(drawn.networks_)
    assert np.isfinite(drawn.partial_fit(X, y).log_evidence_)
