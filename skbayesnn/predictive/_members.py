"""Predictions of one network whose weights have a Gaussian posterior, linearised in them."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks


@dataclass(frozen=True)
class NoiseFunction:
    """Noise variance as a function of the input, relative to a typical one.

    Parameters
    ----------
    network : Network
        Of the log precision.
    theta : ndarray of shape (k,)
    level : ndarray of shape (n_outputs,)
        Log precision whose factor is 1.
    log_range : tuple of float
        Bounds of the log precision.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.predictive import NoiseFunction
    >>> factors = NoiseFunction(Network((1, 1)), np.array([-1.0, 0.0]), np.zeros(1), (-9.0, 9.0))
    >>> factors(np.log([[1.0], [2.0], [3.0]]))  # the log precision falls as the input rises
    array([[1.],
           [2.],
           [3.]])
    """

    network: Network
    theta: np.ndarray
    level: np.ndarray
    log_range: tuple

    def __call__(self, X):
        """Factors of shape (n, n_outputs)."""
        log_precision = np.clip(outputs(self.network, self.theta, X), *self.log_range)
        return np.exp(self.level - log_precision)


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
        Factors of ``noise_variance`` at every row.
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

    def noise_variances(self, X):
        """``noise_variance`` at every row, ``(n, n_outputs)``."""
        if self.noise_function is None:
            return np.broadcast_to(self.noise_variance, (len(X), self.network.n_outputs))
        return self.noise_variance * self.noise_function(X)

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
