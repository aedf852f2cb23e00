"""Regression of counts: closed forms, quadrature, other libraries, and the sampler."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Noise, Prior
from skbayesnn.active_learning import information_gain, select, suggest
from skbayesnn.estimators import AveragedRegressor, conformal_interval
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
from tests.estimators.common import assert_left_out_like_refits, grid_of_lines

FIXED = {"prior": Prior(precision=0.7), "standardize": False, "random_state": 0}
LAPLACE = {"method": "laplace", "random_state": 0}
SCORING = {"log_density": log_density_scorer, "neg_crps": neg_crps_scorer}


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


def grid_of_weights(rows, size=None, n=161):
    """Weights on a grid, and the log of prior times likelihood times the area of a cell."""
    X, y, exposure = rows
    W, B, prior = grid_of_lines((-1, 3), (-0.5, 2), n, 0.7)
    mean = exposure * np.exp(W[:, None] * X[:, 0] + B[:, None])
    if size is None:
        likelihood = stats.poisson.logpmf(y, mean).sum(axis=1)
    else:
        likelihood = stats.nbinom.logpmf(y, size, size / (size + mean)).sum(axis=1)
    return W, B, likelihood + prior


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


def test_evidence_by_quadrature():
    rows = make_rows()
    model = fit("poisson", rows, **FIXED, method="laplace")
    W, B, logs = grid_of_weights(rows)
    assert model.log_evidence_ == pytest.approx(logsumexp(logs), abs=0.02)
    share = np.exp(logs - logsumexp(logs))
    mean = share @ np.exp(W * 0.5 + B)
    spread = share @ (np.exp(W * 0.5 + B) - mean) ** 2
    at = model.predict_distribution([[0.5]], exposure=2.0)
    assert at.mean()[0] == pytest.approx(2.0 * mean, rel=0.005)
    assert at.std("epistemic")[0] == pytest.approx(2.0 * np.sqrt(spread), rel=0.03)
    assert at.std("aleatoric")[0] == pytest.approx(np.sqrt(2.0 * mean), rel=0.005)
    pmf = share @ stats.poisson.pmf(np.arange(12)[:, None], 2.0 * np.exp(W * 0.5 + B)).T
    assert_allclose([at.pmf(k)[0] for k in range(12)], pmf, atol=1e-3)


@pytest.mark.slow
def test_evidence_of_dispersed_counts_by_quadrature():
    rows = make_rows(n=150, dispersion=0.6)
    log_size = np.linspace(-6, 6, 61) * np.log(10.0)
    by_size = np.full(len(log_size), -np.inf)
    near = np.abs(log_size) < 4.0  # holds all that matters
    by_size[near] = [logsumexp(grid_of_weights(rows, np.exp(r), n=31)[2]) for r in log_size[near]]
    exact = logsumexp(by_size) - np.log(len(log_size) - 1)  # log-uniform between the bounds
    model = fit("negative_binomial", rows, **FIXED | LAPLACE)
    assert model.log_evidence_ == pytest.approx(exact, abs=0.1)  # nats: Laplace, one after another
    best = np.exp(-log_size[np.argmax(by_size)])
    assert best / 1.6 < model.dispersion_ < 1.6 * best
    assert f"dispersion {model.dispersion_:.3g}" in str(model.evidence_report_)
    assert model.log_evidence_ > fit("poisson", rows, **FIXED | LAPLACE).log_evidence_ + 10.0
    posterior = np.exp(by_size - logsumexp(by_size))
    options = {"n_warmup": 100, "n_draws": 400, "measure_evidence": True}
    sampler = fit("negative_binomial", rows, HMCMLPRegressor, **FIXED, **options)
    assert abs(sampler.log_evidence_ - exact) < 4.0 * sampler.log_evidence_std_ + 0.05
    assert sampler.dispersion_ == pytest.approx(posterior @ np.exp(-log_size), rel=0.1)  # draws
    assert_allclose(sampler.predict(rows[0]), model.predict(rows[0]), rtol=0.05)


def test_sampler_of_one_weight_by_quadrature():
    y, exposure = np.array([2.0, 0.0, 5.0, 1.0]), np.array([1.0, 0.5, 2.0, 1.0])
    options = {"fit_intercept": False, "n_warmup": 100, "n_draws": 1000, **FIXED}
    X = np.array([[1.0], [0.5], [1.0], [-0.5]])
    model = fit("poisson", (X, y, exposure), HMCMLPRegressor, **options)
    w = np.linspace(-6, 6, 4001)
    mean = exposure * np.exp(w[:, None] * X[:, 0])
    logs = stats.poisson.logpmf(y, mean).sum(axis=1) + stats.norm.logpdf(w, 0, 0.7**-0.5)
    share = np.exp(logs - logsumexp(logs))
    exact = logsumexp(logs) + np.log(w[1] - w[0])
    assert abs(model.log_evidence_ - exact) < 4.0 * model.log_evidence_std_ + 0.02
    rate = np.exp(w)
    sd = np.sqrt(share @ (rate - share @ rate) ** 2)
    error = sd / np.sqrt(model.diagnostics_.bulk_ess)
    at = model.predict_distribution([[1.0]])
    assert abs(at.mean()[0] - share @ rate) < 5.0 * error
    assert at.std("epistemic")[0] == pytest.approx(sd, rel=0.1)  # of draws
    assert at.pmf(3)[0] == pytest.approx(share @ stats.poisson.pmf(3, rate), abs=0.01)


@pytest.mark.parametrize(("noise", "tol"), [("poisson", 0.03), ("negative_binomial", 0.1)])
def test_left_out_rows_against_fits_without_them(noise, tol):
    """The dispersion of the fits without a row is another."""
    rows, hyper = make_rows(n=40, dispersion=0.5), {"method": "laplace", **FIXED}

    def log_density(rest, left):
        at = fit(noise, rest, **hyper).predict_distribution(left[0], exposure=left[2])
        return at.logpmf(left[1])[0]

    assert_left_out_like_refits(fit(noise, rows, **hyper), rows, range(0, 40, 8), tol, log_density)


def test_exposure_is_an_offset():
    X, y, exposure = make_rows()
    model, other = (fit("poisson", (X, y, e), **LAPLACE) for e in (exposure, 10.0 * exposure))
    assert model.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-6)
    assert_allclose(model.predict(X), 10.0 * other.predict(X), rtol=1e-6)
    assert_allclose(model.predict(X, exposure=2.0), 2.0 * model.predict(X))
    assert_allclose(other.intercepts_[0], model.intercepts_[0] - np.log(10.0), atol=1e-6)


def test_exposure_is_routed():
    X, y, exposure = make_rows()
    model = EvidenceMLPRegressor((), noise="poisson", **LAPLACE)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(exposure=True).set_score_request(exposure=True)
        scores = cross_val_score(model, X, y, cv=3, params={"exposure": exposure})
        pipeline = Pipeline([("scale", StandardScaler()), ("poisson", model)])
        found = cross_validate(pipeline, X, y, cv=3, scoring=SCORING, params={"exposure": exposure})
    plain = cross_val_score(model, X, y, cv=3)
    assert np.mean(scores) > np.mean(plain)
    for name, scorer in SCORING.items():
        by_hand = []
        for train, test in KFold(3).split(X):
            pipeline.fit(X[train], y[train], poisson__exposure=exposure[train])
            by_hand.append(scorer(pipeline, X[test], y[test], exposure=exposure[test]))
        assert_allclose(found[f"test_{name}"], by_hand, rtol=1e-12)


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


def test_score_without_exposures_warns():
    X, y, exposure = make_rows()
    model = fit("poisson", (X, y, exposure), **LAPLACE)
    for call in (model.score, model.log_predictive_density):
        with pytest.warns(UserWarning, match="fitted with exposures"):
            call(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(X, y, exposure=1.0)
        EvidenceMLPRegressor((), noise="poisson", **LAPLACE).fit(X, y).score(X, y)


def test_cdf_is_at_most_one():
    X, y, _ = make_rows(n=80)
    model = fit("poisson", (X, y, None), **LAPLACE)
    assert np.all(model.predict_distribution(X).cdf(np.arange(80) + 200.0) <= 1.0)


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
    assert_allclose(pmf.sum(axis=0), 1.0, atol=1e-6)
    assert_allclose(at.entropy(), -np.sum(pmf * np.log(pmf), axis=0), rtol=1e-4)
    assert_allclose(at.interval(0.9), at.ppf([0.05, 0.95]))
    assert np.all(np.mean(drawn <= at.ppf(0.9), axis=0) > 0.89)
    assert_allclose(at.logpdf(2.0), at.logpmf(2.0))
    assert at.pmf(0.5)[0] == at.pmf(-1)[0] == 0.0
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_interval(X), model.predict_interval(X))


def test_batches():
    X, y, exposure = make_rows(n=200)
    one = fit("poisson", (X, y, exposure), **FIXED | LAPLACE)
    parts = EvidenceMLPRegressor((), noise="poisson", **FIXED)
    for rows in np.split(np.arange(200), 4):
        parts.partial_fit(X[rows], y[rows], exposure=exposure[rows])
    assert parts.log_evidence_ == pytest.approx(one.log_evidence_, abs=0.3)  # nats: Laplace twice
    assert_allclose(parts.predict(X), one.predict(X), rtol=0.03)
    assert not hasattr(EvidenceMLPRegressor(noise="negative_binomial"), "partial_fit")


@pytest.mark.slow
def test_networks_find_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 1))
    y = rng.poisson(np.exp(1.0 + np.sin(2.0 * X[:, 0])))
    model = EvidenceMLPRegressor(noise="poisson", random_state=0).fit(X, y)
    truth = np.exp(1.0 + np.sin(2.0 * X[:, 0]))
    assert np.mean((model.predict(X) - truth) ** 2) < 0.1 * np.var(truth)
    assert "95 % intervals" in str(model.evidence_report_)
    assert "Noise: poisson" in str(model.evidence_report_)
    assert EvidenceMLPRegressor(()).fit(X, y).noise_model_ != "poisson"


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


@pytest.mark.parametrize(
    ("parameters", "y", "given", "words"),
    [
        ({}, [-1.0, 2.0, 3.0], {}, "1 of 3 values are not"),
        ({}, [0.5, 2.5, 3.0], {}, "2 of 3 values are not"),
        ({}, [[1, 2], [1, 2], [3, 4]], {}, "one output"),
        ({}, [1, 2, 3], {"exposure": [1.0, 0.0, 1.0]}, "positive"),
        ({}, [1, 2, 3], {"exposure": [1.0, 1.0]}, "shape"),
        ({"noise": "auto"}, [1, 2, 3], {"exposure": np.ones(3)}, "exposure is for counts"),
        ({"noise": Noise("poisson", std=1.0)}, [1, 2, 3], {}, "noise.std"),
        ({}, [1, 2, 3], {"measurement_std": 1.0}, "measurement_std"),
    ],
)
def test_refusals(parameters, y, given, words):
    model = EvidenceMLPRegressor((), **{"noise": "poisson", **parameters})
    with pytest.raises(ValueError, match=words):
        model.fit(np.arange(3.0)[:, None], y, **given)


@pytest.mark.slow
def test_conformal_intervals_hold_dispersed_counts():
    held, plain = [], []
    for seed in range(30):
        X, y, exposure = make_rows(n=140, dispersion=0.7, seed=seed)
        model = fit("poisson", (X[:40], y[:40], exposure[:40]), **LAPLACE)
        for found, ends in (
            (held, conformal_interval(model, X[40:], 0.8, exposure=exposure[40:])),
            (plain, model.predict_interval(X[40:], 0.8, exposure=exposure[40:])),
        ):
            assert np.array_equal(ends, np.floor(ends))
            found.append(np.mean((ends[:, 0] <= y[40:]) & (y[40:] <= ends[:, 1])))
    error = np.std(held, ddof=1) / np.sqrt(len(held))
    assert 0.8 - 4 * error < np.mean(held) < 0.86 + 4 * error  # ends are whole numbers
    assert np.mean(plain) < 0.75


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
