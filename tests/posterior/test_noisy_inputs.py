"""The posterior that samplers move in where inputs have noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skbayesnn.inference import FreeHyperparameters
from skbayesnn.network import outputs
from skbayesnn.posterior import LogUniform, NoisyInputsJoint, at_slopes, slope_covariances
from tests.tools import INPUT_VARIANCES, assert_near, difference, make_problem

RANGE = LogUniform(0.05, 20.0)
NAMES = ["inputs", "inputs_shared"]

each_name = pytest.mark.parametrize("name", NAMES)
each_depth = pytest.mark.parametrize("hidden", [(), (3,), (3, 2)], ids=str)


def make_joint(name, hidden=(3,), fixed=False, seed=0, errors=True, n=7):
    rng = np.random.default_rng(seed + 1)
    posterior, _, hyper = make_problem(name, hidden, seed=seed, n=n)
    if not errors:
        posterior = replace(posterior, variances=None)
    alpha, beta = (np.ones(len(values), dtype=bool) for values in hyper)
    if fixed:
        alpha[-1] = beta[0] = False
    information = np.exp(rng.normal(0.0, 2.0, len(alpha)))
    joint = NoisyInputsJoint(
        posterior, FreeHyperparameters.sharing(alpha, beta, RANGE), hyper, information
    )
    return joint, rng.standard_normal((3, joint.dimension))


@each_name
@each_depth
@pytest.mark.parametrize("fixed", [True, False], ids=["some", "free"])
def test_gradients(name, hidden, fixed):
    joint, positions = make_joint(name, hidden, fixed)
    for q in positions:
        terms = joint.terms(q)
        expected = difference(lambda q: np.stack(joint.terms(q)[::2]), q)
        assert_near(terms.prior_gradient, expected[0], 1e-6)
        assert_near(terms.data_gradient, expected[1], 1e-6)


@each_name
@each_depth
@pytest.mark.parametrize("errors", [True, False])
def test_likelihood_is_a_multivariate_normal(name, hidden, errors):
    """Of every row, with the slopes of the network by differences."""
    joint, positions = make_joint(name, hidden, errors=errors)
    posterior, expected = joint.posterior, []
    X, network = posterior.X, posterior.network
    for q in positions:
        place = joint.place(q)
        f = outputs(network, place.theta, X)
        moved = [
            outputs(network, place.theta, X + step) - outputs(network, place.theta, X - step)
            for step in 1e-5 * np.sqrt(INPUT_VARIANCES)[:, None, None] * np.eye(2)[:, None]
        ]
        J = np.stack(moved, axis=-1) / 2e-5
        own = 1.0 / posterior.likelihood.precisions(place.hyper.beta)
        known = posterior.variances if errors else np.zeros_like(posterior.y)
        rows = [
            multivariate_normal.logpdf(y, mean, np.diag(own + v) + slope @ slope.T)
            for y, mean, v, slope in zip(posterior.y, f, known, J, strict=True)
        ]
        expected.append(-posterior.sample_weight @ rows)
    np.testing.assert_allclose(joint.terms(positions).data, expected, rtol=1e-7)


@each_name
def test_curvature(name):
    """Positive definite, and that of the posterior at the slopes of the position."""
    joint, positions = make_joint(name)
    assert np.min(np.linalg.eigvalsh(joint.curvature(positions))) > 0.0
    place = joint.place(positions[0])
    there = at_slopes(joint.posterior, place.theta)
    expected = there.data_hessian(place.theta, place.hyper.beta, exact=False)
    assert_near(joint._data_hessian(place.theta, place), expected, 1e-10)
    by_inputs = slope_covariances(there.network, place.theta, there.X, INPUT_VARIANCES)
    np.testing.assert_array_equal(there.by_inputs, by_inputs)


@each_name
def test_many_positions_at_once(name, monkeypatch):
    """Those of one batch do not depend on each other."""
    monkeypatch.setattr("skbayesnn.posterior._joint.CACHE_DOUBLES", 1)
    joint, _ = make_joint(name, n=5)
    q = np.random.default_rng(0).standard_normal((40, joint.dimension))
    assert joint._batch < 40
    for i in (0, 39):
        for all_of_them, own in zip(joint.terms(q), joint.terms(q[i : i + 1]), strict=True):
            np.testing.assert_array_equal(all_of_them[i], own[0])
