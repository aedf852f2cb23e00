import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.active_learning import information_gain, select, thin_training_set
from skbayesnn.network import outputs
from skbayesnn.predictive import softmax_slopes
from tests.active_learning.exact import condition, joint_covariance
from tests.active_learning.fitted import candidates, data, evidence
from tests.tools import difference, parts_of, result_of, set_block_doubles, standardised

pytestmark = pytest.mark.usefixtures("laplace")

X_INTEREST = candidates(3, seed=2)
POOL = candidates(25, seed=3)


@pytest.mark.parametrize(
    "kind", ["total", "mean_marginal", "joint", "predicted_target", "q_optimal"]
)
@pytest.mark.parametrize("noise", [(0.5,), (0.5, 2.0)])
def test_updates_equal_refits(noise, kind):
    """A linear model, fitted again after every choice with a made-up target."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((4, 2)), rng.standard_normal((4, len(noise)))
    model = EvidenceMLPRegressor(
        (), prior=Prior(precision=0.3), noise=dict(enumerate(noise)), standardize=False
    ).fit(X, y)
    indices, gains = select(model, POOL, 6, X_INTEREST, kind=kind, return_gains=True)
    assert len(set(indices)) == 6
    for index, gain in zip(indices, gains, strict=True):
        now = information_gain(model, POOL, X_INTEREST, kind=kind)
        assert_allclose(now[index], gain, rtol=1e-7)
        assert now[index] >= np.delete(now, indices).max() * (1 - 1e-9)
        X, y = np.vstack([X, POOL[index]]), np.vstack([y, rng.standard_normal((1, len(noise)))])
        model = clone(model).fit(X, y)


def test_batches_of_binary_targets():
    """Against dense updates of the joint covariance of all activations."""
    model, rows = evidence("binary"), np.vstack([POOL, X_INTEREST])
    member = parts_of(model)[0]
    S = joint_covariance(model, member, rows)
    a = member.whitened(standardised(model, rows))[0][:, 0]
    indices, gains = select(model, POOL, 5, X_INTEREST, return_gains=True)
    for index, gain in zip(indices, gains, strict=True):
        kappa = (1.0 + np.pi * np.diag(S) / 8.0) ** -0.5
        slope = kappa * np.sqrt(expit(kappa * a) * expit(-kappa * a))
        expected = 0.5 * np.mean((slope[index] * slope[25:] * S[index, 25:]) ** 2)
        assert_allclose(gain, expected, rtol=1e-5)
        S = condition(S, index, 1.0 / (expit(a[index]) * expit(-a[index])))


def test_batches_of_three_classes():
    """Against the Hessian with the added curvature of the chosen rows."""
    model = evidence("three")
    member = parts_of(model)[0]
    indices, gains = select(model, POOL, 4, method="approximation", return_gains=True)
    rows = standardised(model, POOL)
    J = difference(lambda theta: outputs(member.network, theta, rows), member.theta)
    A = np.linalg.inv(member.precision.covariance())
    mean, _ = member.linearised(rows)
    p = softmax(mean, axis=1)
    for index, gain in zip(indices, gains, strict=True):
        S = J[index] @ np.linalg.solve(A, J[index].T)
        probability, slopes = softmax_slopes(mean[[index]], S[None])
        response = slopes[0] @ S @ slopes[0]
        expected = 0.5 * np.sum(np.diag(response) / probability[0])
        assert_allclose(gain, expected, rtol=1e-3)
        A = A + J[index].T @ (np.diag(p[index]) - np.outer(p[index], p[index])) @ J[index]


@pytest.mark.parametrize("task", ["one", "binary"])
def test_first_choice_is_the_best_gain(task):
    model = evidence(task, "equal")
    for method in ("approximation", "exact"):
        gains = information_gain(model, POOL, X_INTEREST, method=method)
        index, gain = select(model, POOL, 1, X_INTEREST, method=method, return_gains=True)
        assert index[0] == np.argmax(gains)
        assert_allclose(gain[0], gains.max(), rtol=1e-9)


def test_rows_that_are_not_kept_in_memory(monkeypatch):
    model = evidence("two", "equal")
    kept = select(model, POOL, 5, X_INTEREST, return_gains=True)
    monkeypatch.setattr("skbayesnn.active_learning._gain.KEPT_DOUBLES", 0)
    set_block_doubles(monkeypatch, 100)
    made_again = select(model, POOL, 5, X_INTEREST, return_gains=True)
    assert_array_equal(kept[0], made_again[0])
    assert_allclose(kept[1], made_again[1], rtol=1e-9)


def test_stopping_rule():
    model = evidence("one")
    indices, gains = select(model, POOL, 10, return_gains=True)
    assert np.all(np.diff(gains) <= 1e-12)  # each target tells less than the one before
    price = 0.5 * (gains[3] + gains[4])
    fewer, their_gains = select(model, POOL, 10, price=price, return_gains=True)
    assert_array_equal(fewer, indices[:4])
    assert_allclose(their_gains, gains[:4])
    none = select(model, POOL, 10, price=1e6)
    assert none.shape == (0,)
    assert none.dtype.kind == "i"


@pytest.mark.parametrize("task", ["one", "two", "binary", "three"])
def test_thinning(task):
    """Rows are added to the prior's precision, the most informative first."""
    model = evidence(task)
    X = data(task)[0]
    indices, gains = thin_training_set(model, X, 8, return_gains=True)
    minimum, member = result_of(model).minima[0], parts_of(model)[0]
    rows = standardised(model, X)
    J = difference(lambda theta: outputs(member.network, theta, rows), member.theta)
    A = np.diag(minimum.hyper.alpha[minimum.groups.labels])
    activations = member.outputs(rows)[0]

    def information(row):
        if task in ("one", "two"):
            return J[row].T @ (J[row] / member.noise.typical_variances[0][:, None])
        if task == "binary":
            p = expit(activations[row, 0])
            return p * (1 - p) * np.outer(J[row, 0], J[row, 0])
        p = softmax(activations[row])
        return J[row].T @ (np.diag(p) - np.outer(p, p)) @ J[row]

    for index, gain in zip(indices, gains, strict=True):
        now = [
            0.5 * (np.linalg.slogdet(A + information(row))[1] - np.linalg.slogdet(A)[1])
            for row in range(len(X))
        ]
        assert_allclose(gain, now[index], rtol=1e-4)
        assert now[index] >= np.delete(now, indices).max() * (1 - 1e-5)
        A = A + information(index)
