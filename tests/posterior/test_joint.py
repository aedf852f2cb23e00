from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from scipy.stats import kstest, norm

from skbayesnn.network import forward, outputs
from skbayesnn.posterior import Hyperparameters, LogUniform
from tests.posterior.joints import ALL_JOINTS, INDEPENDENT, RANGE, make_joint
from tests.tools import LIKELIHOODS, assert_near, difference

DEPTHS = [(), (3, 2)]
REGRESSION = [name for name in LIKELIHOODS if name.startswith("gaussian")]

each_likelihood = pytest.mark.parametrize("name", LIKELIHOODS)
with_or_without_levels = pytest.mark.parametrize("name", ["gaussian_shared", "bernoulli"])
each_depth = pytest.mark.parametrize("hidden", DEPTHS, ids=lambda hidden: f"depth{len(hidden)}")
each_pair = pytest.mark.parametrize(("name", "integrate"), list(product(ALL_JOINTS, [True, False])))
each_way = pytest.mark.parametrize("integrate", [True, False], ids=["integrated", "all"])


def with_data(joint, y=None, sample_weight=None):
    y = joint.posterior.y if y is None else y
    weight = joint.posterior.sample_weight if sample_weight is None else sample_weight
    return replace(joint, posterior=replace(joint.posterior, y=y, sample_weight=weight))


def log_precisions(joint, hyper):
    free = joint.free
    return np.log(np.concatenate([hyper.alpha[..., free.alpha], hyper.beta[..., free.beta]], -1))


# --- the energy ----------------------------------------------------------------------------------


@each_pair
@each_depth
@pytest.mark.parametrize(
    ("prior", "known", "fixed"), [("ard", True, True), ("matrix", False, False)], ids=str
)
def test_gradients(name, hidden, prior, integrate, known, fixed):
    joint, q = make_joint(name, hidden, prior, integrate, known, fixed)
    q, d = q[0], joint.dimension
    terms = joint.terms(q)
    if d:

        def both(moving):
            return np.stack(joint.terms(np.append(moving, q[d:]))[::2])

        of_prior, of_data = difference(both, q[:d])
        assert_near(terms.prior_gradient, of_prior, 1e-6)
        assert_near(terms.data_gradient, of_data, 1e-6)
    value, gradient = joint(q)
    assert gradient.shape == (d,)
    tol = 1e-7 if integrate else 1e-11  # where the energy is compiled
    assert_near(value, terms.prior + terms.data, tol)
    assert_near(gradient, terms.prior_gradient + terms.data_gradient, tol)
    assert np.all(np.linalg.eigvalsh(joint.curvature(q)) > 0.0)


@pytest.mark.parametrize("name", [*REGRESSION, *INDEPENDENT])
def test_gradients_with_more_units_than_rows(name):
    joint, q = make_joint(name, (9,), "ard")
    q, d = q[0], joint.dimension
    slopes = difference(lambda moving: joint.terms(np.append(moving, q[d:])).data, q[:d])
    assert_near(joint.terms(q).data_gradient, slopes, 1e-6)


