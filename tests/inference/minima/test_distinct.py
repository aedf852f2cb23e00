"""Each minimum once."""

import numpy as np
import pytest

from skbayesnn.inference import Problem
from skbayesnn.inference.minima._search import distinct, find_minima
from skbayesnn.posterior import Gaussian


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (50, 1))
    y = np.sin(2 * X) + 0.2 * rng.standard_normal((50, 1))
    return Problem((X - X.mean()) / X.std(), y / y.std(), np.ones(50), Gaussian.per_output(1))


@pytest.fixture(scope="module")
def searched(problem):
    return find_minima(*problem.posed((2,)), np.random.SeedSequence(0).spawn(4))


def test_minima_of_other_networks_stay(searched):
    minima = searched
    assert {m.network.hidden_layer_sizes for m in minima} == {(1,), (2,)}
    assert distinct([*minima, *minima[::-1]]) == minima


def test_other_starts_are_skipped_if_the_first_is_hopeless(problem, searched):
    """The first is the narrower network with units added."""
    (narrower,) = (m for m in searched if m.network.hidden_layer_sizes == (1,))

    def found(at_least):
        seeds = np.random.SeedSequence(0).spawn(4)
        posed = problem.posed((2,))
        return find_minima(*posed, seeds, narrower=narrower, at_least=at_least)

    (alone,), several = found(at_least=1000.0), found(at_least=-1000.0)
    assert len(several) > 1
    assert alone.log_evidence in [minimum.log_evidence for minimum in several]
