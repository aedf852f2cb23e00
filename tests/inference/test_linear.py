"""Without hidden layer the search starts at the best of a grid of precisions."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.inference.optimise._linear import linear_start
from skbayesnn.inference.task._settings import FreeHyperparameters, Settings
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, Posterior, weight_groups

pytestmark = pytest.mark.usefixtures("laplace")

GRID_STEP = 0.5 * np.log(10.0)  # two values of every precision per decade
PER_OUTPUT, SHARED = Gaussian.per_output(2), Gaussian(np.zeros(2, dtype=int), np.array([1.0, 4.0]))


def problem(likelihood, free_alpha, free_beta, n=9, seed=0):
    """Rows with whole weights, two outputs, and a precision for each input."""
    rng = np.random.default_rng(seed)
    network = Network((2, 2), "tanh")
    X = rng.standard_normal((n, 2))
    y = X @ np.array([[3.0, 0.0], [1.0, -20.0]]) + 0.3 * rng.standard_normal((n, 2))
    weight = rng.integers(1, 4, n).astype(float)
    groups = weight_groups(network, "ard")
    posterior = Posterior(network, likelihood, groups, X, y, weight)
    fixed = Hyperparameters(np.array([0.1, 0.02, 1.0]), np.full(likelihood.n_levels, 5.0))
    free = FreeHyperparameters.sharing(
        np.array(free_alpha), np.array(free_beta), LogUniform(0.01, 100.0)
    )
    return posterior, Settings(free, fixed)


def log_likelihood(posterior, alpha, beta):
    """From the joint Gaussian of all rows, written out as often as they count."""
    times = posterior.sample_weight.astype(int)
    inputs = np.column_stack([posterior.X, np.ones(len(posterior.X))]).repeat(times, axis=0)
    value = 0.0
    for precision, t in zip(posterior.likelihood.precisions(beta), posterior.y.T, strict=True):
        covariance = (inputs / alpha) @ inputs.T + np.eye(len(inputs)) / precision
        t = t.repeat(times)
        log_det = np.linalg.slogdet(2 * np.pi * covariance).logabsdet
        value -= 0.5 * (log_det + t @ np.linalg.solve(covariance, t))
    return value


@pytest.mark.parametrize(
    ("likelihood", "free_alpha", "free_beta"),
    [
        (PER_OUTPUT, [True, True, True], [True, True]),
        (PER_OUTPUT, [True, False, True], [False, True]),
        (PER_OUTPUT, [False, False, False], [True, True]),
        (SHARED, [True, True, True], [True]),
        (SHARED, [False, True, False], [True]),
    ],
)
def test_start_is_the_best_of_the_grid(likelihood, free_alpha, free_beta):
    posterior, settings = problem(likelihood, free_alpha, free_beta)
    low, high = settings.free.prior[0].log_range
    grid = np.exp(np.arange(low, high + 0.5 * GRID_STEP, GRID_STEP))
    candidates = [
        (
            np.where(free_alpha, a, settings.fixed.alpha),
            np.where(free_beta, b, settings.fixed.beta),
        )
        for a in grid
        for b in itertools.product(grid, repeat=likelihood.n_levels)
    ]
    values = [log_likelihood(posterior, *candidate) for candidate in candidates]
    start = linear_start(posterior, settings)
    assert_allclose(log_likelihood(posterior, *start), max(values), rtol=1e-6)


def test_large_weights_are_not_taken_for_noise():
    """Waves whose weights must be large: from a strong prior they were all taken for noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-4, 4, 60))
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(60)
    h = np.arange(1, 51)
    phase = 2 * np.pi * np.outer(x, h) / 16
    X = np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(h**-2.0, 2)
    model = EvidenceMLPRegressor((), standardize=False).fit(X, y)
    precisions = np.exp(np.arange(-6.0, 2.0))
    fixed = [
        EvidenceMLPRegressor((), standardize=False, prior=Prior(precision=value))
        .fit(X, y)
        .log_evidence_
        for value in precisions
    ]
    assert abs(model.noise_std_ - 0.1) < 0.02
    weights = np.full(len(fixed), 1.0 / (12 * np.log(10)))  # trapezium rule of the prior's density
    assert_allclose(
        model.log_evidence_, np.log(weights @ np.exp(fixed)), atol=0.3
    )  # nats: 8 points for the integral
