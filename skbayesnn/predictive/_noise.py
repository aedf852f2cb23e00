"""Noise models for predictions: the distribution of residuals under each of several networks.

Minima and draws share the protocol `GaussianNoise`; each noise model is one class. The first axis
is that of the networks.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.posterior import FARTHEST, squared_scales
from skbayesnn.predictive._marginals import NORMAL, StudentTLaw, log_normal_density

N_SCALES = 80  # Gaussians that make Student-t noise
LEFT_OUT = 40.0  # nats below the largest weight at which one of them is left out
NODES, SHARES = hermegauss(15)  # for the standard normal; densities are accurate up to 8 sd
SHARES = SHARES / SHARES.sum()
NEGLIGIBLE = 1e-10  # share of a Gaussian in Student-t noise below which quantiles ignore it


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise of one level for each network and output.

    The squared scales ``1/tau``, ``(m, n_outputs)``, are the variances of Gaussian noise, typical
    ones if it depends on the input.
    """

    squared_scales: np.ndarray

    n_gaussians = 1
    heavy_tails = False  # True if moments of high order do not exist

    # distributions of residuals in units of their scale, each with its networks
    laws = ((NORMAL, slice(None)),)
    widths = ()  # memory per row in doubles for all networks

    def of(self, chosen):
        """Select the noise of some networks, by their indices."""
        names = ("squared_scales", "degrees_of_freedom", "theta", "correlation")
        arrays = {name: getattr(self, name, None) for name in names}
        return replace(self, **{k: v[chosen] for k, v in arrays.items() if v is not None})

    @property
    def typical_variances(self):
        """Variances ``(m, n_outputs)``; geometric means over training rows if rows differ."""
        return self.squared_scales

    def scales(self, X):
        """Scales ``tau^(-1/2)`` at every row, ``(m, n or 1, n_outputs)``."""
        return np.sqrt(self.squared_scales)[:, None]

    def variances(self, X):
        """Variances at every row, ``(m, n or 1, n_outputs)``."""
        return self.typical_variances[:, None]

    def covariances(self, X):
        """Covariances between outputs at every row, ``(m, n or 1, n_outputs, n_outputs)``."""
        variances = self.variances(X)
        return variances[..., None] * np.eye(variances.shape[-1])

    def mixture(self, X):
        """Gaussian mixture: shares ``(m, s)`` and variances ``(m, s, n or 1, n_outputs)``."""
        variances = self.scales(X)[:, None] ** 2
        return np.ones(variances.shape[:2]), variances

    def draw(self, X, shape, rng):
        """Draw residuals at every row, ``(m, n, n_outputs)``."""
        return rng.standard_normal(shape) * self.scales(X)

    def log_density(self, residual, covariance, X):
        """Log density of targets, jointly over the outputs, ``(m, n)``.

        Residuals ``(m, n, n_outputs)`` are targets less outputs. The ``covariance`` ``(m, n,
        n_outputs, n_outputs)`` is that of the outputs, without noise; ``None`` if they are certain.
        """
        if covariance is None:
            return self._of_certain(residual / self.scales(X), np.log(self.scales(X)))
        shares, variances = self.mixture(X)
        total = covariance[:, None] + variances[..., None] * np.eye(residual.shape[-1])
        densities = log_normal_density(residual[:, None], total)
        return logsumexp(densities, axis=1, b=shares[..., None])

    def pointwise(self, y, outputs, covariances, X, known=None):
        """Predictions of targets under each network.

        Outputs and covariances are as in `log_density`; ``known`` ``(n, n_outputs)`` are variances
        of known errors, see `Targets`. Returned are log densities ``(m, n)``, and means of the
        targets, probabilities below ``y`` and variances of the targets, ``(m, n, n_outputs)``.
        """
        if known is not None:
            covariances = 0.0 if covariances is None else covariances
            errors = known[..., None] * np.eye(y.shape[-1])
            covariances = np.broadcast_to(covariances + errors, (*outputs.shape, y.shape[-1]))
        residual, variance = y - outputs, np.broadcast_to(self.variances(X), outputs.shape)
        logs = self.log_density(residual, covariances, X)
        if covariances is not None:
            variance = variance + np.diagonal(covariances, axis1=-2, axis2=-1)
            return logs, outputs, ndtr(residual / np.sqrt(variance)), variance
        return logs, outputs, self._cdf(residual / self.scales(X)), variance

    def widened(self, y, outputs, spread, X, known=None):
        """Predictions as by `pointwise`, of outputs with independent errors of variance ``spread``.

        The errors widen the law of the noise: exactly where it is Gaussian, as is all noise with
        ``known`` errors, and nearly so where they are small compared with the noise.
        """
        spread = spread if known is None else spread + known
        scales = np.sqrt(self.scales(X) ** 2 + spread)
        z = (y - outputs) / scales
        logs, variances = self._of_certain(z, np.log(scales)), self.variances(X) + spread
        return logs, outputs, self._cdf(z), variances

    def _cdf(self, z):
        """Distribution functions of residuals in units of their scales, ``(m, n, n_outputs)``."""
        cdf = np.empty_like(z)
        for law, chosen in self.laws:
            cdf[chosen] = law.cdf(z[chosen])
        return cdf

    def _of_certain(self, z, log_scales):
        p = z.shape[-1]
        squares = np.sum(z**2, axis=-1)
        return -0.5 * (squares + p * np.log(2.0 * np.pi)) - np.sum(log_scales, axis=-1)


