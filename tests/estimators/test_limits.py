"""Targets of which only a limit is known: Tobit regression, quadrature, and the sampler."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Noise, Prior
from skbayesnn.estimators import conformal_interval
from skbayesnn.predictive._limits import CensoredNoise
from tests.estimators.common import assert_left_out_like_refits, grid_of_lines

FIXED = {"prior": Prior(precision=0.7), "standardize": False, "random_state": 0}
LAPLACE = {"method": "laplace", "random_state": 0}
RANGES = (-0.5, 2.5), (-0.5, 1.5)  # of slopes and intercepts


def make_rows(n=80, low=-0.5, high=1.5, seed=0):
    """A line with noise of standard deviation 0.5, seen only between two limits."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    y = 0.4 + X[:, 0] + 0.5 * rng.standard_normal(n)
    sides = np.where(y < low, -1, np.where(y > high, 1, 0))
    return X, np.clip(y, low, high), sides


def log_likelihood(rows, w, b, scale, law=stats.norm):
    """Of lines ``(m,)``; limits count with the integral over the values they allow."""
    X, y, sides = rows
    z = (y - w[:, None] * X[:, 0] - b[:, None]) / scale
    measured = law.logpdf(z) - np.log(scale)
    return np.where(sides == 0, measured, law.logcdf(-sides * z)).sum(axis=1)


def grid(rows, scale, n=121, law=stats.norm):
    """Lines on a grid, and the log of prior times likelihood times the area of a cell."""
    W, B, prior = grid_of_lines(*RANGES, n, 0.7)
    return W, B, log_likelihood(rows, W, B, scale, law) + prior


def mean_and_spread(W, B, logs):
    """Of the outputs at 0.5."""
    share, outputs = np.exp(logs - logsumexp(logs)), 0.5 * W + B
    mean = share @ outputs
    return mean, np.sqrt(share @ (outputs - mean) ** 2)


def fit(rows, kind=EvidenceMLPRegressor, hidden=(), **parameters):
    X, y, sides = rows
    return kind(hidden, **parameters).fit(X, y, censored=sides)


def test_mode_is_that_of_tobit_regression():
    rows = make_rows(n=400)
    model = fit(rows, prior=Prior(precision=1e-6), standardize=False, **LAPLACE)

    def minus(p):
        return -log_likelihood(rows, p[[0]], p[[1]], np.exp(p[2]))[0]

    best = minimize(minus, [1.0, 0.0, 0.0], tol=1e-10).x
    assert_allclose([model.coefs_[0][0, 0], model.intercepts_[0][0]], best[:2], atol=2e-3)
    assert model.noise_std_ == pytest.approx(np.exp(best[2]), rel=0.01)  # gamma of 400 rows
    with pytest.warns(UserWarning, match="the lowest value"):
        naive = EvidenceMLPRegressor((), random_state=0).fit(*rows[:2])
    assert abs(model.coefs_[0][0, 0] - 1.0) < abs(naive.coefs_[0][0, 0] - 1.0)


def test_evidence_by_quadrature():
    rows = make_rows()
    W, B, logs = grid(rows, 0.5)
    model = fit(rows, noise=0.5, **FIXED | LAPLACE)
    assert model.log_evidence_ == pytest.approx(logsumexp(logs), abs=0.02)
    mean, spread = mean_and_spread(W, B, logs)
    assert model.predict([[0.5]])[0] == pytest.approx(mean, abs=0.005)
    assert model.predict_std([[0.5]], "epistemic")[0] == pytest.approx(spread, rel=0.02)
    assert model.predict_std([[0.5]])[0] == pytest.approx(np.hypot(spread, 0.5), rel=0.01)


