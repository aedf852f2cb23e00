"""Targets of which only a limit is known: Tobit regression, densities, R2 and CRPS, calibration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betaln, logsumexp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.compose import TransformedTargetRegressor
from skbayesnn.displays import CalibrationDisplay
from skbayesnn.estimators import conformal_interval
from skbayesnn.estimators.predictions._limits import r2_with_limits
from skbayesnn.metrics import log_density_scorer, neg_crps_scorer
from skbayesnn.predictive._limits import CensoredNoise
from skbayesnn.predictive._mixture import Components, Mixture
from skbayesnn.predictive._noise import NORMAL
from skbayesnn.predictive._student_t import StudentTLaw

LAPLACE = {"method": "laplace", "random_state": 0}
BRIEF = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "measure_evidence": False}


def make_rows(n=120, limit=0.3, seed=0):
    """A line with noise of standard deviation 0.3; values below a limit are not seen."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, np.maximum(y, limit), np.where(y < limit, -1, 0)


def line(**parameters):
    return EvidenceMLPRegressor((), **LAPLACE | parameters)


def by_hand(at, y, sides):
    """Log densities, and of limits the log probabilities of what they allow."""
    below = at.cdf(y)
    beyond = np.log(np.where(sides < 0, below, 1.0 - below), where=sides != 0, out=np.zeros(len(y)))
    return np.where(sides == 0, at.logpdf(y), beyond)


