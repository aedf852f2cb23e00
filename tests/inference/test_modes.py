"""Modes of the posterior, and the mixture of Student-t distributions around them."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_t

from skbayesnn.inference import Modes
from tests.inference.test_copies import make_joint

ROOTS = np.array([[[1.0, 0.5], [0.0, 2.0]], [[0.3, 0.0], [0.0, 0.4]]])
MIXTURE = Modes(
    np.array([[0.0, 1.0], [3.0, -1.0]]), ROOTS, np.linalg.inv(ROOTS), np.array([0.25, 0.75])
)


def exact_density(q):
    parts = [
        share * multivariate_t(position, root @ root.T, df=8.0).pdf(q)
        for position, root, _, share in zip(*MIXTURE, strict=True)
    ]
    return np.log(np.sum(parts, axis=0))


def test_density_and_gradient():
    q = np.random.default_rng(0).standard_normal((5, 2))
    value, gradient = MIXTURE.log_density(q)
    assert_allclose(value, exact_density(q), rtol=1e-10)
    for i, step in enumerate(1e-6 * np.eye(2)):
        slope = (exact_density(q + step) - exact_density(q - step)) / 2e-6
        assert_allclose(gradient[:, i], slope, rtol=1e-5)


def test_draws_have_the_density():
    """The expectation of another density over this one is its integral."""
    q = MIXTURE.draw(np.random.default_rng(1), 20_000)
    narrow = multivariate_t([2.5, -0.5], 0.2 * np.eye(2), df=20.0)
    ratio = np.exp(narrow.logpdf(q) - MIXTURE.log_density(q)[0])
    assert abs(ratio.mean() - 1.0) < 4 * ratio.std() / np.sqrt(len(q))
    alone = MIXTURE.draw(np.random.default_rng(2), 4000, only=1)
    assert_allclose(np.median(alone, axis=0), MIXTURE.position[1], atol=0.03)


def test_modes_have_no_gradient():
    joint = make_joint((1, 2, 1))
    rng = np.random.default_rng(3)
    starts = np.stack([joint.draw_prior(rng) for _ in range(6)])
    modes = Modes.near(joint, starts)
    assert len(modes.shares) <= 4
    assert_allclose(modes.shares.sum(), 1.0)
    value, gradient = joint.energy(modes.position)
    assert np.all(value <= joint.energy(starts)[0].max())
    assert np.max(np.abs(gradient[0])) < 0.2


def test_nothing_to_move():
    joint = make_joint((1, 2, 1))
    assert Modes.near(joint, np.empty((1, 0))) is None
