"""Each minimum once, wherever on its curve a search has ended."""

from dataclasses import replace

import numpy as np
import pytest

from skbayesnn.inference import Method, Problem, own_posterior
from skbayesnn.inference.minima._search import distinct, find_minima
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.posterior import Gaussian, Hyperparameters


@pytest.fixture(scope="module")
def searched():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (50, 1))
    y = np.sin(2 * X) + 0.2 * rng.standard_normal((50, 1))
    problem = Problem((X - X.mean()) / X.std(), y / y.std(), np.ones(50), Gaussian.per_output(1))
    posed = problem.posed((2,))
    return posed, find_minima(*posed, np.random.SeedSequence(0).spawn(4))


def elsewhere(posed, minimum, factor):
    """The same minimum at other precisions, and a little lower."""
    own = own_posterior(posed.posterior, minimum)
    hyper = Hyperparameters(factor * minimum.hyper.alpha, minimum.hyper.beta)
    found = find_mode(own, Method.choose(own, posed.settings), minimum.theta, hyper)
    terms = replace(minimum.terms, misfit=minimum.terms.misfit - 0.3)
    return replace(minimum, theta=found.point.theta, hyper=hyper, terms=terms)


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_ends_of_one_curve(searched, factor):
    posed, minima = searched
    other = elsewhere(posed, minima[0], factor)
    shift = np.linalg.norm(other.theta - minima[0].theta) / np.linalg.norm(minima[0].theta)
    assert shift > 0.02  # more than what passes for the same
    assert distinct([other, *minima], posed) == minima


def test_minima_of_other_networks_stay(searched):
    posed, minima = searched
    assert sorted(m.network.hidden_layer_sizes for m in minima) == [(1,), (2,)]
    assert distinct([*minima, *minima[::-1]], posed) == minima
