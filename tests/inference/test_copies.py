"""Shares of networks among their symmetric copies."""

from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference import Copies, FreeHyperparameters, log_permanent
from skbayesnn.network import Network
from skbayesnn.posterior import (
    Gaussian,
    Hyperparameters,
    JointPosterior,
    LogUniform,
    Posterior,
    weight_groups,
)


def test_permanent_by_all_orders():
    rng = np.random.default_rng(0)
    sizes = [2, 1, 2]  # columns that occur so often
    logs = rng.standard_normal((4, 5, 3))
    columns = np.repeat(np.arange(3), sizes)
    exact = [
        sum(np.exp(sum(one[i, columns[j]] for i, j in enumerate(order))) for order in orders)
        for one in logs
        for orders in [list(permutations(range(5)))]
    ]
    assert_allclose(log_permanent(logs, sizes), np.log(exact), rtol=1e-10)


def make_joint(sizes, activation="tanh", groups="layer", integrate=True):
    network = Network(sizes, activation)
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (20, sizes[0]))
    y = rng.standard_normal((20, sizes[-1]))
    if isinstance(groups, str):
        groups = weight_groups(network, groups)
    posterior = Posterior(network, Gaussian.per_output(sizes[-1]), groups, X, y, np.ones(20))
    n = len(groups.names)
    free = FreeHyperparameters.sharing(
        np.ones(n, dtype=bool), np.ones(sizes[-1], dtype=bool), LogUniform()
    )
    fixed = Hyperparameters(np.ones(n), np.ones(sizes[-1]))
    return JointPosterior(posterior, free, fixed, np.zeros(n), integrate)


def copies_of(joint, q):
    """A position under all permutations and sign changes of the units of every hidden layer."""
    network = joint.posterior.network
    theta = np.zeros(network.n_weights)
    theta[: joint.n_mean] = q[: joint.n_mean]
    widths = network.hidden_layer_sizes
    signs = (-1.0, 1.0) if network.phi.odd else (1.0,)
    changes = [product(permutations(range(w)), product(signs, repeat=w)) for w in widths]
    for change in product(*changes):
        layers = [w.copy() for w in network.layers(theta)]
        for layer, (order, sign) in enumerate(change):
            order, sign = list(order), np.array(sign)
            layers[layer] = layers[layer][:, order] * sign
            rows = layers[layer + 1][:-1][order] * sign[:, None]
            layers[layer + 1] = np.vstack([rows, layers[layer + 1][-1:]])
        moved = network.pack(layers)[: joint.n_mean]
        yield np.concatenate([moved, q[joint.n_mean :]])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", [(2, 3, 1), (1, 2, 2, 1)])
@pytest.mark.parametrize("integrate", [True, False])
def test_shares_of_all_copies_add_up_to_one(sizes, activation, integrate):
    joint = make_joint(sizes, activation, integrate=integrate)
    rng = np.random.default_rng(2)
    first, second = (
        0.3 * rng.standard_normal((100, joint.dimension)) + rng.standard_normal(joint.dimension)
        for _ in range(2)
    )
    first[:, : sizes[0] * sizes[1] : sizes[1]] = 2.0 * rng.standard_normal(
        (100, len(range(0, sizes[0] * sizes[1], sizes[1])))
    )
    shares = Copies(joint, [first, second], np.array([0.7, 0.3]))
    for q in rng.standard_normal((3, joint.dimension)):
        every = np.stack(list(copies_of(joint, q)))
        assert_allclose(np.exp(shares.log_share(every)).sum(), 1.0, rtol=1e-8)


def test_a_network_like_the_minimum_is_its_own_copy():
    joint = make_joint((2, 3, 1))
    rng = np.random.default_rng(3)
    centre = 5.0 * rng.standard_normal(joint.dimension)
    shares = Copies(joint, [centre + 0.01 * rng.standard_normal((200, len(centre)))], np.ones(1))
    assert shares.n_states == 8
    assert_allclose(shares.log_share(centre[None]), 0.0, atol=1e-6)
    other = np.stack(list(copies_of(joint, centre)))
    assert np.sum(np.exp(shares.log_share(other)) > 0.5) == 1


def test_units_that_do_nothing_are_all_alike():
    joint = make_joint((2, 4, 1))
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((500, joint.dimension))  # all units about zero
    shares = Copies(joint, [draws], np.ones(1))
    assert shares.n_states == 5
    assert_allclose(shares.log_share(draws), -np.log(24 * 16), atol=1e-8)


def test_many_different_units_are_too_many():
    joint = make_joint((1, 70, 1))
    rng = np.random.default_rng(6)
    draws = 10.0 * rng.standard_normal(joint.dimension) + rng.standard_normal((40, joint.dimension))
    draws[:, joint.n_sampled :] = 0.0  # precisions
    assert Copies(joint, [draws], np.ones(1)).n_states > 2**40


def test_units_of_other_groups_are_not_exchanged():
    network = Network((1, 2, 1))
    labels = np.array([0, 1, 0, 1, 0, 1, 2])
    joint = make_joint((1, 2, 1), groups=weight_groups(network, labels))
    draws = np.random.default_rng(5).standard_normal((300, joint.dimension))
    shares = Copies(joint, [draws], np.ones(1))
    assert_allclose(shares.log_share(draws), -np.log(4), atol=1e-8)  # the signs only
