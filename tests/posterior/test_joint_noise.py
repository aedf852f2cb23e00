"""Joint posteriors with noise of other laws, and with measurement errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from scipy.stats import ks_2samp, multivariate_normal, norm, t

from skbayesnn.network import forward, outputs
from tests.posterior.joints import DEGREES, INDEPENDENT, MEASURED, RANGE, make_joint
from tests.tools import LIKELIHOODS, assert_near, difference

GAUSSIAN = [name for name in LIKELIHOODS if name.startswith("gaussian")]
each_depth = pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
each_way = pytest.mark.parametrize("integrate", [True, False], ids=["integrated", "all"])


def row_precisions(joint, place):
    """Noise precision of every row and output at one position, ``(n, n_outputs)``."""
    posterior = joint.posterior
    tau = posterior.likelihood.precisions(place.hyper.beta)
    if posterior.known is not None:
        return 1.0 / (1.0 / tau + posterior.known)
    factors = np.ones((len(posterior.X), 1))
    if joint.n_conditions:
        factors = place.conditions[: len(posterior.X), None]
    if joint.noise_network is None:
        return factors * tau
    v = np.append(place.theta[joint.n_mean :], np.log(tau))
    h = np.clip(outputs(joint.noise_network, v, posterior.X), *RANGE.log_range)
    return factors * np.exp(h)


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
    """Information s/2 per row and output, by the Jacobian of the log precisions."""
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


def test_misfit_of_student_t_noise_that_depends_on_the_inputs():
    joint, positions = make_joint("input_dependent_student_t")
    posterior = joint.posterior
    for q, nu in zip(positions, DEGREES, strict=True):
        f = outputs(posterior.network, joint.complete_weights(q), posterior.X)
        scale = np.exp(-0.5 * joint.noise_functions(joint.noise_state(q), posterior.X))
        rows = t.logpdf(posterior.y, nu, f, scale)[:, 0]
        assert joint.misfit(q) == pytest.approx(-posterior.sample_weight @ rows)


@pytest.mark.parametrize("name", ["student_t", "input_dependent_student_t"])
def test_factors_and_degrees_of_freedom_given_the_weights(name):
    """Weight 3 is three rows, each with a factor of its own; the degrees follow the likelihood."""
    joint, positions = make_joint(name, n=4)
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
