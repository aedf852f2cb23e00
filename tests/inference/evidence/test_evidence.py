from math import factorial

import numpy as np
import pytest
from scipy.special import logsumexp

from skbayesnn.inference import well_determined
from skbayesnn.inference.evidence._evidence import (
    integrated,
    level_derivatives,
    level_information,
    log_occam_gaussian,
    log_symmetry,
    occam_factors,
)
from skbayesnn.inference.minima._minimum import evaluate
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.network import Network
from skbayesnn.posterior import (
    Gaussian,
    Hyperparameters,
    LogUniform,
    Posterior,
    WeightGroups,
    weight_groups,
)
from tests.inference.common import method_of, mode_of, settings_of
from tests.tools import ALL_LIKELIHOODS, assert_near, difference, make_problem

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
    return logsumexp(change, b=weight) + PRIOR.log_density(0.0)


@pytest.fixture(scope="module", params=[(12, (0,)), (30, (0,)), (8, (0, 1)), (20, (0, 0))], ids=str)
def solved(request):
    n, levels = request.param
    posterior = linear_model(n, levels=levels)
    hyper = best_hyper(posterior)
    point = mode_of(posterior, np.zeros(posterior.network.n_weights), hyper).point
    method = method_of(posterior)
    return posterior, method, point, well_determined(posterior, method, point.theta, hyper)


def only(hyper, index):
    """Free hyperparameters: the one numbered ``index``, groups first."""
    mask = np.arange(len(hyper.alpha) + len(hyper.beta)) == index
    return FreeHyperparameters.sharing(mask[: len(hyper.alpha)], mask[len(hyper.alpha) :], PRIOR)


def occam_factor(posterior, point, index):
    """Log Occam factor of one precision after `integrated`, all others fixed."""
    settings = settings_of(posterior)._replace(free=only(point.hyper, index))
    search = mode_of(posterior, point.theta, point.hyper)
    minimum = evaluate(posterior, method_of(posterior), search, settings, ())
    terms = integrated(posterior, minimum, settings).terms
    return terms.weight_precision_occam + terms.noise_occam


def test_occam_factors_by_brute_force(monkeypatch, solved):
    monkeypatch.setattr("skbayesnn.inference.evidence._evidence.GAUSSIAN_FROM", np.inf)
    posterior, _, point, _ = solved
    values = [occam_factor(posterior, point, i) for i in range(len(logs_of(point.hyper)))]
    exact = [brute_force_occam(posterior, point.hyper, i) for i in range(len(values))]
    # profiles end 5 nats below their top, without 1 % of the area, and are interpolated
    np.testing.assert_allclose(values, exact, atol=0.03)
    assert min(values) < -1.0  # the data determine a precision


def test_gaussian_occam_factors_of_well_measured_noise(solved):
    posterior, _, point, determined = solved
    degrees = posterior.level_counts - determined.noise_gamma
    for level in np.flatnonzero(degrees > 6.0):
        index = len(point.hyper.alpha) + level
        _, actual = occam_factors(posterior, point, only(point.hyper, index), determined)
        assert actual == log_occam_gaussian(PRIOR, 0.0, degrees[level])
        expected = brute_force_occam(posterior, point.hyper, index)
        assert abs(actual - expected) < 0.4 / degrees[level]


def test_occam_factors_are_never_positive(solved):
    posterior, method, point, _ = solved
    for scale in (1e-4, 1.0, 1e4):  # also far from the maximum
        moved = point.hyper._replace(alpha=PRIOR.clip(point.hyper.alpha * scale))
        there = mode_of(posterior, point.theta, moved).point
        determined = well_determined(posterior, method, there.theta, moved)
        for index in range(len(moved.alpha) + len(moved.beta)):
            free = only(moved, index)
            assert max(occam_factors(posterior, there, free, determined)) <= 0


def symmetry(sizes, activation, prior="layer", **options):
    network = Network(sizes, activation)
    return log_symmetry(network, weight_groups(network, prior), **options)


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
    assert log_symmetry(network, WeightGroups(labels, ["a", "b", "c"])) == pytest.approx(
        np.log(factorial(2) * 2**4)
    )
    each = np.arange(network.n_weights)
    assert log_symmetry(network, WeightGroups(each, list("abcdefghijklmnopq"))) == pytest.approx(
        np.log(2**4)
    )


@pytest.mark.parametrize(
    "name", [name for name in ALL_LIKELIHOODS if make_problem(name)[2].beta.size]
)
def test_derivatives_by_noise_levels(name):
    posterior, theta, (_, beta) = make_problem(name)

    def at(logs):
        return posterior.data_expansion(theta, np.exp(logs), exact=True)

    for derivative, which in enumerate((1, 2)):
        slopes = difference(lambda logs, i=which: at(logs)[i], np.log(beta))
        found = [level_derivatives(posterior, theta, beta, i, True) for i in range(len(beta))]
        found = np.stack([both[derivative] for both in found], axis=-1)
        assert_near(found, slopes, 1e-7)

    def slope(logs):  # of minus the log likelihood
        return np.exp(logs) * at(logs)[0].errors - 0.5 * posterior.noise_counts(np.exp(logs))

    bends = difference(slope, np.log(beta))
    assert_near(level_information(posterior, theta, beta), bends, 1e-7)
