"""Coordinates of correlation matrices, and the joint posterior that samplers move in."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from skbayesnn.inference.task._settings import FreeHyperparameters
from skbayesnn.network import forward
from skbayesnn.posterior import (
    CorrelatedJoint,
    LogUniform,
    correlation_coordinates,
    correlation_matrix,
    log_prior_of_correlations,
)
from tests.tools import assert_near, difference, make_problem

RANGE = LogUniform(0.05, 20.0)
NAMES = ["correlated", "correlated_shared"]

each_name = pytest.mark.parametrize("name", NAMES)
each_depth = pytest.mark.parametrize("hidden", [(), (3,)], ids=str)


@pytest.mark.parametrize("n_outputs", [2, 3, 4])
def test_coordinates(n_outputs):
    z = np.random.default_rng(0).standard_normal((3, n_outputs * (n_outputs + 1)))
    R, slopes = correlation_matrix(z, n_outputs)
    assert_allclose(np.diagonal(R, axis1=1, axis2=2), 1.0)
    for i in range(3):
        expected = difference(lambda x: correlation_matrix(x, n_outputs)[0], z[i])
        assert_near(slopes[i], np.moveaxis(expected, -1, 0))
    again, _ = correlation_matrix(correlation_coordinates(R), n_outputs)
    assert_allclose(again, R, atol=1e-9)


def test_equal_rows_make_no_singular_matrix():
    R, slopes = correlation_matrix(np.ones(12), 3)
    assert np.linalg.eigvalsh(R)[0] > 0.0
    assert np.all(np.isfinite(slopes))
    assert np.all(np.isfinite(correlation_coordinates(R)))


def test_prior_is_uniform_over_correlation_matrices():
    """Its volume, and moments against those of matrices drawn in the cube and kept if possible."""
    rng = np.random.default_rng(0)
    assert_allclose(np.exp(-log_prior_of_correlations(3)), 0.5 * np.pi**2)
    cube = rng.uniform(-1, 1, (100_000, 3))
    kept = cube[1 + 2 * np.prod(cube, axis=1) > np.sum(cube**2, axis=1)]
    share = len(kept) / len(cube)
    error = 8.0 * np.sqrt(share * (1 - share) / len(cube))
    assert abs(8.0 * share - np.exp(-log_prior_of_correlations(3))) < 4.0 * error
    R, _ = correlation_matrix(rng.standard_normal((len(kept), 12)), 3)
    drawn = R[:, [1, 2, 2], [0, 0, 1]]
    for moment in (lambda r: r**2, lambda r: np.prod(r, axis=1, keepdims=True), np.abs):
        one, other = moment(drawn), moment(kept)
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / len(kept))
        assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4.0 * error)


def make_joint(name, hidden=(3,), seed=0):
    rng = np.random.default_rng(seed + 1)
    posterior, _, hyper = make_problem(name, hidden, seed=seed)
    alpha, beta = np.ones(len(hyper.alpha), dtype=bool), np.ones(len(hyper.beta), dtype=bool)
    free = FreeHyperparameters.sharing(np.append(alpha, False), beta, RANGE)
    fixed = hyper._replace(alpha=np.append(hyper.alpha, 1.0))
    information = np.append(np.exp(rng.normal(0.0, 2.0, len(alpha))), 0.0)
    joint = CorrelatedJoint(posterior, free, fixed, information)
    return joint, rng.standard_normal((3, joint.dimension))


def noise_of(joint, place):
    """Covariance of the noise at one position."""
    n_outputs = joint.posterior.network.n_outputs
    R, _ = correlation_matrix(place.theta[joint.n_mean : joint.n_sampled], n_outputs)
    sd = joint.posterior.likelihood.noise_sd(place.hyper.beta)
    return sd[:, None] * R * sd


@each_name
@each_depth
def test_gradients(name, hidden):
    joint, positions = make_joint(name, hidden)
    for q in positions:
        terms = joint.terms(q)
        expected = difference(lambda q: np.stack(joint.terms(q)[::2]), q)
        assert_near(terms.prior_gradient, expected[0], 1e-6)
        assert_near(terms.data_gradient, expected[1], 1e-6)


@each_name
@each_depth
def test_likelihood_is_a_multivariate_normal(name, hidden):
    """Of all outputs of all rows together; and the mean of the output layer is that of weights."""
    joint, positions = make_joint(name, hidden)
    posterior, s = joint.posterior, joint.posterior.sample_weight
    for q in positions:
        place = joint.place(q)
        theta, sigma = joint.mean_weights(q), noise_of(joint, place)
        Z = forward(posterior.network, theta, posterior.X).inputs[-1]
        alpha = posterior.groups.expand(place.hyper.alpha)
        alpha = posterior.network.layers(alpha)[-1]
        covariance = np.kron(np.diag(1.0 / s), sigma)
        for z, a in zip(Z.T, alpha, strict=True):
            covariance += np.kron(np.outer(z, z), np.diag(1.0 / a))
        expected = multivariate_normal.logpdf(posterior.y.ravel(), cov=covariance)
        # a row of weight s has precision s beta; N(.)^s is normalised differently
        expected -= 0.5 * np.sum(s - 1.0) * np.linalg.slogdet(2.0 * np.pi * sigma)[1]
        expected -= 0.5 * len(sigma) * np.sum(np.log(s))
        assert joint.terms(q).data == pytest.approx(-expected, rel=1e-9)
        inverse = np.linalg.inv(sigma)
        A = np.kron((Z.T * s) @ Z, inverse) + np.diag(alpha.ravel())
        mean = np.linalg.solve(A, ((Z.T * s) @ posterior.y @ inverse).ravel())
        assert_allclose(theta[-mean.size :], mean, atol=1e-9)


def test_drawn_output_layer_has_the_conditional_covariance():
    joint, q = make_joint("correlated", ())
    posterior, place, m = joint.posterior, joint.place(q[0]), 4000
    inverse = np.linalg.inv(noise_of(joint, place))
    Z = np.column_stack([posterior.X, np.ones(len(posterior.X))])
    alpha = posterior.groups.expand(place.hyper.alpha[:-1])
    A = np.kron((Z.T * posterior.sample_weight) @ Z, inverse) + np.diag(alpha)
    rng = np.random.default_rng(0)
    drawn = joint.complete_weights(np.tile(q[0], (m, 1)), [rng] * m)
    expected = np.linalg.inv(A)
    sd = np.sqrt(np.diag(expected))
    found = np.cov(drawn.T)
    assert np.max(np.abs(found - expected) / np.outer(sd, sd)) < 4.0 * np.sqrt(2.0 / m)


@each_name
@each_depth
def test_curvature(name, hidden):
    joint, positions = make_joint(name, hidden)
    own, s = slice(joint.n_mean, joint.n_sampled), joint.posterior.n_rows
    for q in positions:
        matrix = joint.curvature(q)
        assert np.min(np.linalg.eigvalsh(matrix)) > 0.0
        place = joint.place(q)
        inverse = np.linalg.inv(noise_of(joint, place))
        slopes = difference(lambda q: noise_of(joint, joint.place(q)), q)[..., own]
        half = np.einsum("op,pqi->oqi", inverse, slopes)
        expected = 0.5 * s * np.einsum("oqi,qoj->ij", half, half)
        assert_near(matrix[own, own], expected + np.eye(joint.n_sampled - joint.n_mean), 1e-6)


@each_name
def test_positions_do_not_depend_on_each_other(name):
    joint, q = make_joint(name)
    for i in range(3):
        for all_of_them, own in zip(joint.terms(q), joint.terms(q[i : i + 1]), strict=True):
            np.testing.assert_array_equal(all_of_them[i], own[0])