@pytest.mark.slow
def test_inferred_level_by_quadrature():
    rows = make_rows(n=100)
    log_sd = np.linspace(-3, 3, 91) * np.log(10.0)
    by_level = np.full(len(log_sd), -np.inf)
    near = np.abs(log_sd - np.log(0.5)) < 1.5
    by_level[near] = [logsumexp(grid(rows, np.exp(s), n=31)[2]) for s in log_sd[near]]
    exact = logsumexp(by_level) - np.log(len(log_sd) - 1)
    model = fit(rows, **FIXED | LAPLACE)
    assert model.log_evidence_ == pytest.approx(exact, abs=0.1)  # nats: Laplace's approximation
    share = np.exp(by_level - logsumexp(by_level))
    assert model.noise_std_ == pytest.approx(share @ np.exp(log_sd), rel=0.05)
    options = {"n_warmup": 100, "n_draws": 400, "measure_evidence": True}
    sampler = fit(rows, HMCMLPRegressor, **FIXED, **options)
    assert abs(sampler.log_evidence_ - exact) < 4.0 * sampler.log_evidence_std_ + 0.05
    assert sampler.noise_std_ == pytest.approx(share @ np.exp(log_sd), rel=0.03)
    assert_allclose(sampler.predict(rows[0]), model.predict(rows[0]), atol=0.03)


DEGREES = np.array([2.5, 5.0, 10.0, 20.0, 40.0])  # of equal prior probability


@pytest.mark.slow
def test_student_t_noise_by_quadrature():
    rows = make_rows(n=60)
    _, y, sides = rows
    y[np.flatnonzero(sides == 0)[:3]] += (8.0, -6.0, 5.0)
    sides[np.flatnonzero(sides == 0)[3]] = -1  # a limit on the wrong side of the line
    scales = np.sqrt((DEGREES - 2.0) / DEGREES)  # of standard deviation 1
    found = [grid(rows, s, 41, stats.t(nu)) for s, nu in zip(scales, DEGREES, strict=True)]
    logs = np.stack([some[2] for some in found])
    exact = logsumexp(logs) - np.log(len(DEGREES))
    options = {"noise": Noise("student_t", std=1.0)} | FIXED
    model = fit(rows, **options | LAPLACE)
    assert model.log_evidence_ == pytest.approx(exact, abs=0.05)
    best = np.argmax(logsumexp(logs, axis=1))
    assert model.degrees_of_freedom_ == DEGREES[best]
    W, B = found[0][:2]
    mean, spread = mean_and_spread(W, B, logs[best])
    assert model.predict([[0.5]])[0] == pytest.approx(mean, abs=0.01)
    assert model.predict_std([[0.5]], "epistemic")[0] == pytest.approx(spread, rel=0.05)
    draws = {"n_warmup": 100, "n_draws": 200, "measure_evidence": True}
    sampler = fit(rows, HMCMLPRegressor, **options | draws)
    assert abs(sampler.log_evidence_ - exact) < 4.0 * sampler.log_evidence_std_ + 0.05
    mean, spread = mean_and_spread(W, B, logsumexp(logs, axis=0))
    assert_allclose(sampler.predict([[0.5]]), mean, atol=0.2 * spread)
    assert_allclose(sampler.predict_std([[0.5]], "epistemic"), spread, rtol=0.15)  # of draws


def test_left_out_rows_against_fits_without_them():
    rows = make_rows(n=50)
    options = {"noise": 0.5, **FIXED, **LAPLACE}

    def log_density(rest, left):
        at, side = fit(rest, **options).predict_distribution(left[0]), left[2][0]
        below = at.cdf(left[1])
        log_limit = np.log(below if side < 0 else 1.0 - below)
        return (at.logpdf(left[1]) if side == 0 else log_limit)[0]

    which = [*np.flatnonzero(rows[2])[::4], 0, 20]
    assert_left_out_like_refits(fit(rows, **options), rows, which, 0.01, log_density)


