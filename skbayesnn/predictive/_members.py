"""Predictions of one network whose weights have a Gaussian posterior, linearised in them."""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp

from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.predictive._mixture import log_normal_density
from skbayesnn.predictive._scale_mixture import log_scale_mixture_density, noise_scales

NODES, SHARES = hermegauss(15)  # of the standard normal; densities hold up to residuals of 8 sd
SHARES = SHARES / SHARES.sum()


@dataclass(frozen=True)
class NoiseFunction:
    """Noise variance as a function of the input, relative to a typical one.

    The log precision at an input has a Gaussian posterior, that of the network linearised in its
    weights. The noise is therefore a mixture of Gaussians, here those of Gauss-Hermite quadrature
    over the log precision: its tails are the wider, the less is known of its level. Where there are
    several outputs, all take the same node together.

    Parameters
    ----------
    network : Network
        Of the log precision.
    theta : ndarray of shape (k,)
    gaussian : DenseGaussian or DualGaussian
        Posterior of these weights.
    level : ndarray of shape (n_outputs,)
        Log precision whose factor is 1.
    log_range : tuple of float
        Bounds of the log precision.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.predictive import NoiseFunction
    >>> gaussian = DenseGaussian.from_precision(25.0 * np.eye(2))  # sd 0.2 of slope and bias
    >>> slope = np.array([-1.0, 0.0])  # the log precision falls as the input rises
    >>> noise = NoiseFunction(Network((1, 1)), slope, gaussian, np.zeros(1), (-9.0, 9.0))
    >>> shares, factors = noise.mixture(np.log([[1.0], [2.0], [3.0]]))
    >>> factors[7, :, 0]  # of the middle node
    array([1., 2., 3.])
    >>> print(round(float(shares @ factors[:, 0, 0]), 3))  # exp(0.2**2 / 2)
    1.02
    """

    network: Network
    theta: np.ndarray
    gaussian: object
    level: np.ndarray
    log_range: tuple

    def mixture(self, X):
        """Shares ``(s,)`` and factors ``(s, n, n_outputs)``."""
        n_outputs = self.network.n_outputs
        factors = np.empty((len(NODES), len(X), n_outputs))
        for rows in row_blocks(len(X), n_outputs * self.network.n_weights):
            trace = forward(self.network, self.theta, X[rows], order=1)
            covariance = self.gaussian.project(jacobian(trace))
            sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0.0))
            log_precision = trace.outputs - NODES[:, None, None] * sd
            factors[:, rows] = np.exp(self.level - np.clip(log_precision, *self.log_range))
        return SHARES, factors


