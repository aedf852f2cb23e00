"""Hidden layers by held-out rows, and by a rule for Laplace's approximation."""

import numpy as np
import pytest

from skbayesnn.inference import Problem
from skbayesnn.inference._growth import Candidate, best_of, grow
from skbayesnn.inference._laplace_fit import fit_by_laplace
from skbayesnn.inference.minima._search import ALONE
from skbayesnn.posterior import Gaussian

ALWAYS = [(), (4,), (8,), (16,), (32,), (16, 16)]


def path_of(densities, n_targets=10_000):
    """Sizes that are tried for invented held-out log densities, and the best one."""

    def attempt(sizes):
        value = densities.get(sizes, -1000.0)
        return Candidate(sizes, 10 * sum(sizes), held_out_log_density=value)

    path = grow(attempt, lambda sizes: 10 * sum(sizes) <= n_targets)
    return [c.hidden_layer_sizes for c in path], best_of(path).hidden_layer_sizes


def test_all_widths_of_one_layer_compete_with_two_layers():
    """Two layers of 16 units are chosen if they are better by .01 per layer than all others."""
    densities = {(4,): -0.9, (8,): -0.8, (16,): -0.7, (32,): -0.5, (16, 16): -0.6, (64,): -0.5}
    sizes, best = path_of(densities)
    assert sizes == [*ALWAYS, (64,)]
    assert best == (32,)
    assert path_of(densities | {(16, 16): -0.495})[1] == (32,)
    sizes, best = path_of(densities | {(16, 16): -0.485})
    assert sizes == [*ALWAYS, (32, 32), (16, 16, 16)]
    assert best == (16, 16)
    assert path_of(densities | {(8,): -0.3, (16, 16): -0.4, (32,): -0.9}) == (ALWAYS, (8,))


def test_linear_models_and_few_targets():
    assert path_of({(): -0.5, (4,): -0.495}) == (ALWAYS, ())
    wider = {(2**i,): 0.1 * i for i in range(1, 9)}
    assert path_of(wider, n_targets=80) == ([(), (4,), (8,)], (8,))
    assert path_of(wider, n_targets=10) == ([()], ())


def problem_of(n, n_features, likelihood):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    return Problem(X, X[:, :1] + rng.standard_normal((n, 1)), np.ones(n), likelihood)


@pytest.mark.parametrize(
    ("n", "n_features", "sizes"),
    [(200, 8, (8,)), (100, 10, (4,)), (150, 30, (2,)), (60, 30, ())],
)
def test_laplace_has_many_targets_per_weight(n, n_features, sizes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features))
    y = X[:, :1] + rng.standard_normal((n, 1))
    problem = Problem(X, y, np.ones(n), Gaussian.per_output(1))
    fit = fit_by_laplace(problem, "auto", "auto", 0, 1, None, ALONE)
    assert fit.posed.hidden_layer_sizes == sizes
    assert fit.noise == "constant"
