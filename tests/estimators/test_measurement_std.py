"""Known errors of measurements: closed forms, promises, and what users may get wrong."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior
from tests.estimators.common import linear_model

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

REGRESSORS = EvidenceMLPRegressor, HMCMLPRegressor
FIXED = {"prior": Prior("single", precision=0.7), "standardize": False}
FEW = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "measure_evidence": False}

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


@pytest.mark.parametrize("noise_std", [0.3, 0])
def test_linear_model_in_closed_form(noise_std):
    rows, X = make_rows(), np.random.default_rng(1).standard_normal((6, 2))
    model = fit(EvidenceMLPRegressor, rows, noise=noise_std, **FIXED)
    Z, z = (np.column_stack([some, np.ones(len(some))]) for some in (rows[0], X))
    evidence, mean, covariance = linear_model(Z, rows[1], 0.7, noise_std**2 + rows[2] ** 2)
    covariance = z @ covariance @ z.T
    assert model.log_evidence_ == pytest.approx(evidence, abs=1e-6)
    assert model.noise_std_ == noise_std
    assert_allclose(model.predict(X), z @ mean, atol=1e-8)
    sd = np.sqrt(np.diag(covariance))
    assert_allclose(model.predict_std(X, kind="epistemic"), sd, rtol=1e-6)
    assert_allclose(model.predict(X, return_std=True)[1], np.hypot(sd, noise_std), rtol=1e-6)
    off = ~np.eye(6, dtype=bool)
    assert_allclose(model.predict(X, return_cov=True)[1][off], covariance[off], rtol=1e-6)


# --- predictions ---------------------------------------------------------------------------------


@each_regressor
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_errors_of_rows_to_predict(kind, n_outputs):
    X, y, errors = make_rows(20, n_outputs)
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


def by_batches(rows, options, cuts):
    """Learnt by `partial_fit`."""
    model = EvidenceMLPRegressor((), **options)
    for first, last in pairwise(cuts):
        X, y, errors = (r[first:last] for r in rows)
        model.partial_fit(X, y, measurement_std=errors)
    return model


def test_batches_with_errors_remember_the_noise_level():
    """Nearly: the Gamma density of the same curvature stands for what they tell of it."""
    options, apart = FIXED | {"n_restarts": 1}, []
    for seed in range(4):
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


def test_student_t_noise_refuses_errors_of_rows_to_predict():
    X, y, _ = make_rows()
    model = EvidenceMLPRegressor((), noise="student_t").fit(X, y)
    with pytest.raises(ValueError, match="Student-t"):
        model.predict_interval(X, measurement_std=0.1)
