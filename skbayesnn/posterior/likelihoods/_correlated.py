"""Gaussian noise with correlations between the outputs of a row, and their uniform prior.

Let ``W`` be a matrix of ``p`` rows and ``p + 1`` columns of independent standard normal numbers.
Then ``W W^T`` has a Wishart distribution of ``p + 1`` degrees of freedom, and its correlation
matrix is uniform over all correlation matrices (Barnard, McCulloch & Meng 2000, section 2.2). The
entries of ``W`` are the coordinates of correlations in samplers. They are redundant in rotations
and lengths of the rows, which only the prior determines.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, multigammaln

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Misfit

WELL_APART = 1e-10  # least eigenvalue of a correlation matrix


@dataclass(frozen=True)
class CorrelatedGaussian(Gaussian):
    """Likelihood of targets with Gaussian noise of covariance ``T^(-1/2) R T^(-1/2)``.

    ``T`` has the precisions ``tau_o`` of the single outputs on its diagonal, ``R`` is a correlation
    matrix. With whitened residuals ``u_o = tau_o^(1/2) (f_o - t_o)`` the misfit of a row is ``1/2
    u^T R^-1 u``, and ``beta_l E_l = 1/2 sum_n s_n sum_(o in l) u_no (R^-1 u_n)_o``. Precisions per
    row are not supported.
    """

    # (..., n_outputs, n_outputs), correlation matrix ``R``, positive definite
    correlation: np.ndarray

    compiled = None
    quadratic = False  # in the outputs it is, but the correlations are inferred as well
    linear = False

    @cached_property
    def inverse(self):
        """Inverse ``R^-1`` of the correlation matrix."""
        return np.linalg.inv(self.correlation)

    def covariance(self, beta):
        """Covariance of the noise, ``(..., n_outputs, n_outputs)``."""
        sd = self.noise_sd(beta)
        return sd[..., :, None] * self.correlation * sd[..., None, :]

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_n s_n u_n^T R^-1 u_n``, and ``E_l`` of every level."""
        u = np.sqrt(self.precisions(beta))[..., None, :] * (outputs - targets.y)
        parts = 0.5 * (targets.weight @ (u * (u @ self.inverse)))
        energies = (parts[..., None, :] @ self.membership)[..., 0, :]
        return Misfit(np.sum(parts, axis=-1), energies / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient, and curvature ``s T^(1/2) R^-1 T^(1/2)`` ``(..., n, n_outputs, n_outputs)``."""
        return self._of_precision(self._precision(beta), outputs, targets)

    def level_derivatives(self, outputs, targets, beta, level, exact=True):
        mine = 0.5 * self.membership[:, level]
        shares = mine[:, None] + mine  # d ln (tau_o tau_p)^(1/2) / d ln beta_l
        return self._of_precision(self._precision(beta) * shares, outputs, targets)

    def level_information(self, outputs, targets, beta):
        residual = outputs - targets.y
        moments = np.swapaxes(residual, -1, -2) @ (targets.weight[:, None] * residual)
        products = 0.5 * self._precision(beta) * moments
        shares = 0.5 * (self.membership[:, None] + self.membership)  # (o, p, l)
        return np.einsum("...op,opk,opl->...kl", products, shares, shares)

    def log_normaliser(self, beta, n_rows):
        """Log normaliser of the density of all rows, of shape ``(...)``."""
        log_det = np.linalg.slogdet(self.correlation)[1]
        return super().log_normaliser(beta, n_rows) - 0.5 * n_rows * log_det

    def output_rows(self, outputs, targets, beta):
        """Return ``None``: outputs have no separate ridge regressions."""
        return None

    def _precision(self, beta):
        """Precision matrix ``Sigma^-1 = T^(1/2) R^-1 T^(1/2)`` of the noise."""
        root = np.sqrt(self.precisions(beta))
        return root[..., :, None] * self.inverse * root[..., None, :]

    @staticmethod
    def _of_precision(precision, outputs, targets):
        """Gradient and curvature of ``1/2 sum_n s_n e_n^T Lambda e_n``."""
        weight, n_outputs = targets.weight, outputs.shape[-1]
        gradient = weight[:, None] * ((outputs - targets.y) @ precision)
        curvature = weight[:, None, None] * precision[..., None, :, :]
        return gradient, np.broadcast_to(curvature, (*outputs.shape, n_outputs))


def log_prior_of_correlations(n_outputs):
    """Log density of the uniform distribution over correlation matrices."""
    a = 0.5 * (n_outputs + 1)
    return float(n_outputs * gammaln(a) - multigammaln(a, n_outputs))


def correlation_of(covariance):
    """Correlation matrices of covariance matrices, with eigenvalues bounded from below."""
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    correlation = covariance / sd[..., :, None] / sd[..., None, :]
    return correlation + WELL_APART * (np.eye(sd.shape[-1]) - correlation)


def correlation_matrix(z, n_outputs):
    """Map standard normal coordinates to correlation matrices and their derivatives.

    From ``z`` ``(..., m)`` they are ``(..., n_outputs, n_outputs)`` and ``(..., m, n_outputs,
    n_outputs)``.
    """
    lead = z.shape[:-1]
    rows = z.reshape(*lead, n_outputs, n_outputs + 1)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit = rows / length
    correlation = correlation_of(unit @ np.swapaxes(unit, -1, -2))
    # d R_ab / d W_ad = (U_bd - R_ab U_ad) / |W_a|
    pull = unit[..., None, :, :] - correlation[..., None] * unit[..., :, None, :]
    pull = (1.0 - WELL_APART) * pull / length[..., None]
    slopes = np.einsum("ac,...abd->...adcb", np.eye(n_outputs), pull)
    slopes = (slopes + np.swapaxes(slopes, -1, -2)).reshape(*z.shape, n_outputs, n_outputs)
    return correlation, slopes


def correlation_coordinates(correlation):
    """Coordinates of typical size that `correlation_matrix` maps to given correlation matrices."""
    p = correlation.shape[-1]
    root = np.linalg.cholesky(correlation)
    rows = np.concatenate([root, np.zeros((*root.shape[:-1], 1))], axis=-1)
    return np.sqrt(p + 1.0) * rows.reshape(*rows.shape[:-2], p * (p + 1))
