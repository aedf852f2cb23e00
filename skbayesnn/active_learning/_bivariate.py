"""Covariance of the sigmoids of two correlated Gaussian activations."""

import numpy as np
from scipy.special import expit, ndtr

N_TERMS = 128
STEEP = 5.0  # standard deviation from which the sigmoid is treated as nearly a step
VANISHING = 1e-15


def hermite_coefficients(mean, sd):
    """Coefficients ``E[sigmoid(mean + sd z) h_k(z)]`` of orthonormal Hermite polynomials.

    The expectation over ``z ~ N(0, 1)`` is computed by the trapezoidal rule, whose error falls
    exponentially for analytic integrands: over ``z``, or, for wide Gaussians, over the activation,
    after integrating by parts (``h_k`` integrates to ``-h_(k-1) / k^(1/2)`` under the Gaussian).

    Parameters
    ----------
    mean, sd : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, N_TERMS)
        Coefficients; the first column is the moderated output.
    """
    coefficients = np.empty((len(mean), N_TERMS))
    wide = sd >= STEEP
    z = np.linspace(-13.0, 13.0, 261)
    basis = np.stack(list(_hermite_functions(z, N_TERMS)), axis=1) * (z[1] - z[0])
    narrow = ~wide
    coefficients[narrow] = expit(mean[narrow, None] + sd[narrow, None] * z) @ basis
    if np.any(wide):
        coefficients[wide] = _wide_coefficients(mean[wide, None], sd[wide, None])
    return coefficients


def _wide_coefficients(mean, sd):
    a = np.linspace(-40.0, 40.0, 161)
    slope = expit(a) * expit(-a) * (a[1] - a[0])
    z = (a - mean) / sd
    columns = [function @ slope for function in _hermite_functions(z, N_TERMS - 1)]
    higher = np.stack(columns, axis=1) / np.sqrt(np.arange(1, N_TERMS))
    return np.column_stack([ndtr(-z) @ slope, higher])


def _hermite_functions(z, n):
    """Yield the values of ``h_k(z)`` times the normal density for ``k < n``, one by one."""
    previous, current = np.zeros_like(z), np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    for k in range(n):
        yield current
        following = (z * current - np.sqrt(k) * previous) / np.sqrt(k + 1.0)
        previous, current = current, following


def sigmoid_covariance(first, second, correlation):
    """Covariances of sigmoids of jointly normal activations, by Mehler's expansion.

    The expansion is ``sum_(k > 0) rho^k f_k g_k`` with the coefficients of `hermite_coefficients`.
    Largest errors, at correlations of 1 or -1: 1e-10 at standard deviations of 3, 2e-7 at 5, 1e-4
    at 10, 2e-3 at 20, and 0.01 for steps.

    Parameters
    ----------
    first : ndarray of shape (n, N_TERMS)
    second : ndarray of shape (m, N_TERMS)
    correlation : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n, m)
    """
    covariance = np.zeros_like(correlation)
    power = np.ones_like(correlation)
    largest = np.max(np.abs(first), axis=0) * np.max(np.abs(second), axis=0)
    rest = np.cumsum(largest[::-1])[::-1]
    for k in range(1, N_TERMS):
        if rest[k] < VANISHING:
            break
        power *= correlation
        covariance += power * (first[:, k, None] * second[:, k])
    return covariance


def binary_information(p, q, covariance):
    """Mutual information of two binary variables, in nats.

    Parameters
    ----------
    p, q : ndarray of shape (n, 1) and (m,)
        Probabilities of 1 of both variables.
    covariance : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n, m)
        Mutual information, never negative; small values do not suffer from cancellation.
    """
    least = -np.minimum(p * q, (1.0 - p) * (1.0 - q))
    most = np.minimum(p * (1.0 - q), (1.0 - p) * q)
    covariance = np.clip(covariance, least, most)
    information = 0.0
    for product, sign in ((p * q, 1), (p * (1 - q), -1), ((1 - p) * q, -1), ((1 - p) * (1 - q), 1)):
        product = np.maximum(product, np.finfo(float).tiny)
        information = information + product * _excess(sign * covariance / product)
    return information


def _excess(x):
    """Function ``(1 + x) log(1 + x) - x``, for ``x >= -1``."""
    x = np.maximum(x, -1.0)
    small = np.abs(x) < 1e-3
    exact = (1.0 + x) * np.log1p(np.where(x > -1.0, x, 0.0)) - x
    return np.where(small, x * x * (0.5 - x * (1.0 / 6 - x / 12)), exact)
