"""Starts with larger weights where targets vary quickly, and only there."""

import numpy as np
import pytest

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.inference import Problem
from skbayesnn.inference.minima._training import STEEPER, random_starts, steepness
from skbayesnn.posterior import Gaussian

pytestmark = pytest.mark.usefixtures("laplace")

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-1.7, 1.7, (150, 1)), axis=0)
NOISE = 0.1 * rng.standard_normal((150, 1))


def posed(y, hidden=(16,), weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    problem = Problem(x[: len(y)], y / y.std(), weight, Gaussian.per_output(1))
    return problem.posed(hidden).posterior


def starts(posterior):
    return random_starts(posterior, [np.random.default_rng(0)])[0]


def test_weights_are_larger_for_several_periods():
    posterior = posed(np.sin(15.0 * x) + NOISE)
    start = starts(posterior)
    first = posterior.groups.labels == posterior.groups.labels[0]
    unit = np.random.default_rng(0).standard_normal(posterior.network.n_weights)[0] / np.sqrt(2.0)
    factor = start.theta[0] / unit
    assert min(abs(factor - np.array(STEEPER))) < 1e-12
    np.testing.assert_allclose(start.hyper.alpha[posterior.groups.labels[0]], factor**-2.0)
    assert first.sum() == 16
    assert np.all(start.hyper.alpha[2:] == 1.0)


@pytest.mark.parametrize("y", [np.sin(2.0 * x) + NOISE, x + NOISE], ids=["slow", "line"])
@pytest.mark.parametrize("hidden", [(), (8,), (16,)], ids=str)
def test_usual_weights_stay(y, hidden):
    posterior = posed(y, hidden)
    for seed in range(5):
        sd = 0.7 * np.ones(posterior.network.n_weights)
        theta = posterior.groups.start(np.random.default_rng(seed), sd)
        assert steepness(posterior, theta) == 1.0


def test_few_rows_do_not_tell():
    posterior = posed((np.sin(15.0 * x) + NOISE)[:34])
    assert steepness(posterior, starts(posterior).theta) == 1.0


def test_eight_periods_are_learnt():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (150, 1))
    f = np.sin(16 * np.pi * x[:, 0])
    model = EvidenceMLPRegressor((16,), noise="constant", n_restarts=1, random_state=0)
    assert model.fit(x, f + 0.1 * rng.standard_normal(150)).score(x, f) > 0.95
