"""Regression of counts: closed forms, quadrature, other libraries, and the sampler."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import PoissonRegressor

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.active_learning import information_gain, select, suggest
from skbayesnn.estimators import AveragedRegressor
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer

FIXED = {"prior": Prior(precision=0.7), "standardize": False, "random_state": 0}
LAPLACE = {"method": "laplace", "random_state": 0}


def make_rows(n=60, dispersion=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X, exposure = rng.uniform(-1, 1, (n, 1)), rng.uniform(0.5, 3.0, n)
    mean = exposure * np.exp(0.8 + X[:, 0])
    if dispersion:
        mean = mean * rng.gamma(1.0 / dispersion, dispersion, n)
    return X, rng.poisson(mean).astype(float), exposure


def fit(noise, rows, kind=EvidenceMLPRegressor, hidden=(), **parameters):
    X, y, exposure = rows
    return kind(hidden, noise=noise, **parameters).fit(X, y, exposure=exposure)


def test_mode_is_that_of_poisson_regression():
    rows = X, y, exposure = make_rows()
    precisions = {"output": 2.0, "intercept": 1e-6}
    model = fit(
        "poisson", rows, standardize=False, prior=Prior("layer+intercept", precision=precisions)
    )
    other = PoissonRegressor(alpha=2.0 / exposure.sum(), tol=1e-10, max_iter=1000)
    other.fit(X, y / exposure, sample_weight=exposure)
    assert_allclose(model.coefs_[0][:, 0], other.coef_, rtol=1e-5)
    assert_allclose(model.intercepts_[0], other.intercept_, rtol=1e-5)
    mode = np.exp(X @ model.coefs_[0] + model.intercepts_[0])[:, 0]
    assert_allclose(mode, other.predict(X), rtol=1e-5)
    assert_allclose(model.score(X, y, exposure=exposure),
                    other.score(X, y / exposure, exposure), atol=2e-3)  # fmt: skip


def test_exposure_is_an_offset():
    X, y, exposure = make_rows()
    model, other = (fit("poisson", (X, y, e), **LAPLACE) for e in (exposure, 10.0 * exposure))
    assert_allclose(model.predict(X, exposure=2.0), 2.0 * model.predict(X))
    assert_allclose(other.intercepts_[0], model.intercepts_[0] - np.log(10.0), atol=1e-6)


def test_exposure_reaches_all_predictions():
    X, y, exposure = make_rows()
    model = fit("poisson", (X, y, exposure), **LAPLACE)
    at, given = model.predict_distribution(X, exposure=exposure), {"exposure": exposure}
    assert_allclose(model.predict_interval(X, 0.8, **given), at.interval(0.8))
    assert_allclose(model.predict_std(X, **given), at.std())
    assert_allclose(model.predict_quantiles(X, 0.3, **given), at.ppf(0.3))
    assert_allclose(model.log_predictive_density(X, y, **given), at.logpmf(y))
    assert_allclose(log_density_scorer(model, X, y, **given), np.mean(at.logpmf(y)))
    k = np.arange(200.0)[:, None]
    crps = np.sum((np.stack([at.cdf(count) for count in k[:, 0]]) - (k >= y)) ** 2, axis=0)
    assert_allclose(-neg_crps_scorer(model, X, y, **given), crps.mean(), rtol=0.01)
    with pytest.raises(ValueError, match="measurement_std is not for counts"):
        model.predict_std(X, measurement_std=1.0)


def test_draws_and_entropy_have_the_distribution():
    X, y, exposure = make_rows(n=100, dispersion=0.4)
    model = fit("negative_binomial", (X, y, exposure), **LAPLACE)
    at = model.predict_distribution(X[:5], exposure=exposure[:5])
    drawn = at.rvs(20_000)
    assert drawn.shape == (20_000, 5)
    assert_allclose(drawn.mean(axis=0), at.mean(), rtol=0.03)
    assert_allclose(drawn.std(axis=0), at.std(), rtol=0.05)
    k = np.arange(300.0)
    pmf = np.stack([at.pmf(value) for value in k])
    assert_allclose(at[:1].pmf(k), pmf[:, 0], atol=1e-12)  # targets broadcast against a single row
    assert_allclose(at[:1].cdf(k), np.cumsum(pmf[:, 0]), atol=1e-5)
    assert_allclose(pmf.sum(axis=0), 1.0, atol=1e-6)
    assert_allclose(at.entropy(), -np.sum(pmf * np.log(pmf), axis=0), rtol=1e-4)
    assert_allclose(at.interval(0.9), at.ppf([0.05, 0.95]))
    assert np.all(np.mean(drawn <= at.ppf(0.9), axis=0) > 0.89)
    assert_allclose(at.logpdf(2.0), at.logpmf(2.0))
    assert at.pmf(0.5)[0] == at.pmf(-1)[0] == 0.0
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_interval(X), model.predict_interval(X))


def test_averages_of_models():
    X, y, exposure = make_rows()
    models = [fit(noise, (X, y, exposure), **LAPLACE) for noise in ("poisson", "negative_binomial")]
    both = AveragedRegressor(models, weights=np.array([0.25, 0.75]))
    expected = [m.predict_distribution(X, exposure=exposure).pmf(2) for m in models]
    at = both.predict_distribution(X, exposure=exposure)
    assert_allclose(at.pmf(2), 0.25 * expected[0] + 0.75 * expected[1], rtol=1e-6)


def test_all_zero_counts_have_a_small_rate():
    X = np.linspace(-1, 1, 30)[:, None]
    model = EvidenceMLPRegressor((), noise="poisson", **LAPLACE).fit(X, np.zeros(30))
    assert 0.0 < model.predict([[0.0]])[0] < 0.1


def test_gain_is_that_of_the_hessian():
    X, y, exposure = make_rows()
    model = fit("poisson", (X, y, exposure), **FIXED | LAPLACE)
    w, b = model.coefs_[0][0, 0], model.intercepts_[0][0]
    design = np.column_stack([X[:, 0], np.ones(len(X))])
    A = design.T @ (design * (exposure * np.exp(w * X[:, 0] + b))[:, None]) + 0.7 * np.eye(2)
    after = A + np.exp(0.5 * w + b) * np.outer([0.5, 1.0], [0.5, 1.0])
    gain = 0.5 * (np.linalg.slogdet(after)[1] - np.linalg.slogdet(A)[1])
    assert_allclose(information_gain(model, [[0.5]]), gain, rtol=1e-4)
    sampler = fit("poisson", (X, y, exposure), HMCMLPRegressor, **FIXED, n_draws=300)
    assert_allclose(information_gain(sampler, [[0.5]]), gain, rtol=0.2)  # by draws
    for some in (model, sampler):
        assert len(set(select(some, X, 2))) == 2
        assert suggest(some, X, random_state=0)[0, 0] > 0.8  # the rate grows


def test_refusals_of_predictions():
    X, y, exposure = make_rows()
    model = fit("poisson", (X, y, exposure))
    with pytest.raises(ValueError, match="return_cov"):
        model.predict(X, return_cov=True)
    for name in ("noise_std_", "dispersion_"):
        assert not hasattr(model, name)
    gaussian = EvidenceMLPRegressor(()).fit(X, y)
    with pytest.raises(ValueError, match="exposure is for counts"):
        gaussian.predict(X, exposure=exposure)
