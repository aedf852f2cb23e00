from math import factorial

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import logsumexp

from skbayesnn.inference import _evidence
from skbayesnn.inference._evidence import (
    EvidenceTerms,
    alpha_occam,
    log_evidence_fixed,
    log_occam_gaussian,
    log_occam_profile,
    log_symmetry,
    noise_occam,
    well_determined,
)
from skbayesnn.inference._newton import find_mode
from skbayesnn.inference._training import FreeHyperparameters
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, Posterior, weight_groups

PRIOR = LogUniform()


def linear_model(n=12, n_features=3, noise=0.5, seed=0, levels=(0,)):
    """Linear-Gaussian model with one precision per input; the last input is useless."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    w = rng.standard_normal((n_features, len(levels)))
    w[-1] = 0.0
    y = X @ w + noise * rng.standard_normal((n, len(levels)))
    network = Network((n_features, len(levels)))
    likelihood = Gaussian(np.array(levels), np.ones(len(levels)))
    groups = weight_groups(network, "ard")
    return Posterior(network, likelihood, groups, X, y, np.ones(n))


def exact_evidence(posterior, logs):
    """``log N(y; 0, 1/beta + Phi diag(1/alpha) Phi^T)``, the outputs being independent.

    ``logs`` is ``(..., n_groups + n_levels)``: ``ln alpha``, then ``ln beta``.
    """
    Phi = np.column_stack([posterior.X, np.ones(len(posterior.X))])
    log_alpha, log_beta = np.split(logs, [Phi.shape[1]], axis=-1)
    signal = Phi * np.exp(-log_alpha)[..., None, :] @ Phi.T
    total = 0.0
    for y, level in zip(posterior.y.T, posterior.likelihood.levels, strict=True):
        K = signal + np.exp(-log_beta[..., level])[..., None, None] * np.eye(len(Phi))
        y = np.broadcast_to(y, K.shape[:-1])[..., None]
        squares = np.swapaxes(y, -1, -2) @ np.linalg.solve(K, y)
        total -= 0.5 * (squares[..., 0, 0] + np.linalg.slogdet(2 * np.pi * K)[1])
    return total


def varied(logs, index, values):
    """Copies of ``logs`` in which one entry takes several values."""
    tried = np.tile(logs, (len(values), 1))
    tried[:, index] = values
    return tried


def logs_of(hyper):
    return np.log(np.concatenate(hyper))


def best_hyper(posterior):
    """Coordinate-wise maximum of the exact evidence on a fine grid, inside the prior's range."""
    grid = np.linspace(*PRIOR.log_range, 400)
    n_groups = len(posterior.groups.names)
    logs = np.zeros(n_groups + posterior.likelihood.n_levels)
    for _ in range(4):
        for i in range(len(logs)):
            logs[i] = grid[np.argmax(exact_evidence(posterior, varied(logs, i, grid)))]
    return Hyperparameters(np.exp(logs[:n_groups]), np.exp(logs[n_groups:]))


def brute_force_occam(posterior, hyper, index):
    """``log int P(ln lambda) P(D | lambda) / P(D | lambda_0) d ln lambda``, all else fixed."""
    grid = np.linspace(*PRIOR.log_range, 2001)
    weight = np.full(len(grid), grid[1] - grid[0])
    weight[[0, -1]] *= 0.5
    logs = logs_of(hyper)
    change = exact_evidence(posterior, varied(logs, index, grid)) - exact_evidence(posterior, logs)
    return logsumexp(change, b=weight) + PRIOR.log_density


@pytest.fixture(scope="module", params=[(12, (0,)), (30, (0,)), (8, (0, 1)), (20, (0, 0))], ids=str)
def solved(request):
    n, levels = request.param
    posterior = linear_model(n, levels=levels)
    hyper = best_hyper(posterior)
    mode = find_mode(posterior, np.zeros(posterior.network.n_weights), hyper)
    return posterior, hyper, mode, well_determined(posterior, mode.theta, hyper)


def only(hyper, index):
    """Free hyperparameters: the one numbered ``index``, groups first."""
    mask = np.arange(len(hyper.alpha) + len(hyper.beta)) == index
    return FreeHyperparameters(mask[: len(hyper.alpha)], mask[len(hyper.alpha) :], PRIOR)


