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
    model = blank("binary" if mean.shape[1] == 1 else "three")
    model = with_ensemble(model, Ensemble((part,), (np.ones(1),)))
    rows = np.arange(len(mean) + len(mean_interest))[:, None]
    return information_gain(model, rows[: len(mean)], rows[len(mean) :], kind=kind, method=method)


def binary_gain(means, sds, correlation):
    """Mutual information of two binary targets with correlated activations."""
    V = np.array([[1.0, 0.0], [correlation, np.sqrt(1.0 - correlation**2)]]) * sds[:, None]
    means, V = means[:, None], V[:, None]
    return gains_of("exact", means[:1], V[:1], means[1:], V[1:])[0, 0]


def binary_table(p, q, covariance):
    """Joint probabilities of two binary variables."""
    return np.outer([1 - p, p], [1 - q, q]) + covariance * np.array([[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize("sd", [0.1, 4.9, 5.1])
@pytest.mark.parametrize("correlation", [-1.0, 0.3, 0.99])
def test_covariance_of_sigmoids(sd, correlation):
    """Covariance of two classes, by bounds on their mutual information."""
    grid, weights = normal_grid(2, n=601, reach=8.0)
    means, sds = np.array([0.7, -1.3]) * sd, np.array([sd, 0.6 * sd])
    z = grid @ np.array([[1.0, correlation], [0.0, np.sqrt(1.0 - correlation**2)]])
    f, g = expit(means + sds * z).T
    p, q = weights @ f, weights @ g
    covariance = weights @ (f * g) - p * q
    gain, tol = binary_gain(means, sds, correlation), 1e-6 if sd < 5 else 1e-4
    near = np.clip(
        covariance + np.array([-tol, tol]),
        -min(p * q, (1 - p) * (1 - q)),
        min(p - p * q, q - p * q),
    )
    least, most = sorted(table_information(binary_table(p, q, c)) for c in near)
    least = 0.0 if abs(covariance) < tol else least
    assert least - 1e-12 <= gain <= most + 1e-12
    if sd <= 1:
        expected = table_information(binary_table(p, q, covariance))
        assert_allclose(gain, expected, rtol=1e-8, atol=1e-15)


def test_binary_information():
    # no cancellation where targets tell hardly anything about each other
    means, sds = np.array([-0.8, 0.4]), np.array([0.5, 0.3])
    weak = [binary_gain(means, sds, correlation) for correlation in (1e-4, 1e-6, 1e-10)]
    assert_allclose(weak / weak[1], [1e4, 1.0, 1e-8], rtol=1e-3)
    # a class that is nearly certain
    means, sds = np.array([-20.0, 0.4]), np.array([1.0, 0.3])
    z, weights = normal_grid(2, n=301, reach=9.0)
    f = expit(means[0] + sds[0] * z[:, 0])
    g = expit(means[1] + sds[1] * (0.9 * z[:, 0] + np.sqrt(0.19) * z[:, 1]))
    p, q = weights @ f, weights @ g
    change = (weights @ (f * g) - p * q) / (p * np.array([1 - q, q])) * [-1.0, 1.0]
    expected = p * np.array([1 - q, q]) @ ((1 + change) * np.log1p(change) - change)
    assert_allclose(binary_gain(means, sds, 0.9), expected, rtol=1e-5)
    # fully dependent, to the error of the covariance of steps
    same = binary_gain(np.zeros(2), np.full(2, 1e6), 1.0)
    assert table_information(binary_table(0.5, 0.5, 0.238)) < same <= np.log(2) * (1 + 1e-12)
    for certain in (40.0, 800.0, 1e5):
        assert 0.0 <= binary_gain(np.array([certain, -certain]), np.ones(2), 0.7) < 1e-15


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
    assert small < 0.3 * large


@pytest.mark.parametrize("size", [0.5, 1.5])
@pytest.mark.parametrize(("n_outputs", "tol"), [(1, 1e-6), (3, 4e-3)])
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
