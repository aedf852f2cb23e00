"""Expected information gains from moments of outputs (MacKay 1992, chapters 4 and 5).

Gains need the means ``(n, p)`` and covariances ``S`` ``(n, p, p)`` of the ``p`` outputs at
candidates, ``S_u`` at points of interest, and ``C`` ``(n, p, n_points * p)`` between both, without
noise. For regression all are in units of the noise at each input, see `LinearModel`: targets have
the covariance ``S + 1``. For classification they are those of activations, and gains about points
of interest are those about the class there.
"""

import numpy as np
from scipy.special import expit, ndtr, rel_entr, softmax
from scipy.stats import norm

from skbayesnn.basis._features import hermite
from skbayesnn.network import row_blocks
from skbayesnn.predictive import (
    covariance_root,
    normal_points,
    sigmoid_information,
    softmax_information,
    softmax_slopes,
)

SMALLEST = np.finfo(float).tiny
N_TERMS = 128  # of Mehler's expansion
STEEP = 5.0  # standard deviation from which the sigmoid is treated as nearly a step


def regression_gain(question, noise_variances, interest):
    """Make the function from ``mean``, ``S`` and ``C`` of candidates to their gains.

    ``noise_variances`` maps rows to ``nu^2``, ``(n, p)``, in standardised units. Gains have the
    shape (n,), or (n, n_points) for the kind ``"marginal"``.
    """
    if question.kind == "total":
        return lambda mean, S, C: _total(S)
    if question.kind == "joint":
        return lambda mean, S, C: _shared(_unit_scale(_noisy(S)) @ C)  # C: with a basis (4.12)
    if question.kind == "q_optimal":
        units = noise_variances(question.X_interest) * question.y_scale**2
        weight = (question.weight[:, None] * units).ravel()

        def variance_removed(mean, S, C):
            """Sum ``sum_u P_u (g^T A^-1 g_u)^2 / (nu^2 + s^2)``."""
            R = _unit_scale(_noisy(S)) @ C
            return np.sum(R * R, axis=1) @ weight

        return variance_removed
    predicted = question.kind == "predicted_target"
    right = _unit_scale(_noisy(interest.S) if predicted else interest.S)

    def marginal(mean, S, C):
        """Information about every point by itself (4.10)."""
        return _shared(_two_sided(_unit_scale(_noisy(S)), C, right))

    return _averaged(marginal, question)


def _averaged(marginal, question):
    """Average marginal gains over the points (4.13), unless they are asked for."""
    if question.kind == "marginal":
        return marginal
    return lambda mean, S, C: marginal(mean, S, C) @ question.weight


def _total(S):
    """Total gain ``1/2 log det(1 + S)`` (MacKay 1992, equation 4.9), shape (n,)."""
    if S.shape[-1] == 1:
        return 0.5 * np.log1p(S[:, 0, 0])
    return 0.5 * np.linalg.slogdet(_noisy(S))[1]


def _noisy(S):
    """Covariances of targets, their noise included."""
    return S + np.eye(S.shape[-1])


def _unit_scale(S):
    """Whitening matrices ``L^-1`` with ``S = L L^T``, ``(n, p, p)``."""
    return np.linalg.inv(np.linalg.cholesky(S))


def _two_sided(left, C, right):
    """Products ``left C right^T`` of pairs, from ``(n, p, p)``, ``C`` and ``(m, p, p)``.

    The result has the shape (n, m, p, p).
    """
    C = (left @ C).reshape(*C.shape[:2], *right.shape[:2]).swapaxes(1, 2)
    return C * right if C.shape[2] == 1 else C @ np.swapaxes(right, 1, 2)


def _shared(R):
    """Information ``-1/2 log det(1 - R R^T)`` from correlations of shape (..., p, m)."""
    if R.shape[-2] == 1:
        rest = 1.0 - np.einsum("...m,...m->...", R[..., 0, :], R[..., 0, :])
    else:
        rest = np.linalg.det(np.eye(R.shape[-2]) - R @ np.swapaxes(R, -1, -2))
    return -0.5 * np.log(np.clip(rest, SMALLEST, 1.0))