def test_fixed_evidence_of_a_linear_model_is_exact(solved):
    posterior, hyper, mode, _ = solved
    value = log_evidence_fixed(posterior, hyper, mode.energies, mode.gaussian.log_det)
    exact = exact_evidence(posterior, logs_of(hyper))
    np.testing.assert_allclose(value, exact, rtol=0, atol=1e-9)


def test_occam_factors_of_weight_precisions(monkeypatch, solved):
    monkeypatch.setattr(_evidence, "GAUSSIAN_FROM", np.inf)
    posterior, hyper, mode, determined = solved
    values = []
    for c in range(len(hyper.alpha)):
        free = only(hyper, c)
        actual = alpha_occam(posterior, mode.theta, hyper, mode.energies, free, determined)
        np.testing.assert_allclose(actual, brute_force_occam(posterior, hyper, c), atol=1e-3)
        values.append(actual)
    assert min(values) < -1.0  # something was measured
    every = FreeHyperparameters(
        np.ones(len(hyper.alpha), bool), np.zeros(len(hyper.beta), bool), PRIOR
    )
    total = alpha_occam(posterior, mode.theta, hyper, mode.energies, every, determined)
    np.testing.assert_allclose(total, sum(values), rtol=1e-12)


def test_occam_factors_of_the_noise(monkeypatch, solved):
    monkeypatch.setattr(_evidence, "GAUSSIAN_FROM", np.inf)
    posterior, hyper, mode, determined = solved
    for level in range(len(hyper.beta)):
        index = len(hyper.alpha) + level
        free = only(hyper, index)
        actual = noise_occam(posterior, mode.theta, hyper, mode.energies, free, determined)
        np.testing.assert_allclose(actual, brute_force_occam(posterior, hyper, index), atol=1e-3)
        assert actual < -1.0


def test_profile_by_its_definition():
    # As its docstring: eigenvalues and components of one group, taken directly from A.
    posterior = linear_model(15)
    hyper = best_hyper(posterior)
    mode = find_mode(posterior, np.zeros(4), hyper)
    inverse_root = np.linalg.inv(np.linalg.cholesky(mode.hessian))
    for c in range(4):
        B = np.diag((posterior.groups.labels == c).astype(float))
        b, vectors = eigh(inverse_root @ B @ inverse_root.T)
        q2 = (vectors.T @ inverse_root @ (B @ mode.theta)) ** 2
        log_alpha, energy = np.log(hyper.alpha[c]), mode.energies.weights[c]
        actual = log_occam_profile(PRIOR, log_alpha, energy, 1, b, q2)
        np.testing.assert_allclose(actual, brute_force_occam(posterior, hyper, c), atol=1e-3)


@pytest.mark.parametrize("degrees", [8.0, 30.0, 200.0])
def test_gaussian_form_is_near_the_profile(degrees):
    # a group of well-determined weights: b = q2 = 0, so the posterior of alpha is a Gamma one
    value = log_occam_profile(PRIOR, 0.0, 0.5 * degrees, degrees, np.zeros(1), np.zeros(1))
    gaussian = log_occam_gaussian(PRIOR, degrees)
    assert abs(value - gaussian) < 1.2 / (6 * degrees)
    assert abs(value - gaussian) > 0.8 / (6 * degrees)


@pytest.mark.parametrize("log_value", [PRIOR.log_range[1], 0.0])
def test_dead_groups_cost_nothing(log_value):
    # the evidence does not depend on the precision of weights that the data do not see
    b = np.full(5, np.exp(-log_value))
    value = log_occam_profile(PRIOR, log_value, 0.0, 5, b, np.zeros(5))
    np.testing.assert_allclose(value, 0.0, atol=2e-5)  # 1 + (lambda - lambda_0) b cancels


