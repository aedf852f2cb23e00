"""Evidence and posterior of samplers with Student-t and input-dependent noise, by brute force."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from skbayesnn.inference import NOISE_MODELS, Problem
from skbayesnn.inference.noise._student_t_noise import DEGREES_OF_FREEDOM
from skbayesnn.inference.sampling._sampling import SamplingSettings, run_chains, start_sampling
from skbayesnn.inference.task._problem import Fit
from skbayesnn.posterior import Gaussian, LogUniform
from skbayesnn.samplers import Plan
from tests.inference.common import log_marginal, population_evidence

WAYS = {"tuned": True, "all_weights": False}
each_way = pytest.mark.parametrize("tuned", WAYS.values(), ids=WAYS)


def sample(X, y, noise, tuned, beta=None, n_chains=16, n_warmup=150, n_draws=800):
    """Weights of prior precision 1, without hidden layer; the noise level free or fixed."""
    free = np.full(1, beta is None)
    problem = Problem(
        X,
        y[:, None],
        np.ones(len(X)),
        Gaussian.per_output(1),
        prior="single",
        weight_precision=lambda names: (np.zeros(1, bool), np.ones(1)),
        noise_precision=(free, np.full(1, 1.0 if beta is None else beta)),
        noise_hidden_layer_sizes=(),
    )
    posed = NOISE_MODELS[noise].pose(problem.posed(()))
    plan = Plan() if tuned else Plan(n_steps=8)
    settings = SamplingSettings(posed.settings, plan, n_warmup, n_draws, tuned=tuned)
    seeds = np.random.SeedSequence(0).spawn(n_chains)
    fit = Fit(problem=problem, posed=posed, noise=noise)
    joint, chains = start_sampling(fit, settings, seeds)
    return run_chains(joint, chains, settings)


def assert_mean(values, exact):
    """Of draws ``(n_chains, n_draws)`` as near as 4 standard errors that the chains estimate."""
    means = values.mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    limit = stats.t.isf(stats.norm.sf(4.0), len(means) - 1)
    assert abs(means.mean() - exact) < limit * error


# --- Student-t noise -----------------------------------------------------------------------------


def student_t_rows(n=30):
    rng = np.random.default_rng(n)
    X = rng.uniform(-2, 2, (n, 1))
    return X, 0.7 * X[:, 0] + 0.3 * rng.standard_t(3, n)


def student_t_on_a_grid(X, y, log_beta, degrees, n_grid=60):
    """Log joint density over slope, intercept, ln beta, degrees; and the axes."""
    slope, intercept = np.linspace(0.2, 1.2, n_grid), np.linspace(-0.6, 0.6, n_grid)
    table = np.zeros((n_grid, n_grid, len(log_beta), len(degrees)))
    scale = np.exp(-0.5 * log_beta)[:, None]
    for x, target in zip(X[:, 0], y, strict=True):
        residual = (target - slope[:, None] * x - intercept)[..., None, None]
        table += stats.t.logpdf(residual / scale, degrees) - np.log(scale)
    prior = stats.norm.logpdf(slope)[:, None] + stats.norm.logpdf(intercept)
    cell = (slope[1] - slope[0]) * (intercept[1] - intercept[0])
    return table + prior[..., None, None] + np.log(cell / len(degrees)), slope, intercept


@pytest.mark.slow
@each_way
def test_student_t_line(tuned):
    """Posterior means of slope, noise level and degrees of freedom, and the evidence."""
    X, y = student_t_rows()
    low, high = LogUniform().log_range
    log_beta = np.linspace(-1.0, 6.0, 71)
    table, slope, _ = student_t_on_a_grid(X, y, log_beta, np.array(DEGREES_OF_FREEDOM))
    exact = logsumexp(table) + np.log((log_beta[1] - log_beta[0]) / (high - low))
    share = np.exp(table - logsumexp(table))
    sampled = sample(X, y, "student_t", tuned)
    draws = sampled.draws
    assert_mean(draws.theta[..., 0], share.sum((1, 2, 3)) @ slope)
    assert_mean(draws.theta[..., 0] ** 2, share.sum((1, 2, 3)) @ slope**2)
    assert_mean(np.log(draws.beta[..., 0]), share.sum((0, 1, 3)) @ log_beta)
    for i, nu in enumerate(DEGREES_OF_FREEDOM):
        assert_mean((draws.noise[..., 0] == nu).astype(float), share[..., i].sum())
    value, error = population_evidence(sampled, 4)
    assert 0.0 < error < 0.3  # from the spread of four populations
    assert abs(value - exact) < 4.0 * error


def test_student_t_evidence_of_a_known_level():
    """The noise's standard deviation is fixed, whatever the degrees of freedom; nothing moves."""
    X, y = student_t_rows()
    exact = []
    for nu in DEGREES_OF_FREEDOM:
        log_beta = np.log([4.0 * nu / (nu - 2.0)])
        exact.append(logsumexp(student_t_on_a_grid(X, y, log_beta, np.array([nu]))[0]))
    exact = logsumexp(exact) - np.log(len(exact))
    sampled = sample(X, y, "student_t", True, 4.0, 2, 5, 4)  # draws play no role
    assert sampled.joint.dimension == 0
    value, error = population_evidence(sampled)
    assert 0.0 < error < 0.5
    assert abs(value - exact) < 4.0 * error


# --- input-dependent noise -----------------------------------------------------------------------


def heteroscedastic_rows(n=30):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.5, 1.5, (n, 1))
    sd = 0.3 * np.exp(0.7 * X[:, 0])
    return X, 0.7 * X[:, 0] + sd * rng.standard_normal(n)


@pytest.mark.slow
@each_way
def test_log_linear_noise(tuned):
    """Quadrature over the slope of the log precision, its prior precision and the level."""
    X, y = heteroscedastic_rows()
    low, high = LogUniform().log_range
    slope, level = np.linspace(-6.0, 3.0, 181), np.linspace(0.0, 6.0, 121)
    rows = np.clip(slope[:, None, None] * X[:, 0] + level[:, None], low, high)
    log_alpha = np.linspace(low, high, 401)
    sd = np.exp(-0.5 * log_alpha)
    priors = stats.norm.logpdf(slope[:, None], scale=sd)  # narrow ones fall between the points
    cell = slope[1] - slope[0]
    at_zero = log_alpha > 2.0 * np.log(2.0 / cell)
    priors[:, at_zero] = np.where(np.abs(slope) < 0.5 * cell, -np.log(cell), -np.inf)[:, None]
    prior = logsumexp(priors, axis=1) + np.log((log_alpha[1] - log_alpha[0]) / (high - low))
    table = log_marginal(X, y, 1.0, rows) + prior[:, None] - np.log(high - low)
    exact = logsumexp(table) + np.log(cell * (level[1] - level[0]))
    share = np.exp(table - logsumexp(table))
    sampled = sample(X, y, "input_dependent", tuned)
    noise = sampled.draws.noise
    assert_mean(noise[..., 0], share.sum(1) @ slope)
    assert_mean(noise[..., 0] ** 2, share.sum(1) @ slope**2)
    assert_mean(noise[..., 1], share.sum(0) @ level)
    value, error = population_evidence(sampled, 4)
    assert 0.0 < error < 0.3  # from the spread of four populations
    assert abs(value - exact) < 4.0 * error
