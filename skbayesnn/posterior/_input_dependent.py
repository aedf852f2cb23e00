"""Noise whose level depends on the input: what the mean and the noise network are trained with.

The network of the means sees targets whose rows differ in precision; the network of the noise sees
squared residuals. Both are ordinary posteriors of one network each.
"""

from dataclasses import dataclass

import numpy as np

from skbayesnn.posterior._likelihoods import Gaussian, _NoNoiseLevel

HIGHEST = 300.0  # log precision beyond which exponentials would overflow


@dataclass(frozen=True)
class RowGaussian(Gaussian):
    """Gaussian noise of precision ``beta_o exp(g_no)`` with given ``g``.

    ``y`` holds the targets and, in as many further columns, ``g``, whose mean over the rows
    (weighted by ``sample_weight``) is zero: ``beta`` is the geometric mean of the precisions, and
    the normaliser that of equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import RowGaussian
    >>> residuals, g = np.array([[1.0], [1.0]]), np.log([[4.0], [0.25]])
    >>> noise = RowGaussian.per_output(1)
    >>> noise.errors(residuals, np.hstack([np.zeros((2, 1)), g]), np.ones(2))
    array([2.125])
    """

    equal_rows = False

    def errors(self, outputs, y, sample_weight, beta=None):
        """``E_D = 1/2 sum_n s_n exp(g_n) (f_n - t_n)^2`` per level, ``(..., n_levels)``."""
        targets, factors = self._split(y)
        squares = 0.5 * (sample_weight @ (factors * (outputs - targets) ** 2)) * self.relative
        return (squares[..., None, :] @ self._membership)[..., 0, :]

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient ``r`` and (diagonal) curvature of the misfit, both ``(..., n, n_outputs)``."""
        targets, factors = self._split(y)
        curvature = sample_weight[:, None] * factors * self.precisions(beta)[..., None, :]
        return curvature * (outputs - targets), np.broadcast_to(curvature, outputs.shape)

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient ``r`` of the misfit."""
        gradient = self.derivatives(outputs, y, sample_weight, beta)[0]
        return self.errors(outputs, y, sample_weight), gradient

    def _split(self, y):
        n_outputs = len(self.levels)
        return y[:, :n_outputs], np.exp(y[:, n_outputs:])


class SquaredResiduals(_NoNoiseLevel):
    """What residuals tell about the log precision ``h`` of their noise.

    A residual whose square is ``q`` and which has ``gamma`` degrees of freedom left contributes
    ``1/2 (exp(h) q - gamma h)`` to the misfit, of slope ``beta E_D - gamma/2`` (MacKay 1992,
    chapter 6): minus the derivative of the evidence with respect to the log precision, where the
    slope of the likelihood would be ``beta E_D - 1/2``. ``y`` holds ``q`` and, in as many further
    columns, ``gamma``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import SquaredResiduals
    >>> q, gamma = np.full((4, 1), 0.25), np.ones((4, 1))
    >>> h = np.log([[4.0]] * 4)  # the log precision that fits these residuals
    >>> SquaredResiduals().derivatives(h, np.hstack([q, gamma]), np.ones(4), np.ones(1))[0].T
    array([[0., 0., 0., 0.]])
    """

    def errors(self, outputs, y, sample_weight, beta=None):
        """``1/2 sum_n s_n (exp(h_n) q_n - gamma_n h_n)``, shape ``(..., 1)``."""
        q, gamma = np.split(y, 2, axis=1)
        rows = 0.5 * np.sum(self._ratios(outputs, q) - gamma * outputs, axis=-1)
        return (rows[..., None, :] @ sample_weight[:, None])[..., 0]

    def derivatives(self, outputs, y, sample_weight, beta, exact=True):
        """Gradient ``s (exp(h) q - gamma) / 2`` and (diagonal) curvature.

        The exact curvature is ``s exp(h) q / 2``; otherwise it is what is expected of that at the
        true precision, ``s gamma / 2``.
        """
        q, gamma = np.split(y, 2, axis=1)
        weight = 0.5 * sample_weight[:, None] * beta[..., None, :]
        ratios = self._ratios(outputs, q)
        curvature = weight * (ratios if exact else gamma)
        return weight * (ratios - gamma), np.broadcast_to(curvature, outputs.shape)

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """What `errors` gives, and the gradient of the misfit."""
        gradient = self.derivatives(outputs, y, sample_weight, beta)[0]
        return self.errors(outputs, y, sample_weight), gradient

    @staticmethod
    def _ratios(outputs, q):
        return np.exp(np.minimum(outputs, HIGHEST)) * q
