import numpy as np
import pytest

from skbayesnn.inference.minima._redundancy import align, layers_switched_off, prune, same_minimum
from skbayesnn.network import outputs
from skbayesnn.posterior import weight_groups
from tests.tools import make_problem

HIDDEN = [(4,), (4, 3), (3, 3, 4)]
each_network = pytest.mark.parametrize("hidden", HIDDEN, ids=str)


def make(hidden, activation="tanh"):
    return make_problem("gaussian", hidden, activation, "ard", n=30)[:2]


def edited(network, theta, layer, incoming=None, outgoing=None):
    """Weights after replacing one unit's (number 1) incoming and outgoing weights."""
    layers = [w.copy() for w in network.layers(theta)]
    if incoming is not None:
        layers[layer][:, 1] = incoming(layers[layer])
    if outgoing is not None:
        layers[layer + 1][1] = outgoing(layers[layer + 1])
    return network.pack(layers)


def assert_nothing_pruned(posterior, theta, tolerance):
    same, weights, pruned = prune(posterior, theta, tolerance)
    assert same is posterior
    assert not pruned
    np.testing.assert_array_equal(weights, theta)


def check_pruned(posterior, theta, found, layer, reason):
    """One unit less in the right layer, the same function, and labels of the smaller network."""
    reduced, smaller, (unit,) = found
    before, after = posterior.network, reduced.network
    assert after == before.without_units(layer, [0])
    assert unit.layer == layer + 1
    assert unit.reason == reason
    expected = outputs(before, theta, posterior.X)
    np.testing.assert_allclose(outputs(after, smaller, posterior.X), expected, atol=1e-9)
    labels = weight_groups(after, "ard")
    np.testing.assert_array_equal(reduced.groups.labels, labels.labels)
    assert reduced.groups.names == labels.names


REDUNDANT = {  # what one unit's weights become, and why it goes
    "copy": ({"incoming": lambda w: w[:, 0]}, "duplicate"),
    "mirror": ({"incoming": lambda w: -w[:, 0]}, "duplicate"),
    "idle": ({"outgoing": lambda w: 0 * w[1]}, "off"),
    "constant": ({"incoming": lambda w: np.r_[np.zeros(len(w) - 1), 0.7]}, "off"),
}


@each_network
@pytest.mark.parametrize(
    ("kind", "activation"),
    [*((kind, "tanh") for kind in REDUNDANT), *(("copy", a) for a in ("logistic", "silu", "gelu"))],
)
def test_units_that_are_not_needed_go(hidden, kind, activation):
    change, reason = REDUNDANT[kind]
    for layer in range(len(hidden)):
        posterior, theta = make(hidden, activation)
        theta = edited(posterior.network, theta, layer, **change)
        found = prune(posterior, theta, np.full(2, 1e-6))
        check_pruned(posterior, theta, found, layer, reason)


KEPT = {  # what is no redundancy: mirror images of other functions, relu units that are always on
    **{name: {"incoming": lambda w: -w[:, 0]} for name in ("logistic", "relu", "gelu")},
    "relu on": {"incoming": lambda w: np.r_[w[:-1, 1], 20.0]},
}


@pytest.mark.parametrize("kind", KEPT)
def test_other_units_stay(kind):
    posterior, theta = make((4,), kind.split()[0])
    theta = edited(posterior.network, theta, 0, **KEPT[kind])
    assert_nothing_pruned(posterior, theta, np.full(2, 1e-6))


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_a_unit_counts_if_it_moves_an_output_by_a_thousandth_of_the_noise(factor):
    posterior, theta = make((4,))
    network, noise = posterior.network, np.array([0.1, 10.0])
    z = np.tanh(posterior.X @ network.layers(theta)[0][:-1] + network.layers(theta)[0][-1])
    size = factor * 1e-3 / np.std(z[:, 1])
    theta = edited(network, theta, 0, outgoing=lambda w: [size * 0.1, 0.0])
    assert (not prune(posterior, theta, noise)[2]) == (factor > 1)


