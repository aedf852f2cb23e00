import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference import FixedPoint


def test_linear_map_in_a_box_within_a_few_steps():
    top = np.array([2.0, 9.0])  # the second one lies outside the box
    path = FixedPoint(
        np.zeros(2), 2, cut=1e-3, overshoot=1.5, bounds=(-5.0, 5.0), max_move=np.log(10.0)
    )
    for _ in range(8):
        before = path.x
        path.move(path.inside(np.array([0.6, 0.4]) * (top - path.x)))
        assert np.max(np.abs(path.x - before)) <= np.log(10.0) + 1e-12
    assert_allclose(path.x, [2.0, 5.0], atol=1e-3)


@pytest.mark.parametrize("memory", [3, 6])
def test_exact_after_as_many_steps_as_the_map_has_modes(memory):
    """Modes that plain iteration approaches slowly, from either side, or not at all."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    slopes = np.concatenate([[0.95, -0.9, 1.2], np.zeros(47)])
    top = rng.standard_normal(50)
    path = FixedPoint(np.zeros(50), memory, cut=1e-10)
    for _ in range(6):
        path.move((rotation * (1.0 - slopes)) @ rotation.T @ (top - path.x))
    assert_allclose(path.x, top, atol=1e-8)
