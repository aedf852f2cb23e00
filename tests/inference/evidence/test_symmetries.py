"""Which copies of a network an informative prior leaves: against brute force."""

from itertools import permutations, product

import numpy as np
import pytest

from skbayesnn.inference.evidence._evidence import log_symmetry, symmetries
from skbayesnn.inference.minima._redundancy import align, same_minimum
from skbayesnn.network import Network
from skbayesnn.posterior import WeightGroups, weight_groups

NETWORK = Network((1, 3, 1))


def images(theta):
    """All copies of the weights of `NETWORK` (tanh) under relabelling and changes of sign."""
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            first, second = (w.copy() for w in NETWORK.layers(theta))
            first = first[:, order] * signs
            second[:-1] = second[:-1][list(order)] * np.array(signs)[:, None]
            yield NETWORK.pack([first, second])


def prior_of(kind):
    groups, k = weight_groups(NETWORK, "layer"), NETWORK.n_weights
    mean, shape = np.zeros(k), np.ones(k)
    if kind == "equal means":
        mean = NETWORK.pack([np.tile([[1.0, 1.0, 2.0]], (2, 1)), np.array([[1], [1], [1], [5.0]])])
    if kind == "precisions":
        shape = NETWORK.pack([np.tile([[1.0, 1.0, 2.0]], (2, 1)), np.ones((4, 1))])
    if kind == "groups":  # one unit's differ below, another's above
        first, second = np.array([[0, 0, 1], [0, 0, 0]]), np.array([[0], [2], [0], [0]])
        return WeightGroups(NETWORK.pack([first, second]), ["a", "b", "c"])
    if kind == "matrix":
        root = np.random.default_rng(0).standard_normal((k, k))
        shape = root @ root.T + np.eye(k)
        return WeightGroups(np.zeros(k, dtype=int), ["weights"], mean, shape)
    return WeightGroups(groups.labels, groups.names, mean, shape)


def density(prior, theta):
    """Minus its logarithm, at precisions that differ between groups."""
    return prior.energies(theta) @ np.arange(1.0, 1.0 + len(prior.names))


KINDS = ["centred", "groups", "equal means", "precisions", "matrix"]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_equal_density(kind):
    prior, theta = prior_of(kind), np.random.default_rng(1).standard_normal(NETWORK.n_weights)
    energy = density(prior, theta)
    equal = [np.isclose(density(prior, w), energy, rtol=1e-12) for w in images(theta)]
    assert np.exp(log_symmetry(NETWORK, prior)) == pytest.approx(sum(equal))


@pytest.mark.parametrize("kind", KINDS)
def test_minima_are_the_same_if_they_are_copies(kind):
    prior, theta = prior_of(kind), np.random.default_rng(2).standard_normal(NETWORK.n_weights)
    allowed, energy = symmetries(NETWORK, prior), density(prior, theta)
    for copy in images(theta):
        equal = bool(np.isclose(density(prior, copy), energy, rtol=1e-12))
        assert same_minimum(NETWORK, copy, theta, allowed=allowed) == equal
        assert same_minimum(NETWORK, copy, theta)
        if equal:
            np.testing.assert_array_equal(align(NETWORK, copy, theta, allowed), theta)
