"""Noise models for predictions: the distribution of residuals under each of several networks.

Minima and draws share the protocol `GaussianNoise`; each noise model is one class. The first axis
is that of the networks.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.posterior import (
    CensoredGaussian,
    CorrelatedGaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    squared_scales,
)
from skbayesnn.predictive._counts import CountLaws
from skbayesnn.predictive._marginals import NORMAL, StudentTLaw
from skbayesnn.predictive._mixture import log_normal_density
from skbayesnn.predictive._scale_mixture import N_SCALES, log_scale_mixture_density, noise_scales

NODES, SHARES = hermegauss(15)  # for the standard normal; densities are accurate up to 8 sd
SHARES = SHARES / SHARES.sum()
NEGLIGIBLE = 1e-10  # share of a Gaussian in Student-t noise below which quantiles ignore it


@dataclass(frozen=True)
class GaussianNoise:
    """Gaussian noise of one level for each network and output.

    Parameters
    ----------
    squared_scales : ndarray of shape (m, n_outputs)
        Squared scales ``1/tau``: for Gaussian noise the variance; typical values if it depends on
        the input.
    unit : float or ndarray of shape (n_outputs,), default=1
        Unit of the outputs; scales and variances are multiplied by it and its square.
    """

    squared_scales: np.ndarray
    unit: object = 1.0

    n_gaussians = 1
    heavy_tails = False  # True if moments of high order do not exist

    @property
    def laws(self):
        """Distributions of residuals in units of their scale, each with its networks."""
        return [(NORMAL, slice(None))]

    @property
    def widths(self):
        """Memory per row in doubles for all networks."""
        return []

    def of(self, chosen):
        """Select the noise of some networks, by their indices."""
        names = ("squared_scales", "degrees_of_freedom", "theta", "correlation")
        arrays = {name: getattr(self, name, None) for name in names}
        return replace(self, **{k: v[chosen] for k, v in arrays.items() if v is not None})

    def in_units(self, scale):
        """Convert to the noise of outputs that are multiplied by ``scale``."""
        return replace(self, unit=self.unit * scale)

    @property
    def typical_variances(self):
        """Variances ``(m, n_outputs)``; geometric means over training rows if rows differ."""
        return self.squared_scales * self.unit**2

    def scales(self, X):
        """Scales ``tau^(-1/2)`` at every row, ``(m, n or 1, n_outputs)``."""
        return np.sqrt(self.squared_scales)[:, None] * self.unit

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
        """Log density of targets, jointly over the outputs.

        Parameters
        ----------
        residual : ndarray of shape (m, n, n_outputs)
            Targets less outputs.
        covariance : ndarray of shape (m, n, n_outputs, n_outputs), or None
            Covariance of the outputs, without noise; ``None`` if they are certain.
        X : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (m, n)
        """
        if covariance is None:
            return self._of_certain(residual / self.scales(X), np.log(self.scales(X)))
        shares, variances = self.mixture(X)
        total = covariance[:, None] + variances[..., None] * np.eye(residual.shape[-1])
        densities = log_normal_density(residual[:, None], total)
        return logsumexp(densities, axis=1, b=shares[..., None])

    def pointwise(self, y, outputs, covariances, X, known=None):
        """Predictions of targets under each network.

        Parameters
        ----------
        y : ndarray of shape (n, n_outputs)
        outputs : ndarray of shape (m, n, n_outputs)
        covariances : ndarray of shape (m, n, n_outputs, n_outputs), or None
            Covariance of the outputs; ``None`` if they are certain.
        X : ndarray of shape (n, n_features)
        known : ndarray of shape (n, n_outputs), optional
            Variances of known errors, see `Targets`.

        Returns
        -------
        log_density : ndarray of shape (m, n)
        mean, cdf, variance : ndarray of shape (m, n, n_outputs)
            Mean of the target, probability below ``y``, and variance of the target.
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
        cdf, z = np.empty_like(outputs), residual / self.scales(X)
        for law, chosen in self.laws:
            cdf[chosen] = law.cdf(z[chosen])
        return logs, outputs, cdf, variance

    def _of_certain(self, z, log_scales):
        p = z.shape[-1]
        squares = np.sum(z**2, axis=-1)
        return -0.5 * (squares + p * np.log(2.0 * np.pi)) - np.sum(log_scales, axis=-1)


