"""Slice sampling of linear classifiers: the distribution that it leaves as it is, and its use."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import logsumexp

from skbayesnn.inference import Problem
from skbayesnn.inference.sampling._sampling import SamplingSettings, run_chains
from skbayesnn.inference.sampling._sampling_starts import start_sampling
from skbayesnn.inference.sampling._slice_moves import SliceMoves, shapes_at_modes
from skbayesnn.inference.task._problem import FreeHyperparameters, Posed, Settings
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Hyperparameters,
    JointPosterior,
    LogUniform,
    Posterior,
    weight_groups,
)
from skbayesnn.samplers import Plan, bulk_ess, r_hat, start
from tests.inference.common import settings_of

PRIOR = LogUniform(0.1, 10.0)


def make_posterior(X, y, likelihood=None, hidden=(), prior="single"):
    likelihood = Bernoulli() if likelihood is None else likelihood
    network = Network((X.shape[1], *hidden, y.shape[1]), "tanh")
    weight = np.linspace(0.5, 1.5, len(X))
    return Posterior(network, likelihood, weight_groups(network, prior), X, y, weight)


def make_joint(posterior, free=True, sd=1.0, prior=PRIOR, information=0.7):
    n_groups, n_levels = len(posterior.groups.names), posterior.likelihood.n_levels
    mask = FreeHyperparameters.sharing(np.full(n_groups, free), np.ones(n_levels, bool), prior)
    fixed = Hyperparameters(np.full(n_groups, sd**-2.0), np.ones(n_levels))
    return JointPosterior(posterior, mask, fixed, np.full(n_groups, information))


def settings_of_joint(joint, **options):
    return Settings(joint.free, joint.fixed, **options)


def binary_rows():
    """One input whose classes a threshold separates."""
    X = np.array([[-1.4], [-0.9], [-0.3], [0.2], [0.8], [1.5]])
    return X, (X > 0).astype(float)


def three_classes(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    classes = np.argmax(X @ rng.standard_normal((d, 3)) + 0.3 * rng.gumbel(size=(n, 3)), axis=1)
    return X, np.eye(3)[classes]


def advanced(joint, move, position, n_transitions, seed=0):
    """Positions after each of some transitions of the move alone, ``(n_transitions, ...)``."""
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(len(position))]
    phase, kept = start(joint, position), []
    for _ in range(n_transitions):
        phase = move(joint, phase, rngs)
        kept.append(phase.position)
    return np.stack(kept)


def test_moments_by_quadrature():
    """A weight, a bias and their precision, integrated in units of the prior's sd."""
    X, y = binary_rows()
    posterior = make_posterior(X, y)
    z = np.linspace(-6.0, 6.0, 121)
    table = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    log_alpha = np.linspace(*PRIOR.log_range, 61)
    theta = table * np.exp(-0.5 * log_alpha)[:, None, None]
    f = outputs(posterior.network, theta, X)
    log_density = -posterior.likelihood.misfit(f, posterior.targets(), np.ones(0)).value
    log_density = log_density - 0.5 * np.sum(table**2, axis=-1)
    log_density[[0, -1]] -= np.log(2.0)  # trapezoidal rule
    share = np.exp(log_density - logsumexp(log_density))

    joint = make_joint(posterior)
    move = SliceMoves(joint, shapes_at_modes(joint, settings_of_joint(joint)))
    q = advanced(joint, move, np.stack([joint.draw_prior(np.random.default_rng(0))] * 16), 300)[20:]
    place = joint.place(q)
    drawn = np.concatenate([np.log(place.hyper.alpha), np.log1p(np.abs(place.theta))], axis=-1)
    drawn = np.concatenate([drawn, np.sign(place.theta), drawn[..., :1] ** 2], axis=-1)
    exact = [np.sum(share * log_alpha[:, None])]
    exact += [np.sum(share * np.log1p(np.abs(theta[..., i]))) for i in range(2)]
    exact += [np.sum(share * np.sign(theta[..., i])) for i in range(2)]
    exact += [np.sum(share * log_alpha[:, None] ** 2)]
    means = drawn.mean(axis=0)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert np.all(error < 0.1)
    assert np.all(np.abs(means.mean(axis=0) - exact) < 4.0 * error + 1e-3)


