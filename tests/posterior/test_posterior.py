from dataclasses import replace

import numpy as np
import pytest

from skbayesnn.network import outputs
from tests.tools import (
    ALL_LIKELIHOODS,
    assert_near,
    difference,
    make_likelihood,
    make_problem,
    set_block_doubles,
)

each_likelihood = pytest.mark.parametrize("name", [*ALL_LIKELIHOODS, "rows", "squares"])
each_depth = pytest.mark.parametrize("hidden", [(), (3, 2, 3)], ids=str)
each_layout = pytest.mark.parametrize(("lead", "output_bias"), [((2,), True), ((), False)], ids=str)


def log_prior(posterior, theta, alpha):
    """Without its normaliser."""
    return -0.5 * np.sum(alpha[posterior.groups.labels] * theta**2)


@each_likelihood
@each_depth
def test_energies(name, hidden):
    posterior, theta, hyper = make_problem(name, hidden, prior="ard")
    energies = posterior.energies(theta, hyper.beta)
    f = outputs(posterior.network, theta, posterior.X)
    misfit = posterior.likelihood.misfit(f, posterior.targets(), hyper.beta)
    np.testing.assert_allclose(energies.misfit, misfit.value, rtol=1e-13)
    np.testing.assert_allclose(energies.errors, misfit.errors, rtol=1e-13)
    members = [theta[posterior.groups.labels == c] for c in range(len(posterior.groups.names))]
    np.testing.assert_allclose(energies.weights, [0.5 * w @ w for w in members], rtol=1e-13)
    both, _ = posterior.energies_and_gradient(theta, hyper)
    np.testing.assert_allclose(np.hstack(both), np.hstack(energies), rtol=1e-13)
    total = misfit.value - log_prior(posterior, theta, hyper.alpha)
    np.testing.assert_allclose(energies.total(hyper), total, rtol=1e-13)


@each_likelihood
@each_depth
@pytest.mark.parametrize(
    ("prior", "lead", "output_bias"), [("layer", (2,), True), ("matrix", (), False)], ids=str
)
def test_gradient_and_hessian(name, hidden, prior, lead, output_bias):
    options = {"prior": prior, "lead": lead, "output_bias": output_bias}
    posterior, theta, hyper = make_problem(name, hidden, **options)
    gradient = posterior.energies_and_gradient(theta, hyper)[1]
    A = posterior.hessian(theta, hyper)
    for i in np.ndindex(lead):
        own = hyper._make(v[i] for v in hyper)
        energy = difference(lambda w, h=own: posterior.energies(w, h.beta).total(h), theta[i])
        assert_near(gradient[i], energy)
        assert_near(
            A[i], difference(lambda w, h=own: posterior.energies_and_gradient(w, h)[1], theta[i])
        )
    energies, *derivatives = posterior.expansion(theta, hyper, exact=True)
    assert_near(derivatives[0], gradient, 1e-13)
    assert_near(derivatives[1], A, 1e-13)
    pairs = zip(energies, posterior.energies(theta, hyper.beta), strict=True)
    for field, expected in pairs:
        assert_near(field, expected, 1e-13)


@each_likelihood
@each_depth
@each_layout
def test_gauss_newton(name, hidden, lead, output_bias):
    posterior, theta, hyper = make_problem(name, hidden, lead=lead, output_bias=output_bias)
    B = posterior.data_expansion(theta, hyper.beta, exact=False)[2]
    likelihood, X, targets = posterior.likelihood, posterior.X, posterior.targets()
    for i in np.ndindex(lead):
        f = outputs(posterior.network, theta[i], X)
        J = difference(lambda w: outputs(posterior.network, w, X), theta[i])
        _, curvature = likelihood.derivatives(f, targets, hyper.beta[i], exact=False)
        if curvature.ndim == 2:
            curvature = curvature[..., None] * np.eye(f.shape[1])
        assert_near(B[i], np.einsum("noi,nop,npj->ij", J, curvature, J))
    S = np.concatenate(list(posterior.weighted_jacobians(theta, hyper)), axis=-2)
    assert S.shape == (*lead, targets.y.size, theta.shape[-1])
    assert_near(np.swapaxes(S, -1, -2) @ S, B, 1e-12)

    alpha = posterior.groups.expand(hyper.alpha)
    A = B + alpha[..., None] * np.eye(theta.shape[-1])
    assert_near(posterior.hessian(theta, hyper, exact=False), A, 1e-13)


