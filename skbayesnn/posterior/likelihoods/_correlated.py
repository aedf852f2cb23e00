"""Gaussian noise with correlations between the outputs of a row, and their uniform prior."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, multigammaln

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Misfit
from skbayesnn.posterior.priors._weight_groups import sums_by

WELL_APART = 1e-10  # least eigenvalue of a correlation matrix


@dataclass(frozen=True)
class CorrelatedGaussian(Gaussian):
    """Likelihood of targets with Gaussian noise of covariance ``T^(-1/2) R T^(-1/2)``.

    ``T`` has the precisions ``tau_o`` of the single outputs on its diagonal, ``R`` is a correlation
    matrix. With whitened residuals ``u_o = tau_o^(1/2) (f_o - t_o)`` the misfit of a row is ``1/2
    u^T R^-1 u``, and ``beta_l E_l = 1/2 sum_n s_n sum_(o in l) u_no (R^-1 u_n)_o``. Precisions per
    row are not supported.
    """

    # (n_outputs, n_outputs), correlation matrix ``R``, positive definite
    correlation: np.ndarray

    compiled = None
    quadratic = False  # in the outputs it is, but the correlations are inferred as well
    linear = False
    conjugate = False  # outputs have no separate ridge regressions

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_n s_n u_n^T R^-1 u_n``, and ``E_l`` of every level."""
        residual = outputs - targets.y
        moments = np.swapaxes(residual, -1, -2) @ (targets.weight[:, None] * residual)
        parts = np.sum(0.5 * self._precision(beta) * moments, axis=-1)
        return Misfit(np.sum(parts, axis=-1), sums_by(self.membership, parts) / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient, and curvature ``s T^(1/2) R^-1 T^(1/2)`` ``(..., n, n_outputs, n_outputs)``."""
        precision, weight = self._precision(beta), targets.weight
        gradient = weight[:, None] * ((outputs - targets.y) @ precision)
        curvature = weight[:, None, None] * precision[..., None, :, :]
        return gradient, np.broadcast_to(curvature, (*outputs.shape, outputs.shape[-1]))

    def log_normaliser(self, beta, n_rows):
        log_det = np.linalg.slogdet(self.correlation)[1]
        return super().log_normaliser(beta, n_rows) - 0.5 * n_rows * log_det

    def _precision(self, beta):
        """Precision matrix ``Sigma^-1 = T^(1/2) R^-1 T^(1/2)`` of the noise."""
        sd = self.noise_sd(beta)
        return np.linalg.inv(sd[..., :, None] * self.correlation * sd[..., None, :])


def log_prior_of_correlations(n_outputs):
    """Log density of the uniform distribution over correlation matrices.

    See Barnard, McCulloch & Meng (2000, "Modeling covariance matrices in terms of standard
    deviations and correlations", Statistica Sinica 10), section 2.2.
    """
    a = 0.5 * (n_outputs + 1)
    return float(n_outputs * gammaln(a) - multigammaln(a, n_outputs))


def correlation_of(covariance):
    """Correlation matrix of a covariance matrix, with eigenvalues bounded from below."""
    sd = np.sqrt(np.diagonal(covariance))
    correlation = covariance / sd[:, None] / sd
    return correlation + WELL_APART * (np.eye(len(sd)) - correlation)