@dataclass(frozen=True)
class StudentTNoise(GaussianNoise):
    """Student-t noise; a row is an outlier in all its outputs.

    Parameters
    ----------
    degrees_of_freedom : ndarray of shape (m,)
    """

    degrees_of_freedom: np.ndarray | None = None

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
        given = zip(residual, covariance, variances, self.degrees_of_freedom, strict=True)
        return np.stack([log_scale_mixture_density(*some) for some in given])

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

    Parameters
    ----------
    network : Network
        Network from the inputs to the log precision of every output.
    theta : ndarray of shape (m, k)
    log_range : tuple of float, or of ndarray of shape (n_outputs,)
        Bounds of the log precision.
    precision : Precision, optional
        Posterior precision of the weights; then there is only one network.
    """

    network: Network | None = None
    theta: np.ndarray | None = None
    log_range: tuple = (-np.inf, np.inf)
    precision: object = None

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
        return np.exp(-0.5 * np.clip(log_precision, *self.log_range)) * self.unit

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
        return SHARES[None], variances * self.unit**2

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
    """Gaussian noise that is correlated between outputs.

    Parameters
    ----------
    correlation : ndarray of shape (m, n_outputs, n_outputs)
    """

    correlation: np.ndarray | None = None

    def covariances(self, X):
        sd = np.sqrt(self.typical_variances)
        return (sd[:, :, None] * self.correlation * sd[:, None, :])[:, None]

    def draw(self, X, shape, rng):
        normal = rng.standard_normal(shape)[..., None]
        return (np.linalg.cholesky(self.covariances(X)) @ normal)[..., 0]

    def log_density(self, residual, covariance, X):
        noise = self.covariances(X)
        return log_normal_density(residual, noise if covariance is None else covariance + noise)


@dataclass(frozen=True)
class CensoredNoise(GaussianNoise):
    """Gaussian noise of training rows of which some are limits."""

    def pointwise(self, y, outputs, covariances, X, known=None):
        """Log probabilities, means, distribution functions and variances; see `GaussianNoise`.

        ``known`` are the sides of limits, see `CensoredGaussian`. A limit has the log probability
        of the values that it allows, and the distribution function in their middle. A mean among
        these values is put at the limit, where it has no error. Outputs of a row with a limit count
        as independent.
        """
        logs, mean, cdf, variance = super().pointwise(y, outputs, covariances, X)
        scale, limit = np.sqrt(variance), known != 0.0
        z = (y - mean) / scale
        each = np.where(limit, log_ndtr(-known * z), NORMAL.log_density(z) - np.log(scale))
        logs = np.where(limit.any(axis=-1), each.sum(axis=-1), logs)
        inside = np.where(known < 0.0, np.maximum(mean, y), np.minimum(mean, y))
        mean = np.where(limit, inside, mean)
        return logs, mean, np.where(limit, 0.5 * (cdf + (known > 0.0)), cdf), variance


@dataclass(frozen=True)
class CountNoise(GaussianNoise):
    """Variation of counts about their mean; ``squared_scales``: dispersions, 0 for Poisson."""

    def laws_at(self, outputs, covariances, exposures=None):
        """`CountLaws` of outputs ``(m, n, 1)`` with covariances ``(m, n, 1, 1)`` or ``None``."""
        log_means = outputs if exposures is None else outputs + np.log(exposures)
        variances = 0.0 * log_means if covariances is None else covariances[..., 0]
        return CountLaws(log_means, variances, self.squared_scales[:, None])

    def draw(self, X, shape, rng):
        """Draw the logarithms of the Gamma-distributed factors of negative binomial means."""
        if not self.squared_scales.any():
            return np.zeros(shape)
        size = np.broadcast_to(1.0 / self.squared_scales[:, None], shape)
        return np.log(np.maximum(rng.gamma(size) / size, np.finfo(float).tiny))

    def pointwise(self, y, outputs, covariances, X, known=None):
        """Log probabilities, means, distribution functions and variances; see `GaussianNoise`.

        The distribution function leaves out half of the probability of ``y``, so that it is
        centred at 1/2 for a calibrated model.
        """
        laws = self.laws_at(outputs, covariances, known)
        logs, (mean, spread, within) = laws.log_probability(y), laws.moments()
        return logs[..., 0], mean, laws.cdf(y) - 0.5 * np.exp(logs), spread + within


def noise_of_minimum(minimum, log_range):
    """Make the noise of a minimum; ``None`` for classifiers.

    Parameters
    ----------
    minimum : Minimum
    log_range : tuple of float, or of ndarray of shape (n_outputs,)
        Bounds of the log precision.
    """
    likelihood, network = minimum.likelihood, minimum.noise
    if likelihood.classes:
        return None
    if isinstance(likelihood, Poisson):
        return CountNoise(np.zeros((1, 1)))
    squared_scales = 1.0 / likelihood.precisions(minimum.hyper.beta)[None]
    if network is not None:
        given = network.network, network.theta[None], log_range, network.precision
        return NoiseNetworks(squared_scales, 1.0, *given)
    if isinstance(likelihood, CorrelatedGaussian):
        return CorrelatedNoise(squared_scales, 1.0, likelihood.correlation[None])
    if isinstance(likelihood, StudentT):
        return StudentTNoise(squared_scales, 1.0, np.array([likelihood.degrees_of_freedom]))
    return _plain(likelihood)(squared_scales)


def noise_of_draws(noise, joint, beta, state):
    """Make the noise of drawn networks; ``None`` for classifiers.

    Parameters
    ----------
    noise : str
        Name of the noise model, one of `NOISE_MODELS`.
    joint : JointPosterior
    beta : ndarray of shape (m, n_levels)
    state : ndarray of shape (m, ...)
        State of the noise, see `JointPosterior.noise_state`.
    """
    likelihood = joint.posterior.likelihood
    if likelihood.classes:
        return None
    if isinstance(likelihood, Poisson):
        return CountNoise(np.zeros((len(beta), 1)))
    squared_scales = 1.0 / likelihood.precisions(beta)
    if noise == "input_dependent":
        given = joint.noise_network, state, joint.free.beta_prior.log_range
        return NoiseNetworks(squared_scales, 1.0, *given)
    if noise == "correlated":
        correlation = np.tile(np.eye(beta.shape[-1]), (len(beta), 1, 1))
        rows, columns = np.tril_indices(beta.shape[-1], -1)
        correlation[:, rows, columns] = correlation[:, columns, rows] = state
        return CorrelatedNoise(squared_scales, 1.0, correlation)
    if noise == "student_t":
        return StudentTNoise(squared_scales, 1.0, state[:, 0])
    return _plain(likelihood)(squared_scales)


def _plain(likelihood):
    """Class of noise that has nothing but levels."""
    kinds = {NegativeBinomial: CountNoise, CensoredGaussian: CensoredNoise}
    return kinds.get(type(likelihood), GaussianNoise)