@pytest.mark.parametrize(
    "name", [*(name for name in ALL_LIKELIHOODS if make_likelihood(name)[0].n_levels), "rows"]
)
def test_noise_levels(name):
    posterior, theta, hyper = make_problem(name)
    likelihood, beta = posterior.likelihood, hyper.beta

    def minus_log_likelihood(x):
        normaliser = likelihood.log_normaliser(np.exp(x), posterior.n_rows)
        return posterior.energies(theta, np.exp(x)).misfit - normaliser

    def slope(x):
        errors = posterior.energies(theta, np.exp(x)).errors
        return np.exp(x) * errors - 0.5 * posterior.noise_counts(np.exp(x))

    assert_near(slope(np.log(beta)), difference(minus_log_likelihood, np.log(beta)))
    sizes = np.bincount(likelihood.levels) * np.sum(posterior.sample_weight)
    np.testing.assert_allclose(posterior.level_counts, sizes, rtol=1e-13)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "squares"])
def test_without_noise_level(name):
    posterior, theta, hyper = make_problem(name)
    assert posterior.level_counts.shape == (0,)
    np.testing.assert_array_equal(posterior.with_best_outputs(theta, hyper), theta)


@pytest.mark.parametrize("name", ["student_t", "student_t_shared"])
@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_output_layer_by_expectation_maximisation(name, lead):
    """Each step lowers the energy, and the steps end where the output layer is at its best."""
    posterior, theta, hyper = make_problem(name, lead=lead)
    energy = posterior.energies(theta, hyper.beta).total(hyper)
    last = posterior.network.slices[-1]
    for _ in range(200):
        theta = posterior.with_best_outputs(theta, hyper)
        lower = posterior.energies(theta, hyper.beta).total(hyper)
        assert np.all(lower <= energy + 1e-12)
        energy = lower
    assert np.max(np.abs(posterior.energies_and_gradient(theta, hyper)[1][..., last])) < 1e-6


@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_best_outputs_of_unequal_rows(lead):
    """Variable projection: the output layer's gradient vanishes after one step."""
    posterior, theta, hyper = make_problem("gaussian", lead=lead)
    rng = np.random.default_rng(1)
    posterior = replace(posterior, factors=np.exp(rng.standard_normal(posterior.y.shape)))
    best = posterior.with_best_outputs(theta, hyper)
    last = posterior.network.slices[-1]
    assert np.max(np.abs(posterior.energies_and_gradient(best, hyper)[1][..., last])) < 1e-11
    np.testing.assert_array_equal(best[..., : last.start], theta[..., : last.start])
    # equal rows take a way of their own
    assert_near(
        replace(posterior, factors=np.ones(posterior.y.shape)).with_best_outputs(theta, hyper),
        replace(posterior, factors=None).with_best_outputs(theta, hyper),
        1e-12,
    )


@each_likelihood
def test_sample_weight_is_repetition(name):
    posterior, theta, hyper = make_problem(name, (3, 2))
    times = np.array([1, 2, 3, 1, 1, 4, 2])
    weighted = replace(posterior, sample_weight=times.astype(float))
    repeated = posterior.of_rows(np.repeat(np.arange(7), times))
    repeated = replace(repeated, sample_weight=np.ones(times.sum()))
    assert weighted.n_rows == repeated.n_rows == 14.0
    for mine, other in zip(
        weighted.energies(theta, hyper.beta), repeated.energies(theta, hyper.beta), strict=True
    ):
        assert_near(mine, other, 1e-13)
    assert_near(
        weighted.energies_and_gradient(theta, hyper)[1],
        repeated.energies_and_gradient(theta, hyper)[1],
        1e-13,
    )
    assert_near(weighted.hessian(theta, hyper), repeated.hessian(theta, hyper), 1e-13)


