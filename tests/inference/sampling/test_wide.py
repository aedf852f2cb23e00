"""Wide networks on few rows: sampling with hidden weights from their prior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference.sampling._wide import (
    RATIO_SD,
    SCALE_MEAN,
    SCALE_SD,
    GivenWeights,
    WideJoint,
    WidePath,
    log_ratio_of_noise,
    rotated,
)
from skbayesnn.posterior import JointPosterior, LogUniform
from skbayesnn.samplers import start
from tests.posterior.joints import make_joint
from tests.tools import assert_near, difference


@pytest.fixture
def path():
    joint = WideJoint.of(make_joint("gaussian", (30,), n=6)[0])
    return WidePath.about(joint, np.zeros(joint.n_free), np.ones(joint.n_free))


def test_joint_density_is_that_of_the_core(path):
    core = JointPosterior(
        path.joint.posterior, path.joint.free, path.joint.fixed, path.joint.information
    )
    q = np.roll(path.draw(np.random.default_rng(0), 5), -core.n_free, axis=-1)
    for found, expected in zip(path.joint(q), core(q), strict=True):
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))


def test_gradient_of_the_precisions(path):
    energy = GivenWeights(path.joint, path, 0.3, 0.7)
    q = path.draw(np.random.default_rng(0), 3)
    rest = np.zeros(q.shape[1] - path.joint.n_free)
    slopes = difference(lambda h: energy(q + np.append(h, rest))[0], np.zeros(path.joint.n_free))
    assert_near(energy(q)[1], slopes, 1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(6.0 * x[:, 0]),
        lambda x: np.abs(x[:, 0] - 0.4),
        lambda x: np.floor(2.0 * x[:, 0]),
        lambda x: x @ [1.0, -1.0, 2.0],
    ],
)
def test_noise_is_not_favoured_by_exact_rows(function):
    """Kinks, steps, and irrelevant inputs are no noise; several outputs add up."""
    X = np.random.default_rng(0).uniform(size=(24, 3))
    X, y = ((some - some.mean(axis=0)) / some.std(axis=0) for some in (X, function(X)[:, None]))
    ratio = log_ratio_of_noise(X, y)
    assert ratio < 1.0
    assert_allclose(log_ratio_of_noise(X, np.hstack([y, y])), 2.0 * ratio, rtol=1e-9)


@pytest.mark.parametrize("sd", [0.05, 0.3, 3.0])
def test_noise_is_favoured_by_noisy_rows(sd):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.5, 1.5, (30, 1))
    y = np.sin(2.0 * X) + sd * rng.standard_normal((30, 1))
    assert log_ratio_of_noise(X, (y - y.mean()) / y.std()) > 3.0


def test_a_constant_output_has_no_infinite_likelihood():
    X, y = np.arange(5.0)[:, None] / 2.0, np.array([[0.0], [2.0], [-1.0], [1.0], [-2.0]])
    none = np.zeros((5, 1))
    assert np.isfinite(log_ratio_of_noise(X, np.hstack([y, none])))


def vague(prior):
    """Joint posterior of a network of two inputs under the usual hyperpriors."""
    options = {"known": False, "hyperpriors": [LogUniform()]}
    return WideJoint.of(make_joint("gaussian", (30,), prior, n=6, **options)[0])


def test_prior_of_scales_ties_weights_to_biases_and_is_normalised():
    layers = vague("layer")
    assert list(layers._scales) == [0, 1]
    steps = np.linspace(-6.0, 6.0, 300)
    eta = np.zeros((300, 300, layers.n_free))
    eta[..., :2] = np.stack(np.meshgrid(steps, steps), axis=-1)
    density = np.exp(-layers.hyperprior(eta)[0][..., :2].sum(axis=-1))
    assert_allclose(density.sum() * (steps[1] - steps[0]) ** 2, 1.0, rtol=1e-3)
    logs = -0.5 * layers.precision_map.log_precision(eta)
    density /= density.sum()
    assert_allclose(np.sum(density * logs[..., 0]), SCALE_MEAN, atol=1e-3)
    away = 0.5 * (logs[..., 0] - logs[..., 1])
    variance = 1.0 / (1.0 / SCALE_SD**2 + 1.0 / RATIO_SD**2)
    assert_allclose(np.sum(density * away**2), 0.5 * variance, rtol=1e-3)


def test_gradient_of_the_prior_of_scales():
    joint = vague("ard")
    assert list(joint._scales) == [0, 1, 2]
    eta = np.random.default_rng(0).standard_normal((4, joint.n_free))
    slopes = difference(lambda h: joint.hyperprior(eta + h)[0].sum(axis=-1), np.zeros(joint.n_free))
    assert_near(joint.hyperprior(eta)[1], slopes)


def test_chosen_hyperpriors_are_kept(path):
    assert len(path.joint._scales) == 0


def test_rotations_keep_the_prior(path):
    """Without data all rotations are accepted, and the weights stay standard normal."""
    rng = np.random.default_rng(0)
    energy = GivenWeights(path.joint, path, 0.0, 1.0)
    phase = start(energy, path.draw(rng, 200))
    after = rotated(energy, phase, [rng])
    changed = after.position[:, path.joint.n_free :] != phase.position[:, path.joint.n_free :]
    assert changed.all()
    assert after.position[:, path.joint.n_free :].std() == pytest.approx(1.0, abs=0.02)