def test_mode_is_that_of_tobit_regression():
    X, y, sides = make_rows(n=400)
    X = X[:, :1]
    model = line(prior=Prior(precision=1e-6), standardize=False).fit(X, y, censored=sides)

    def minus(p):  # limits count with the integral over the values they allow
        z = (y - p[0] * X[:, 0] - p[1]) / np.exp(p[2])
        measured = stats.norm.logpdf(z) - p[2]
        return -np.where(sides == 0, measured, stats.norm.logcdf(-sides * z)).sum()

    best = minimize(minus, [1.0, 0.0, 0.0], tol=1e-10).x
    assert_allclose([model.coefs_[0][0, 0], model.intercepts_[0][0]], best[:2], atol=2e-3)
    assert model.noise_std_ == pytest.approx(np.exp(best[2]), rel=0.01)  # gamma of 400 rows
    with pytest.warns(UserWarning, match="the lowest value"):
        naive = EvidenceMLPRegressor((), random_state=0).fit(X, y)
    assert abs(model.coefs_[0][0, 0] - 1.0) < abs(naive.coefs_[0][0, 0] - 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # brief chains
def test_density_of_a_limit_is_the_probability_beyond_it():
    X, y, sides = make_rows(n=30)
    model = line().fit(X, y, censored=sides)
    at, some = model.predict_distribution(X), np.where(np.arange(len(y)) % 5 == 0, 1, sides)
    expected = by_hand(at, y, some)
    assert_allclose(model.log_predictive_density(X, y, censored=some), expected, atol=1e-10)
    assert_allclose(at.joint_logpdf(y, some), expected, atol=1e-10)
    assert_allclose(log_density_scorer(model, X, y, censored=some), expected.mean(), rtol=1e-8)
    sampler = HMCMLPRegressor((), noise="student_t", random_state=0, **BRIEF)
    sampler.fit(X, y, censored=sides)
    expected = by_hand(sampler.predict_distribution(X), y, some)
    found = sampler.log_predictive_density(X, y, censored=some)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_joint_density_of_mixtures_with_limits():
    rng, y = np.random.default_rng(0), np.array([[0.3, -1.0], [2.0, 0.4], [0.0, 0.0]])
    sides, weights = np.array([[0.0, -1.0], [1.0, -1.0], [0.0, 0.0]]), np.array([0.2, 0.8])
    means, scales, nu = rng.normal(size=(2, 3, 2)), rng.uniform(0.5, 2.0, (2, 3, 2)), 3.0
    laws = [(0.4 * weights, NORMAL, stats.norm), (0.6 * weights, StudentTLaw.of(nu), stats.t(nu))]
    found = Mixture([Components(w, means, scales, law) for w, law, _ in laws])
    each = []
    for shares, _, law in laws:
        z = (y - means) / scales
        rows = np.where(sides == 0, law.logpdf(z) - np.log(scales), law.logcdf(-sides * z))
        each += [np.log(share) + row for share, row in zip(shares, rows.sum(axis=-1), strict=True)]
    assert_allclose(found.log_density(y, sides), logsumexp(each, axis=0), rtol=1e-12)


@pytest.mark.parametrize("nu", [1.0, 4.0, 50.0, 1000.0])
def test_log_probability_of_far_tails(nu):
    z = np.array([-1.0, -1e2, -1e4, -1e8])
    w = nu / (nu + z**2)  # incomplete beta function, to leading order for small w
    far = np.log(0.5) + 0.5 * nu * np.log(w) - np.log(0.5 * nu) - betaln(0.5 * nu, 0.5)
    found = StudentTLaw(nu).log_cdf(z)
    assert_allclose(found[0], stats.t(nu).logcdf(-1.0), rtol=1e-10)
    assert_allclose(found[2:], far[2:], rtol=1e-3)
    assert np.all(np.diff(found) < 0.0)


def test_limit_on_the_wrong_side_by_far_is_finite():
    X, y, sides = make_rows()
    model = line().fit(X, y, censored=sides)
    distances = y.mean() + model.noise_std_ * np.array([20.0, 40.0, 80.0])
    densities = model.log_predictive_density(np.zeros((3, 2)), distances, censored=[1, 1, 1])
    assert np.all(np.isfinite(densities))
    assert_allclose(densities[2] / densities[1], 4.0, rtol=0.1)  # Gaussian tails


def test_r2_with_limits():
    y, nothing = np.array([0.0, 2.0, 1.0]), np.zeros((3, 1))
    sides = np.array([[0.0], [0.0], [-1.0]])
    # best constant 1: squared errors 1, 1 and 0 of the limit
    assert r2_with_limits(y, np.array([0.0, 2.0, -9.0]), None, sides) == 1.0
    assert r2_with_limits(y, np.array([0.0, 2.0, 3.0]), None, sides) == pytest.approx(-1.0)
    assert r2_with_limits(y, np.array([0.0, 2.0, 3.0]), None, nothing) == pytest.approx(-1.0)
    # a limit of 0.4 above which the mean lies: c^2 + (c - 2)^2 + (c - 0.4)^2 is least at 0.8
    y, total = np.array([0.0, 2.0, 0.4]), 0.64 + 1.44 + 0.16
    found = r2_with_limits(y, np.array([0.0, 1.0, 0.0]), None, sides)
    assert found == pytest.approx(1.0 - 1.0 / total)
    assert r2_with_limits(-3.0 * y, -3.0 * np.array([0.0, 1.0, 0.0]), None, -sides) == found
    rows = [0, 1, 1, 2, 2, 2]
    repeated = r2_with_limits(y[rows], np.zeros(6), None, sides[rows])
    assert r2_with_limits(y, np.zeros(3), np.array([1, 2, 3]), sides) == pytest.approx(repeated)
    both = np.column_stack([y, y]), np.column_stack([y, np.zeros(3)])
    one = r2_with_limits(y, np.zeros(3), None, sides)
    found = r2_with_limits(*both, None, np.repeat(sides, 2, axis=1))
    assert found == pytest.approx(0.5 * (1.0 + one))
    for value, score in ((0.0, 1.0), (2.0, 0.0)):  # limits that any low constant keeps
        assert r2_with_limits([1.0, 1.5], np.full(2, value), None, -np.ones((2, 1))) == score


def test_crps_of_limits_is_the_part_that_they_decide():
    X, y, sides = make_rows(n=40)
    model, rows = line().fit(X, y, censored=sides), X[:2]
    mean, std = model.predict(rows[:1], return_std=True)
    law = stats.norm(mean[0], std[0])
    for target in mean[0] + std[0] * np.array([-3.0, 0.4, 12.0]):
        above = quad(lambda t: law.sf(t) ** 2, target, max(target, mean[0]) + 12 * std[0])[0]
        below = quad(lambda t: law.cdf(t) ** 2, mean[0] - 12 * std[0], target, limit=200)[0]
        for side, expected in ((-1, above), (1, below), (0, above + below)):
            found = -neg_crps_scorer(model, rows[:1], [target], censored=[side])
            assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_other_regressors_are_scored_with_limits():
    X, y, sides = make_rows(n=40)
    other = GaussianProcessRegressor(alpha=0.1).fit(X, y)
    law = stats.norm(*other.predict(X, return_std=True))
    expected = np.where(sides < 0, law.logcdf(y), law.logpdf(y))
    assert_allclose(log_density_scorer(other, X, y, censored=sides), expected.mean())
    assert neg_crps_scorer(other, X, y, censored=sides) > neg_crps_scorer(other, X, y)


def test_transformed_targets_keep_limits():
    X, y, sides = make_rows(n=80)
    model = line().fit(X, y, censored=sides)
    mirrored = TransformedTargetRegressor(line(), func=np.negative, inverse_func=np.negative)
    mirrored.fit(X, y, censored=sides)
    assert mirrored.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-5)
    for call in ("score", "log_predictive_density"):
        found, expected = (getattr(m, call)(X, y, censored=sides) for m in (mirrored, model))
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    pipeline = Pipeline([("scale", StandardScaler()), ("line", line())])
    logs = TransformedTargetRegressor(pipeline, func=np.log, inverse_func=np.exp)
    logs.fit(X, np.exp(y), censored=sides)
    assert logs.log_evidence_ == pytest.approx(model.log_evidence_ - y[sides == 0].sum(), abs=1e-5)
    expected = model.log_predictive_density(X, y, censored=sides) - np.where(sides == 0, y, 0.0)
    found = logs.log_predictive_density(X, np.exp(y), censored=sides)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    density = logs.leave_one_out_log_density_ - model.leave_one_out_log_density_
    assert_allclose(density, np.where(sides == 0, -y, 0.0), atol=1e-5)


