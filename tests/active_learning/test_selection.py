import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.active_learning import information_gain, select, thin_training_set
from skbayesnn.network import outputs
from skbayesnn.predictive import softmax_slopes
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


class Linear:
    """A network at a minimum, linear in its weights: outputs, derivatives and curvatures."""

    def __init__(self, model, X, at_mean=True):
        rows, self.member = standardised(model, X), parts_of(model)[0]
        network, theta = self.member.network, self.member.theta
        self.J = difference(lambda theta: outputs(network, theta, rows), theta)
        self.mean = self.member.linearised(rows)[0]
        self.at = self.mean if at_mean else outputs(network, theta, rows)

    def curvature(self, row):
        """Of the log likelihood of a target at a row, by the outputs."""
        if self.member.noise is not None:
            return np.diag(1.0 / self.member.noise.typical_variances[0])
        if self.J.shape[1] == 1:
            return np.diag(expit(self.at[row]) * expit(-self.at[row]))
        p = softmax(self.at[row])
        return np.diag(p) - np.outer(p, p)

    def information(self, row):
        """Precision of the weights that a target at a row adds."""
        return self.J[row].T @ self.curvature(row) @ self.J[row]


def approximate_gains(linear, A, interest):
    """Gains about classes to first order in the covariance of activations (MacKay, 5.22)."""
    S = np.einsum("nik,kl,mjl->nmij", linear.J, np.linalg.inv(A), linear.J)
    own = np.einsum("nnij->nij", S)
    if linear.J.shape[1] == 1:
        kappa = (1.0 + np.pi * own[:, 0, 0] / 8.0) ** -0.5
        a = kappa * linear.mean[:, 0]
        left = (kappa * np.sqrt(expit(a) * expit(-a)))[:, None, None]
    else:
        p, slopes = softmax_slopes(linear.mean, own)
        left = slopes / np.sqrt(p)[:, :, None]
    if not interest:
        return 0.5 * np.einsum("nij,njk,nik->n", left, own, left)
    R = left[:, None] @ S[:, interest] @ np.swapaxes(left[interest], 1, 2)
    return 0.5 * np.mean(np.sum(R**2, axis=(2, 3)), axis=1)


@pytest.mark.parametrize("task", ["binary", "three"])
@pytest.mark.parametrize("points", [None, X_INTEREST])
def test_batches_of_classes(task, points):
    """Every chosen row adds the curvature of its log likelihood to the Hessian."""
    model = evidence(task)
    linear = Linear(model, np.vstack([POOL, X_INTEREST]))
    A = np.linalg.inv(linear.member.precision.covariance())
    indices, gains = select(model, POOL, 4, points, return_gains=True)
    for index, gain in zip(indices, gains, strict=True):
        now = approximate_gains(linear, A, [] if points is None else [25, 26, 27])[:25]
        assert_allclose(gain, now[index], rtol=1e-3)
        assert now[index] >= np.delete(now, indices).max() * (1 - 1e-3)
        A = A + linear.information(index)


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
    minimum, linear = result_of(model).minima[0], Linear(model, X, at_mean=False)
    A = np.diag(minimum.hyper.alpha[minimum.groups.labels])

    def log_det(A):
        return np.linalg.slogdet(A)[1]

    for index, gain in zip(indices, gains, strict=True):
        now = [0.5 * (log_det(A + linear.information(row)) - log_det(A)) for row in range(len(X))]
        assert_allclose(gain, now[index], rtol=1e-4)
        assert now[index] >= np.delete(now, indices).max() * (1 - 1e-5)
        A = A + linear.information(index)
