"""Noise of the inputs, of known size, which the slope of the network hands on to the targets.

If the inputs at which a target was measured are ``x + error``, with errors of variances ``s_j``
(their covariance is ``S``), a target is to first order ``f(x) + J error + noise``, with the
derivatives ``J = df/dx``. So the noise of a row has the covariance ``J S J^T`` beside its own
(Wright 1999, "Bayesian approach to neural-network modeling with input uncertainty", IEEE
Transactions on Neural Networks 10).

The likelihoods here take these covariances as given (`Posterior.by_inputs`). That they follow the
weights is up to the search: see `with_noisy_inputs`.
"""

from dataclasses import dataclass, replace

import numpy as np

from skbayesnn.network import forward, input_slopes, row_blocks
from skbayesnn.posterior._likelihoods import Gaussian, Misfit
from skbayesnn.posterior._measured import MeasuredGaussian


@dataclass(frozen=True)
class NoisyInputGaussian(MeasuredGaussian):
    """`MeasuredGaussian` of one output whose inputs have noise, too.

    What that makes of the targets adds to the known variances of their errors.

    Parameters
    ----------
    levels, relative
        As for `Gaussian`.
    typical : ndarray of shape (n_outputs,)
        Typical variance of errors and of what comes from the inputs.
    input_variances : ndarray of shape (d,)
        ``s_j``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import NoisyInputGaussian, Targets
    >>> given = np.zeros(1, dtype=int), np.ones(1), np.zeros(1), np.ones(2)
    >>> targets = Targets(np.array([[2.0]]), np.ones(1), by_inputs=np.array([[[3.0]]]))
    >>> NoisyInputGaussian(*given).derivatives(np.zeros((1, 1)), targets, np.ones(1))[1]
    array([[0.25]])
    """

    input_variances: np.ndarray

    def _variances(self, targets):
        return known_variances(targets) + np.diagonal(_by_inputs(targets), axis1=-2, axis2=-1)


