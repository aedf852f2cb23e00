"""Evidence and posterior of samplers with input-dependent noise, by brute force."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from skbayesnn.inference import NOISE_MODELS, Problem
from skbayesnn.inference.sampling._sampling import SamplingSettings, run_chains, start_sampling
from skbayesnn.inference.task._problem import Fit
from skbayesnn.posterior import Gaussian, LogUniform
from skbayesnn.samplers import Plan
from tests.inference.common import log_marginal, population_evidence

WAYS = {"tuned": True, "all_weights": False}
each_way = pytest.mark.parametrize("tuned", WAYS.values(), ids=WAYS)


def sample(X, y, tuned):
    """Weights of prior precision 1, without hidden layers."""
    problem = Problem(
        X,
        y[:, None],
        np.ones(len(X)),
        Gaussian.per_output(1),
        prior="single",
        weight_precision=lambda names: (np.zeros(1, bool), np.ones(1)),
        noise_hidden_layer_sizes=(),
    )
    posed = NOISE_MODELS["input_dependent"].pose(problem.posed(()))
    settings = SamplingSettings(
        posed.settings, Plan() if tuned else Plan(n_steps=8), 150, 800, tuned=tuned
    )
    fit = Fit(problem=problem, posed=posed, noise="input_dependent")
    return run_chains(*start_sampling(fit, settings, np.random.SeedSequence(0).spawn(16)), settings)


def assert_mean(values, exact):
    """Of draws ``(n_chains, n_draws)`` as near as 4 standard errors that the chains estimate."""
    means = values.mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    limit = stats.t.isf(stats.norm.sf(4.0), len(means) - 1)
    assert abs(means.mean() - exact) < limit * error


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
    sampled = sample(X, y, tuned)
    noise = sampled.draws.noise
    assert_mean(noise[..., 0], share.sum(1) @ slope)
    assert_mean(noise[..., 0] ** 2, share.sum(1) @ slope**2)
    assert_mean(noise[..., 1], share.sum(0) @ level)
    value, error = population_evidence(sampled, 4)
    assert 0.0 < error < 0.3  # from the spread of four populations
    assert abs(value - exact) < 4.0 * error
