import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, expit, softmax

from skbayesnn import EvidenceMLPClassifier
from skbayesnn.active_learning import information_gain
from skbayesnn.active_learning._bivariate import (
    binary_information,
    hermite_coefficients,
    sigmoid_covariance,
)
from skbayesnn.active_learning._candidates import Interest
from skbayesnn.active_learning._classification import classification_gain
from skbayesnn.active_learning._inputs import Question
from tests.active_learning.exact import joint_covariance, normal_grid, table_information
from tests.active_learning.fitted import candidates, evidence

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


def activations(estimator, member, X):
    """Mean activations of candidates and points, and their joint covariance."""
    both = np.vstack([X, X_INTEREST])
    mean, _ = member.linearised(estimator._X_scaling.transform(both))
    return mean, joint_covariance(estimator, member, both)


@pytest.mark.parametrize("combine", ["best", "equal"])
def test_published_approximation(combine):
    """Equation 5.22, term by term."""
    model, X = evidence("binary", combine), candidates()
    gains = information_gain(model, X, X_INTEREST, kind="marginal")
    expected = np.zeros_like(gains)
    for weight, member in zip(model._member_weights, model._members, strict=True):
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


def two_class_table(a, S, grid, weights):
    """Joint probabilities of two binary targets by a two-dimensional grid."""
    values, vectors = np.linalg.eigh(S)
    x = a + grid @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    p, q = expit(x[:, 0]), expit(x[:, 1])
    both = np.stack([1 - p, p]) * weights @ np.stack([1 - q, q]).T
    return both


def test_exact_information_of_two_classes():
    model, X = evidence("binary", "equal"), candidates()
    gains = information_gain(model, X, X_INTEREST, kind="marginal", method="exact")
    total = information_gain(model, X, method="exact")
    grid, weights = normal_grid(2, n=301, reach=8.0)
    expected, expected_total = np.zeros_like(gains), np.zeros(len(X))
    for weight, member in zip(model._member_weights, model._members, strict=True):
        a, S = activations(model, member, X)
        for row in range(len(X)):
            for point in range(3):
                pair = [row, len(X) + point]
                table = two_class_table(a[pair, 0], S[np.ix_(pair, pair)], grid, weights)
                expected[row, point] += weight * table_information(table)
            p = expit(a[row, 0] + np.sqrt(S[row, row]) * grid[:, 0])
            entropy = entr(weights @ p) + entr(weights @ (1 - p))
            expected_total[row] += weight * (entropy - weights @ (entr(p) + entr(1 - p)))
    assert_allclose(gains, expected, rtol=1e-5, atol=1e-9)
    assert_allclose(total, expected_total, rtol=1e-6)
    assert np.all(gains <= total[:, None])


@pytest.mark.parametrize("sd", [0.1, 1.0, 4.9, 5.1, 9.0])
@pytest.mark.parametrize("correlation", [-1.0, -0.9, 0.0, 0.3, 0.99, 1.0])
def test_covariance_of_sigmoids(sd, correlation):
    grid, weights = normal_grid(2, n=601, reach=8.0)
    means, sds = np.array([0.7, -1.3]) * sd, np.array([sd, 0.6 * sd])
    z = grid @ np.array([[1.0, correlation], [0.0, np.sqrt(1.0 - correlation**2)]])
    p, q = expit(means + sds * z).T
    expected = weights @ (p * q) - (weights @ p) * (weights @ q)
    first, second = hermite_coefficients(means, sds)[:, None]
    actual = sigmoid_covariance(first, second, np.array([[correlation]]))
    assert_allclose(actual[0, 0], expected, rtol=0, atol=1e-6 if sd < 5 else 1e-4)
    assert_allclose([first[0, 0], second[0, 0]], [weights @ p, weights @ q], rtol=1e-9)


def test_binary_information():
    p, q = np.array([[0.3], [1e-9]]), np.array([0.6])
    tables = [[[0.28, 0.42], [0.12, 0.18]]]
    covariance = np.array([[0.05], [2e-10]])
    tables = [
        np.array([[(1 - a) * 0.4 + c, (1 - a) * 0.6 - c], [a * 0.4 - c, a * 0.6 + c]])
        for a, c in zip(p[:, 0], covariance[:, 0], strict=True)
    ]
    expected = [[table_information(table)] for table in tables]
    assert_allclose(binary_information(p, q, covariance), expected, rtol=1e-6)
    # no cancellation: the leading term of the expansion
    tiny = binary_information(p[:1], q, np.array([[1e-12]]))
    assert_allclose(tiny, 0.5e-24 / (0.3 * 0.7 * 0.6 * 0.4), rtol=1e-9)
    # fully dependent
    assert_allclose(binary_information(np.array([[0.5]]), np.array([0.5]), 0.25), np.log(2))
    assert np.all(np.isfinite(binary_information(np.array([[1.0]]), np.array([0.0]), 0.1)))