def test_chains_do_not_depend_on_each_other():
    posterior = make_posterior(*three_classes(), Categorical(), prior="ard")
    joint = make_joint(posterior)
    move = SliceMoves(joint, shapes_at_modes(joint, settings_of_joint(joint)))
    position = np.stack([joint.draw_prior(np.random.default_rng(s)) for s in range(5)])
    rngs = [np.random.default_rng(s) for s in range(5)]
    together = move(joint, start(joint, position), rngs).position
    for i in range(5):
        phase = start(joint, position[i : i + 1])
        alone = move(joint, phase, [np.random.default_rng(i)])
        assert_array_equal(alone.position[0], together[i])


def test_fixed_precisions_stay():
    posterior = make_posterior(*three_classes(), Categorical(), prior="ard")
    joint = make_joint(posterior)
    joint = replace(joint, free=replace(joint.free, alpha=np.array([False, True, False])))
    move = SliceMoves(joint, shapes_at_modes(joint, settings_of_joint(joint)))
    q = advanced(joint, move, np.stack([joint.draw_prior(np.random.default_rng(0))] * 2), 3)
    alpha = joint.place(q).hyper.alpha
    assert_array_equal(alpha[..., [0, 2]], 1.0)
    assert len(np.unique(alpha[..., 1])) == 6


def test_the_part_common_to_all_classes_has_its_prior():
    """Given the precision it is drawn anew each time, whatever the data say."""
    posterior = make_posterior(*three_classes(), Categorical())
    joint = make_joint(posterior, free=False, sd=2.0)
    move = SliceMoves(joint, shapes_at_modes(joint, settings_of_joint(joint)))
    q = advanced(joint, move, np.stack([joint.draw_prior(np.random.default_rng(0))] * 8), 200)
    common = joint.place(q).theta.reshape(-1, 3, 3).sum(axis=-1) / (2.0 * np.sqrt(3.0))
    n = len(common)
    assert np.all(np.abs(common.mean(axis=0)) < 4.0 / np.sqrt(n))
    assert np.all(np.abs(common.var(axis=0) - 1.0) < 4.0 * np.sqrt(2.0 / n))


@pytest.mark.parametrize("scale", [1e8, 1e9, 1e10])
def test_shapes_where_the_curvature_is_lost_in_rounding(scale):
    """Fewer rows than inputs, and these so large that the prior drowns in their squares."""
    rng = np.random.default_rng(0)
    X = scale * rng.standard_normal((8, 12))
    joint = make_joint(make_posterior(X, (X[:, :1] > 0).astype(float)))
    shapes = shapes_at_modes(joint, settings_of_joint(joint))
    assert shapes.shape == (3, 13, 13)
    assert np.all(np.isfinite(shapes))


def sampled(posterior, n_warmup=50, n_draws=200):
    settings = SamplingSettings(settings_of(posterior), Plan(), n_warmup, n_draws)
    given = posterior.X, posterior.y, posterior.sample_weight, posterior.likelihood
    posed, seeds = Posed(posterior, settings.search), np.random.SeedSequence(0).spawn(4)
    joint, chains = start_sampling(Problem(*given), posed, settings, seeds)
    return run_chains(joint, chains, settings).draws


def separable_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5))
    return X, (X[:, :1] + 0.5 * X[:, 1:2] > 0.1).astype(float)


@pytest.mark.slow
def test_chains_agree_where_classes_are_separable(monkeypatch):
    posterior = make_posterior(*separable_rows())
    with_slices = np.log(sampled(posterior, n_draws=600).alpha)
    assert np.max(r_hat(with_slices)) < 1.02
    monkeypatch.setattr("skbayesnn.inference.sampling._sampling.serves_slices", lambda *args: False)
    without = np.log(sampled(posterior, n_draws=600).alpha)
    assert bulk_ess(with_slices) > 1.3 * bulk_ess(without)
