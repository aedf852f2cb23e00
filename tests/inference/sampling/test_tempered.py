"""Energies of annealing: their gradients, and the compiled core against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from skbayesnn.inference.sampling._moves import ScaleMoves, UnitMoves
from skbayesnn.inference.sampling._population import PathFromPrior, Tempered
from skbayesnn.samplers import Metric, leapfrog, start
from tests.posterior.joints import MIXED, RANGE, make_joint
from tests.tools import difference

ROW_FACTORS = ["student_t", "input_dependent", "input_dependent_two", "measured"]
LIKELIHOODS = ["gaussian", "bernoulli", "categorical", *ROW_FACTORS]
each_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)
each_hidden = pytest.mark.parametrize("hidden", [(), (3, 2)], ids=str)
each_integrate = pytest.mark.parametrize("integrate", [True, False], ids=["integrated", "all"])


def made(likelihood, hidden, integrate=True):
    """A joint posterior, a density where annealing begins, and positions."""
    kinds = [RANGE] if likelihood in ROW_FACTORS else MIXED
    joint, q = make_joint(likelihood, hidden, integrate=integrate, n=23, hyperpriors=kinds)
    q = np.concatenate([q, q])
    eta = q[:, joint.n_sampled : joint.dimension]
    return joint, PathFromPrior.about(joint, eta.mean(axis=0), eta.std(axis=0)), q


def without_core(energy):
    """Energy in NumPy."""
    other = Tempered(energy.joint, energy.first, energy.of_joint, energy.of_first)
    other.compiled = None
    return other


@each_likelihood
@each_hidden
@each_integrate
def test_gradients(likelihood, hidden, integrate):
    joint, beginning, q = made(likelihood, hidden, integrate)
    energy = Tempered(joint, beginning, 0.3, 0.7)
    d, step = joint.dimension, 1e-4
    numerical = difference(
        lambda moving: energy(np.append(moving, q[0, d:])[None])[0][0], q[0, :d], step
    )
    assert_allclose(energy(q[:1])[1][0], numerical, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_powers_between_both_densities(likelihood):
    joint, beginning, q = made(likelihood, (3,))
    terms, eta = joint.terms(q), q[:, joint.n_sampled : joint.dimension]
    s = joint.posterior.sample_weight
    if joint.n_conditions:  # rows that count less
        posterior = replace(joint.posterior, sample_weight=0.3 * s)
        data = replace(joint, posterior=posterior).terms(q).data
    else:
        data = 0.3 * terms.data
    expected = terms.prior + data - 0.7 * beginning.change(eta)[0]
    energy = beginning.energy(0.3)
    assert_allclose(energy(q)[0], expected, rtol=1e-12)
    assert_allclose(energy.values(q), expected, rtol=1e-9)


@each_likelihood
@each_hidden
@each_integrate
def test_values(likelihood, hidden, integrate):
    joint, beginning, q = made(likelihood, hidden, integrate)
    for factors in ((0.3, 0.7), (1.0, 0.0), (1.0, -1.0)):  # the last: the ratio of both densities
        energy = Tempered(joint, beginning, *factors)
        assert_allclose(energy.values(q), without_core(energy)(q)[0], rtol=1e-9, atol=1e-9)


@each_likelihood
@each_hidden
@each_integrate
def test_transitions(likelihood, hidden, integrate):
    joint, beginning, q = made(likelihood, hidden, integrate)
    energy = Tempered(joint, beginning, 0.3, 0.7)
    rng, ended = np.random.default_rng(0), []
    shape = len(q), joint.dimension
    phase = start(energy, q)._replace(momentum=rng.standard_normal(shape))
    metric = Metric(rng.uniform(0.5, 1.0, shape))
    step_size, n_steps = np.full(6, 1e-3), np.array([5, 0, 9, 1, 3, 7])
    for one in (energy, without_core(energy)):
        end = leapfrog(one, phase, step_size, n_steps, metric)
        assert_allclose(end.value, energy.values(end.position), rtol=1e-9, atol=1e-9)
        rngs = [np.random.default_rng(seed) for seed in range(6)]
        moved = ScaleMoves(joint)(one, end, rngs)
        assert_allclose(moved.value, energy.values(moved.position), rtol=1e-9, atol=1e-9)
        ended += [(end.position, end.momentum, moved.position)]
    for fast, slow in zip(*ended, strict=True):  # forces may be in single precision
        assert_allclose(fast, slow, rtol=0, atol=1e-4)


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
@pytest.mark.parametrize("hidden", [(3,), (3, 2)], ids=str)
def test_slices_of_units_take_the_power_of_the_likelihood(likelihood, hidden):
    joint, beginning, q = made(likelihood, hidden, integrate=False)
    energy, found = beginning.energy(0.3), []
    for one in (energy, without_core(energy)):
        rngs = [np.random.default_rng(seed) for seed in range(6)]
        found.append(UnitMoves(joint)(one, start(one, q), rngs))
    assert np.any(found[0].position != q)
    assert_allclose(found[0].position, found[1].position, rtol=0, atol=1e-7)
    assert_allclose(found[0].value, energy.values(found[0].position), rtol=1e-9)


def test_where_annealing_begins_is_normalised():
    joint, beginning, _ = made("gaussian", ())

    def density(x):  # of one coordinate, the others held
        eta = np.tile(beginning.centre, (1, 1))
        eta[0, 0] = x
        prior = joint.hyperprior(eta)[0][0]
        rest = beginning.change(beginning.centre[None])[0][0] - own
        return np.exp(beginning.change(eta)[0][0] - rest - prior[0])

    at_centre = joint.hyperprior(beginning.centre[None])[0][0][0]
    own = np.log(0.25 / beginning.scale[0]) + at_centre
    assert_allclose(quad(density, -60, 60, limit=500)[0], 1.0, rtol=1e-6)
