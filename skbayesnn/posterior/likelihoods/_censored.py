"""Gaussian and Student-t noise with limits: of some targets only a bound is known."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, stdtr

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Likelihood, Misfit
from skbayesnn.posterior.likelihoods._student_t import StudentT
from skbayesnn.posterior.priors._weight_groups import sums_by

FAR = -1e5  # residual below which the asymptotic form of Student's distribution is used


class Law(NamedTuple):
    """Law of the noise at residuals ``z`` in units of its scale.

    Its log density, its log distribution function, and the slope ``psi`` of minus the log density
    with its derivative; and a positive curvature in place of that.
    """

    log_density: np.ndarray
    log_cdf: np.ndarray
    psi: np.ndarray
    slope: np.ndarray
    positive: np.ndarray


@dataclass(frozen=True)
class CensoredGaussian(Gaussian):
    """Gaussian likelihood in which some targets are limits (Tobin 1958).

    `Targets` hold as ``known`` on which side of ``y`` the value lies: -1 below, +1 above, 0 where
    it was measured. With ``z = c tau^(1/2) (f - y)`` a limit of side ``c`` has the probability
    ``P(z)`` by the distribution function of the noise, whose density is ``p``. A noise level is
    re-estimated by expectation maximisation (Dempster, Laird & Rubin 1977): a limit adds ``1 - z
    h`` to ``2 beta E``, its expected square if noise is Gaussian, where ``h = p(z) / P(z)``.
    """

    compiled = None
    quadratic = False
    linear = False
    conjugate = False

    log_normaliser = Likelihood.log_normaliser  # the misfit holds all constants

    def misfit(self, outputs, targets, beta):
        """Minus the log probability of all targets with its constants, and ``E_l``."""
        return self._misfit(targets, beta, *self._parts(outputs, targets, beta))

    def misfit_and_gradient(self, outputs, targets, beta):
        """Misfit and its gradient, from the same law."""
        parts = root, _, limit, h, law = self._parts(outputs, targets, beta)
        gradient = targets.weight[:, None] * root * np.where(limit, -targets.known * h, law.psi)
        return self._misfit(targets, beta, *parts), gradient

    def _misfit(self, targets, beta, root, z, limit, h, law):
        rows = -np.where(limit, law.log_cdf, law.log_density + np.log(root))
        squares = 0.5 * (targets.weight @ np.where(limit, 1.0 - z * h, z * law.psi))
        value = (rows.sum(axis=-1)[..., None, :] @ targets.weight)[..., 0]
        return Misfit(value, sums_by(self.membership, squares) / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient and (diagonal) curvature, ``s tau h (psi + h)`` of limits."""
        root, _, limit, h, law = self._parts(outputs, targets, beta)
        weight, share = targets.weight[:, None], h * (law.psi + h)
        gradient = weight * root * np.where(limit, -targets.known * h, law.psi)
        if exact:
            return gradient, weight * root**2 * np.where(limit, share, law.slope)
        curvature = np.where(limit, np.maximum(share, 0.0), law.positive)
        return gradient, weight * root**2 * curvature

    def _parts(self, outputs, targets, beta):
        """Roots of the precisions, residuals ``z``, the mask of limits, ``p / P``, and the law."""
        root, sides = np.sqrt(self.precisions(beta))[..., None, :], targets.known
        limit = sides != 0.0
        z = root * (outputs - targets.y) * np.where(limit, sides, 1.0)
        law = self._law(z, limit)
        return root, z, limit, np.where(limit, np.exp(law.log_density - law.log_cdf), 0.0), law

    def _law(self, z, limit):
        """`Law` at residuals; the distribution function is needed at limits only."""
        log_density, one = -0.5 * (z * z + np.log(2.0 * np.pi)), np.ones(())
        return Law(log_density, log_ndtr(z), z, one, one)


@dataclass(frozen=True)
class CensoredStudentT(CensoredGaussian):
    """Student-t likelihood of one output in which some targets are limits.

    With ``u = (nu + 1) / (nu + z^2)`` the slope ``psi`` of minus the log density is ``u z``. Far
    on the wrong side of a limit the log probability is convex, as at outliers that were measured.
    """

    degrees_of_freedom: float = 4.0  # degrees of freedom ``nu``, a number or (...)

    one_curvature = False

    variance_factor = StudentT.variance_factor

    def _law(self, z, limit):
        nu = np.asarray(self.degrees_of_freedom)[..., None, None]
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)
        log_density = constant - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)
        log_cdf = np.zeros_like(log_density)
        log_cdf[..., limit] = np.log(stdtr(nu[..., 0], np.maximum(z[..., limit], FAR)))
        far = limit & (z < FAR)
        log_cdf = np.where(far, log_density + np.log(np.maximum(-z, 1.0) / nu), log_cdf)
        u = (nu + 1.0) / (nu + z * z)
        change = -2.0 * z * u * u / (nu + 1.0)  # du/dz
        return Law(log_density, log_cdf, z * u, u + z * change, u)
