"""Noise of drawn networks: what every draw says about the scatter of targets at any input."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skbayesnn.network import Network, outputs
from skbayesnn.predictive._mixture import NORMAL, StudentTLaw
from skbayesnn.predictive._scale_mixture import N_SCALES, noise_scales


@dataclass(frozen=True)
class DrawnNoise:
    """Noise of constant level, one for each draw.

    Parameters
    ----------
    squared_scales : ndarray of shape (m, n_outputs)
        ``1/tau``: of Gaussian noise the variance.
    degrees_of_freedom : ndarray of shape (m,), optional
        Of Student-t noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.predictive import DrawnNoise
    >>> noise = DrawnNoise(np.array([[0.01], [0.04]]), degrees_of_freedom=np.array([4.0, 4.0]))
    >>> noise.typical_variances[:, 0]  # squared scales times nu / (nu - 2)
    array([0.02, 0.08])
    """

    squared_scales: np.ndarray
    degrees_of_freedom: np.ndarray | None = None

    @property
    def law(self):
        """Distribution of residuals in units of their scale."""
        if self.degrees_of_freedom is None:
            return NORMAL
        return StudentTLaw(self.degrees_of_freedom[:, None, None])

    @property
    def _variance_factor(self):
        if self.degrees_of_freedom is None:
            return 1.0
        return (self.degrees_of_freedom / (self.degrees_of_freedom - 2.0))[:, None]

    @property
    def typical_variances(self):
        """Variances ``(m, n_outputs)``; geometric means over training rows if rows differ."""
        return self._variance_factor * self.squared_scales

    def scales(self, X):
        """``tau^(-1/2)`` at every row, ``(m, n or 1, n_outputs)``."""
        return np.sqrt(self.squared_scales)[:, None]

    def variances(self, X):
        """Variances at every row, ``(m, n or 1, n_outputs)``."""
        return self.typical_variances[:, None]

    @property
    def n_gaussians(self):
        """How many Gaussians make the noise of a draw, see `mixture`."""
        return 1 if self.degrees_of_freedom is None else N_SCALES

    def mixture(self, X):
        """As a mixture of Gaussians: shares ``(m, s)``, variances ``(m, s, n or 1, n_outputs)``."""
        variances = self.scales(X)[:, None] ** 2
        if self.degrees_of_freedom is None:
            return np.ones((len(variances), 1)), variances
        parts = [noise_scales(float(nu)) for nu in self.degrees_of_freedom]
        shares, factors = (np.stack(some) for some in zip(*parts, strict=True))
        return shares, factors[:, :, None, None] * variances

    def log_density(self, residual, X):
        """Of residuals ``(m, n, n_outputs)``, jointly over the outputs: ``(m, n)``."""
        scales, p = self.scales(X), residual.shape[-1]
        delta = np.sum((residual / scales) ** 2, axis=-1)
        log_scales = np.sum(np.log(scales), axis=-1)
        if self.degrees_of_freedom is None:
            return -0.5 * (delta + p * np.log(2.0 * np.pi)) - log_scales
        nu = self.degrees_of_freedom[:, None]
        constant = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(nu * np.pi)
        return constant - 0.5 * (nu + p) * np.log1p(delta / nu) - log_scales


@dataclass(frozen=True)
class DrawnNoiseNetworks(DrawnNoise):
    """Gaussian noise whose log precision every draw has a network for.

    Parameters
    ----------
    network : Network
        From the inputs to the log precision of every output.
    theta : ndarray of shape (m, k)
    log_range : tuple of float
        Bounds of the log precision.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.predictive import DrawnNoiseNetworks
    >>> theta = np.array([[-2.0, 0.0]])  # one draw: the log precision falls as the input rises
    >>> noise = DrawnNoiseNetworks(np.ones((1, 1)), network=Network((1, 1)), theta=theta)
    >>> noise.scales(np.log([[1.0], [2.0]]))
    array([[[1.],
            [2.]]])
    """

    network: Network | None = None
    theta: np.ndarray | None = None
    log_range: tuple = (-np.inf, np.inf)

    def scales(self, X):
        """Standard deviations at every row, ``(m, n, n_outputs)``."""
        return np.exp(-0.5 * np.clip(outputs(self.network, self.theta, X), *self.log_range))

    def variances(self, X):
        """Variances at every row, ``(m, n, n_outputs)``."""
        return self.scales(X) ** 2
