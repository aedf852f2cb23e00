"""Likelihood of input-dependent noise given the residuals.

Given the precision of every residual, the network of the means has Gaussian noise with ``factors``,
and the noise network has the likelihood of this module. Each has a posterior of one network.
"""

import numpy as np

from skbayesnn.posterior.likelihoods._likelihoods import Likelihood, _without_level

HIGHEST = 300.0  # log precision beyond which exponentials would overflow


class SquaredResiduals(Likelihood):
    """Likelihood of the log precision ``h`` with squared residuals as targets.

    A residual whose square is ``q`` and which has ``gamma`` degrees of freedom left contributes
    ``1/2 (exp(h) q - gamma h)`` to the misfit, of slope ``beta E_D - gamma/2`` (MacKay 1992,
    chapter 6): minus the derivative of the evidence with respect to the log precision, where the
    slope of the likelihood would be ``beta E_D - 1/2``. Targets are ``q / gamma``, and their
    factors ``gamma``.
    """

    compiled = "squared_residuals"
    one_curvature = False

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_n s_n gamma_n (exp(h_n) q_n / gamma_n - h_n)``, shape ``(...)``."""
        rows = targets.counts * (self._ratios(outputs, targets) - outputs)
        return _without_level(0.5 * np.sum(rows, axis=(-2, -1)))

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``s (exp(h) q - gamma) / 2`` and (diagonal) curvature.

        The exact curvature is ``s exp(h) q / 2``; otherwise the curvature is its expectation at the
        true precision, ``s gamma / 2``.
        """
        ratios, counts = self._ratios(outputs, targets), 0.5 * targets.counts
        curvature = counts * ratios if exact else np.broadcast_to(counts, outputs.shape)
        return counts * (ratios - 1.0), curvature

    @staticmethod
    def _ratios(outputs, targets):
        return np.exp(np.minimum(outputs, HIGHEST)) * targets.y
