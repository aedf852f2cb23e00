import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference.noise._fixed_point import FixedPoint


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
