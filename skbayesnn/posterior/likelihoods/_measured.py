"""Gaussian noise with known measurement errors of the targets.

The variance of a target is the given variance of its measurement plus that of a noise level.
"""

from dataclasses import dataclass

import numpy as np

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Misfit
from skbayesnn.posterior.priors._weight_groups import sums_by


@dataclass(frozen=True)
class MeasuredGaussian(Gaussian):
    """Gaussian likelihood of ``t = f + noise + error`` with errors of known variances ``v_no``.

    With the noise precision ``tau_o`` of output ``o``, a target has the precision ``tau_o F_no``,
    where ``F_no = 1 / (1 + tau_o v_no)`` is the share of the noise level in its
    variance. The log likelihood has the derivative (the ML-II equations of a variance component,
    Harville 1977)::

        1/2 sum_no s_n F_no (1 - tau_o F_no e_no^2) = n_l / 2 - beta_l E_l

    with respect to ``ln beta_l``. A noise level is therefore measured by ``n_l = sum_no s_n F_no``
    targets and re-estimated from ``E_l = 1/2 sum_no s_n F_no^2 relative_o e_no^2`` as without
    errors. The `Targets` hold the variances.
    """

    typical: np.ndarray  # (n_outputs,), typical variance of the errors of every output

    compiled = None
    linear = False

    def noise_sd(self, beta):
        """Standard deviation ``(1/tau_o + v_o)^(1/2)`` at typical errors, ``(..., n_outputs)``."""
        return np.sqrt(1.0 / self.precisions(beta) + self.typical)

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_no s_n (tau_o F_no e_no^2 - ln F_no)``, and ``E_l`` of every level."""
        tau, F = self.shares(targets, beta)
        squares = F * (outputs - targets.y) ** 2
        rows = np.sum(tau * squares - np.log(F), axis=-1)
        value = 0.5 * (rows[..., None, :] @ targets.weight)[..., 0]
        squares = 0.5 * (targets.weight @ (F * squares)) * self.relative
        return Misfit(value, sums_by(self.membership, squares))

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``s tau F e`` and (diagonal) curvature ``s tau F``."""
        tau, F = self.shares(targets, beta)
        curvature = targets.weight[:, None] * tau * F
        return curvature * (outputs - targets.y), np.broadcast_to(curvature, outputs.shape)

    def noise_counts(self, targets, beta):
        """Effective number of targets ``n_l = sum_no s_n F_no`` of every noise level."""
        return (targets.weight @ self.shares(targets, beta)[1]) @ self.membership

    def output_rows(self, outputs, targets, beta):
        """`Targets` of the exact ridge regression, as the noise is Gaussian."""
        tau, F = self.shares(targets, beta)
        return targets._replace(precision=tau[..., 0, :], factors=F)

    def shares(self, targets, beta):
        """Noise precisions ``(..., 1, n_outputs)`` and shares ``F`` ``(..., n, n_outputs)``."""
        tau = self.precisions(beta)[..., None, :]
        # One layout for any number of networks: on it depend the last bits of products.
        known = np.multiply(tau, targets.known, order="C")
        return tau, 1.0 / (1.0 + known)