@dataclass(frozen=True)
class Member:
    """One network of a mixture, in standardised units.

    Parameters
    ----------
    network : Network
    theta : ndarray of shape (k,)
        Most probable weights.
    gaussian : DenseGaussian or DualGaussian
        Their posterior.
    noise_variance : ndarray of shape (n_outputs,)
        ``1/beta`` of every output; zeros for classifiers.
    degrees_of_freedom : float, default=inf
        Of Student-t noise, whose squared scale ``noise_variance`` then is.
    noise_function : NoiseFunction, optional
        Factors of ``noise_variance`` at every row, of Gaussian noise.
    shift : ndarray of shape (k,), optional
        From ``theta``, where the network is linearised, to the mean of the Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.predictive import Member
    >>> gaussian = DenseGaussian.from_precision(4.0 * np.eye(2))
    >>> member = Member(Network((1, 1)), np.array([2.0, 1.0]), gaussian, noise_variance=np.ones(1))
    >>> mean, covariance = member.mean_and_covariance(np.array([[0.0], [3.0]]))
    >>> mean[:, 0], covariance[:, 0, 0]
    (array([1., 7.]), array([0.25, 2.5 ]))
    """

    network: Network
    theta: np.ndarray
    gaussian: object
    noise_variance: np.ndarray
    degrees_of_freedom: float = np.inf
    noise_function: object = None
    shift: np.ndarray | None = None

    @property
    def variance_factor(self):
        """Variance of the noise over ``noise_variance``: ``nu / (nu - 2)``, infinite up to 2."""
        nu = self.degrees_of_freedom
        if np.isinf(nu):
            return 1.0
        return nu / (nu - 2.0) if nu > 2.0 else np.inf

    @property
    def n_gaussians(self):
        """How many Gaussians make the noise, see `noise_mixture`."""
        if self.noise_function is None:
            return len(noise_scales(self.degrees_of_freedom)[0])
        return len(NODES)

    def noise_mixture(self, X):
        """The noise as Gaussians: shares ``(s,)``, variances ``(s, n, n_outputs)``."""
        if self.noise_function is None:
            shares, factors = noise_scales(self.degrees_of_freedom)
            factors = np.broadcast_to(factors[:, None, None], (len(factors), len(X), 1))
        else:
            shares, factors = self.noise_function.mixture(X)
        return shares, factors * self.noise_variance

    def noise_variances(self, X):
        """Variance of the noise at every row, ``(n, n_outputs)``."""
        if self.noise_function is None:
            variance = self.variance_factor * self.noise_variance
            return np.broadcast_to(variance, (len(X), self.network.n_outputs))
        return np.tensordot(*self.noise_mixture(X), 1)

    def log_density(self, residual, covariance, X):
        """Log predictive density of targets with noise.

        Parameters
        ----------
        residual : ndarray of shape (n, n_outputs)
            Targets less mean outputs.
        covariance : ndarray of shape (n, n_outputs, n_outputs)
            Of the outputs, without noise.
        X : ndarray of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            Joint over the outputs.
        """
        if np.isfinite(self.degrees_of_freedom):
            scales = np.broadcast_to(self.noise_variance, residual.shape)
            return log_scale_mixture_density(residual, covariance, scales, self.degrees_of_freedom)
        shares, variances = self.noise_mixture(X)
        total = covariance + variances[..., None] * np.eye(residual.shape[1])
        return logsumexp(log_normal_density(residual, total), axis=0, b=shares[:, None])

    def mean(self, X):
        """``f(x; w_MP)`` of shape (n, n_outputs)."""
        return outputs(self.network, self.theta, X)

    def mean_and_covariance(self, X):
        """Outputs and their covariance ``g^T A^-1 g`` due to the weights (Bishop 5.172-5.173).

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        mean : ndarray of shape (n, n_outputs)
        covariance : ndarray of shape (n, n_outputs, n_outputs)
            Without noise. Rows are treated in blocks of bounded memory.
        """
        n_outputs = self.network.n_outputs
        mean = np.empty((len(X), n_outputs))
        covariance = np.empty((len(X), n_outputs, n_outputs))
        for rows in row_blocks(len(X), n_outputs * self.network.n_weights):
            mean[rows], J = self.linearised(X[rows])
            covariance[rows] = self.gaussian.project(J)
        return mean, covariance

    def linearised(self, X):
        """Mean outputs ``(n, n_outputs)`` and their derivatives ``(n, n_outputs, k)``."""
        trace = forward(self.network, self.theta, X, order=1)
        J = jacobian(trace)
        return trace.outputs if self.shift is None else trace.outputs + J @ self.shift, J

    def joint_covariance(self, X):
        """Covariance of every output between rows, ``(n_outputs, n, n)``, without noise."""
        J = np.moveaxis(self.linearised(X)[1], 1, 0)
        return np.stack([self.gaussian.project(part[None])[0] for part in J])

    def draw(self, X, rng, size):
        """Functions drawn from the linearised posterior, joint over rows: (size, n, n_outputs)."""
        deviations = self.gaussian.draw(rng, size)
        draws = np.empty((size, len(X), self.network.n_outputs))
        for rows in row_blocks(len(X), self.network.n_outputs * self.network.n_weights):
            mean, J = self.linearised(X[rows])
            draws[:, rows] = mean + np.moveaxis(J @ deviations.T, -1, 0)
        return draws
