"""Gaussian noise with correlations between the outputs of a row, and their uniform prior.

Let ``W`` be a matrix of ``p`` rows and ``p + 1`` columns of independent standard normal numbers.
Then ``W W^T`` has a Wishart distribution of ``p + 1`` degrees of freedom, and its correlation
matrix is uniform over all correlation matrices (Barnard, McCulloch & Meng 2000, section 2.2). The
entries of ``W`` are the coordinates of correlations in samplers. They are redundant in rotations
and lengths of the rows, which only the prior determines.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln, multigammaln

from skbayesnn.posterior.joint._joint import JointPosterior
from skbayesnn.posterior.likelihoods._likelihoods import Gaussian, Misfit
from skbayesnn.posterior.likelihoods._output_layer import Rows
from skbayesnn.posterior.priors._weight_groups import sums_by

WELL_APART = 1e-10  # least eigenvalue of a correlation matrix
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class CorrelatedGaussian(Gaussian):
    """Likelihood of targets with Gaussian noise of covariance ``T^(-1/2) R T^(-1/2)``.

    ``T`` has the precisions ``tau_o`` of the single outputs on its diagonal, ``R`` is a correlation
    matrix. With whitened residuals ``u_o = tau_o^(1/2) (f_o - t_o)`` the misfit of a row is ``1/2
    u^T R^-1 u``, and ``beta_l E_l = 1/2 sum_n s_n sum_(o in l) u_no (R^-1 u_n)_o``. Precisions per
    row are not supported.
    """

    # (..., n_outputs, n_outputs), correlation matrix ``R``, positive definite
    correlation: np.ndarray

    compiled = None
    quadratic = False  # in the outputs it is, but the correlations are inferred as well
    linear = False

    def covariance(self, beta):
        """Covariance of the noise, ``(..., n_outputs, n_outputs)``."""
        sd = self.noise_sd(beta)
        return sd[..., :, None] * self.correlation * sd[..., None, :]

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_n s_n u_n^T R^-1 u_n``, and ``E_l`` of every level."""
        parts = np.sum(self._products(outputs, targets, beta), axis=-1)
        return Misfit(np.sum(parts, axis=-1), sums_by(self.membership, parts) / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient, and curvature ``s T^(1/2) R^-1 T^(1/2)`` ``(..., n, n_outputs, n_outputs)``."""
        precision, weight = self._precision(beta), targets.weight
        gradient = weight[:, None] * ((outputs - targets.y) @ precision)
        curvature = weight[:, None, None] * precision[..., None, :, :]
        return gradient, np.broadcast_to(curvature, (*outputs.shape, outputs.shape[-1]))

    def log_normaliser(self, beta, n_rows):
        log_det = np.linalg.slogdet(self.correlation)[1]
        return super().log_normaliser(beta, n_rows) - 0.5 * n_rows * log_det

    def output_rows(self, outputs, targets, beta):
        return None  # outputs have no separate ridge regressions

    def _precision(self, beta):
        """Precision matrix ``Sigma^-1 = T^(1/2) R^-1 T^(1/2)`` of the noise."""
        return np.linalg.inv(self.covariance(beta))

    def _products(self, outputs, targets, beta):
        """Terms of the misfit by pairs of outputs, ``(..., n_outputs, n_outputs)``."""
        residual = outputs - targets.y
        moments = np.swapaxes(residual, -1, -2) @ (targets.weight[:, None] * residual)
        return 0.5 * self._precision(beta) * moments


def log_prior_of_correlations(n_outputs):
    """Log density of the uniform distribution over correlation matrices."""
    a = 0.5 * (n_outputs + 1)
    return float(n_outputs * gammaln(a) - multigammaln(a, n_outputs))


def correlation_of(covariance):
    """Correlation matrices of covariance matrices, with eigenvalues bounded from below."""
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    correlation = covariance / sd[..., :, None] / sd[..., None, :]
    return correlation + WELL_APART * (np.eye(sd.shape[-1]) - correlation)


def correlation_matrix(z, n_outputs):
    """Map standard normal coordinates to correlation matrices and their derivatives.

    From ``z`` ``(..., m)`` they are ``(..., n_outputs, n_outputs)`` and ``(..., m, n_outputs,
    n_outputs)``.
    """
    lead = z.shape[:-1]
    rows = z.reshape(*lead, n_outputs, n_outputs + 1)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit = rows / length
    correlation = correlation_of(unit @ np.swapaxes(unit, -1, -2))
    # d R_ab / d W_ad = (U_bd - R_ab U_ad) / |W_a|
    pull = unit[..., None, :, :] - correlation[..., None] * unit[..., :, None, :]
    pull = (1.0 - WELL_APART) * pull / length[..., None]
    slopes = np.einsum("ac,...abd->...adcb", np.eye(n_outputs), pull)
    slopes = (slopes + np.swapaxes(slopes, -1, -2)).reshape(*z.shape, n_outputs, n_outputs)
    return correlation, slopes


def correlation_coordinates(correlation):
    """Coordinates of typical size that `correlation_matrix` maps to given correlation matrices."""
    p = correlation.shape[-1]
    root = np.linalg.cholesky(correlation)
    rows = np.concatenate([root, np.zeros((*root.shape[:-1], 1))], axis=-1)
    return np.sqrt(p + 1.0) * rows.reshape(*rows.shape[:-2], p * (p + 1))


@dataclass(frozen=True)
class CorrelatedJoint(JointPosterior):
    """Joint posterior with noise that is correlated between outputs.

    The position holds, after the hidden weights, coordinates of the correlation matrix that are
    standard normal a priori, see `correlation_matrix`: weights in a group of fixed precision 1.

    Along the eigenvectors of the noise covariance the outputs have independent noise. If the
    weights from a unit to all outputs have the same prior, the prior is invariant under this
    rotation, so that the output layer can be integrated out for each eigenvector separately.

    The posterior has `CorrelatedGaussian` noise, whose correlation is ignored.
    """

    separate_outputs = False

    @cached_property
    def further_weights(self):
        """Labels and group name of the coordinates of the correlations."""
        p = self.posterior.network.n_outputs
        return np.zeros(p * (p + 1), dtype=int), ["noise_correlation"]

    def noise_state(self, q):
        """Correlations of all pairs of outputs, ``(..., n_pairs)``."""
        correlation = self._noise(self.place(q))[0].correlation
        rows, columns = np.tril_indices(correlation.shape[-1], -1)
        return correlation[..., rows, columns]

    def noise_functions(self, state, X):
        """Correlations on Fisher's scale, constant over the inputs, ``(..., n, n_pairs)``."""
        return np.repeat(np.arctanh(state)[..., None, :], len(X), axis=-2)

    def _noise(self, place):
        """Likelihood with the correlations of positions, and the derivatives of these."""
        z = place.theta[..., self.n_mean : self.n_sampled]
        correlation, slopes = correlation_matrix(z, self.posterior.network.n_outputs)
        return replace(self.posterior.likelihood, correlation=correlation), slopes

    def _rotated(self, place):
        """Targets rotated to the eigenvectors of the noise covariance, as `Rows`, and these."""
        covariance = self._noise(place)[0].covariance(place.hyper.beta)
        values, vectors = np.linalg.eigh(covariance)
        precision = 1.0 / np.maximum(values, TINY)
        return Rows(self.posterior.y @ vectors, self.posterior.sample_weight, precision), vectors

    def _rows(self, place):
        return self._rotated(place)[0]

    def _with_outputs(self, place, normal=None):
        weights = super()._with_outputs(place, normal)
        if not self.integrated:
            return weights
        n_outputs, width = self._output_labels.shape
        _, vectors = self._rotated(place)
        layer = weights[..., self.n_sampled :].reshape(*weights.shape[:-1], width, n_outputs)
        layer = layer @ np.swapaxes(vectors, -1, -2)
        weights[..., self.n_sampled :] = layer.reshape(*weights.shape[:-1], -1)
        return weights

    def _likelihood(self, place):
        (noise, slopes), (rows, vectors) = self._noise(place), self._rotated(place)
        covariance = noise.covariance(place.hyper.beta)
        found, regression = self._of_rows(place, rows)
        residual, weight = regression.residual, self.posterior.sample_weight
        moments = np.swapaxes(residual, -1, -2) @ (weight[:, None] * residual)
        diagonal = np.arange(moments.shape[-1])
        # with the variance of output weights that are integrated out
        moments[..., diagonal, diagonal] = 2.0 * regression.log_precision / rows.precision
        # the derivative in Sigma, Sigma^-1 (N Sigma - moments) Sigma^-1 / 2, in its eigenvectors
        precision = rows.precision[..., :, None]
        slope = -precision * moments * np.swapaxes(precision, -1, -2)
        slope[..., diagonal, diagonal] += self.posterior.n_rows * rows.precision
        slope = 0.5 * vectors @ slope @ np.swapaxes(vectors, -1, -2)
        sd = noise.noise_sd(place.hyper.beta)
        by_correlation = sd[..., :, None] * slope * sd[..., None, :]
        by_own = np.sum(by_correlation[..., None, :, :] * slopes, axis=(-2, -1))
        by_beta = sums_by(noise.membership, -np.sum(slope * covariance, axis=-1))
        theta = np.concatenate([found.theta, by_own], axis=-1)
        return found._replace(theta=theta, log_beta=by_beta)

    def _hessian_of_means(self, theta, place):
        own = replace(self.posterior, likelihood=self._noise(place)[0])
        return own.data_expansion(theta, place.hyper.beta, exact=False)[2]

    def _hessian_of_noise(self, place):
        noise, slopes = self._noise(place)
        relative = np.linalg.solve(noise.correlation[..., None, :, :], slopes)
        fisher = np.einsum("...kij,...lji->...kl", relative, relative)
        return 0.5 * self.posterior.n_rows * fisher