@with_or_without_levels
@each_depth
@pytest.mark.parametrize("fixed", [True, False], ids=["some", "free"])
def test_prior_by_change_of_variables(name, hidden, fixed):
    # p(q) = p(w | alpha) p(ln alpha) |d (w, ln alpha) / dq|
    joint, q = make_joint(name, hidden, "ard", fixed=fixed)
    q = q[0]

    def natural(q):
        place = joint.place(q)
        return np.concatenate([place.theta, log_precisions(joint, place.hyper)])

    place = joint.place(q)
    alpha = place.hyper.alpha[joint.posterior.groups.labels[: joint.n_sampled]]
    expected = np.sum(norm.logpdf(place.theta, scale=alpha**-0.5))
    expected -= np.sum(joint.free.mask) * np.log(2.0 * np.log(20.0 / 0.05))
    expected += np.linalg.slogdet(difference(natural, q))[1]
    assert joint.terms(q).prior == pytest.approx(-expected, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(
        place.hyper.alpha[~joint.free.alpha], joint.fixed.alpha[~joint.free.alpha]
    )
    np.testing.assert_array_equal(
        place.hyper.beta[~joint.free.beta], joint.fixed.beta[~joint.free.beta]
    )


@each_likelihood
@each_way
@pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
def test_weight_two_is_a_repeated_row(name, hidden, integrate):
    joint, q = make_joint(name, hidden, integrate=integrate)
    posterior = joint.posterior
    times = np.array([1, 2, 1, 3, 1, 1, 2])
    weighted = with_data(joint, sample_weight=times.astype(float))
    rows = np.repeat(np.arange(7), times)
    again = replace(posterior.of_rows(rows), sample_weight=np.ones(len(rows)))
    repeated = replace(joint, posterior=again)
    for a, b in zip(weighted.terms(q), repeated.terms(q), strict=True):
        assert_near(a, b, 1e-12)
    assert_near(weighted.curvature(q), repeated.curvature(q), 1e-12)
    assert_near(weighted.mean_weights(q), repeated.mean_weights(q), 1e-12)


@each_pair
@pytest.mark.parametrize("hidden", [(), (9, 5)], ids=str)
def test_chains_do_not_feel_each_other_in_the_last_bit(name, hidden, integrate):
    joint, q = make_joint(name, hidden, integrate=integrate, n=40, size=7)

    def evaluate(members):
        rngs, part = [np.random.default_rng(i) for i in members], q[members]
        weights, renewed = joint.complete_weights(part, rngs), joint.renewed(part, rngs)
        return *joint.terms(part), joint.curvature(part), weights, renewed

    together = evaluate([0, 1, 2, 3, 4, 5, 6])
    for members in ([0], [3], [6, 2], [1, 5, 4, 0]):
        for own, field in zip(evaluate(members), together, strict=True):
            assert own.tobytes() == field[members].tobytes()


# --- the output layer ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSION)
def test_output_layer_given_the_rest(name):
    joint, q = make_joint(name, (2,), "ard")
    posterior, n = joint.posterior, 20_000
    q = q[0]
    hyper, mean = joint.place(q).hyper, joint.mean_weights(q)
    hidden, last = slice(0, joint.n_sampled), posterior.network.slices[-1]
    np.testing.assert_array_equal(mean[hidden], joint.place(q).theta)
    # the optimum of the energy given the other weights, and its curvature there
    assert_near(
        posterior.energies_and_gradient(mean, hyper)[1][last],
        np.zeros(last.stop - last.start),
        1e-9,
    )
    covariance = np.linalg.inv(posterior.hessian(mean, hyper)[last, last])
    draws = joint.complete_weights(np.tile(q, (n, 1)), [np.random.default_rng(3)] * n)
    np.testing.assert_array_equal(draws[:, hidden], np.tile(mean[hidden], (n, 1)))
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean)[:, last].T).T
    assert np.all(np.abs(white.mean(axis=0)) < 4.0 / np.sqrt(n))
    products = white[:, :, None] * white[:, None, :]
    error = np.std(products, axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - np.eye(white.shape[1])) < 4.0 * error)
    assert kstest(white.ravel(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("name", [*REGRESSION, *INDEPENDENT])
@pytest.mark.parametrize("hidden", [*DEPTHS, (9,)], ids=str)  # the last: more units than rows
def test_outputs_given_the_other_rows(name, hidden):
    """The density of one unit of weight is the ratio of the likelihoods with and without it."""
    joint, q = make_joint(name, hidden)
    weight = 1.0 + joint.posterior.sample_weight
    joint = with_data(joint, sample_weight=weight)
    mean, variance = joint.left_out_outputs(q)
    rows = joint._rows(joint.place(q))
    factors = 1.0 if rows.factors is None else rows.factors
    noise = 1.0 / (rows.precision[..., None, :] * factors)
    found = norm.logpdf(joint.posterior.y, mean, np.sqrt(variance + noise)).sum(axis=-1)
    if joint.n_conditions:  # the energy is that given the factors, without their powers
        given = joint.place(q).conditions[:, : len(weight), None]
        found = found - 0.5 * np.sum(np.log(given) + 0.0 * mean, axis=-1)
    for i in range(len(weight)):
        fewer = weight.copy()
        fewer[i] -= 1.0
        without = with_data(joint, sample_weight=fewer)
        assert_near(without.terms(q).data - joint.terms(q).data, found[:, i], 1e-7)


def test_left_out_outputs_of_interpolated_rows():
    """Where rounding has decided the leverages, the variance is at most that under the prior."""
    joint, q = make_joint("gaussian", n=3, prior="single", known=False)
    q[:, -1] = 25.0  # hardly any noise
    mean, variance = joint.left_out_outputs(q)
    prior = np.sum(joint._features(joint.place(q).theta, order=0).inputs[-1] ** 2, axis=-1)
    sd = joint._regression(joint.place(q))[2][:, 0, 0]
    assert np.all(variance[..., 0] <= 1.001 * prior * sd[:, None] ** 2)
    assert np.all(np.isfinite(mean))


def test_no_outputs_given_the_other_rows():
    joint, q = make_joint("gaussian", integrate=False)
    assert joint.left_out_outputs(q) is None
    assert joint.output_layers(q) is None


# --- positions -----------------------------------------------------------------------------------


@with_or_without_levels
@pytest.mark.parametrize("prior", ["ard", "matrix"])
@each_way
@pytest.mark.parametrize("fixed", [True, False], ids=["some", "free"])
def test_position_and_place_are_inverse(name, prior, integrate, fixed):
    joint, q = make_joint(name, prior=prior, integrate=integrate, fixed=fixed)
    q = 2.0 * q
    place = joint.place(q)
    theta = np.zeros((3, joint.posterior.network.n_weights))
    theta[:, : joint.n_sampled] = place.theta
    assert_near(joint.position(theta, place.hyper), q, 1e-9)
    rng = np.random.default_rng(8)
    theta = rng.standard_normal(theta.shape)
    alpha = np.exp(rng.uniform(-4, 4, place.hyper.alpha.shape))
    beta = np.exp(rng.uniform(-4, 4, place.hyper.beta.shape))
    alpha[:, ~joint.free.alpha] = joint.fixed.alpha[~joint.free.alpha]
    beta[:, ~joint.free.beta] = joint.fixed.beta[~joint.free.beta]
    place = joint.place(joint.position(theta, Hyperparameters(alpha, beta)))
    assert_near(place.theta, theta[:, : joint.n_sampled], 1e-10)
    np.testing.assert_allclose(place.hyper.alpha, alpha, rtol=1e-9)
    np.testing.assert_allclose(place.hyper.beta, beta, rtol=1e-9)


def test_positions_at_a_bound():
    joint, _ = make_joint("gaussian", integrate=False)
    theta = np.ones((2, joint.posterior.network.n_weights))
    ends = np.exp(RANGE.log_range)
    n_alpha, n_beta = len(joint.free.alpha), len(joint.free.beta)
    for factor in (1.0, 1e3):  # at it, and beyond it
        alpha = np.repeat(ends * [1.0 / factor, factor], n_alpha).reshape(2, -1)
        beta = np.repeat(ends * [1.0 / factor, factor], n_beta).reshape(2, -1)
        q = joint.position(theta, Hyperparameters(alpha, beta))
        assert np.all(np.isfinite(q))
        value, gradient = joint(q)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(gradient))
        place = joint.place(q)
        np.testing.assert_allclose(
            np.log(place.hyper.alpha),
            np.log(ends)[:, None] * np.ones(n_alpha),
            atol=0.1,  # just inside
        )


# --- the prior -----------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_draws_from_the_prior(integrate, known):
    joint, _ = make_joint("gaussian", (2,), "layer", integrate, known, fixed=True)
    rng = np.random.default_rng(0)
    q = np.stack([joint.draw_prior(rng) for _ in range(2000)])
    place = joint.place(q)
    low, high = RANGE.log_range
    logs = (log_precisions(joint, place.hyper) - low) / (high - low)
    labels = joint.posterior.groups.labels[: joint.n_sampled]
    scaled = place.theta * np.sqrt(place.hyper.alpha[:, labels])
    for u in logs.T:
        assert kstest(u, "uniform").pvalue > 1e-3
    for z in scaled.T:
        assert kstest(z, "norm").pvalue > 1e-3
    both = np.concatenate([logs, scaled, scaled**2], axis=1)
    correlation = np.corrcoef(both, rowvar=False) - np.eye(both.shape[1])
    assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(len(q))


# --- rescaling -----------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("fixed", [True, False], ids=["some", "free"])
def test_rescaled(integrate, known, fixed):
    joint, q = make_joint("gaussian", (2,), "ard", integrate, known, fixed)
    shift = 0.5 * np.random.default_rng(2).standard_normal((3, len(joint.free.alpha)))
    moved, log_volume = joint.rescaled(q, shift)
    before, after = joint.place(q), joint.place(moved)
    expected = np.log(before.hyper.alpha) + np.where(joint.free.alpha, shift, 0.0)
    assert_near(np.log(after.hyper.alpha), expected, 1e-10)
    np.testing.assert_array_equal(after.hyper.beta, before.hyper.beta)
    labels = joint.posterior.groups.labels[: joint.n_sampled]
    for place in (before, after):
        place.theta[...] *= np.sqrt(place.hyper.alpha[:, labels])
    assert_near(after.theta, before.theta, 1e-10)
    for i in range(3):
        J = difference(lambda x, i=i: joint.rescaled(x, shift[i])[0], q[i])
        assert log_volume[i] == pytest.approx(np.linalg.slogdet(J)[1], rel=1e-8, abs=1e-8)
    back, other = joint.rescaled(moved, -shift)
    assert_near(back, q, 1e-9)
    assert_near(other, -log_volume, 1e-9)


def test_rescaled_beyond_the_bounds():
    joint, q = make_joint("gaussian", (2,))
    shift = np.zeros((3, len(joint.free.alpha)))
    shift[1, 0], shift[2, 1] = 40.0, -40.0
    moved, log_volume = joint.rescaled(q, shift)
    assert np.all(np.isfinite(moved))
    np.testing.assert_array_equal(np.isneginf(log_volume), [False, True, True])
    assert_near(moved[0], q[0], 1e-10)


# --- curvature -----------------------------------------------------------------------------------


def expected_hessian(joint, q):
    """Mean of the exact Hessian over targets given the position, by targets of the same moments."""
    posterior, place = joint.posterior, joint.place(q)
    f = outputs(posterior.network, place.theta, posterior.X)
    if posterior.likelihood.n_levels:
        sd = np.broadcast_to(posterior.likelihood.precisions(place.hyper.beta) ** -0.5, f.shape)
        targets = [f + sd, f - sd]
    elif not posterior.likelihood.classes:
        targets = [posterior.known * np.exp(f)]
    elif f.shape[1] == 1:
        targets = [expit(f)]
    else:
        targets = [np.exp(log_softmax(f, axis=1))]
    parts = [with_data(joint, y) for y in targets]
    return np.mean([difference(lambda q, p=p: p(q)[1], q) for p in parts], axis=0)


@each_likelihood
@each_depth
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_curvature_is_the_expected_hessian(name, hidden, known):
    joint, q = make_joint(name, hidden, "ard", integrate=False, known=known)
    eta = q[0, joint.n_sampled :]
    v = joint.place(q[0]).share[joint.posterior.groups.labels] ** -0.5  # where v^2 has its mean
    both = [np.concatenate([sign * v, eta]) for sign in (1.0, -1.0)]
    actual = np.mean([joint.curvature(q) for q in both], axis=0)
    expected = np.mean([expected_hessian(joint, q) for q in both], axis=0)
    # of the map from eta to ln alpha only the logistic part is counted
    diagonal = np.arange(joint.n_sampled, joint.dimension)
    bend = np.diagonal(difference(lambda eta: joint.precision_map.derivatives(eta)[1], eta))
    logistic = 2.0 * expit(eta) * expit(-eta)
    expected[diagonal, diagonal] += bend + logistic
    beta = diagonal[np.sum(joint.free.alpha) :]
    np.testing.assert_allclose((bend + logistic)[np.isin(diagonal, beta)], 0.0, atol=1e-9)
    assert_near(actual, expected, 1e-7)


@pytest.mark.parametrize("name", REGRESSION)
@pytest.mark.parametrize("hidden", [(3,), (3, 2)], ids=str)
def test_curvature_without_output_layer_is_a_schur_complement(name, hidden):
    joint, q = make_joint(name, hidden, fixed=True)  # the output layer's precision
    information = joint.information * np.array([1.0] * (len(joint.information) - 1) + [0.0])
    joint = replace(joint, information=information)
    complete = replace(joint, integrate_outputs=False)
    m = joint.n_sampled
    for q_i in q:
        whole = complete.position(joint.mean_weights(q_i), joint.place(q_i).hyper)
        matrix = complete.curvature(whole)
        out = np.arange(m, complete.n_sampled)
        n_beta = int(np.sum(joint.free.beta))
        kept = np.delete(np.arange(complete.dimension), out)
        cross = matrix[np.ix_(out, kept)]
        expected = matrix[np.ix_(kept, kept)]
        expected -= cross.T @ np.linalg.solve(matrix[np.ix_(out, out)], cross)
        assert_near(cross[:, len(kept) - n_beta :], np.zeros((len(out), n_beta)))
        assert_near(joint.curvature(q_i), expected, 1e-9)


# --- extremes ------------------------------------------------------------------------------------


def marginal_by_singular_values(joint, q):
    """Minus log marginal likelihood, and the covariances of every output's weights.

    Of the weighted features in prior units ``G = (s beta)^(1/2) Z A^(-1/2)``, never squared.
    """
    posterior, hyper = joint.posterior, joint.place(q).hyper
    theta = np.zeros(posterior.network.n_weights)
    theta[: joint.n_sampled] = joint.place(q).theta
    Z = forward(posterior.network, theta, posterior.X).inputs[-1]
    alpha = posterior.groups.expand(hyper.alpha)
    sd = posterior.network.layers(alpha)[-1] ** -0.5  # of the output layer
    value, covariances = -posterior.likelihood.log_normaliser(hyper.beta, posterior.n_rows), []
    for o, beta in enumerate(posterior.likelihood.precisions(hyper.beta)):
        root = np.sqrt(posterior.sample_weight * beta)
        U, S, Vt = np.linalg.svd(root[:, None] * Z * sd[:, o])
        variances, shrinkage = np.ones(len(Vt)), np.ones(len(U))
        variances[: len(S)] = shrinkage[: len(S)] = 1.0 / (1.0 + S**2)
        value += 0.5 * np.sum(shrinkage * (U.T @ (root * posterior.y[:, o])) ** 2)
        value += 0.5 * np.sum(np.log1p(S**2))
        covariances.append((Vt.T * variances) @ Vt * np.outer(sd[:, o], sd[:, o]))
    return value, covariances


@pytest.mark.parametrize(
    ("n", "width", "log_ratio"),
    [
        *((7, 3, ratio) for ratio in (-6, 0, 6, 12)),
        *((60, 20, ratio) for ratio in (-6, 0, 6, 12)),
        *((7, 20, ratio) for ratio in (-6, 0, 5, 10)),
    ],
    ids=str,
)
def test_precisions_many_orders_of_magnitude_apart(n, width, log_ratio):
    # the prior allows 12 orders of magnitude between noise and weights
    joint, _ = make_joint("gaussian", (width,), n=n, hyperpriors=[LogUniform()])
    alpha, beta = np.ones(len(joint.free.alpha)), np.full(2, 10.0 ** (0.4995 * log_ratio))
    alpha[-1] = 10.0 ** (-0.4995 * log_ratio)
    theta = np.random.default_rng(0).standard_normal(joint.posterior.network.n_weights)
    q = joint.position(theta, Hyperparameters(alpha, beta))
    terms = joint.terms(q)
    value, covariances = marginal_by_singular_values(joint, q)
    assert terms.data == pytest.approx(value, rel=1e-9, abs=1e-6)
    assert_near(terms.data_gradient, difference(lambda q: joint.terms(q).data, q), 1e-5)
    # draws are the mean plus a factor of the covariance times normal numbers: read the factor off
    place, (n_outputs, units) = joint.place(q), joint._output_labels.shape
    mean = joint.mean_weights(q)
    columns = [joint._with_outputs(place, np.tile(e, (n_outputs, 1))) - mean for e in np.eye(units)]
    factors = np.array(columns)[:, joint.n_sampled :].reshape(units, units, n_outputs)
    for o, exact in enumerate(covariances):
        assert_near(factors[:, :, o].T @ factors[:, :, o], exact, 1e-5)
    assert np.min(np.linalg.eigvalsh(joint.curvature(q))) > 0.0
