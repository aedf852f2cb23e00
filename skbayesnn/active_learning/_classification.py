"""Expected information gains of classification (MacKay 1992, chapter 5).

Gains about points of interest are those about the class there. They need the moments of the
activations that `regression_gain` needs of outputs, and their means.
"""

import numpy as np
from scipy.special import expit, rel_entr, softmax

from skbayesnn.active_learning._bivariate import (
    binary_information,
    hermite_coefficients,
    sigmoid_covariance,
)
from skbayesnn.active_learning._regression import two_sided
from skbayesnn.network import row_blocks
from skbayesnn.predictive import (
    covariance_root,
    normal_points,
    sigmoid_information,
    softmax_information,
    softmax_slopes,
)

SMALLEST = np.finfo(float).tiny


def classification_gain(question, interest):
    """Make the function that computes the gains of a block of candidates.

    Parameters
    ----------
    question : Question
    interest : Interest or None

    Returns
    -------
    callable
        Function from ``mean`` ``(n, p)``, ``S`` and ``C`` to gains ``(n,)``, or ``(n, n_points)``
        for the kind ``"marginal"``.
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
    if question.kind == "marginal":
        return marginal
    return lambda mean, S, C: marginal(mean, S, C) @ question.weight


def _exact_total(mean, S, C):
    """Mutual information between class and weights (Houlsby et al. 2011, equation 2)."""
    if mean.shape[1] == 1:
        return sigmoid_information(mean[:, 0], S[:, 0, 0])
    return softmax_information(mean, S)


def _slopes(mean, S):
    """Responses of class probabilities to activations, divided by the probabilities' roots.

    To first order in the covariance ``C`` of the activations, that of the probabilities of two
    inputs is ``E[p'] C E[p_u']^T``. With two classes ``E[p'] = kappa f'(kappa a)`` by MacKay's
    approximation of the moderated output, else an average over quasi-random points.

    Returns
    -------
    ndarray of shape (n, p, p)
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
        R = two_sided(_slopes(mean, S), C, right)
        return 0.5 * np.sum(R * R, axis=(2, 3))  # (5.22)

    return gain


def _binary_marginal(interest):
    """Mutual information of two binary targets (MacKay 1992, equations 5.15-5.17)."""
    sd_interest = np.sqrt(interest.S[:, 0, 0])
    second = hermite_coefficients(interest.mean[:, 0], sd_interest)

    def gain(mean, S, C):
        sd = np.sqrt(S[:, 0, 0])
        first = hermite_coefficients(mean[:, 0], sd)
        information = np.empty((len(mean), len(second)))
        for rows in row_blocks(len(mean), 32 * len(second)):
            R = C[rows, 0] / np.maximum(sd[rows, None] * sd_interest, SMALLEST)
            covariance = sigmoid_covariance(first[rows], second, np.clip(R, -1.0, 1.0))
            information[rows] = binary_information(first[rows, :1], second[:, 0], covariance)
        return information

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

    def gain(mean, S, C):
        return np.stack([row(*moments) for moments in zip(mean, S, C, strict=True)])

    return gain


def table_information(table):
    """Mutual information, in nats, of joint probabilities ``(..., C, C)``: shape (...)."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    return np.maximum(np.sum(rel_entr(table, rows * columns), axis=(-2, -1)), 0.0)
