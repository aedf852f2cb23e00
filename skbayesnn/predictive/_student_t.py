"""Student's t distribution, and noise that has it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, stdtr, stdtrit

from skbayesnn.posterior import FARTHEST, squared_scales
from skbayesnn.predictive._noise import GaussianNoise, NoiseNetworks

N_SCALES = 80  # Gaussians that make Student-t noise
LEFT_OUT = 40.0  # nats below the largest weight at which one of them is left out


class StudentTLaw:
    """Student's t distribution."""

    def __init__(self, degrees_of_freedom):
        nu = self.degrees_of_freedom = degrees_of_freedom
        self.log_constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi)

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, degrees_of_freedom):
        """Return the cached law."""
        return cls(degrees_of_freedom)

    def cdf(self, z):
        """Probability below ``z``."""
        return stdtr(self.degrees_of_freedom, z)

    def log_cdf(self, z):
        """Log probability below ``z``; below all numbers by the law's tail, ``p(z) / psi(z)``."""
        nu, below = self.degrees_of_freedom, self.cdf(z)
        far = below < np.finfo(float).tiny
        x = np.where(far, -z, 1.0)
        tail = self.log_density(x) + np.log((nu / x + x) / nu)
        return np.where(far, tail, np.log(np.where(far, 1.0, below)))

    def log_density(self, z):
        """Log density at ``z``."""
        nu = self.degrees_of_freedom
        return self.log_constant - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)

    def quantile(self, probability):
        """Quantile function, the inverse of `cdf`."""
        return stdtrit(self.degrees_of_freedom, probability)


@lru_cache(maxsize=64)
def noise_scales(degrees_of_freedom):
    """Finite scale mixture of Gaussians for Student-t noise.

    Student-t noise is Gaussian noise of variance ``1 / (tau u)`` with ``u`` from a Gamma
    distribution of shape and rate ``nu/2`` (Lange, Little & Taylor 1989). The integral over ``ln
    u`` is done by the trapezoidal rule, which converges exponentially for such functions; added to
    Gaussian outputs the noise stays a mixture of Gaussians, so that densities, probabilities and
    quantiles follow at once.

    Returned are the weights of the Gaussians ``(m,)``, which sum to 1, and the factors ``1/u``
    ``(m,)`` of the squared scale ``1/tau`` of the noise.
    """
    half = 0.5 * degrees_of_freedom
    low = np.log(degrees_of_freedom) - 2.0 * np.log(FARTHEST) - 6.0
    high = brentq(lambda x: half * (np.expm1(x) - x) - LEFT_OUT, 1e-6, 50.0)
    x, step = np.linspace(low, high, N_SCALES, retstep=True)
    log_weights = half * (x - np.exp(x)) + half * np.log(half) - gammaln(half) + np.log(step)
    return np.exp(log_weights - logsumexp(log_weights)), np.exp(-x)


@dataclass(frozen=True)
class StudentTNoise(GaussianNoise):
    """Student-t noise; a row is an outlier in all its outputs."""

    degrees_of_freedom: np.ndarray | None = None  # (m,)

    n_gaussians = N_SCALES
    heavy_tails = True

    @classmethod
    def of_networks(cls, likelihood, beta, state=None):
        degrees = np.array([likelihood.degrees_of_freedom]) if state is None else state[:, 0]
        return cls(1.0 / likelihood.precisions(beta), degrees)

    @property
    def laws(self):
        values, index = np.unique(self.degrees_of_freedom, return_inverse=True)
        return [(StudentTLaw.of(float(nu)), index == i) for i, nu in enumerate(values)]

    @property
    def typical_variances(self):
        """Variances ``(m, n_outputs)``."""
        return self._factors[:, None] * super().typical_variances

    def variances(self, X):
        return self._factors[:, None, None] * self.scales(X) ** 2

    @property
    def _factors(self):
        """Variances over squared scales, ``(m,)``."""
        return np.array([squared_scales(float(nu)) for nu in self.degrees_of_freedom])

    def mixture(self, X):
        parts = [noise_scales(float(nu)) for nu in self.degrees_of_freedom]
        shares, factors = (np.stack(some) for some in zip(*parts, strict=True))
        return shares, factors[..., None, None] * self.scales(X)[:, None] ** 2

    def draw(self, X, shape, rng):
        nu = self.degrees_of_freedom[:, None]
        stretch = np.sqrt(nu / rng.chisquare(np.broadcast_to(nu, shape[:-1])))
        return stretch[..., None] * super().draw(X, shape, rng)

    def scaled_log_density(self, z, log_scales):
        nu, p = self.degrees_of_freedom[:, None], z.shape[-1]
        constant = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(nu * np.pi)
        delta = np.sum(z**2, axis=-1)
        return constant - 0.5 * (nu + p) * np.log1p(delta / nu) - np.sum(log_scales, axis=-1)


@dataclass(frozen=True)
class StudentTNoiseNetworks(StudentTNoise, NoiseNetworks):
    """Student-t noise whose log precision is the output of a network, see `NoiseNetworks`."""
