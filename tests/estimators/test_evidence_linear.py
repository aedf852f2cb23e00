"""Without hidden layer the marginal likelihood can be had by quadrature, which knows no Laplace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skbayesnn import EvidenceMLPRegressor, Prior

NEAR = 0.03  # nats: one integral over a precision after the other, between interpolated points
BOUND = 2.0 * np.log(1e3)  # of ln alpha and ln beta: standard deviations within [1e-3, 1e3]


def log_uniform_grid(n):
    """Points of ``ln alpha`` and the logarithms of the prior probabilities that they stand for."""
    points = np.linspace(-BOUND, BOUND, n)
    share = np.full(n, 1.0 / (n - 1))
    share[[0, -1]] *= 0.5
    return points, np.log(share)


def standardised(values, weight):
    mean = weight @ values / weight.sum()
    scale = np.sqrt(weight @ (values - mean) ** 2 / weight.sum())
    return (values - mean) / scale, mean, scale


def make_rows(n=120, d=3, n_outputs=1, weighted=False, noise=0.5, seed=0):
    """Correlated inputs in odd units, of which the first two matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    y = X[:, :2] @ rng.uniform(0.5, 1.5, (2, n_outputs))
    y += noise * rng.uniform(0.5, 1.5, n_outputs) * rng.standard_normal((n, n_outputs))
    weight = rng.uniform(0.5, 2.5, n) if weighted else np.ones(n)
    return X * 10.0 ** rng.integers(-3, 4, d) + 5.0, 40.0 * y + 7.0, weight


def orthogonal_rows(n, n_inputs, coefs, noise, seed=0):
    """Inputs orthogonal to each other and to the constant; targets with several outputs."""
    rng = np.random.default_rng(seed)
    table = np.column_stack([np.ones(n), rng.standard_normal((n, n_inputs))])
    X = np.linalg.qr(table)[0][:, 1:] * np.sqrt(n)
    coefs = np.asarray(coefs, dtype=float)
    y = X[:, : len(coefs)] @ coefs + noise * rng.standard_normal((n, coefs.shape[1]))
    return X, y


def fit(X, y, weight=None, **options):
    y = y[:, 0] if y.shape[1] == 1 else y
    return EvidenceMLPRegressor((), **{"noise": "constant"} | options).fit(X, y, weight)


def log_likelihood_one_precision(Phi, y, weight, log_alpha, log_beta):
    """``ln N(y; 0, 1/beta + Phi Phi^T / alpha)``, rows repeated ``weight`` times, for all pairs."""
    root = np.sqrt(weight)
    left, singular, _ = np.linalg.svd(root[:, None] * Phi, full_matrices=False)
    along = left.T @ (root * y)
    rest = root * y - left @ along
    rank = len(singular)
    alpha, beta = np.exp(log_alpha)[:, None], np.exp(log_beta)
    value = -0.5 * beta * (rest @ rest) + 0.5 * (weight.sum() - rank) * np.log(beta / (2 * np.pi))
    for s, a in zip(singular, along, strict=True):
        variance = 1.0 / beta + s**2 / alpha
        value = value - 0.5 * (np.log(2 * np.pi * variance) + a**2 / variance)
    return value


def log_evidence_one_precision(X, y, weight, noise="constant"):
    """Integrated over one ``alpha`` and one ``beta`` per output, or one shared ``beta``."""
    Z = standardised(X, weight)[0]
    T, _, scale = standardised(y, weight)
    Phi = np.column_stack([Z, np.ones(len(Z))])
    log_alpha, log_share_alpha = log_uniform_grid(601)
    log_beta, log_share_beta = log_uniform_grid(2401)
    relative = np.zeros(len(scale))
    if noise == "shared":
        relative = 2.0 * (np.log(scale) - np.mean(np.log(scale)))
    tables = [
        log_likelihood_one_precision(Phi, t, weight, log_alpha, log_beta + r)
        for t, r in zip(T.T, relative, strict=True)
    ]
    if noise == "shared":
        tables = [np.sum(tables, axis=0)]
    of_alpha = np.sum([logsumexp(table + log_share_beta, axis=1) for table in tables], axis=0)
    return logsumexp(of_alpha + log_share_alpha) - weight.sum() * np.sum(np.log(scale))


@pytest.mark.parametrize(
    ("prior", "weighted", "noise"),
    [("single", False, 0.01), ("layer", True, 0.5), ("single", True, 5.0)],
)
def test_one_weight_precision(prior, weighted, noise):
    X, y, weight = make_rows(weighted=weighted, noise=noise)
    model = fit(X, y, weight, prior=prior)
    assert abs(model.log_evidence_ - log_evidence_one_precision(X, y, weight)) < NEAR


@pytest.mark.parametrize(("noise", "weighted"), [("constant", False), ("shared", True)])
def test_several_outputs(noise, weighted):
    X, y, weight = make_rows(n_outputs=3, weighted=weighted)
    y = y * [1.0, 1.3, 0.8]
    model = fit(X, y, weight, noise=noise)
    assert abs(model.log_evidence_ - log_evidence_one_precision(X, y, weight, noise)) < NEAR


def test_nothing_to_learn():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), rng.standard_normal((100, 1))
    reference = log_evidence_one_precision(X, y, np.ones(100))
    assert abs(fit(X, y).log_evidence_ - reference) < NEAR