def test_limits_have_no_units():
    rows = X, y, sides = make_rows()
    model, other = fit(rows, **LAPLACE), fit((X, 10.0 * y, sides), **LAPLACE)
    measured = np.sum(sides == 0)
    gap = model.log_evidence_ - other.log_evidence_
    assert gap == pytest.approx(measured * np.log(10.0), abs=1e-6)
    sums = [m.leave_one_out_log_density_.sum() for m in (model, other)]
    assert sums[0] - sums[1] == pytest.approx(measured * np.log(10.0), abs=1e-6)
    assert other.noise_std_ == pytest.approx(10.0 * model.noise_std_)


def test_report_counts_only_errors_beyond_a_limit():
    rows = make_rows(n=200, low=0.4)  # most of the line is below
    model = fit(rows, **LAPLACE)
    assert model.evidence_report_.predictions.share > 0.1
    inside = model.evidence_report_.predictions.coverage
    assert 0.9 < inside <= 1.0


@pytest.mark.slow
def test_networks_with_several_outputs():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (250, 1))
    truth = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0]])
    y = truth + 0.2 * rng.standard_normal(truth.shape)
    sides = np.where(y < -0.5, -1, 0)
    model = fit((X, np.maximum(y, -0.5), sides), hidden=(6,), **LAPLACE)
    # the lowest rows are only known to be below the limit, which is 1.5 above them
    assert np.max(np.abs(model.predict(X)[:, 1] - truth[:, 1])) < 0.8
    with pytest.warns(UserWarning, match="lowest value"):
        naive = EvidenceMLPRegressor((6,), **LAPLACE).fit(X, np.maximum(y, -0.5))
    errors = [np.mean((m.predict(X) - truth) ** 2) for m in (model, naive)]
    assert errors[0] < 0.2 * errors[1]
    assert model.noise_model_ == "constant"
    assert np.all(np.isfinite(model.leave_one_out_log_density_))
    assert "constant noise" in " ".join(str(model.evidence_report_).split())
    assert_allclose(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_left_out_limit_is_in_the_middle_of_what_it_allows():
    noise = CensoredNoise(np.ones((1, 1)))
    y, f, sides = np.zeros((3, 1)), np.zeros((1, 3, 1)), np.array([[-1.0], [0.0], [1.0]])
    means = noise.pointwise(y, f - 2.0, 0.0, np.zeros((3, 1)), sides)[1]
    assert_allclose(means[0, :, 0], [0.0, -2.0, -2.0])
    logs, mean, cdf, variance = noise.pointwise(y, f, 0.0, np.zeros((3, 1)), sides)
    assert_allclose(np.exp(logs[0]), [0.5, stats.norm.pdf(0.0), 0.5])
    assert_allclose(cdf[0, :, 0], [0.25, 0.5, 0.75])
    assert_allclose((mean[0, 0, 0], variance[0, 0, 0]), (0.0, 1.0))


@pytest.mark.parametrize(
    ("parameters", "given", "words"),
    [
        ({}, {"censored": [0, 1]}, "shape"),
        ({}, {"censored": [0, 2, 0]}, "lies below"),
        ({}, {"censored": [False, True, False]}, "lies below"),
        ({}, {"censored": [-1, 1, 1]}, "at least some"),
        ({"noise": "input_dependent"}, {"censored": [0, 0, 1]}, "censored is not possible"),
        ({"noise": "poisson"}, {"censored": [0, 0, 1]}, "censored is not possible"),
        ({}, {"censored": [0, 0, 1], "measurement_std": 1.0}, "not both"),
    ],
)
def test_refusals(parameters, given, words):
    X, y = np.arange(3.0)[:, None], [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=words):
        EvidenceMLPRegressor((), **parameters).fit(X, y, **given)


def test_refusals_of_unknown_targets():
    X, y, sides = make_rows(n=30)
    with pytest.raises(ValueError, match="for one output"):
        EvidenceMLPRegressor((), noise="student_t").fit(
            X, np.column_stack([y, y]), censored=np.column_stack([sides, sides])
        )
    with pytest.raises(ValueError, match="only limits are known"):
        conformal_interval(fit((X, y, sides), **LAPLACE), X)