def test_calibration_with_limits_is_that_of_all_targets():
    rng = np.random.default_rng(0)
    X, y, sides = make_rows(n=2000, limit=0.0)
    model = line().fit(X[:300], y[:300], censored=sides[:300])
    pit = CalibrationDisplay.from_estimator(model, X, y, censored=sides).pit[:, 0]
    below = model.predict_distribution(X).cdf(y)
    assert np.all(np.where(sides < 0, pit < below, pit == below))
    assert_allclose(pit.mean(), 0.5, atol=4.0 / np.sqrt(12.0 * len(y)) + 0.02)  # of the fit
    assert_allclose(pit.var(), 1.0 / 12.0, atol=4.0 / np.sqrt(180.0 * len(y)) + 0.01)
    y = rng.poisson(np.exp(X[:, 0]))
    counts = EvidenceMLPRegressor((), noise="poisson", **LAPLACE).fit(X[:100], y[:100])
    for call in (counts.score, counts.log_predictive_density):
        with pytest.raises(ValueError, match="not for counts"):
            call(X, y, censored=sides)


def test_left_out_limit_is_in_the_middle_of_what_it_allows():
    noise = CensoredNoise(np.ones((1, 1)))
    y, f, sides = np.zeros((3, 1)), np.zeros((1, 3, 1)), np.array([[-1.0], [0.0], [1.0]])
    means = noise.pointwise(y, f - 2.0, 0.0, np.zeros((3, 1)), sides)[1]
    assert_allclose(means[0, :, 0], [0.0, -2.0, -2.0])
    logs, mean, cdf, variance = noise.pointwise(y, f, 0.0, np.zeros((3, 1)), sides)
    assert_allclose(np.exp(logs[0]), [0.5, stats.norm.pdf(0.0), 0.5])
    assert_allclose(cdf[0, :, 0], [0.25, 0.5, 0.75])
    assert_allclose((mean[0, 0, 0], variance[0, 0, 0]), (0.0, 1.0))


def test_conformal_intervals_are_refused():
    X, y, sides = make_rows(n=30)
    with pytest.raises(ValueError, match="only limits are known"):
        conformal_interval(line().fit(X, y, censored=sides), X)
