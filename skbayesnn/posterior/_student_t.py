"""Student-t noise: targets among which some are far off."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skbayesnn.posterior._likelihoods import Gaussian


@dataclass(frozen=True)
class StudentT(Gaussian):
    """Targets ``t = f + noise`` with multivariate Student-t noise (Lange, Little & Taylor 1989).

    With ``delta_n = sum_o tau_o (f_no - t_no)^2``, ``tau_o`` the precision of output ``o`` and
    ``p`` outputs, a row's minus log density is ``(nu + p)/2 log(1 + delta_n / nu)`` and constants.
    It is Gaussian noise whose precision is multiplied, row by row, by a factor of its own from a
    Gamma distribution: a row is an outlier in all its outputs. The mean of that factor given the
    residual, ``u_n = (nu + p) / (nu + delta_n)``, weighs the row in expectation maximisation.

    ``E_l = 1/2 sum_n s_n u_n e_n^2`` is what a noise precision is re-estimated from: ``beta_l E_l``
    is the derivative of the misfit with respect to ``ln beta_l``. The rest of the misfit is its
    *excess*.

    Parameters
    ----------
    levels, relative
        As for `Gaussian`.
    degrees_of_freedom : float
        ``nu``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import StudentT
    >>> noise = StudentT.per_output(1)
    >>> noise.row_weights(np.zeros((2, 1)), np.array([[0.0], [6.0]]), np.ones(1))
    array([1.25 , 0.125])
    """

    degrees_of_freedom: float = 4.0

    linear = False
    quadratic = False
    equal_rows = False

    @property
    def variance_factor(self):
        """Variance of the noise times its precision: ``nu / (nu - 2)``, infinite up to 2."""
        nu = self.degrees_of_freedom
        return nu / (nu - 2.0) if nu > 2.0 else np.inf

    def row_weights(self, outputs, y, beta):
        """``u_n``, between 0 and ``(nu + p) / nu``: how much each row counts, ``(..., n)``."""
        delta = np.sum(self.precisions(beta)[..., None, :] * (outputs - y) ** 2, axis=-1)
        return self._weights(delta)

    def _weights(self, delta):
        nu, p = self.degrees_of_freedom, len(self.levels)
        return (nu + p) / (nu + delta)

    def errors(self, outputs, y, sample_weight, beta):
        """``E_l = 1/2 sum_n s_n u_n (f_n - t_n)^2`` per level, ``(..., n_levels)``."""
        squares = (outputs - y) ** 2
        delta = np.sum(self.precisions(beta)[..., None, :] * squares, axis=-1)
        weight = sample_weight * self._weights(delta)
        squares = 0.5 * (weight[..., None, :] @ squares)[..., 0, :] * self.relative
        return (squares[..., None, :] @ self._membership)[..., 0, :]

    def excess(self, outputs, y, sample_weight, beta):
        """Misfit ``sum_n s_n (nu + p)/2 log(1 + delta_n/nu)`` less ``sum_l beta_l E_l``."""
        nu, p = self.degrees_of_freedom, len(self.levels)
        delta = np.sum(self.precisions(beta)[..., None, :] * (outputs - y) ** 2, axis=-1)
        rows = 0.5 * (nu + p) * np.log1p(delta / nu) - 0.5 * self._weights(delta) * delta
        return (rows[..., None, :] @ sample_weight)[..., 0]

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient ``r = s u tau e`` and curvature of the misfit.

        The exact curvature is negative for outliers; it is ``(..., n, n_outputs, n_outputs)`` if
        there are several outputs. Otherwise it is ``s u tau``, that of expectation maximisation.
        """
        residual, tau, u = self._parts(outputs, y, beta)
        weighted = sample_weight[:, None] * u[..., None] * tau
        curvature = weighted
        if exact:
            slope = -(u**2) / (self.degrees_of_freedom + len(self.levels))  # du/d delta
            pull = tau * residual
            curvature = _diagonal_plus_outer(weighted, 2.0 * sample_weight * slope, pull, pull)
        return weighted * residual, curvature

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient ``r`` of the misfit."""
        gradient = self.derivatives(outputs, y, sample_weight, beta, exact=False)[0]
        return self.errors(outputs, y, sample_weight, beta), gradient

    def level_derivatives(self, outputs, y, sample_weight, beta, level, exact=True):
        """Derivatives of what `derivatives` returns with respect to ``ln beta_l``."""
        residual, tau, u = self._parts(outputs, y, beta)
        total = self.degrees_of_freedom + len(self.levels)
        slope, bend = -(u**2) / total, 2.0 * u**3 / total**2  # of u in delta
        mine = self._membership[:, level]
        delta = np.sum(mine * tau * residual**2, axis=-1)  # d delta / d ln beta_l
        s = sample_weight
        diagonal = s[:, None] * tau * ((slope * delta)[..., None] + u[..., None] * mine)
        curvature = diagonal
        if exact:
            pull = tau * residual
            curvature = _diagonal_plus_outer(diagonal, 2.0 * s * bend * delta, pull, pull)
            part = 2.0 * s * slope
            own = mine * pull
            if len(mine) == 1:
                curvature = curvature + 2.0 * part[..., None] * own * pull
            else:
                outer = own[..., :, None] * pull[..., None, :]
                curvature = curvature + part[..., None, None] * (outer + np.swapaxes(outer, -1, -2))
        return diagonal * residual, curvature

    def noise_information(self, outputs, y, sample_weight, beta):
        """Second derivatives of the misfit in ``ln beta``, ``(..., n_levels, n_levels)``."""
        residual, tau, u = self._parts(outputs, y, beta)
        delta = (tau * residual**2) @ self._membership  # (..., n, n_levels)
        total = self.degrees_of_freedom + len(self.levels)
        weighted = 0.5 * (sample_weight * u)[..., None] * delta
        levels = np.arange(self.n_levels)
        matrix = -np.swapaxes(weighted * u[..., None] / total, -1, -2) @ delta
        matrix[..., levels, levels] += np.sum(weighted, axis=-2)
        return matrix

    def log_normaliser(self, beta, n_rows):
        """Logarithm of the density's constant, all rows together, of shape ``(...)``."""
        nu, p = self.degrees_of_freedom, len(self.levels)
        constant = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(0.5 * nu)
        return super().log_normaliser(beta, n_rows) + n_rows * constant

    def _parts(self, outputs, y, beta):
        """Residuals, precisions ``(..., 1, n_outputs)`` and row weights ``(..., n)``."""
        residual, tau = outputs - y, self.precisions(beta)[..., None, :]
        return residual, tau, self._weights(np.sum(tau * residual**2, axis=-1))


def _diagonal_plus_outer(diagonal, factor, left, right):
    """``diag(d) + c a b^T`` per row; as a diagonal if there is one output."""
    if diagonal.shape[-1] == 1:
        return diagonal + factor[..., None] * left * right
    matrix = factor[..., None, None] * left[..., :, None] * right[..., None, :]
    outputs = np.arange(diagonal.shape[-1])
    matrix[..., outputs, outputs] += diagonal
    return matrix
