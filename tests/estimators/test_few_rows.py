"""Few rows: targets without noise are interpolated, noisy ones are not."""

import numpy as np
import pytest

from skbayesnn import EvidenceMLPRegressor

GRID = np.linspace(0, 1, 21)[:, None]


def sine(x):
    return np.sin(3 * x[:, 0])


@pytest.mark.parametrize("given", [{}, {"noise": 1e-3}], ids=["open", "given"])
def test_exact_rows_are_interpolated(given):
    x = np.linspace(0, 1, 12)[:, None]
    model = EvidenceMLPRegressor(random_state=0, **given).fit(x, sine(x))
    assert model.score(GRID, sine(GRID)) > 0.999
    assert np.all(np.abs(model.predict(GRID) - sine(GRID)) < 3 * model.predict_std(GRID))


def test_functions_between_exact_rows_have_the_moments_that_are_predicted():
    X, between = np.split(np.random.default_rng(0).uniform(size=(62, 2)), [12])
    y = np.sin(4 * X[:, 0]) * X[:, 1]
    model = EvidenceMLPRegressor(noise=1e-4, random_state=0).fit(X, y)
    mean, cov = model.predict(between, return_cov=True)
    functions = model.sample_y(between, 4000, random_state=0)
    z = (functions.mean(axis=1) - mean) / np.sqrt(cov.diagonal() / 4000)
    assert np.max(np.abs(z)) < 4.5


@pytest.mark.parametrize("n", [5, 16])
def test_linear_targets_are_continued(n):
    x = np.random.default_rng(0).uniform(size=(n, 1))
    model = EvidenceMLPRegressor(random_state=0).fit(x, 3.0 * x[:, 0])
    assert model.score(3 * x, 9.0 * x[:, 0]) > 0.9999


@pytest.mark.parametrize(("n", "sd"), [(5, 1.0), (30, 0.05)])
def test_noise_is_not_taken_for_a_function(n, sd):
    rng = np.random.default_rng(5)
    x, noise = rng.uniform(size=(n, 1)), sd * rng.standard_normal(n)
    y = noise + (sine(x) if n > 5 else 0.0)
    model = EvidenceMLPRegressor((8,), noise="constant", random_state=0).fit(x, y)
    assert model.noise_std_ > 0.5 * noise.std()


@pytest.mark.filterwarnings("ignore:sample_weight adds up to")
@pytest.mark.parametrize("total", [0.9, 1e-6])
def test_weights_of_less_than_a_row_leave_the_mean(total):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y, np.full(80, total / 80))
    assert np.max(np.abs(model.predict(X) - y.mean())) < 0.1
