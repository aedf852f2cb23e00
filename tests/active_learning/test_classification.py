import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, expit

from skbayesnn.active_learning import information_gain
from skbayesnn.predictive import Ensemble, class_probabilities
from tests.active_learning.exact import joint_covariance, normal_grid, table_information
from tests.active_learning.fitted import Numbered, blank, candidates, evidence
from tests.tools import parts_of, shares_of, standardised, with_ensemble

pytestmark = pytest.mark.usefixtures("laplace")

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


def activations(estimator, member, X):
    """Mean activations of candidates and points, and their joint covariance."""
    both = np.vstack([X, X_INTEREST])
    mean, _ = member.linearised(standardised(estimator, both))
    return mean, joint_covariance(estimator, member, both)


@pytest.mark.parametrize("combine", ["best", "equal"])
def test_published_approximation(combine):
    """Equation 5.22, term by term."""
    model, X = evidence("binary", combine), candidates()
    gains = information_gain(model, X, X_INTEREST, kind="marginal")
    expected = np.zeros_like(gains)
    for weight, member in zip(shares_of(model), parts_of(model), strict=True):
        a, S = activations(model, member, X)
        kappa = (1.0 + np.pi * np.diag(S) / 8.0) ** -0.5
        f = expit(kappa * a[:, 0])
        for row in range(len(X)):
            for point in range(3):
                u = len(X) + point
                gain = 0.5 * kappa[row] ** 2 * kappa[u] ** 2 * S[row, u] ** 2
                gain *= f[row] * (1 - f[row]) * f[u] * (1 - f[u])
                expected[row, point] += weight * gain
    assert_allclose(gains, expected, rtol=1e-6)
    mean = information_gain(model, X, X_INTEREST, interest_weight=WEIGHT)
    assert_allclose(mean, expected @ WEIGHT / WEIGHT.sum(), rtol=1e-6)
    same = information_gain(model, X, X_INTEREST, kind="predicted_target", interest_weight=WEIGHT)
    assert_allclose(mean, same)


def gains_of(method, mean, V, mean_interest, V_interest, kind="marginal"):
    """Gains from activations ``mean + V z``."""
    part = Numbered(np.concatenate([mean, mean_interest]), np.concatenate([V, V_interest]))
    model = blank(2 if mean.shape[1] == 1 else 3)
    model = with_ensemble(model, Ensemble((part,), (np.ones(1),)))
    rows = np.arange(len(mean) + len(mean_interest))[:, None]
    return information_gain(model, rows[: len(mean)], rows[len(mean) :], kind=kind, method=method)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_nearly_certain_classes_have_finite_gains(n_outputs):
    mean, V = np.full((1, n_outputs), -743.0), 0.1 * np.eye(n_outputs)[None]
    mean[0, 1:2] = 0.0
    for kind in ("total", "mean_marginal"):
        gain = gains_of("exact", mean, V, mean, V, kind)[0]
        assert 0.0 <= gain < 1e-12


def random_case(n_outputs, r, size, seed=0):
    rng = np.random.default_rng(seed)
    means = [rng.standard_normal((n, n_outputs)) for n in (4, 3)]
    vectors = [size * rng.standard_normal((n, n_outputs, r)) for n in (4, 3)]
    return means[0], vectors[0], means[1], vectors[1]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("kind", ["marginal", "total"])
def test_approximation_is_the_limit_of_weak_activations(n_outputs, kind):
    ratios = [
        gains_of("approximation", *case, kind) / gains_of("exact", *case, kind)
        for size in (0.1, 0.02)
        for case in [random_case(n_outputs, 8, size)]
    ]
    large, small = (np.max(np.abs(ratio - 1)) for ratio in ratios)
    assert large < 0.15
    assert small < max(0.3 * large, 0.003)  # by as much the sample variance of the points misses 1


@pytest.mark.parametrize("size", [0.5, 1.5])
@pytest.mark.parametrize(("n_outputs", "tol"), [(1, 1e-3), (3, 4e-3)])
def test_classes_against_a_grid(n_outputs, tol, size):
    """Activations that depend on three numbers, so that a grid gives the exact table."""
    mean, V, mean_interest, V_interest = random_case(n_outputs, 3, size)
    grid, weights = normal_grid(3, n=81)
    p = class_probabilities(mean + np.moveaxis(V @ grid.T, -1, 0))
    q = class_probabilities(mean_interest + np.moveaxis(V_interest @ grid.T, -1, 0))
    gains = gains_of("exact", mean, V, mean_interest, V_interest)
    total = gains_of("exact", mean, V, mean_interest, V_interest, kind="total")
    for row in range(4):
        entropy = entr(weights @ p[:, row]).sum()
        assert_allclose(total[row], entropy - weights @ entr(p[:, row]).sum(axis=1), atol=tol / 2)
        for point in range(3):
            table = (p[:, row].T * weights) @ q[:, point]
            assert_allclose(gains[row, point], table_information(table), atol=tol)


@pytest.mark.parametrize("task", ["binary", "three"])
@pytest.mark.parametrize("method", ["approximation", "exact"])
def test_gains_of_an_estimator(task, method):
    """Gains of fitted networks from brute-force covariances of their activations."""
    model, X = evidence(task, "equal"), candidates()
    gains = information_gain(model, X, X_INTEREST, interest_weight=WEIGHT, method=method)
    total, expected, expected_total = information_gain(model, X, method=method), 0.0, 0.0
    for weight, member in zip(shares_of(model), parts_of(model), strict=True):
        a, S = activations(model, member, X)
        values, vectors = np.linalg.eigh(S)
        V = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(*a.shape, -1)
        case = a[: len(X)], V[: len(X)], a[len(X) :], V[len(X) :]
        expected += weight * gains_of(method, *case) @ WEIGHT / WEIGHT.sum()
        expected_total += weight * gains_of(method, *case, kind="total")
    assert_allclose(gains, expected, rtol=1e-3, atol=1e-5)
    assert_allclose(total, expected_total, rtol=1e-3, atol=1e-5)
    if method == "exact":
        assert np.all(gains <= total)