def classification_gain(question, interest):
    """Make the function from ``mean``, ``S`` and ``C`` of candidates to their gains.

    Gains have the shapes of `regression_gain`.
    """
    exact = question.method == "exact"
    if question.kind == "total":
        return _exact_total if exact else _approximate_total
    if not exact:
        marginal = _approximate_marginal(interest)
    elif interest.mean.shape[1] == 1:
        marginal = _binary_marginal(interest)
    else:
        marginal = _categorical_marginal(interest)
    return _averaged(marginal, question)


def _exact_total(mean, S, C):
    """Mutual information between class and weights (Houlsby et al. 2011, equation 2)."""
    if mean.shape[1] == 1:
        return sigmoid_information(mean[:, 0], S[:, 0, 0])
    return softmax_information(mean, S)


def _slopes(mean, S):
    """Responses of class probabilities to activations, divided by the probabilities' roots.

    To first order in the covariance ``C`` of the activations, that of the probabilities of two
    inputs is ``E[p'] C E[p_u']^T``. With two classes ``E[p'] = kappa f'(kappa a)`` by MacKay's
    approximation of the moderated output, else an average over quasi-random points. The shape is
    (n, p, p).
    """
    if mean.shape[1] == 1:
        kappa = 1.0 / np.sqrt(1.0 + np.pi * S[:, 0, 0] / 8.0)  # (5.8)
        a = kappa * mean[:, 0]
        return (kappa * np.sqrt(expit(a) * expit(-a)))[:, None, None]
    probability, slopes = softmax_slopes(mean, S)
    return slopes / np.sqrt(np.maximum(probability, SMALLEST))[:, :, None]


def _approximate_total(mean, S, C):
    """Total gain by the expansion of equation 5.22, with activations in place of a class."""
    slopes = _slopes(mean, S)
    return 0.5 * np.einsum("nij,njk,nik->n", slopes, S, slopes)


def _approximate_marginal(interest):
    right = _slopes(interest.mean, interest.S)

    def gain(mean, S, C):
        R = _two_sided(_slopes(mean, S), C, right)
        return 0.5 * np.sum(R * R, axis=(2, 3))  # (5.22)

    return gain


def _categorical_marginal(interest):
    """Mutual information of two classes, by an average over quasi-random activations."""
    p = interest.mean.shape[1]
    points = normal_points(2 * p)
    factor = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(factor, points.T).T  # unit sample covariance: weak gains are exact
    first, second = points[:, :p], points[:, p:]

    def row(mean, S, C):
        """Gains of one candidate, ``(n_points,)``, from conditional activations at the points."""
        values, vectors = np.linalg.eigh(S)
        root = np.sqrt(np.where(values > 1e-12 * values[-1], values, 0.0))
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        follows = C.T.reshape(-1, p, p) @ (vectors * inverse)
        rest = covariance_root(interest.S - follows @ np.swapaxes(follows, 1, 2))
        a = mean + first @ (vectors * root).T
        a_interest = interest.mean[:, None] + first @ np.swapaxes(follows, 1, 2)
        a_interest += second @ np.swapaxes(rest, 1, 2)
        table = softmax(a, axis=-1).T @ softmax(a_interest, axis=-1)
        return table_information(table / len(points))

    return lambda mean, S, C: np.stack([row(*one) for one in zip(mean, S, C, strict=True)])


