"""Expected information gains of regression, in closed form (MacKay 1992, chapter 4).

They need second moments only: covariances ``S`` ``(n, p, p)`` of the ``p`` outputs at candidates,
``S_u`` at points of interest, and ``C`` ``(n, p, n_points * p)`` between both, without noise. All
are in units of the noise at each input, see `LinearModel`: targets have the covariance ``S + 1``.
"""

import numpy as np

SMALLEST = np.finfo(float).tiny


def regression_gain(question, noise_variances, interest):
    """Make the function that computes the gains of a block of candidates.

    Parameters
    ----------
    question : Question
    noise_variances : callable
        Function from rows to ``nu^2``, ``(n, p)``, standardised units.
    interest : Interest or None

    Returns
    -------
    callable
        Function from ``mean`` ``(n, p)``, ``S`` and ``C`` to gains ``(n,)``, or ``(n, n_points)``
        for the kind ``"marginal"``.
    """
    if question.kind == "total":
        return lambda mean, S, C: total_gain(S)
    if question.kind == "joint":
        return lambda mean, S, C: _shared(unit_scale(_noisy(S)) @ C)  # C: with a basis (4.12)
    if question.kind == "q_optimal":
        units = noise_variances(question.X_interest) * question.y_scale**2
        weight = question.weight[:, None] * units
        return lambda mean, S, C: _variance_removed(_noisy(S), C, weight)
    predicted = question.kind == "predicted_target"
    right = unit_scale(_noisy(interest.S) if predicted else interest.S)
    if question.kind == "marginal":
        return lambda mean, S, C: _marginal(_noisy(S), C, right)
    return lambda mean, S, C: _marginal(_noisy(S), C, right) @ question.weight  # (4.13)


def total_gain(S):
    """Total gain ``1/2 log det(1 + S)`` (MacKay 1992, equation 4.9), shape (n,)."""
    if S.shape[-1] == 1:
        return 0.5 * np.log1p(S[:, 0, 0])
    return 0.5 * np.linalg.slogdet(_noisy(S))[1]


def _noisy(S):
    """Covariances of targets, their noise included."""
    return S + np.eye(S.shape[-1])


def unit_scale(S):
    """Whitening matrices ``L^-1`` with ``S = L L^T``, ``(n, p, p)``."""
    return np.linalg.inv(np.linalg.cholesky(S))


def two_sided(left, C, right):
    """Products ``left C right^T`` of pairs: ``(n, p, p)``, ``(n, p, m * p)`` and ``(m, p, p)``.

    Returns
    -------
    ndarray of shape (n, m, p, p)
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


def _marginal(S, C, right):
    """Information about every point by itself (MacKay 1992, equation 4.10): (n, n_points)."""
    return _shared(two_sided(unit_scale(S), C, right))


def _variance_removed(S, C, weight):
    """Mean reduction of variance, ``sum_u P_u (g^T A^-1 g_u)^2 / (nu^2 + s^2)``, shape (n,)."""
    R = unit_scale(S) @ C
    return np.sum(R * R, axis=1) @ weight.ravel()