def test_the_last_unit_stays():
    posterior, theta = make((1,))
    layers = posterior.network.layers(theta)
    theta = posterior.network.pack([layers[0], 0 * layers[1]])
    assert_nothing_pruned(posterior, theta, np.full(2, 0.1))


def test_repeated_pruning_ends_with_the_units_that_are_needed():
    posterior, theta = make((6,))
    layers = [w.copy() for w in posterior.network.layers(theta)]
    layers[0][:, 1], layers[0][:, 2], layers[1][3] = layers[0][:, 0], -layers[0][:, 0], 0.0
    theta = posterior.network.pack(layers)
    expected = outputs(posterior.network, theta, posterior.X)
    posterior, theta, pruned = prune(posterior, theta, np.full(2, 1e-3))
    assert sorted(unit.reason for unit in pruned) == ["duplicate", "duplicate", "off"]
    assert posterior.network.hidden_layer_sizes == (3,)
    np.testing.assert_allclose(outputs(posterior.network, theta, posterior.X), expected, atol=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "logistic", "silu", "gelu"])
def test_units_in_their_linear_range_become_as_few_as_the_rank(activation):
    posterior, theta = make((5,), activation)
    before = posterior.network.layers(theta)
    before[0][:] *= 1e-5
    smaller, weights, pruned = prune(posterior, theta, np.full(2, 1e-4))
    assert [(unit.layer, unit.reason) for unit in pruned] == [(1, "linear")] * 3
    assert smaller.network.hidden_layer_sizes == (2,)
    expected = outputs(posterior.network, theta, posterior.X)
    # the curvature of phi at arguments of 1e-5 is what is left
    np.testing.assert_allclose(outputs(smaller.network, weights, posterior.X), expected, atol=1e-8)
    after = smaller.network.layers(weights)
    ratios = [np.linalg.norm(w[0][:-1]) / np.linalg.norm(w[1][:-1]) for w in (before, after)]
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-9)
    assert abs(after[0][:-1, 0] @ after[0][:-1, 1]) < 1e-12 * np.sum(after[0] ** 2)


def test_layers_switched_off():
    posterior, theta = make((1, 1))
    tolerance = np.full(2, 0.1)
    network = posterior.network
    assert layers_switched_off(posterior, theta, tolerance) == []
    layers = network.layers(theta)
    last = network.pack([layers[0], layers[1], layers[2] * [[1e-9], [1.0]]])
    assert layers_switched_off(posterior, last, tolerance) == [1]
    wide, theta = make((2,))
    layers = wide.network.layers(theta)
    theta = wide.network.pack([layers[0], 0 * layers[1]])
    assert layers_switched_off(wide, theta, tolerance) == []  # has a unit to prune instead


def scrambled(network, theta, rng):
    """Weights of an equal function: units in another order, odd ones with other signs."""
    layers = [w.copy() for w in network.layers(theta)]
    for layer, width in enumerate(network.hidden_layer_sizes):
        order = rng.permutation(width)
        sign = rng.choice([-1.0, 1.0], width) if network.phi.odd else np.ones(width)
        layers[layer] = layers[layer][:, order] * sign
        layers[layer + 1][:-1] = layers[layer + 1][:-1][order] * sign[:, None]
    return network.pack(layers)


@each_network
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_align_undoes_symmetries(hidden, activation):
    rng = np.random.default_rng(0)
    posterior, theta = make(hidden, activation)
    network = posterior.network
    other = scrambled(network, theta, rng)
    np.testing.assert_array_equal(align(network, other, theta), theta)
    assert same_minimum(network, other, theta)

    noisy = theta * (1.0 + 1e-4 * rng.standard_normal(theta.shape))
    assert same_minimum(network, scrambled(network, noisy, rng), theta)
    moved = theta + 0.3 * rng.standard_normal(theta.shape)
    assert not same_minimum(network, scrambled(network, moved, rng), theta)
