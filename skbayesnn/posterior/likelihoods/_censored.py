"""Gaussian noise with limits: of some targets only a bound is known."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Likelihood, Misfit


@dataclass(frozen=True)
class CensoredGaussian(Gaussian):
    """Gaussian likelihood in which some targets are limits (Tobin 1958).

    `Targets` hold as ``known`` on which side of ``y`` the value lies: -1 below, +1 above, 0 where
    it was measured. With ``z = c tau^(1/2) (f - y)`` a limit of side ``c`` has the probability
    ``Phi(z)``, and its misfit the derivatives by ``f`` of a concave log probability. A noise level
    is re-estimated by expectation maximisation (Dempster, Laird & Rubin 1977): a limit adds its
    expected square ``1 - z h`` to ``2 beta E``, where ``h = phi(z) / Phi(z)``.
    """

    compiled = None
    quadratic = False
    linear = False
    conjugate = False

    log_normaliser = Likelihood.log_normaliser  # the misfit holds all constants

    def misfit(self, outputs, targets, beta):
        """Minus the log probability of all targets with its constants, and ``E_l``."""
        root, z, limit, hazard = self._parts(outputs, targets, beta)
        rows = np.where(limit, -log_ndtr(z), 0.5 * (z * z + np.log(2.0 * np.pi)) - np.log(root))
        squares = 0.5 * (targets.weight @ np.where(limit, 1.0 - z * hazard, z * z))
        energies = (squares[..., None, :] @ self.membership)[..., 0, :]
        return Misfit((rows.sum(axis=-1)[..., None, :] @ targets.weight)[..., 0], energies / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient and (diagonal) curvature, ``s tau h (z + h)`` of limits."""
        root, z, limit, hazard = self._parts(outputs, targets, beta)
        weight = targets.weight[:, None]
        gradient = weight * root * np.where(limit, -targets.known * hazard, z)
        return gradient, weight * root**2 * np.where(limit, hazard * (z + hazard), 1.0)

    def level_derivatives(self, outputs, targets, beta, level, exact=True):
        root, z, limit, h = self._parts(outputs, targets, beta)
        weight = targets.weight[:, None] * self.membership[:, level]
        share = h * (z + h)  # minus the slope of h in z
        bend = h * (1.0 - share) - share * (z + h)  # slope of the share
        gradient = np.where(limit, -0.5 * targets.known * (h - z * share), z)
        curvature = np.where(limit, share + 0.5 * z * bend, 1.0)
        return weight * root * gradient, weight * root**2 * curvature

    def level_information(self, outputs, targets, beta):
        _, z, limit, h = self._parts(outputs, targets, beta)
        rows = np.where(limit, 0.25 * z * h * (z * (z + h) - 1.0), 0.5 * z * z)
        return ((targets.weight @ rows)[..., None, :] @ self.membership) * np.eye(self.n_levels)

    def _parts(self, outputs, targets, beta):
        """Roots of the precisions, residuals ``z``, the mask of limits, and ``phi / Phi`` there."""
        root, sides = np.sqrt(self.precisions(beta))[..., None, :], targets.known
        limit = sides != 0.0
        z = root * (outputs - targets.y) * np.where(limit, sides, 1.0)
        hazard = np.exp(-0.5 * (z * z + np.log(2.0 * np.pi)) - log_ndtr(z))
        return root, z, limit, np.where(limit, hazard, 0.0)
