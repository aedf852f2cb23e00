"""Tiny networks with fixed precisions: evidence against brute-force integrals over the weights."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, Prior

pytestmark = pytest.mark.usefixtures("laplace")

NEAR = 0.3  # nats: Laplace's error with 100 to 200 rows


def midpoints(reach, n):
    """Grid of one weight, and the logarithm of the length that a point stands for."""
    step = 2.0 * reach / n
    return -reach + step * (np.arange(n) + 0.5), np.log(step)


def log_prior(w, alpha):
    return 0.5 * np.log(alpha / (2.0 * np.pi)) - 0.5 * alpha * w**2


def log_marginal(Phi, y, beta, alpha):
    """``ln N(y; 0, 1/beta + Phi Phi^T / alpha)`` with the linear output layer integrated out."""
    A = alpha * np.eye(Phi.shape[-1]) + beta * np.swapaxes(Phi, -1, -2) @ Phi
    b = beta * np.swapaxes(Phi, -1, -2) @ y
    mean = np.linalg.solve(A, b[..., None])[..., 0]
    value = 0.5 * np.sum(b * mean, axis=-1) - 0.5 * beta * y @ y
    value += 0.5 * (Phi.shape[-1] * np.log(alpha) + len(y) * np.log(beta / (2.0 * np.pi)))
    return value - 0.5 * np.linalg.slogdet(A)[1]


def log_evidence_one_unit(x, y, activation, alpha, noise, n_grid):
    """One hidden unit, ``k = 4``: two weights on a grid, all mirror images inside it."""
    hidden, biases, output = alpha
    w, log_step_w = midpoints(7.0 / np.sqrt(hidden), n_grid)
    b, log_step_b = midpoints(7.0 / np.sqrt(biases), n_grid)
    total = []
    for weight in w:
        z = activation(weight * x + b[:, None])
        Phi = np.stack([z, np.ones_like(z)], axis=-1)
        total.append(log_marginal(Phi, y, noise**-2, output) + log_prior(b, biases))
    total = np.array(total) + log_prior(w, hidden)[:, None]
    return logsumexp(total) + log_step_w + log_step_b


def one_unit_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    return x, 1.2 * np.tanh(1.5 * x - 0.5) + 0.3 + 0.4 * rng.standard_normal(n)


ALPHA = {"hidden1_weights": 0.5, "hidden1_biases": 1.0, "output": 0.4}


def regressor(x, y, hidden=(1,), **options):
    options = {"prior": Prior(precision=ALPHA), "noise": 0.4, "random_state": 0} | options
    model = EvidenceMLPRegressor(hidden, standardize=False, n_restarts=4, **options)
    return model.fit(np.reshape(x, (len(y), -1)), y)


@pytest.mark.parametrize("name", ["tanh", pytest.param("logistic", marks=pytest.mark.slow)])
def test_one_hidden_unit(name):
    activation = {"tanh": np.tanh, "logistic": expit}[name]
    gaps = []
    for n in (20, 100, 1000):
        x, y = one_unit_rows(n)
        exact = log_evidence_one_unit(x, y, activation, ALPHA.values(), 0.4, 150)
        gaps.append(abs(regressor(x, y, activation=name).log_evidence_ - exact))
    assert gaps[1] < NEAR
    assert gaps[2] < 0.1  # falls as 1 / n
    assert gaps[2] < 0.5 * gaps[0]


def test_two_hidden_units():
    """Eight mirror images and exchanges: the symmetry factor is ``2! 2^2``."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-3, 3, 200)
    y = 1.5 * np.tanh(2.0 * x) - 1.5 * np.tanh(0.5 * x) + 0.1 * rng.standard_normal(200)
    w, log_step = midpoints(6.0, 400)
    z = np.tanh(w[:, None] * x)
    total = []
    for row in z:
        Phi = np.stack([np.broadcast_to(row, z.shape), z, np.ones_like(z)], axis=-1)
        total.append(log_marginal(Phi, y, 100.0, 0.5) + log_prior(w, 1.0))
    exact = logsumexp(np.array(total) + log_prior(w, 1.0)[:, None]) + 2 * log_step
    alpha = {"hidden1_weights": 1.0, "hidden1_biases": 1e10, "output": 0.5}
    model = regressor(x, y, hidden=(2,), prior=Prior(precision=alpha), noise=0.1)
    assert model.evidence_report_.symmetry == pytest.approx(np.log(8.0))
    assert abs(model.log_evidence_ - exact) < NEAR


def test_three_classes():
    """Softmax of one input: six weights, of which the data see four; the rest is exact."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(100)
    y = np.argmax(np.outer(x, [1.0, 0.0, -1.0]) + rng.gumbel(size=(100, 3)), axis=1)
    model = EvidenceMLPClassifier((), standardize=False, prior=Prior(precision=1.0)).fit(
        x[:, None], y
    )
    # a_c - mean_c a_c is all that matters: in an orthonormal basis its weights are N(0, 1) too
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    centre = basis @ np.vstack([model.coefs_[0][0], model.intercepts_[0]]).T
    grid, log_step = midpoints(1.6, 14)
    table = np.stack(np.meshgrid(*[grid] * 4, indexing="ij"), axis=-1).reshape(-1, 2, 2) + centre
    total = np.sum(log_prior(table, 1.0), axis=(1, 2))
    slopes, offsets = table[:, :, 0] @ basis, table[:, :, 1] @ basis
    for value, label in zip(x, y, strict=True):
        a = slopes * value + offsets
        total += a[:, label] - logsumexp(a, axis=1)
    exact = logsumexp(total) + 4 * log_step
    assert abs(model.log_evidence_ - exact) < NEAR