def likely_noise(T, rss):
    """Grid of ``ln beta`` within ten standard deviations of its maximum, and the share per cell."""
    centres = np.log(len(T) / rss)
    offsets = 10.0 * np.sqrt(2.0 / len(T)) * np.linspace(-1.0, 1.0, 41)
    grid = np.stack(np.meshgrid(*[c + offsets for c in centres], indexing="ij"), axis=-1)
    return grid.reshape(-1, len(centres)), len(centres) * np.log(
        (offsets[1] - offsets[0]) / BOUND / 2
    )


def log_evidence_orthogonal(X, y):
    """Integrated over one ``alpha`` per input, one for the biases, and one ``beta`` per output.

    Given the noise levels the precisions are independent, because the columns are orthogonal.
    """
    n = len(X)
    Z = standardised(X, np.ones(n))[0]
    T, _, scale = standardised(y, np.ones(n))
    b = np.vstack([Z.T @ T, 0.0 * scale])
    log_beta, cell = likely_noise(T, n - np.sum(b**2, axis=0) / n)
    beta = np.exp(log_beta)
    log_alpha, share = log_uniform_grid(301)
    log_alpha, share = log_alpha[:, None, None], share[:, None]
    value = np.sum(0.5 * n * (log_beta - np.log(2 * np.pi) - beta), axis=1)
    for projection in b:
        total = np.exp(log_alpha) + n * beta
        factor = 0.5 * (log_alpha - np.log(total) + (beta * projection) ** 2 / total)
        value += logsumexp(factor.sum(axis=-1) + share, axis=0)
    return logsumexp(value) + cell - n * np.sum(np.log(scale))


@pytest.mark.parametrize(
    ("n", "coefs", "n_inputs", "near"),
    [
        (400, [[1.0], [0.3]], 9, NEAR),
        (100, [[1.0, 0.5], [0.0, -2.0]], 2, NEAR),  # outputs share the precision of an input
        (100, [[0.2], [0.2]], 9, 0.1),  # barely alive: each depends on the others
    ],
    ids=["one output", "two outputs", "weak"],
)
def test_relevance_determination(n, coefs, n_inputs, near):
    X, y = orthogonal_rows(n, n_inputs, coefs, noise=0.6)
    model = fit(X * 3.0 + 1.0, 20.0 * y - 3.0, prior="ard")
    assert abs(model.log_evidence_ - log_evidence_orthogonal(X, 20.0 * y)) < near


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", ["single", "ard"])
def test_identities_at_the_maximum(prior, weighted, n_outputs):
    """``2 alpha_c E_W^c = gamma_c`` and ``2 beta E_D = N - gamma`` (MacKay 1992, section 2.4)."""
    X, y, weight = make_rows(d=6, n_outputs=n_outputs, weighted=weighted, noise=1.0)
    model = fit(X, y, weight, prior=prior)
    Z, X_mean, X_scale = standardised(X, weight)
    T, y_mean, y_scale = standardised(y, weight)
    coefs = model.coefs_[0].reshape(6, n_outputs)
    biases = (model.intercepts_[0] - y_mean + X_mean @ coefs) / y_scale
    w = np.vstack([coefs * X_scale[:, None] / y_scale, biases])
    labels = np.arange(7) if prior == "ard" else np.zeros(7, dtype=int)
    alpha = model.weight_precisions_[labels]
    beta = (y_scale / model.noise_std_) ** 2
    Phi = np.column_stack([Z, np.ones(len(Z))])
    data = (Phi.T * weight) @ Phi
    variances = np.stack([np.diag(np.linalg.inv(np.diag(alpha) + b * data)) for b in beta], axis=1)
    well = 1.0 - alpha[:, None] * variances
    gamma = np.bincount(labels, well.sum(axis=1))
    twice_energy = np.bincount(labels, np.sum(w**2, axis=1))
    free = np.abs(np.log(model.weight_precisions_)) < BOUND - 1e-6
    assert free[0]
    assert_allclose((model.weight_precisions_ * twice_energy)[free], gamma[free], rtol=1e-3)
    misfit = beta * (weight @ (Phi @ w - T) ** 2)
    assert_allclose(misfit, weight.sum() - well.sum(axis=0), rtol=1e-3)
    assert_allclose(model.n_effective_weights_, gamma.sum(), rtol=1e-6)
    assert_allclose(list(model.evidence_report_.minima[0].gamma.values()), gamma, atol=1e-6)


@pytest.mark.parametrize("kind", ["single", "ard"])
def test_an_intercept_of_its_own_does_not_disturb_the_others(kind):
    """Shifting the targets changes nothing but a flat intercept."""
    X, y, _ = make_rows(d=2)
    prior = Prior(kind + "+intercept", precision={"intercept": 1e-9})
    options = {"prior": prior, "standardize": False, "noise": 20.0}
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    one, shifted = fit(X, y, **options), fit(X, y + 500.0, **options)
    assert_allclose(shifted.weight_precisions_, one.weight_precisions_, rtol=1e-4)
    assert_allclose(shifted.coefs_[0], one.coefs_[0], rtol=1e-5)
    assert_allclose(shifted.intercepts_[0] - one.intercepts_[0], 500.0, rtol=1e-5)
    assert hasattr(one, "input_prior_std_") == (kind == "ard")
    together = fit(X, y + 500.0, **options | {"prior": kind})
    if kind == "single":  # its one precision has to suit the intercept
        assert together.weight_precisions_[0] < 0.1 * one.weight_precisions_[0]
