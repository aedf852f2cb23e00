import numpy as np
import pytest

from skbayesnn.network import Network
from skbayesnn.posterior import INTERCEPT, weight_groups


@pytest.mark.parametrize("hidden", [(), (3,), (3, 4), (3, 4, 5)], ids=str)
def test_layer_has_two_groups_per_hidden_layer_and_one_for_the_output(hidden):
    network = Network((2, *hidden, 2))
    groups = weight_groups(network, "layer")
    assert len(groups.names) == len(set(groups.names)) == 2 * len(hidden) + 1
    *below, output = network.layers(groups.labels)
    for layer, labels in enumerate(below):
        assert np.all(labels[:-1] == 2 * layer)
        assert np.all(labels[-1] == 2 * layer + 1)
    assert np.all(output == 2 * len(hidden))  # its biases included


@pytest.mark.parametrize("hidden", [(3,), (3, 4)], ids=str)
def test_ard_splits_the_first_layer_by_input(hidden):
    network = Network((4, *hidden, 2))
    groups = weight_groups(network, "ard")
    assert len(groups.names) == len(set(groups.names)) == 4 + 2 * len(hidden)
    first, *_, output = network.layers(groups.labels)
    for label, row in enumerate(first):  # one group per input, one for the biases
        assert np.all(row == label)
    assert np.all(output == len(groups.names) - 1)
    np.testing.assert_array_equal(groups.sizes[:5], np.full(5, 3))
    assert groups.sizes.sum() == network.n_weights


def test_ard_without_hidden_layer():
    network = Network((3, 2))
    (labels,) = network.layers(weight_groups(network, "ard").labels)
    np.testing.assert_array_equal(labels, [[0, 0], [1, 1], [2, 2], [3, 3]])


@pytest.mark.parametrize("kind", ["single", "layer", "ard"])
@pytest.mark.parametrize("hidden", [(), (3,), (3, 4)], ids=str)
def test_intercepts_by_themselves(kind, hidden):
    network = Network((2, *hidden, 2))
    plain, groups = weight_groups(network, kind), weight_groups(network, kind + INTERCEPT)
    assert groups.names[-1] == "intercept"
    assert np.all(groups.labels[-2:] == len(groups.names) - 1)
    assert groups.sizes[-1] == 2
    assert np.all(groups.sizes > 0)
    old, new = (np.array(g.names)[g.labels[:-2]] for g in (plain, groups))
    np.testing.assert_array_equal(new, old)


def test_custom_labels_of_any_kind():
    network = Network((1, 2, 1))
    labels = ["b", "b", "a", "a", "z", "z", "a"]
    groups = weight_groups(network, labels)
    assert groups.names == ["a", "b", "z"]
    np.testing.assert_array_equal(groups.labels, [1, 1, 0, 0, 2, 2, 0])
    np.testing.assert_array_equal(groups.sizes, [3, 2, 2])
    numbered = weight_groups(network, np.array([7, 7, 3, 3, 9, 9, 3]))
    np.testing.assert_array_equal(numbered.labels, groups.labels)
