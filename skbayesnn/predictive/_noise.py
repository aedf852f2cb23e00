"""Gaussian noise: the distribution of residuals under each of several networks.

Minima and draws share the protocol `GaussianNoise`; each noise model is one class, here those of
Gaussian noise. The first axis is that of the networks.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.predictive._mixture import Components

NODES, SHARES = hermegauss(15)  # for the standard normal; densities are accurate up to 8 sd
SHARES = SHARES / SHARES.sum()
SQRT_2PI = np.sqrt(2.0 * np.pi)
NEGLIGIBLE = 1e-10  # share of a Gaussian in the noise below which quantiles ignore it


class NormalLaw:
    """Standard normal distribution."""

    log_constant = -np.log(SQRT_2PI)

    def cdf(self, z):
        """Probability below ``z``."""
        return ndtr(z)

    def log_cdf(self, z):
        """Log probability below ``z``, also where that is tiny."""
        return log_ndtr(z)

    def log_density(self, z):
        """Log density at ``z``."""
        return -0.5 * z * z + self.log_constant

    def quantile(self, probability):
        """Quantile function, the inverse of `cdf`."""
        return ndtri(probability)


NORMAL = NormalLaw()


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

    @classmethod
    def of_networks(cls, likelihood, beta, state=None):
        """Make the noise of networks; see `noise_of`."""
        return cls(1.0 / likelihood.precisions(beta))

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

    def components(self, weights, means, spread, X):
        """List of `Components` of targets, given weights ``(m,)``, means and spreads of outputs.

        The ``spread`` is that of `log_density`. With covariances the noise is a mixture of
        Gaussians.
        """
        if np.ndim(spread) < 4:
            scales = np.sqrt(self.scales(X) ** 2 + spread)
            return [Components(weights[i], means[i], scales[i], law) for law, i in self.laws]
        shares, variances = self.mixture(X)
        shares = np.where(shares > NEGLIGIBLE, shares, 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        scales = np.sqrt(variances_of(spread)[:, None] + variances)
        used, means = shares > 0.0, np.broadcast_to(means[:, None], scales.shape)
        weights = (weights[:, None] * shares)[used]
        return [Components(weights, means[used], scales[used], NORMAL)]

    def draw(self, X, shape, rng):
        """Draw residuals at every row, ``(m, n, n_outputs)``."""
        return rng.standard_normal(shape) * self.scales(X)

    def log_density(self, residual, spread, X):
        """Log density of targets, jointly over the outputs, ``(m, n)``.

        Residuals ``(m, n, n_outputs)`` are targets less outputs. The ``spread`` is the covariance
        ``(m, n, n_outputs, n_outputs)`` of the outputs, or 0 or the variances ``(m, n, n_outputs)``
        of independent errors. Such errors widen the law of the noise: exactly where it is Gaussian,
        as is all noise with known errors, and nearly so where they are small compared with the
        noise.
        """
        if np.ndim(spread) < 4:
            scales = np.sqrt(self.scales(X) ** 2 + spread)
            return self.scaled_log_density(residual / scales, np.log(scales))
        shares, variances = self.mixture(X)
        total = spread[:, None] + variances[..., None] * np.eye(residual.shape[-1])
        densities = log_normal_density(residual[:, None], total)
        return logsumexp(densities, axis=1, b=shares[..., None])

    def pointwise(self, y, outputs, spread, X, known=None):
        """Predictions of targets under each network.

        The ``spread`` is that of `log_density`; ``known`` ``(n, n_outputs)`` are variances of known
        errors, see `Targets`. Returned are log densities ``(m, n)``, and means of the targets,
        probabilities below ``y`` and variances of the targets, ``(m, n, n_outputs)``.
        """
        spread, residual = with_errors(spread, known), y - outputs
        variances = np.broadcast_to(self.variances(X) + variances_of(spread), residual.shape)
        if np.ndim(spread) == 4:
            below = ndtr(residual / np.sqrt(variances))
        else:
            z, below = residual / np.sqrt(self.scales(X) ** 2 + spread), np.empty(residual.shape)
            for law, chosen in self.laws:
                below[chosen] = law.cdf(z[chosen])
        return self.log_density(residual, spread, X), outputs, below, variances

    def scaled_log_density(self, z, log_scales):
        """Log density as by `log_density`, of residuals ``z`` in units of their scales."""
        p = z.shape[-1]
        squares = np.sum(z**2, axis=-1)
        return -0.5 * (squares + p * np.log(2.0 * np.pi)) - np.sum(log_scales, axis=-1)


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


@dataclass(frozen=True)
class CorrelatedNoise(GaussianNoise):
    """Gaussian noise that is correlated between outputs."""

    correlation: np.ndarray | None = None  # (m, n_outputs, n_outputs)

    @classmethod
    def of_networks(cls, likelihood, beta, state=None):
        return cls(1.0 / likelihood.precisions(beta), likelihood.correlation[None])

    def covariances(self, X):
        sd = np.sqrt(self.typical_variances)
        return (sd[:, :, None] * self.correlation * sd[:, None, :])[:, None]

    def draw(self, X, shape, rng):
        normal = rng.standard_normal(shape)[..., None]
        return (np.linalg.cholesky(self.covariances(X)) @ normal)[..., 0]

    def log_density(self, residual, spread, X):
        return log_normal_density(residual, spread + self.covariances(X))


def with_errors(spread, errors):
    """Add the variances ``(n, n_outputs)`` of known errors, if any, to a spread of outputs."""
    if errors is None or np.ndim(spread) < 4:
        return spread + (0.0 if errors is None else errors)
    return spread + errors[..., None] * np.eye(errors.shape[-1])


def variances_of(spread):
    """Variances of outputs, ``(m, n, n_outputs)`` or 0, of a spread as in `GaussianNoise`."""
    return np.diagonal(spread, axis1=-2, axis2=-1) if np.ndim(spread) == 4 else spread


def log_normal_density(residual, covariance):
    """Log density ``ln N(residual; 0, covariance)`` for (..., p) and (..., p, p): shape (...)."""
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, residual[..., None])[..., 0]
    log_det = 2.0 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    dimension = residual.shape[-1]
    return -0.5 * (np.sum(white**2, axis=-1) + log_det + dimension * np.log(2.0 * np.pi))