@lru_cache(maxsize=64)
def noise_scales(degrees_of_freedom):
    """Finite scale mixture of Gaussians for Student-t noise.

    Student-t noise is Gaussian noise of variance ``1 / (tau u)`` with ``u`` from a Gamma
    distribution of shape and rate ``nu/2`` (Lange, Little & Taylor 1989). The integral over ``ln
    u`` is done by the trapezoidal rule, which converges exponentially for such functions; added to
    Gaussian outputs the noise stays a mixture of Gaussians, so that densities, probabilities and
    quantiles follow at once.

    Returned are the weights of the Gaussians ``(m,)``, which sum to 1, and the factors ``1/u``
    ``(m,)`` of the squared scale ``1/tau`` of the noise. Infinite ``nu`` is Gaussian noise.
    """
    if np.isinf(degrees_of_freedom):
        return np.ones(1), np.ones(1)
    half = 0.5 * degrees_of_freedom
    low = np.log(degrees_of_freedom) - 2.0 * np.log(FARTHEST) - 6.0
    high = brentq(lambda x: half * (np.expm1(x) - x) - LEFT_OUT, 1e-6, 50.0)
    x, step = np.linspace(low, high, N_SCALES, retstep=True)
    log_weights = half * (x - np.exp(x)) + half * np.log(half) - gammaln(half) + np.log(step)
    return np.exp(log_weights - logsumexp(log_weights)), np.exp(-x)


def log_scale_mixture_density(residual, covariance, variances, degrees_of_freedom):
    """Log density ``(n,)`` of Gaussian outputs with multivariate Student-t noise.

    ``residual`` ``(n, p)`` are targets less means, ``covariance`` ``(n, p, p)`` is that of the
    outputs without noise, ``variances`` ``(n, p)`` are the squared scales ``1/tau`` of the noise.
    """
    weights, factors = noise_scales(degrees_of_freedom)
    scale = np.sqrt(variances)
    white = covariance / (scale[:, :, None] * scale[:, None, :])
    values, vectors = np.linalg.eigh(white)
    along = (np.swapaxes(vectors, 1, 2) @ (residual / scale)[..., None])[..., 0]
    total = np.maximum(values, 0.0) + factors[:, None, None]  # (m, n, p)
    density = -0.5 * np.sum(along**2 / total + np.log(2.0 * np.pi * total), axis=-1)
    return logsumexp(density, axis=0, b=weights[:, None]) - np.sum(np.log(scale), axis=-1)


@dataclass(frozen=True)
class StudentTNoise(GaussianNoise):
    """Student-t noise; a row is an outlier in all its outputs."""

    degrees_of_freedom: np.ndarray | None = None  # (m,)

    n_gaussians = N_SCALES
    heavy_tails = True

    @property
    def laws(self):
        values, index = np.unique(self.degrees_of_freedom, return_inverse=True)
        return [(StudentTLaw.of(float(nu)), index == i) for i, nu in enumerate(values)]

    @property
    def typical_variances(self):
        """Variances ``(m, n_outputs)``."""
        factor = np.array([squared_scales(float(nu)) for nu in self.degrees_of_freedom])
        return factor[:, None] * super().typical_variances

    def mixture(self, X):
        parts = [noise_scales(float(nu)) for nu in self.degrees_of_freedom]
        shares, factors = (np.stack(some) for some in zip(*parts, strict=True))
        kept = shares.max(axis=0) > NEGLIGIBLE
        shares = shares[:, kept] / shares[:, kept].sum(axis=1, keepdims=True)
        return shares, factors[:, kept, None, None] * self.scales(X)[:, None] ** 2

    def draw(self, X, shape, rng):
        nu = self.degrees_of_freedom[:, None]
        stretch = np.sqrt(nu / rng.chisquare(np.broadcast_to(nu, shape[:-1])))
        return stretch[..., None] * super().draw(X, shape, rng)

    def log_density(self, residual, covariance, X):
        if covariance is None:
            return super().log_density(residual, None, X)
        variances = np.broadcast_to(self.scales(X) ** 2, residual.shape)
        densities = map(
            log_scale_mixture_density, residual, covariance, variances, self.degrees_of_freedom
        )
        return np.stack(list(densities))

    def _of_certain(self, z, log_scales):
        nu, p = self.degrees_of_freedom[:, None], z.shape[-1]
        constant = gammaln(0.5 * (nu + p)) - gammaln(0.5 * nu) - 0.5 * p * np.log(nu * np.pi)
        delta = np.sum(z**2, axis=-1)
        return constant - 0.5 * (nu + p) * np.log1p(delta / nu) - np.sum(log_scales, axis=-1)