def gains_of(method, mean, V, mean_interest, V_interest, kind="marginal"):
    """Gains from whitened vectors."""
    question = Question(kind, method, None, None, None)
    S, S_interest = (v @ np.swapaxes(v, 1, 2) for v in (V, V_interest))
    directions = V_interest.reshape(-1, V.shape[-1])
    C = V @ directions.T
    gain = classification_gain(question, Interest(mean_interest, S_interest, directions))
    return gain(mean, S, C)


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
def test_three_classes_against_a_grid(size):
    """Activations that depend on three numbers, so that a grid gives the exact table."""
    mean, V, mean_interest, V_interest = random_case(3, 3, size)
    grid, weights = normal_grid(3, n=81)
    p = softmax(mean + np.moveaxis(V @ grid.T, -1, 0), axis=-1)
    q = softmax(mean_interest + np.moveaxis(V_interest @ grid.T, -1, 0), axis=-1)
    gains = gains_of("exact", mean, V, mean_interest, V_interest)
    total = gains_of("exact", mean, V, mean_interest, V_interest, kind="total")
    for row in range(4):
        entropy = entr(weights @ p[:, row]).sum()
        exact_total = entropy - weights @ entr(p[:, row]).sum(axis=1)
        assert_allclose(total[row], exact_total, atol=2e-3)
        for point in range(3):
            table = (p[:, row].T * weights) @ q[:, point]
            assert_allclose(gains[row, point], table_information(table), atol=4e-3)


def test_softmax_of_two_classes_is_the_binary_case():
    mean, V, mean_interest, V_interest = random_case(1, 4, 1.0)

    def pair(values):
        return np.concatenate([np.zeros_like(values), values], axis=1)

    for kind in ("total", "marginal"):
        binary = gains_of("exact", mean, V, mean_interest, V_interest, kind)
        case = [pair(values) for values in (mean, V, mean_interest, V_interest)]
        assert_allclose(gains_of("exact", *case, kind), binary, atol=1e-3)
    rough = gains_of("approximation", *case)  # with averages of f' in place of kappa f'
    z, weights = normal_grid(1)
    responses = []
    for a, vectors in [(mean, V), (mean_interest, V_interest)]:
        p = expit(a + np.linalg.norm(vectors[:, 0], axis=-1)[:, None] * z[:, 0])
        moderated = p @ weights
        responses.append((p * (1 - p)) @ weights / np.sqrt(moderated * (1 - moderated)))
    C = V[:, 0] @ V_interest[:, 0].T
    assert_allclose(rough, 0.5 * (responses[0][:, None] * responses[1] * C) ** 2, rtol=2e-3)


@pytest.mark.parametrize("method", ["approximation", "exact"])
def test_three_classes_of_an_estimator(method):
    """Gains of a fitted network from brute-force covariances of its activations."""
    model, X = evidence("three", "equal"), candidates()
    gains = information_gain(
        model, X, X_INTEREST, kind="mean_marginal", interest_weight=WEIGHT, method=method
    )
    expected = np.zeros(len(X))
    for weight, member in zip(model._member_weights, model._members, strict=True):
        a, S = activations(model, member, X)
        values, vectors = np.linalg.eigh(S)
        V = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(len(a), 3, -1)
        n = len(X)
        own = gains_of(method, a[:n], V[:n], a[n:], V[n:])
        expected += weight * own @ WEIGHT / WEIGHT.sum()
    assert_allclose(gains, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("method", ["approximation", "exact"])
def test_gain_is_high_where_the_class_is_uncertain(method):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, (60, 1))
    model = EvidenceMLPClassifier(()).fit(x, x[:, 0] + rng.logistic(size=60) / 2 > 0)
    line = np.linspace(-3.0, 3.0, 61)[:, None]
    p = model.predict_proba(line)[:, 1]
    gains = information_gain(model, line, method=method)
    uncertain, certain = np.abs(p - 0.5) < 0.3, np.abs(p - 0.5) > 0.47
    assert np.any(certain)
    assert gains[uncertain].min() > 1.3 * gains[certain].max()
