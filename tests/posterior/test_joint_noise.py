"""Joint posteriors with noise of other laws, measurement errors, and correlations of outputs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_softmax
from scipy.stats import ks_2samp, multivariate_normal, norm, t

from skbayesnn.network import forward, outputs
from skbayesnn.posterior import (
    correlation_coordinates,
    correlation_matrix,
    log_prior_of_correlations,
)
from tests.posterior.joints import CORRELATED, DEGREES, INDEPENDENT, MEASURED, RANGE, make_joint
from tests.tools import LIKELIHOODS, assert_near, difference

GAUSSIAN = [name for name in LIKELIHOODS if name.startswith("gaussian")]
each_correlated = pytest.mark.parametrize("name", CORRELATED)
each_depth = pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
each_way = pytest.mark.parametrize("integrate", [True, False], ids=["integrated", "all"])


def row_precisions(joint, place):
    """Noise precision of every row and output at one position, ``(n, n_outputs)``."""
    posterior = joint.posterior
    tau = posterior.likelihood.precisions(place.hyper.beta)
    if joint.n_conditions:
        return place.conditions[: len(posterior.X), None] * tau
    if posterior.known is not None:
        return 1.0 / (1.0 / tau + posterior.known)
    if joint.noise_network is None:
        return np.tile(tau, (len(posterior.X), 1))
    v = np.append(place.theta[joint.n_mean :], np.log(tau))
    return np.exp(np.clip(outputs(joint.noise_network, v, posterior.X), *RANGE.log_range))


@pytest.mark.parametrize("name", [*GAUSSIAN, *INDEPENDENT])
@pytest.mark.parametrize("hidden", [(), (3, 2)], ids=str)
def test_likelihood_is_a_multivariate_normal(name, hidden):
    """Up to constants: differences between positions of the same conditions."""
    joint, positions = make_joint(name, hidden, "ard")
    positions[:, joint.dimension :] = positions[0, joint.dimension :]
    posterior, s, gaps = joint.posterior, joint.posterior.sample_weight, []
    for q in positions:
        place = joint.place(q)
        Z = forward(posterior.network, joint.mean_weights(q), posterior.X).inputs[-1]
        alpha = posterior.groups.expand(place.hyper.alpha)
        alpha = posterior.network.layers(alpha)[-1]
        precisions, expected = row_precisions(joint, place), 0.0
        for o in range(posterior.network.n_outputs):
            covariance = Z / alpha[:, o] @ Z.T + np.diag(1.0 / (s * precisions[:, o]))
            expected += multivariate_normal.logpdf(posterior.y[:, o], cov=covariance)
            # a row of weight s has precision s beta; N(.)^s is normalised differently
            expected += 0.5 * np.sum((s - 1.0) * np.log(precisions[:, o] / (2.0 * np.pi)))
        gaps.append(joint.terms(q).data + expected)
    assert np.ptp(gaps) < 1e-9
    if not joint.n_conditions:  # the value itself
        n_outputs = posterior.network.n_outputs
        assert gaps[0] == pytest.approx(0.5 * n_outputs * np.sum(np.log(s)))


def log_densities(joint, q):
    """Of every row given all weights, by SciPy's functions."""
    posterior, y = joint.posterior, joint.posterior.y
    f = outputs(posterior.network, joint.complete_weights(q, []), posterior.X)
    if posterior.likelihood.n_levels:
        return norm.logpdf(y, f, row_precisions(joint, joint.place(q)) ** -0.5).sum(axis=1)
    if not posterior.likelihood.classes:
        return (y * f - posterior.known * np.exp(f))[:, 0]
    if f.shape[1] == 1:
        return np.log(np.where(y == 1, expit(f), expit(-f)))[:, 0]
    return np.sum(y * log_softmax(f, axis=1), axis=1)


@pytest.mark.parametrize("name", [*LIKELIHOODS, *INDEPENDENT])
@each_depth
def test_given_all_weights(name, hidden):
    joint, positions = make_joint(name, hidden, integrate=False)
    positions[:, joint.dimension :] = positions[0, joint.dimension :]
    weight = joint.posterior.sample_weight
    gaps = [joint.terms(q).data + weight @ log_densities(joint, q) for q in positions]
    assert np.ptp(gaps) < 1e-9
    assert joint.n_conditions or abs(gaps[0]) < 1e-9


@pytest.mark.parametrize("name", ["input_dependent", "input_dependent_two"])
@each_way
@each_depth
def test_curvature_of_the_noise_network(name, integrate, hidden):
    """What the log precisions' Jacobian makes of information s/2 per row and output."""
    joint, positions = make_joint(name, hidden, integrate=integrate)
    s, m, n = joint.posterior.sample_weight, joint.n_mean, joint.n_sampled
    for q in positions:
        h = lambda q: np.log(row_precisions(joint, joint.place(q)))  # noqa: E731
        J = difference(h, q)
        expected = 0.5 * np.einsum("n,noi,noj->ij", s, J, J)
        matrix = joint.curvature(q)
        own = matrix[m:n, m:n] - np.diag(joint.place(q).share[joint._labels[m:]])
        assert_near(own, expected[m:n, m:n], 1e-6)
        assert np.min(np.linalg.eigvalsh(matrix)) > 0.0


