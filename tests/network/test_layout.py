from itertools import pairwise

import numpy as np
import pytest

from skbayesnn.network import Network, row_blocks
from tests.tools import set_block_doubles


@pytest.mark.parametrize("sizes", [(3, 2), (1, 1), (3, 4, 2), (2, 3, 1, 4)], ids=str)
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_layers_and_pack_are_inverse(sizes, lead):
    network = Network(sizes)
    theta = np.random.default_rng(0).standard_normal((*lead, network.n_weights))
    layers = network.layers(theta)
    assert [w.shape for w in layers] == [(*lead, i + 1, o) for i, o in pairwise(sizes)]
    np.testing.assert_array_equal(network.pack(layers), theta)


def test_weights_lie_row_by_row_with_the_biases_last():
    first, second = Network((2, 3, 1)).layers(np.arange(13))
    np.testing.assert_array_equal(first, [[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    np.testing.assert_array_equal(second, [[9], [10], [11], [12]])


@pytest.mark.parametrize("n_rows", [0, 7, 1000])
@pytest.mark.parametrize("width", [0, 1, 99, 10_000])
def test_row_blocks_cover_all_rows_and_bound_memory(monkeypatch, n_rows, width):
    set_block_doubles(monkeypatch, 1000)
    blocks = list(row_blocks(n_rows, width))
    covered = np.concatenate([np.arange(n_rows)[rows] for rows in blocks] or [[]])
    np.testing.assert_array_equal(covered, np.arange(n_rows))
    assert all((rows.stop - rows.start) * width <= max(1000, width) for rows in blocks)
    if width == 10_000:
        assert len(blocks) == n_rows  # at least one row at a time
    if width == 1:
        assert len(blocks) == (n_rows > 0)  # no smaller blocks than needed