def everything(posterior, theta, hyper):
    energies = posterior.energies(theta, hyper.beta)
    of_expansion, gradient, _ = posterior.expansion(theta, hyper)
    return {
        **energies._asdict(),
        "total": energies.total(hyper),
        "total_of_expansion": of_expansion.total(hyper),
        "gradient": posterior.energies_and_gradient(theta, hyper)[1],
        "hessian": posterior.hessian(theta, hyper),
        "gauss_newton": posterior.hessian(theta, hyper, exact=False),
        "gradient_of_expansion": gradient,
        "data_hessian": posterior.data_expansion(theta, hyper.beta, exact=True)[2],
        "weighted_jacobian": np.concatenate(
            list(posterior.weighted_jacobians(theta, hyper)), axis=-2
        ),
        "best_outputs": posterior.with_best_outputs(theta, hyper),
    }


@each_likelihood
@each_depth
def test_small_blocks_change_nothing(monkeypatch, name, hidden):
    problem = make_problem(name, hidden, lead=(2,), n=23)
    whole = everything(*problem)
    f = outputs(problem[0].network, problem[1], problem[0].X)
    set_block_doubles(monkeypatch, 1)
    parts = everything(*problem)
    for values in (whole, parts):  # of this root only the square is accurate to rounding
        S = values["weighted_jacobian"]
        values["weighted_jacobian"] = np.swapaxes(S, -1, -2) @ S
    for key, value in parts.items():  # best outputs solve a system, which has a condition
        assert_near(value, whole[key], 1e-11 if key == "best_outputs" else 1e-13)
    assert_near(outputs(problem[0].network, problem[1], problem[0].X), f, 1e-13)


@each_likelihood
@pytest.mark.parametrize(("hidden", "doubles"), [((), 1000), ((7, 5), 2**20)])
def test_last_bits_do_not_depend_on_the_number_of_networks(monkeypatch, name, hidden, doubles):
    set_block_doubles(monkeypatch, doubles)
    posterior, theta, hyper = make_problem(name, hidden, lead=(5,), n=41)
    five = everything(posterior, theta, hyper)
    two = everything(posterior, theta[1:3], hyper._make(v[1:3] for v in hyper))
    for i in range(5):
        for key, value in everything(posterior, theta[i], hyper._make(v[i] for v in hyper)).items():
            np.testing.assert_array_equal(five[key][i], value, err_msg=key)
            if i in (1, 2):
                np.testing.assert_array_equal(two[key][i - 1], value, err_msg=key)


@each_likelihood
@each_depth
def test_kronecker_factors_are_exact_for_a_single_row(name, hidden):
    posterior, theta, hyper = make_problem(name, hidden, prior="ard")
    posterior = posterior.of_rows(slice(1))
    dense = posterior.hessian(theta, hyper, exact=False)
    factors = posterior.kronecker_factors(theta, hyper)
    for part, (D, F, G) in zip(posterior.network.slices, factors, strict=True):
        block = np.kron(np.diag(D), np.eye(len(G))) + np.kron(F, G)
        np.testing.assert_allclose(block, dense[part, part], rtol=1e-10, atol=1e-12)


@each_likelihood
def test_kronecker_factors_add_up_over_rows(name, monkeypatch):
    posterior, theta, hyper = make_problem(name, (4, 3))
    whole = posterior.kronecker_factors(theta, hyper)
    expected = [(0.0, 0.0)] * len(whole)
    for row in range(len(posterior.X)):
        one = posterior.of_rows([row]).kronecker_factors(theta, hyper)
        share = posterior.sample_weight[row] / posterior.n_rows
        expected = [(F + share * f, G + g) for (F, G), (_, f, g) in zip(expected, one, strict=True)]
    for (_, *factors), sums in zip(whole, expected, strict=True):
        for factor, total in zip(factors, sums, strict=True):
            np.testing.assert_allclose(factor, total, rtol=1e-10, atol=1e-14)
    set_block_doubles(monkeypatch, 20)
    for (D, *factors), (same, *blocked) in zip(
        whole, posterior.kronecker_factors(theta, hyper), strict=True
    ):
        np.testing.assert_array_equal(D, same)
        for factor, other in zip(factors, blocked, strict=True):
            np.testing.assert_allclose(other, factor, rtol=1e-10, atol=1e-14)
