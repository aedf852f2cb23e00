"""Student-t likelihood of targets with outliers."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln
from scipy.stats import t

from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Misfit
from skbayesnn.posterior.priors._weight_groups import sums_by

FARTHEST = 1e3  # residual, in scales of the noise, up to which its law is followed


@lru_cache(maxsize=64)
def squared_scales(degrees_of_freedom):
    """Ratio ``nu / (nu - 2)`` of the variance of Student-t noise to its squared scale.

    Up to two degrees of freedom the variance is infinite; that of the noise truncated at `FARTHEST`
    scales replaces it.
    """
    nu = degrees_of_freedom
    if nu > 2.0:
        return nu / (nu - 2.0)
    return t.expect(np.square, args=(nu,), lb=-FARTHEST, ub=FARTHEST, conditional=True)


@dataclass(frozen=True)
class StudentT(Gaussian):
    """Multivariate Student-t likelihood of ``t = f + noise`` (Lange, Little & Taylor 1989).

    With ``delta_n = sum_o tau_o (f_no - t_no)^2``, ``tau_o`` the precision of output ``o`` and
    ``p`` outputs, minus the log density of a row is ``(nu + p)/2 log(1 + delta_n / nu)`` up to
    constants. The noise is Gaussian with its precision multiplied by a Gamma-distributed factor for
    every row, so that a row is an outlier in all its outputs. The mean of that factor given the
    residual, ``u_n = (nu + p) / (nu + delta_n)``, is the weight of the row in expectation
    maximisation.

    A noise precision is re-estimated from ``E_l = 1/2 sum_n s_n u_n e_n^2``, as ``beta_l E_l`` is
    the derivative of the misfit with respect to ``ln beta_l``. Precisions per row are not
    supported.
    """

    # degrees of freedom ``nu``; `misfit` and `log_normaliser` also take an array ``(...)``
    degrees_of_freedom: float = 4.0

    compiled = "student_t"
    quadratic = False
    linear = False
    one_curvature = False

    @property
    def variance_factor(self):
        """Variance of the noise times its precision, see `squared_scales`."""
        return squared_scales(self.degrees_of_freedom)

    @property
    def bends(self):
        """True if the misfit is nearly flat at gross outliers."""
        return self.degrees_of_freedom <= 2.0

    def misfit(self, outputs, targets, beta):
        """Misfit ``sum_n s_n (nu + p)/2 log(1 + delta_n/nu)``, and ``E_l`` of every level."""
        residual, tau, u, nu = self._parts(outputs, targets.y, beta)
        p, s = len(self.levels), targets.weight
        squares = residual**2
        rows = 0.5 * (nu + p) * np.log1p(np.sum(tau * squares, axis=-1) / nu)
        value = (rows[..., None, :] @ s)[..., 0]
        squares = 0.5 * ((s * u)[..., None, :] @ squares)[..., 0, :] * self.relative
        return Misfit(value, sums_by(self.membership, squares))

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``r = s u tau e`` and curvature of the misfit.

        The exact curvature is negative for outliers; it is ``(..., n, n_outputs, n_outputs)`` if
        there are several outputs. Otherwise it is ``s u tau``, that of expectation maximisation.
        """
        residual, tau, u, _ = self._parts(outputs, targets.y, beta)
        s = targets.weight
        weighted = s[:, None] * u[..., None] * tau
        curvature = weighted
        if exact:
            slope = -(u**2) / (self.degrees_of_freedom + len(self.levels))  # du/d delta
            pull, by_delta = tau * residual, (2.0 * s * slope)[..., None]
            if len(self.levels) == 1:
                curvature = weighted + by_delta * pull * pull
            else:
                curvature = by_delta[..., None] * pull[..., :, None] * pull[..., None, :]
                each = np.arange(len(self.levels))
                curvature[..., each, each] += weighted
        return weighted * residual, curvature

    def log_normaliser(self, beta, n_rows):
        """Log normaliser of the density of all rows, of shape ``(...)``."""
        nu, p = self.degrees_of_freedom, len(self.levels)
        constant = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(0.5 * nu)
        return super().log_normaliser(beta, n_rows) + n_rows * constant

    def output_rows(self, outputs, targets, beta):
        """`Targets` of factors ``u_n``, for one step of expectation maximisation."""
        u = self._parts(outputs, targets.y, beta)[2]
        return targets._replace(precision=self.precisions(beta), factors=u[..., None])

    def _parts(self, outputs, y, beta):
        """Residuals, precisions ``(..., 1, n_outputs)``, row weights ``(..., n)``, and ``nu``."""
        residual, tau = outputs - y, self.precisions(beta)[..., None, :]
        nu, p = np.asarray(self.degrees_of_freedom)[..., None], len(self.levels)
        return residual, tau, (nu + p) / (nu + np.sum(tau * residual**2, axis=-1)), nu
