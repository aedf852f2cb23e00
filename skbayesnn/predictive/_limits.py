"""Noise of training rows of which some are limits: Gaussian or Student-t."""

import numpy as np
from scipy.special import log_ndtr, logsumexp

from skbayesnn.predictive._noise import NORMAL, GaussianNoise, variances_of
from skbayesnn.predictive._student_t import StudentTNoise


class _Censored:
    """Noise of training rows of which some are limits."""

    def pointwise(self, y, outputs, spread, X, known=None):
        """Predict as `GaussianNoise.pointwise`; ``known`` are sides, see `CensoredGaussian`.

        A limit has the log probability of the values that it allows, and the distribution function
        in their middle. A mean among these values is put at the limit, where it has no error.
        Outputs of a row with a limit count as independent.
        """
        logs, mean, cdf, variance = super().pointwise(y, outputs, spread, X)
        limit, (shares, variances) = known != 0.0, self.mixture(X)
        own = np.broadcast_to(variances_of(spread), np.shape(outputs))
        scales = np.sqrt(own[:, None] + variances)
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