@dataclass(frozen=True)
class NoiseNetworks(GaussianNoise):
    """Gaussian noise whose log precision is the output of a network.

    The log precision at an input may have a Gaussian posterior, that of the network linearised in
    its weights. The noise is then a mixture of Gaussians, here those of Gauss-Hermite quadrature
    over the log precision: the less certain the level, the wider its tails. Where there are
    several outputs, all take the same node together.
    """

    network: Network | None = None  # from the inputs to the log precision of every output
    theta: np.ndarray | None = None  # (m, k)
    log_range: tuple = (-np.inf, np.inf)  # of log precisions, for all outputs or for each
    precision: object = None  # of the posterior of the weights, of a single network

    @property
    def n_gaussians(self):
        """Number of Gaussians in the noise of a network, see `mixture`."""
        return 1 if self.precision is None else len(NODES)

    @property
    def widths(self):
        return list(self.network.layer_sizes[1:])

    def scales(self, X):
        """Standard deviations at every row at the most probable weights, ``(m, n, n_outputs)``."""
        log_precision = outputs(self.network, self.theta, X)
        return np.exp(-0.5 * np.clip(log_precision, *self.log_range))

    def variances(self, X):
        """Variances at every row, ``(m, n, n_outputs)``."""
        shares, variances = self.mixture(X)
        return np.sum(shares[..., None, None] * variances, axis=1)

    def mixture(self, X):
        """Gaussian mixture: shares ``(m, s)`` and variances ``(m, s, n, n_outputs)``."""
        if self.precision is None:
            return super().mixture(X)
        n_outputs = self.network.n_outputs
        variances = np.empty((1, len(NODES), len(X), n_outputs))
        for rows in row_blocks(len(X), n_outputs * self.network.n_weights):
            trace = forward(self.network, self.theta[0], X[rows], order=1)
            covariance = self.precision.project(jacobian(trace))
            sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
            log_precision = trace.outputs - NODES[:, None, None] * sd
            variances[0, :, rows] = np.exp(-np.clip(log_precision, *self.log_range))
        return SHARES[None], variances

    def draw(self, X, shape, rng):
        if self.precision is None:
            return super().draw(X, shape, rng)
        (shares,), (variances,) = self.mixture(X)
        nodes = rng.choice(len(shares), size=shape[:-1], p=shares)
        return rng.standard_normal(shape) * np.sqrt(variances[nodes, np.arange(len(X))])

    def log_density(self, residual, covariance, X):
        if covariance is None and self.precision is not None:
            covariance = np.zeros((*residual.shape, residual.shape[-1]))
        return super().log_density(residual, covariance, X)


@dataclass(frozen=True)
class CorrelatedNoise(GaussianNoise):
    """Gaussian noise that is correlated between outputs."""

    correlation: np.ndarray | None = None  # (m, n_outputs, n_outputs)

    def covariances(self, X):
        sd = np.sqrt(self.typical_variances)
        return (sd[:, :, None] * self.correlation * sd[:, None, :])[:, None]

    def draw(self, X, shape, rng):
        normal = rng.standard_normal(shape)[..., None]
        return (np.linalg.cholesky(self.covariances(X)) @ normal)[..., 0]

    def log_density(self, residual, covariance, X):
        noise = self.covariances(X)
        return log_normal_density(residual, noise if covariance is None else covariance + noise)


class _Censored:
    """Noise of training rows of which some are limits."""

    def pointwise(self, y, outputs, covariances, X, known=None):
        """Predict as `GaussianNoise.pointwise`; ``known`` are sides, see `CensoredGaussian`.

        A limit has the log probability
        of the values that it allows, and the distribution function in their middle. A mean among
        these values is put at the limit, where it has no error. Outputs of a row with a limit count
        as independent.
        """
        logs, mean, cdf, variance = super().pointwise(y, outputs, covariances, X)
        limit, (shares, spreads) = known != 0.0, self.mixture(X)
        if covariances is not None:
            spreads = spreads + np.diagonal(covariances, axis1=-2, axis2=-1)[:, None]
        scales = np.sqrt(spreads)
        z = (y - mean)[:, None] / scales
        each = np.where(limit, log_ndtr(-known * z), NORMAL.log_density(z) - np.log(scales))
        each = logsumexp(each, axis=1, b=shares[..., None, None])
        logs = np.where(limit.any(axis=-1), each.sum(axis=-1), logs)
        inside = np.where(known < 0.0, np.maximum(mean, y), np.minimum(mean, y))
        mean = np.where(limit, inside, mean)
        return logs, mean, np.where(limit, 0.5 * (cdf + (known > 0.0)), cdf), variance


class CensoredNoise(_Censored, GaussianNoise):
    """Gaussian noise of training rows of which some are limits."""


class CensoredStudentTNoise(_Censored, StudentTNoise):
    """Student-t noise of training rows of which some are limits."""