@dataclass(frozen=True)
class NoisyInputsGaussian(Gaussian):
    """The same for several outputs, to which an error of an input adds at once.

    The covariance of a row is ``Sigma_n = diag(1 / tau_o + v_no) + C_n``, with ``C_n = J S J^T``.
    With ``u = Sigma_n^-1 e_n`` and the share ``F_no = (Sigma_n^-1)_oo / tau_o``, the log likelihood
    has the derivative ``1/2 sum_no s_n (F_no - u_no^2 / tau_o) = n_l / 2 - beta_l E_l`` in ``ln
    beta_l``, so that a level is re-estimated as under `MeasuredGaussian`, which this is where there
    is one output.

    Parameters
    ----------
    levels, relative, typical, input_variances
        As for `NoisyInputGaussian`.
    """

    typical: np.ndarray
    input_variances: np.ndarray

    compiled = None
    linear = False

    def noise_sd(self, beta):
        """``(1/tau_o + v_o)^(1/2)`` of every output at typical variances, ``(..., n_outputs)``."""
        return np.sqrt(1.0 / self.precisions(beta) + self.typical)

    def misfit(self, outputs, targets, beta):
        """``1/2 sum_n s_n (e^T Sigma_n^-1 e + ln det (T Sigma_n))``, and ``E_l`` of every level."""
        tau, inverse, log_det = self._parts(targets, beta)
        residual = outputs - targets.y
        u = _times(inverse, residual)
        rows = np.sum(residual * u, axis=-1) + log_det + np.sum(np.log(tau), axis=-1)
        value = 0.5 * (rows[..., None, :] @ targets.weight)[..., 0]
        energies = self._sums(0.5 * (targets.weight @ (u**2 / tau)))
        return Misfit(value, energies / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient, and curvature ``s Sigma_n^-1`` ``(..., n, n_outputs, n_outputs)``."""
        return _of_precision(self._parts(targets, beta)[1], outputs, targets)

    def misfit_and_gradient(self, outputs, targets, beta):
        """`misfit`, and its gradient."""
        return self.misfit(outputs, targets, beta), self.derivatives(outputs, targets, beta)[0]

    def level_derivatives(self, outputs, targets, beta, level, exact=True):
        tau, inverse, _ = self._parts(targets, beta)
        mine = (self.membership[:, level] / tau)[..., None]
        return _of_precision(inverse @ (mine * inverse), outputs, targets)

    def level_information(self, outputs, targets, beta):
        tau, inverse, _ = self._parts(targets, beta)
        u = _times(inverse, outputs - targets.y)
        share = np.diagonal(inverse, axis1=-2, axis2=-1) / tau
        scaled = u / tau
        cross = inverse * (scaled[..., :, None] * scaled[..., None, :])  # u D_l Sigma^-1 D_k u
        cross -= 0.5 * (inverse / tau[..., None]) * (inverse / tau[..., None, :])
        own = 0.5 * (share - u * scaled)
        by_outputs = np.tensordot(targets.weight, cross, (0, -3))
        total = self.membership.T @ by_outputs @ self.membership
        return total + self._sums(targets.weight @ own) * np.eye(self.n_levels)

    def noise_counts(self, targets, beta):
        """``n_l = sum_no s_n F_no``: targets less those that errors and inputs explain."""
        tau, inverse, _ = self._parts(targets, beta)
        return self._sums(targets.weight @ (np.diagonal(inverse, axis1=-2, axis2=-1) / tau))

    def output_rows(self, outputs, targets, beta):
        """``None``: outputs have no ridge regressions of their own."""
        return None

    def _parts(self, targets, beta):
        """``tau`` ``(..., 1, n_outputs)``, and inverses and log determinants of ``Sigma_n``."""
        tau = self.precisions(beta)[..., None, :]
        own = 1.0 / tau + known_variances(targets)
        sigma = own[..., None] * np.eye(own.shape[-1]) + _by_inputs(targets)
        return tau, *inverse_and_log_det(sigma)

    def _sums(self, values):
        return (values[..., None, :] @ self.membership)[..., 0, :]


NOISY_INPUTS = NoisyInputGaussian, NoisyInputsGaussian


def with_input_noise(likelihood, input_variances):
    """The likelihood of Gaussian noise levels whose inputs have noise, too.

    Parameters
    ----------
    likelihood : Gaussian or MeasuredGaussian
    input_variances : ndarray of shape (d,)
    """
    typical = getattr(likelihood, "typical", np.zeros(len(likelihood.levels)))
    kind = NoisyInputGaussian if len(likelihood.levels) == 1 else NoisyInputsGaussian
    return kind(likelihood.levels, likelihood.relative, typical, input_variances)


def slope_covariances(network, theta, X, input_variances):
    """``J S J^T`` of every row.

    Parameters
    ----------
    network : Network
    theta : ndarray of shape (..., k)
    X : ndarray of shape (n, d)
    input_variances : ndarray of shape (d,)

    Returns
    -------
    ndarray of shape (..., n, n_outputs, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import slope_covariances
    >>> theta = np.array([3.0, 5.0, 1.0])
    >>> slope_covariances(Network((2, 1)), theta, np.zeros((1, 2)), np.array([1.0, 0.01]))
    array([[[9.25]]])
    """
    p, d = network.n_outputs, len(input_variances)
    result, scale = np.empty((*theta.shape[:-1], len(X), p, p)), np.sqrt(input_variances)
    for rows in row_blocks(len(X), d * max(network.layer_sizes)):
        J = input_slopes(forward(network, theta, X[rows], order=1), scale).outputs
        result[..., rows, :, :] = J @ np.swapaxes(J, -1, -2)
    return result


def at_slopes(posterior, theta):
    """The posterior with the noise that that of the inputs makes at some weights ``(k,)``."""
    network, X, given = posterior.network, posterior.X, posterior.likelihood.input_variances
    return replace(posterior, by_inputs=slope_covariances(network, theta, X, given))


def known_variances(targets):
    """Of the errors of targets, ``(n, n_outputs)``; zeros if none are known."""
    return np.zeros_like(targets.y) if targets.variances is None else targets.variances


def inverse_and_log_det(sigma):
    """Of covariance matrices ``(..., p, p)``."""
    if sigma.shape[-1] == 1:
        return 1.0 / sigma, np.log(sigma[..., 0, 0])
    return np.linalg.inv(sigma), np.linalg.slogdet(sigma)[1]


def _by_inputs(targets):
    """What inputs make of the noise of targets; nothing before slopes are known."""
    if targets.by_inputs is None:
        return np.zeros((*targets.y.shape, targets.y.shape[-1]))
    return targets.by_inputs


def _times(matrices, vectors):
    return (matrices @ vectors[..., None])[..., 0]


def _of_precision(precision, outputs, targets):
    """Gradient and curvature of ``1/2 sum_n s_n e_n^T P_n e_n``."""
    weight = targets.weight[:, None]
    gradient = weight * _times(precision, outputs - targets.y)
    curvature = weight[..., None] * precision
    return gradient, np.broadcast_to(curvature, (*outputs.shape, outputs.shape[-1]))