def table_information(table):
    """Mutual information, in nats, of joint probabilities ``(..., C, C)``: shape (...)."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    return np.maximum(np.sum(rel_entr(table, rows * columns), axis=(-2, -1)), 0.0)


def _binary_marginal(interest):
    """Mutual information of two binary targets (MacKay 1992, equations 5.15-5.17).

    The covariance of the sigmoids of correlated activations is Mehler's expansion ``sum_(k > 0)
    rho^k f_k g_k`` with the coefficients of `_hermite_coefficients`. Its largest errors, at
    correlations of 1 or -1: 1e-10 at standard deviations of 3, 2e-7 at 5, 1e-4 at 10, 2e-3 at 20,
    and 0.01 for steps.
    """
    sd_interest = np.sqrt(interest.S[:, 0, 0])
    second = _hermite_coefficients(interest.mean[:, 0], sd_interest)

    def gain(mean, S, C):
        sd = np.sqrt(S[:, 0, 0])
        first = _hermite_coefficients(mean[:, 0], sd)
        information = np.empty((len(mean), len(second)))
        for rows in row_blocks(len(mean), 32 * len(second)):
            rho = C[rows, 0] / np.maximum(sd[rows, None] * sd_interest, SMALLEST)
            rho = np.clip(rho, -1.0, 1.0)
            covariance, power = np.zeros_like(rho), np.ones_like(rho)
            for k in range(1, N_TERMS):
                power *= rho
                covariance += power * np.outer(first[rows, k], second[:, k])
            information[rows] = _binary_information(first[rows, :1], second[:, 0], covariance)
        return information

    return gain


def _hermite_coefficients(mean, sd):
    """Coefficients ``E[sigmoid(mean + sd z) h_k(z)]`` of orthonormal Hermite polynomials.

    The expectation over ``z ~ N(0, 1)`` is computed by the trapezoidal rule, whose error falls
    exponentially for analytic integrands: over ``z``, or, for wide Gaussians, over the activation,
    after integrating by parts (``h_k`` integrates to ``-h_(k-1) / k^(1/2)`` under the Gaussian).
    Rows are those of ``mean`` and ``sd``; the first of `N_TERMS` columns is the moderated output.
    """
    coefficients = np.empty((len(mean), N_TERMS))
    wide, mean, sd = sd >= STEEP, mean[:, None], sd[:, None]
    z = np.linspace(-13.0, 13.0, 261)
    basis = np.stack(list(hermite(norm.pdf(z), z, N_TERMS)), axis=1) * (z[1] - z[0])
    coefficients[~wide] = expit(mean[~wide] + sd[~wide] * z) @ basis
    if np.any(wide):
        a = np.linspace(-40.0, 40.0, 161)
        slope = expit(a) * expit(-a) * (a[1] - a[0])
        z = (a - mean[wide]) / sd[wide]
        coefficients[wide, 0] = ndtr(-z) @ slope
        for k, function in enumerate(hermite(norm.pdf(z), z, N_TERMS - 1), 1):
            coefficients[wide, k] = function @ slope / np.sqrt(k)
    return coefficients


def _binary_information(p, q, covariance):
    """Mutual information, in nats, of two binary variables without cancellation of small values.

    ``p`` ``(n, 1)`` and ``q`` ``(m,)`` are their probabilities of 1.
    """
    least = -np.minimum(p * q, (1.0 - p) * (1.0 - q))
    most = np.minimum(p * (1.0 - q), (1.0 - p) * q)
    covariance = np.clip(covariance, least, most)
    information = 0.0
    for product, sign in ((p * q, 1), (p * (1 - q), -1), ((1 - p) * q, -1), ((1 - p) * (1 - q), 1)):
        product = np.maximum(product, SMALLEST)
        information = information + product * _excess(sign * covariance / product)
    return information


def _excess(x):
    """Function ``(1 + x) log(1 + x) - x``, for ``x >= -1``."""
    x = np.maximum(x, -1.0)
    small = np.abs(x) < 1e-3
    exact = (1.0 + x) * np.log1p(np.where(x > -1.0, x, 0.0)) - x
    return np.where(small, x * x * (0.5 - x * (1.0 / 6 - x / 12)), exact)
