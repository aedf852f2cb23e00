"""Few rows: targets without noise are interpolated, noisy ones are not."""

import numpy as np
import pytest

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor
from skbayesnn.inference import Problem
from skbayesnn.inference._trials import trial_of
from skbayesnn.posterior import Gaussian

GRID = np.linspace(0, 1, 21)[:, None]


def square(x):
    return (x[:, 0] - 0.55) ** 2


def sine(x):
    return np.sin(3 * x[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(("function", "n"), [(square, 6), (sine, 8)])
def test_exact_targets_are_interpolated(function, n):
    x = np.linspace(0, 1, n)[:, None]
    scores = []
    for seed in range(2):
        model = EvidenceMLPRegressor((4,), random_state=seed).fit(x, function(x))
        scores.append(model.score(GRID, function(GRID)))
    assert np.mean(scores) > 0.9
    assert model.noise_std_ == pytest.approx(1e-3 * function(x).std())
    z = (model.predict(GRID) - function(GRID)) / model.predict_std(GRID)
    assert np.sqrt(np.mean(z**2)) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("function", [square, sine])
def test_default_fits_of_six_exact_rows(function):
    """Models with noise have a share as well, so that functions are a little too flat."""
    x = np.linspace(0, 1, 6)[:, None]
    for seed in range(2):
        model = EvidenceMLPRegressor(random_state=seed).fit(x, function(x))
        assert model.score(GRID, function(GRID)) > 0.9
        assert np.all(np.abs(model.predict(GRID) - function(GRID)) < 2 * model.predict_std(GRID))


@pytest.mark.filterwarnings("ignore:Only 12 of 96 rows are different")
@pytest.mark.parametrize("repeats", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_a_wide_network_interpolates_more_exact_rows(repeats):
    """Repeated targets that are equal have no noise either."""
    x = np.repeat(np.linspace(0, 1, 12), repeats)[:, None]
    model = EvidenceMLPRegressor(random_state=0).fit(x, sine(x))
    assert model.hidden_layer_sizes_ == (128,)
    assert model.noise_model_ == "constant"
    assert model.score(GRID, sine(GRID)) > 0.9999
    assert np.all(np.abs(model.predict(GRID) - sine(GRID)) < 2 * model.predict_std(GRID))


def test_a_wide_network_is_fitted_if_hardly_any_noise_is_given():
    x = np.linspace(0, 1, 12)[:, None]
    model = EvidenceMLPRegressor(noise=1e-3, random_state=0).fit(x, sine(x))
    assert model.hidden_layer_sizes_ == (128,)
    assert model.noise_std_ == 1e-3
    assert model.score(GRID, sine(GRID)) > 0.999
    assert np.all(np.abs(model.predict(GRID) - sine(GRID)) < 3 * model.predict_std(GRID))


def test_densities_between_exact_rows():
    """Drawn output layers would make gaps of thousands of nats."""

    def function(X):
        return np.sin(4 * X[:, 0]) * X[:, 1]

    X, between = np.split(np.random.default_rng(0).uniform(size=(212, 2)), [12])
    model = EvidenceMLPRegressor(noise=1e-4, random_state=0).fit(X, function(X))
    assert model.log_predictive_density(between, function(between)).min() > -15.0
    mean, cov = model.predict(between[:50], return_cov=True)
    functions = model.sample_y(between[:50], 4000, random_state=0)
    z = (functions.mean(axis=1) - mean) / np.sqrt(cov.diagonal() / 4000)
    assert np.max(np.abs(z)) < 4.5


@pytest.mark.slow
def test_left_out_rows_of_random_targets_are_not_predicted():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(20, 1))
    trials = []
    for y in (sine(x), rng.standard_normal(20)):
        y = (y - y.mean()) / y.std()
        problem = Problem(x, y[:, None], np.ones(20), Gaussian.per_output(1))
        trial = trial_of(problem, "constant", (128,), np.random.SeedSequence(0))
        assert trial.run_pilot()
        trials.append(trial)
    assert [trial.predicts_left_out_rows for trial in trials] == [True, False]


def test_small_noise_is_not_taken_for_none():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(30, 1))
    y = sine(x) + 0.05 * rng.standard_normal(30)
    model = EvidenceMLPRegressor(noise="constant", random_state=0).fit(x, y)
    assert model.noise_std_ == pytest.approx(0.05, rel=0.4)  # 3 errors of 30 rows


@pytest.mark.slow
def test_error_bars_grow_between_rows():
    rng = np.random.default_rng(7)
    X, X_new = rng.uniform(size=(7, 2)), rng.uniform(0.2, 0.8, (100, 2))
    model = EvidenceMLPRegressor(random_state=0).fit(X, X[:, 0] ** 2 + X[:, 1])
    y_new, std = X_new[:, 0] ** 2 + X_new[:, 1], model.predict_std(X_new)
    assert model.score(X_new, y_new) > 0.9
    # models with noise have shares, which differ between seeds: six fits have 1.3 to 3.3
    assert np.median(std) > 1.2 * np.median(model.predict_std(X))
    assert np.mean(abs(model.predict(X_new) - y_new) < 2 * std) > 0.9


@pytest.mark.parametrize(("n", "n_features"), [(5, 1), pytest.param(16, 4, marks=pytest.mark.slow)])
def test_linear_targets(n, n_features):
    x, slopes = np.random.default_rng(0).uniform(size=(n, n_features)), 3.0 - np.arange(n_features)
    model = EvidenceMLPRegressor(random_state=0).fit(x, x @ slopes)
    assert model.hidden_layer_sizes_ == ()
    assert model.score(3 * x, 3 * x @ slopes) > 0.9999


def test_noisy_targets_keep_their_noise():
    rng = np.random.default_rng(5)
    x, y = rng.uniform(size=(5, 1)), rng.standard_normal(5)
    model = EvidenceMLPRegressor((8,), noise="constant", random_state=0).fit(x, y)
    assert model.noise_std_ > 0.5 * y.std()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samplers():
    x = np.linspace(0, 1, 6)[:, None]
    model = HMCMLPRegressor((4,), noise="constant", n_draws=50, random_state=0)
    assert model.fit(x, square(x)).score(GRID, square(GRID)) > 0.99


@pytest.mark.filterwarnings("ignore:sample_weight adds up to")
@pytest.mark.parametrize("total", [0.9, 1e-6])
def test_weights_of_less_than_a_row_leave_the_mean(total):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y, np.full(80, total / 80))
    assert np.max(np.abs(model.predict(X) - y.mean())) < 0.1