def test_occam_factors_are_never_positive(solved):
    posterior, hyper, mode, determined = solved
    for scale in (1e-4, 1.0, 1e4):  # also far from the maximum
        moved = Hyperparameters(PRIOR.clip(hyper.alpha * scale), hyper.beta)
        mode = find_mode(posterior, mode.theta, moved)
        determined = well_determined(posterior, mode.theta, moved)
        for index in range(len(hyper.alpha) + len(hyper.beta)):
            arguments = (posterior, mode.theta, moved, mode.energies, only(hyper, index))
            assert alpha_occam(*arguments, determined) <= 0
            assert noise_occam(*arguments, determined) <= 0
    assert log_occam_gaussian(PRIOR, 1e-9) == 0


def test_fixed_hyperparameters_have_no_occam_factor(solved):
    posterior, hyper, mode, determined = solved
    fixed = FreeHyperparameters(
        np.zeros(len(hyper.alpha), bool), np.zeros(len(hyper.beta), bool), PRIOR
    )
    arguments = (posterior, mode.theta, hyper, mode.energies, fixed, determined)
    assert alpha_occam(*arguments) == 0
    assert noise_occam(*arguments) == 0


def test_well_determined_by_plain_numpy(solved):
    posterior, hyper, mode, determined = solved
    inverse = np.linalg.inv(mode.hessian)  # the model is linear: exact = Gauss-Newton
    labels = posterior.groups.labels
    gamma = [
        np.sum(labels == c) - alpha * np.trace(inverse[np.ix_(labels == c, labels == c)])
        for c, alpha in enumerate(hyper.alpha)
    ]
    np.testing.assert_allclose(determined.gamma, gamma, rtol=1e-7, atol=1e-9)
    units = np.eye(len(hyper.beta))
    noise_gamma = [
        hyper.beta[i] * np.trace(inverse @ posterior.data_hessian(mode.theta, units[i]))
        for i in range(len(units))
    ]
    np.testing.assert_allclose(determined.noise_gamma, noise_gamma, rtol=1e-7)
    np.testing.assert_allclose(determined.covariance, inverse, rtol=1e-9, atol=1e-12)


def symmetry(sizes, activation, prior="layer", **options):
    network = Network(sizes, activation)
    return log_symmetry(network, weight_groups(network, prior).labels, **options)


@pytest.mark.parametrize("prior", ["single", "layer", "ard"])
def test_copies_of_a_minimum(prior):
    def log_copies(sizes, activation):
        return pytest.approx(symmetry(sizes, activation, prior), rel=1e-13)

    assert log_copies((2, 5, 2), "tanh") == np.log(factorial(5) * 2**5)
    for activation in ("logistic", "relu", "silu", "gelu"):
        assert log_copies((2, 5, 2), activation) == np.log(factorial(5))
    assert log_copies((2, 3, 4, 1), "tanh") == np.log(factorial(3) * 2**3 * factorial(4) * 2**4)
    assert log_copies((2, 3, 4, 1), "logistic") == np.log(factorial(3) * factorial(4))
    assert symmetry((2, 1), "tanh", prior) == 0
    assert symmetry((2, 1), "identity", prior) == 0


def test_linear_hidden_units_can_be_rotated():
    assert np.isnan(symmetry((2, 2, 1), "identity"))
    assert np.isnan(symmetry((2, 1, 2, 1), "identity"))
    assert symmetry((2, 1, 1), "identity") == pytest.approx(np.log(2.0))


def test_layers_switched_off_are_not_mirrored():
    assert symmetry((2, 1, 1), "tanh", switched_off=[0]) == 0
    expected = pytest.approx(np.log(factorial(3) * 2**3))
    assert symmetry((2, 3, 1, 1), "tanh", switched_off=[1]) == expected


def test_only_units_with_equal_groups_can_be_exchanged():
    network = Network((2, 4, 1))
    first, second = network.layers(np.zeros(network.n_weights, dtype=int))
    first, second = first.copy(), second.copy()
    first[0, 3] = 1  # one unit differs below, another above
    second[2] = 2
    labels = network.pack([first, second])
    assert log_symmetry(network, labels) == pytest.approx(np.log(factorial(2) * 2**4))
    assert log_symmetry(network, np.arange(network.n_weights)) == pytest.approx(np.log(2**4))


def test_terms_add_up():
    terms = EvidenceTerms(*(2.0 ** np.arange(7)))
    assert terms.total == 127.0
    assert EvidenceTerms(*(2.0 ** np.arange(8))).total == 255.0
