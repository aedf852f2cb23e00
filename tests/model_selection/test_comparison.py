"""The table of models, and the criteria in it, against closed forms and brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.model_selection import ComparisonTable, compare

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(2)
X = RNG.standard_normal((30, 3))
Y = X @ [1.0, -2.0, 0.0] + 0.5 + 0.4 * RNG.standard_normal(30)
ALPHA, SIGMA = 0.7, 0.5
FIXED = EvidenceMLPRegressor((), prior=Prior(precision=ALPHA), noise=SIGMA, standardize=False)


def design(X):
    return np.column_stack([X, np.ones(len(X))])


def ridge(X, y):
    """Posterior mean and covariance of the weights of the linear model."""
    Phi = design(X)
    A = Phi.T @ Phi / SIGMA**2 + ALPHA * np.eye(4)
    return np.linalg.solve(A, Phi.T @ y) / SIGMA**2, np.linalg.inv(A)


def test_criteria_of_a_linear_model():
    model = FIXED.fit(X, Y)
    table = compare({"linear": model})
    w, V = ridge(X, Y)
    residual = Y - design(X) @ w
    gamma = 4 - ALPHA * np.trace(V)
    cov = SIGMA**2 * np.eye(30) + design(X) @ design(X).T / ALPHA
    evidence = multivariate_normal(np.zeros(30), cov).logpdf(Y)
    assert table["log_evidence"] == [pytest.approx(evidence, rel=1e-10)]
    log_likelihood = norm(0, SIGMA).logpdf(residual).sum()
    assert table["bic"] == [pytest.approx(log_likelihood - 2 * np.log(30), rel=1e-10)]
    gpe = (residual @ residual + 2 * gamma * SIGMA**2) / 30
    assert table["gpe"] == [pytest.approx(gpe, rel=1e-10)]
    assert table["n_effective_weights"] == [pytest.approx(gamma, rel=1e-10)]
    assert table["effective_fraction"] == [pytest.approx(gamma / 4, rel=1e-10)]
    assert table["n_weights"] == [4]
    assert table["leave_one_out"] == [pytest.approx(model.leave_one_out_log_density_.mean())]


def left_out(X, y, row, weight):
    """Log density of a row's target without one unit of its weight, by another fit."""
    rest = weight.copy()
    rest[row] -= 1.0
    model = clone(FIXED).fit(X, y, sample_weight=rest)
    return model.log_predictive_density(X[[row]], y[[row]])[0]


def test_leave_one_out_by_refitting():
    weight = np.random.default_rng(1).integers(0, 4, 30).astype(float)
    X2, y2 = np.vstack([X, X[:2]]), np.append(Y, Y[:2])  # rows given twice
    weight = np.append(weight, [1.0, 2.0])
    weight[:2] = 1.0
    model = clone(FIXED).fit(X2, y2, sample_weight=weight)
    found = model.leave_one_out_log_density_
    assert found.shape == (32,)
    assert_array_equal(np.isnan(found), weight == 0)
    for row in np.flatnonzero(weight)[:8]:
        assert found[row] == pytest.approx(left_out(X2, y2, row, weight), rel=1e-9)
    assert_array_equal(found[-2:], found[:2])


def test_leave_one_out_is_a_density_in_units_of_y():
    model = EvidenceMLPRegressor((2,), n_restarts=1, random_state=0)
    first = model.fit(X, Y).leave_one_out_log_density_
    again = model.fit(X, 100.0 * Y + 7.0).leave_one_out_log_density_
    assert_allclose(again, first - np.log(100.0), rtol=1e-6)


def test_order_and_probabilities():
    models = [EvidenceMLPRegressor((), prior=prior).fit(X, Y) for prior in ("single", "ard")]
    models.append(make_pipeline(PolynomialFeatures(2), EvidenceMLPRegressor(())).fit(X, Y))
    evidences = [getattr(m, "log_evidence_", None) or m[-1].log_evidence_ for m in models]
    table = compare(models)
    order = np.argsort(evidences)[::-1]
    assert table["model"] == [str(i) for i in order]
    assert_allclose(table["posterior_probability"], softmax(evidences)[order], rtol=1e-12)
    lines = repr(table).splitlines()
    assert lines[0].split()[:2] == ["model", "posterior_probability"]
    assert len(lines) == 4
    assert all(line.rstrip().endswith("trusted") for line in lines[1:])


def test_measured_evidences_are_compared_with_their_errors():
    table = ComparisonTable(model=["a", "b", "c"], log_evidence=[-1.0, -3.0, -9.0])
    assert len(repr(table).splitlines()) == 4
    table["log_evidence_std"] = [0.3, 0.4, np.nan]
    assert repr(table).splitlines()[-1] == "The first two differ by 2.0 nats; above 1.0 counts."


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_samplers_and_classifiers_do_not_offer():
    sampler = HMCMLPRegressor((), n_chains=2, n_warmup=20, n_draws=20, random_state=0).fit(X, Y)
    linear = EvidenceMLPRegressor(()).fit(X, Y)
    table = compare({"sampled": sampler, "linear": linear})
    row = table["model"].index("sampled")
    assert table["log_evidence_std"][row] > 0
    assert np.isnan([table[name][row] for name in ("bic", "gpe", "n_effective_weights")]).all()
    classifier = EvidenceMLPClassifier(()).fit(X, Y > 0)
    assert np.isnan(compare([classifier])["gpe"][0])
    assert np.isfinite(compare([classifier])["bic"][0])


def test_columns_are_aligned():
    table = ComparisonTable(model=["a", "longer name"], log_evidence=[-1.5, -1234.567])
    assert repr(table).splitlines() == [
        "model        log_evidence",
        "a                    -1.5",
        "longer name      -1234.57",
    ]


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, "no models"),
        ([LinearRegression().fit(X, Y)], TypeError, "LinearRegression has no log_evidence_"),
        (
            [EvidenceMLPRegressor(()).fit(X, Y), EvidenceMLPRegressor(()).fit(X[1:], Y[1:])],
            ValueError,
            r"different numbers of targets \(29, 30\)",
        ),
        (
            [EvidenceMLPRegressor(()).fit(X, Y), EvidenceMLPClassifier(()).fit(X, Y > 0)],
            ValueError,
            "classifiers and regressors",
        ),
    ],
)
def test_bad_input(models, error, message):
    with pytest.raises(error, match=message):
        compare(models)


def test_prior_probabilities():
    models = [clone(FIXED).set_params(noise=noise).fit(X, Y) for noise in (0.4, 0.5, 0.8)]
    evidences = np.array([model.log_evidence_ for model in models])
    prior = np.array([0.0, 1.0, 1.1 * np.exp(evidences[1] - evidences[2])])
    table = compare(models, prior_probabilities=prior)
    assert table["model"] == ["2", "1", "0"]
    assert_allclose(table["posterior_probability"], np.array([1.1, 1.0, 0.0]) / 2.1, rtol=1e-9)
    assert_array_equal(table["log_evidence"], evidences[::-1])
    with pytest.raises(ValueError, match="prior_probabilities must have shape"):
        compare(models, prior_probabilities=[0.5, 0.5])
