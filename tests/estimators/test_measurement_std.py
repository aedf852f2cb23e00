"""Known errors of measurements: closed forms, promises, and what users may get wrong."""

from itertools import pairwise, product

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.model_selection import GridSearchCV, cross_val_predict

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.model_selection import EvidenceSearch
from tests.tools import result_of

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

REGRESSORS = EvidenceMLPRegressor, HMCMLPRegressor
FIXED = {"prior": Prior("single", precision=0.7), "standardize": False}
FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "measure_evidence": False}
BOUND = 2.0 * np.log(1e3)

each_regressor = pytest.mark.parametrize("kind", REGRESSORS)


def make_rows(n=40, n_outputs=1, seed=0):
    """A plane with a noise of 0.3 beside errors from 0.03 to 3."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    errors = 10.0 ** rng.uniform(-1.5, 0.5, (n, n_outputs))
    y = X @ rng.uniform(-1, 1, (2, n_outputs)) + 0.5
    y += np.hypot(0.3, errors) * rng.standard_normal(y.shape)
    return (X, y[:, 0], errors[:, 0]) if n_outputs == 1 else (X, y, errors)


def fit(kind, rows, hidden=(), weight=None, **options):
    X, y, errors = rows
    few = FEW if kind is HMCMLPRegressor else {"n_restarts": 1}
    model = kind(hidden, **few | {"random_state": 0} | options)
    return model.fit(X, y, sample_weight=weight, measurement_std=errors)


def features(X):
    return np.column_stack([X, np.ones(len(X))])


def closed_form(rows, alpha, variance, X):
    """Log evidence, and mean and covariance of noise-free outputs at ``X``: linear regression."""
    Z, (_, y, errors) = features(rows[0]), rows
    noise = variance + errors**2
    evidence = multivariate_normal.logpdf(y, cov=np.diag(noise) + Z @ Z.T / alpha)
    A = alpha * np.eye(Z.shape[1]) + (Z.T / noise) @ Z
    mean = features(X) @ np.linalg.solve(A, Z.T @ (y / noise))
    return evidence, mean, features(X) @ np.linalg.solve(A, features(X).T)


@pytest.mark.parametrize("noise_std", [0.3, 0])
def test_linear_model_in_closed_form(noise_std):
    rows, X = make_rows(), np.random.default_rng(1).standard_normal((6, 2))
    model = fit(EvidenceMLPRegressor, rows, noise=noise_std, **FIXED)
    evidence, mean, covariance = closed_form(rows, 0.7, noise_std**2, X)
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-6)
    assert model.noise_std_ == noise_std
    assert_allclose(model.predict(X), mean, atol=1e-8)
    sd = np.sqrt(np.diag(covariance))
    assert_allclose(model.predict_std(X, kind="epistemic"), sd, rtol=1e-6)
    assert_allclose(model.predict(X, return_std=True)[1], np.hypot(sd, noise_std), rtol=1e-6)
    off = ~np.eye(6, dtype=bool)
    assert_allclose(model.predict(X, return_cov=True)[1][off], covariance[off], rtol=1e-6)


def log_evidence_on_grid(rows, n_alpha=241, n_beta=481):
    """Logarithms of both precisions, and the log marginal likelihood of all pairs."""
    Z, (_, y, errors) = features(rows[0]), rows
    log_alpha, log_beta = (np.linspace(-BOUND, BOUND, n) for n in (n_alpha, n_beta))
    table = np.empty((n_alpha, n_beta))
    for j, b in enumerate(log_beta):
        noise = np.exp(-b) + errors**2
        left, s, _ = np.linalg.svd(Z / np.sqrt(noise)[:, None], full_matrices=False)
        t = y / np.sqrt(noise)
        along = (left.T @ t) ** 2
        total = 1.0 + s**2 * np.exp(-log_alpha)[:, None]
        inside = np.sum(along / total - along + np.log(total), axis=1)
        table[:, j] = -0.5 * (inside + t @ t + np.sum(np.log(2.0 * np.pi * noise)))
    return log_alpha, log_beta, table


def test_inferred_level_and_evidence_by_quadrature():
    """One integral after the other is within a tenth of a nat of both together."""
    rows = make_rows(n=60)
    log_alpha, log_beta, table = log_evidence_on_grid(rows)
    model = fit(EvidenceMLPRegressor, rows, standardize=False, prior="single")
    best = np.unravel_index(np.argmax(table), table.shape)
    assert abs(np.log(model.weight_precisions_[0]) - log_alpha[best[0]]) < 0.06
    assert abs(np.log(model.noise_std_**-2) - log_beta[best[1]]) < 0.03
    assert 0.2 < model.noise_std_ < 0.45  # 0.3
    point = result_of(model).best.terms
    at_best = point.total - point.noise_occam - point.weight_precision_occam
    assert table.max() <= at_best < table.max() + 0.005
    share = np.log(1.0 / (len(log_alpha) - 1)) + np.log(1.0 / (len(log_beta) - 1))
    exact = logsumexp(table) + share
    assert model.log_evidence_ == pytest.approx(exact, abs=0.1)  # nats, as said above


def test_noise_that_errors_explain_goes_away():
    rng = np.random.default_rng(3)
    X, errors = rng.standard_normal((200, 2)), 10.0 ** rng.uniform(-1, 0.5, 200)
    y = X[:, 0] + errors * rng.standard_normal(200)
    model = fit(EvidenceMLPRegressor, (X, y, errors))
    assert model.noise_std_ < 0.05
    alone = fit(EvidenceMLPRegressor, (X, y, errors), noise=0)
    assert abs(model.predict(X) - alone.predict(X)).max() < 0.01
    assert model.log_evidence_ < alone.log_evidence_  # it has one parameter more
    plain = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    assert model.log_evidence_ > plain.log_evidence_ + 50.0


def test_leave_one_out_is_the_fall_of_the_evidence():
    rows = make_rows(n=15)
    model = fit(EvidenceMLPRegressor, rows, noise=0.3, **FIXED)
    rest = np.arange(15) != 4
    without = fit(EvidenceMLPRegressor, [r[rest] for r in rows], noise=0.3, **FIXED)
    fall = model.log_evidence_ - without.log_evidence_
    assert model.leave_one_out_log_density_[4] == pytest.approx(fall, abs=1e-7)
    X, y, errors = (r[[4]] for r in rows)
    density = without.log_predictive_density(X, y, measurement_std=errors)
    assert density[0] == pytest.approx(fall, abs=1e-7)


# --- predictions ---------------------------------------------------------------------------------


@each_regressor
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_errors_of_rows_to_predict(kind, n_outputs):
    X, y, errors = make_rows(n_outputs=n_outputs)
    model = fit(kind, (X, y, errors), hidden=(2,))
    mean = model.predict(X[:5])
    noise = model.predict_std(X[:5], kind="aleatoric", measurement_std=errors[:5])
    level = model.predict_std(X[:5], kind="aleatoric")
    assert_allclose(noise, np.hypot(level, errors[:5]), rtol=1e-7)
    total = model.predict_std(X[:5], measurement_std=errors[:5])
    assert_allclose(total**2, model.predict_std(X[:5]) ** 2 + errors[:5] ** 2)
    assert_array_equal(
        model.predict_std(X[:5], "epistemic", errors[:5]), model.predict_std(X[:5], "epistemic")
    )
    far = 1e3 + 0.0 * errors[:5]  # then errors are all
    interval = model.predict_interval(X[:5], 0.95, measurement_std=far)
    assert_allclose(interval[..., 1] - mean, norm.ppf(0.975) * far, rtol=1e-2)
    density = model.log_predictive_density(X[:5], y[:5], measurement_std=far)
    assert_allclose(density, n_outputs * norm.logpdf(0.0, scale=1e3), rtol=1e-3)
    cdf = model.predict_distribution(X[:5], far).cdf(mean + 500.0)
    assert_allclose(cdf, norm.cdf(0.5), rtol=1e-2)


@each_regressor
def test_rows_to_predict_need_errors_if_there_is_no_other_noise(kind):
    rows = X, y, errors = make_rows()
    model = fit(kind, rows, hidden=(2,), noise=0)
    for given, compare in product((None, errors), ("joint_logpdf", "cdf")):
        call = getattr(model.predict_distribution(X, given), compare)
        if given is None:
            with pytest.raises(ValueError, match="measurement_std of these rows"):
                call(y)
        else:
            assert np.all(np.isfinite(call(y)))
    interval = model.predict_interval(X)
    assert np.all(interval[:, 0] < interval[:, 1])
    assert np.all(np.isfinite(model.sample_y(X)))


# --- batches -------------------------------------------------------------------------------------


def by_batches(rows, options, cuts=(0, 25, 40, 60)):
    """Learnt by `partial_fit`, or by estimators each of which is the prior of the next."""
    model = EvidenceMLPRegressor((), **options)
    for first, last in pairwise(cuts):
        X, y, errors = (r[first:last] for r in rows)
        model.partial_fit(X, y, measurement_std=errors)
    return model


def test_batches_with_errors_equal_one_fit():
    """Linear models at a given noise level: weights, error bars and evidence."""
    rows, options = make_rows(n=60), FIXED | {"noise": 0.3, "n_restarts": 1}
    whole, batches = fit(EvidenceMLPRegressor, rows, **options), by_batches(rows, options)
    X, y, errors = rows
    first = EvidenceMLPRegressor((), **options)
    first.fit(X[:25], y[:25], measurement_std=errors[:25])
    last = EvidenceMLPRegressor((), **options | {"prior": first})
    last.fit(X[25:], y[25:], measurement_std=errors[25:])
    for model in (batches, last):
        assert_allclose(model.coefs_[0], whole.coefs_[0], rtol=1e-10)
        assert_allclose(model.predict_std(X), whole.predict_std(X), rtol=1e-9)
    assert_allclose(batches.log_evidence_, whole.log_evidence_, rtol=1e-10)
    assert_allclose(first.log_evidence_ + last.log_evidence_, whole.log_evidence_, rtol=1e-10)


def test_batches_with_errors_remember_the_noise_level():
    """Nearly: the Gamma density of the same curvature stands for what they tell of it."""
    options, apart = FIXED | {"n_restarts": 1}, []
    for seed in range(6):
        rows = make_rows(n=120, seed=seed)
        whole = fit(EvidenceMLPRegressor, rows, **options)
        batches = by_batches(rows, options, (0, 60, 120))
        last = fit(EvidenceMLPRegressor, [r[60:] for r in rows], **options)
        apart.append(np.log([m.noise_std_ / whole.noise_std_ for m in (batches, last)]))
        assert batches.log_evidence_ == pytest.approx(
            whole.log_evidence_, abs=0.3
        )  # nats, as above
    batches, last = np.abs(apart).T
    assert np.max(batches) < 0.05
    assert np.mean(batches) < 0.2 * np.mean(last)


# --- promises ------------------------------------------------------------------------------------


@each_regressor
def test_units_do_not_matter(kind):
    X, y, errors = make_rows()
    one = fit(kind, (X, y, errors), hidden=(2,))
    other = fit(kind, (1e3 * X, 1e-4 * y + 7.0, 1e-4 * errors), hidden=(2,))
    assert_allclose(other.predict(1e3 * X), 1e-4 * one.predict(X) + 7.0, rtol=1e-6)
    assert_allclose(other.predict_std(1e3 * X), 1e-4 * one.predict_std(X), rtol=1e-6)


@pytest.mark.parametrize("noise", ["auto", "constant", "shared"])
def test_noise_models_with_levels(noise):
    rows = make_rows(n_outputs=2, n=60)
    model = fit(EvidenceMLPRegressor, rows, hidden=(2,), noise=noise)
    assert model.noise_model_ == ("shared" if noise == "shared" else "constant")
    levels = model.noise_std_
    assert (levels[0] == pytest.approx(levels[1])) == (noise == "shared")
    assert model.evidence_report_.noise_p_values == {}


def test_cross_validation_takes_errors_along():
    X, y, errors = make_rows()
    model = EvidenceMLPRegressor((), noise=0.3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model.set_fit_request(measurement_std=True)
        found = cross_val_predict(routed, X, y, cv=4, params={"measurement_std": errors})
    rest = np.arange(len(y)) >= 10
    by_hand = fit(EvidenceMLPRegressor, [r[rest] for r in (X, y, errors)], noise=0.3)
    assert_allclose(found[:10], by_hand.predict(X[:10]))
    search = GridSearchCV(model, {"noise__std": [0, "auto"]}, cv=2)
    search.fit(X, y, measurement_std=errors)
    assert search.best_estimator_.predict(X).shape == y.shape
    by_evidence = EvidenceSearch(model, {"noise__std": [0, "auto"]})
    by_evidence.fit(X, y, measurement_std=errors)
    assert by_evidence.best_params_ == {"noise__std": "auto"}


# --- bad input -----------------------------------------------------------------------------------

BAD = [
    ([0.1] * 39, ValueError, "must be one number, or have shape"),
    (np.ones((40, 2)), ValueError, "must be one number, or have shape"),
    (np.ones((1, 40)), ValueError, "must be one number, or have shape"),
    (-0.1, ValueError, "must not be negative"),
    ([np.nan] * 40, ValueError, "NaN or infinity"),
    (np.inf, ValueError, "NaN or infinity"),
    ("large", TypeError, "must hold numbers"),
    ([None, {}] * 20, TypeError, "must hold numbers"),
    (1e12, ValueError, "too many orders of magnitude"),
]


@pytest.mark.parametrize(("errors", "error", "message"), BAD)
def test_bad_errors(errors, error, message):
    X, y, _ = make_rows()
    with pytest.raises(error, match=message):
        fit(EvidenceMLPRegressor, (X, y, errors))


@each_regressor
def test_zero_noise(kind):
    X, y, errors = make_rows()
    with pytest.raises(ValueError, match=r"noise\.std must be positive"):
        fit(kind, (X, y, None), noise=0)
    errors = errors.copy()
    errors[3] = 0.0
    with pytest.raises(ValueError, match=r"positive where noise\.std is 0"):
        fit(kind, (X, y, errors), noise=0)
    fit(kind, (X, y, errors), noise=0, weight=np.arange(40) != 3)


def test_student_t_noise_refuses_errors_of_rows_to_predict():
    X, y, _ = make_rows()
    model = EvidenceMLPRegressor((), noise="student_t").fit(X, y)
    with pytest.raises(ValueError, match="Student-t"):
        model.predict_interval(X, measurement_std=0.1)