@pytest.mark.parametrize("name", MEASURED)
def test_curvature_of_levels_beside_errors(name):
    """Information ``1/2 s (d ln precision)^2`` of every row, and the logistic map's own part."""
    joint, positions = make_joint(name)
    s, eta = joint.posterior.sample_weight, slice(joint.n_sampled + joint.n_alpha, None)
    for q in positions:
        J = difference(lambda q: np.log(row_precisions(joint, joint.place(q))), q)[..., eta]
        own = np.diag(0.5 * np.cosh(0.5 * q[eta]) ** -2)
        expected = 0.5 * np.einsum("n,noi,noj->ij", s, J, J) + own
        assert_near(np.diag(joint.curvature(q)[eta, eta]), np.diag(expected), 1e-6)


# --- conditions of Student-t noise ---------------------------------------------------------------


@pytest.mark.parametrize("fixed", [True, False])
def test_misfit_of_student_t(fixed):
    joint, positions = make_joint("student_t", fixed=fixed)
    posterior = joint.posterior
    for q, nu in zip(positions, DEGREES, strict=True):
        f = outputs(posterior.network, joint.complete_weights(q), posterior.X)
        beta = joint.place(q).hyper.beta
        if fixed:  # the variance is, not the scale
            variance = nu / (nu - 2.0) / beta
            given = posterior.likelihood.variance_factor / joint.fixed.beta
            np.testing.assert_allclose(variance, given)
        rows = t.logpdf(posterior.y, nu, f, beta**-0.5)[:, 0]
        assert joint.misfit(q) == pytest.approx(-posterior.sample_weight @ rows)


def test_factors_and_degrees_of_freedom_given_the_weights():
    """Weight 3 is three rows, each with a factor of its own; the degrees follow the likelihood."""
    joint, positions = make_joint("student_t", n=4)
    times, m = np.array([1, 3, 1, 2]), 4000
    rows = np.repeat(np.arange(4), times)
    f = outputs(joint.posterior.network, joint.complete_weights(positions[0]), joint.posterior.X)
    sd = joint.place(positions[0]).hyper.beta ** -0.5
    posterior, d = (
        replace(joint.posterior, y=f + sd * [[0.3], [-1.0], [3.0], [0.1]]),
        joint.dimension,
    )
    joint = replace(joint, posterior=posterior)
    weighted = replace(joint, posterior=replace(posterior, sample_weight=times.astype(float)))
    again = replace(
        posterior, X=posterior.X[rows], y=posterior.y[rows], sample_weight=np.ones(len(rows))
    )
    repeated = replace(joint, posterior=again)
    rng = np.random.default_rng(0)
    q = positions[0]
    longer = np.concatenate([q[:d], q[d : d + 4][rows], q[d + 4 :]])
    drawn = weighted.renewed(np.tile(q, (m, 1)), [rng] * m, keep_outputs=True)
    other = repeated.renewed(np.tile(longer, (m, 1)), [rng] * m, keep_outputs=True)
    sums = np.array([other[:, d : d + 7][:, rows == i].sum(axis=1) for i in range(4)]).T
    for i in range(4):
        assert ks_2samp(times[i] * drawn[:, d + i], sums[:, i]).pvalue > 1e-3
    values = []
    for nu in DEGREES:
        there = q.copy()
        there[d + 4] = nu
        values.append(np.exp(-weighted.misfit(there)))
    share = np.array(values) / np.sum(values)
    found = np.array([np.mean(drawn[:, d + 4] == nu) for nu in DEGREES])
    assert np.all(np.abs(found - share) < 4.0 * np.sqrt(share * (1.0 - share) / m))
    assert np.min(share) > 0.02
    np.testing.assert_array_equal(drawn[:, d + 5 :], np.tile(q[d + 5 :], (m, 1)))  # outputs


# --- correlations of outputs ----------------------------------------------------------------------


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


def noise_of(joint, place):
    """Covariance of the noise at one position."""
    n_outputs = joint.posterior.network.n_outputs
    R, _ = correlation_matrix(place.theta[joint.n_mean : joint.n_sampled], n_outputs)
    sd = joint.posterior.likelihood.noise_sd(place.hyper.beta)
    return sd[:, None] * R * sd


@each_correlated
@each_depth
def test_correlated_likelihood_is_a_multivariate_normal(name, hidden):
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


@each_correlated
@each_depth
def test_curvature_of_correlations(name, hidden):
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
