"""Each minimum once."""

import numpy as np
import pytest

from skbayesnn.inference import Problem
from skbayesnn.inference.minima._search import distinct, find_minima
from skbayesnn.posterior import Gaussian


@pytest.fixture(scope="module")
def searched():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (50, 1))
    y = np.sin(2 * X) + 0.2 * rng.standard_normal((50, 1))
    problem = Problem((X - X.mean()) / X.std(), y / y.std(), np.ones(50), Gaussian.per_output(1))
    posed = problem.posed((2,))
    return find_minima(*posed, np.random.SeedSequence(0).spawn(4))


def test_minima_of_other_networks_stay(searched):
    minima = searched
    assert {m.network.hidden_layer_sizes for m in minima} == {(1,), (2,)}
    assert distinct([*minima, *minima[::-1]]) == minima
