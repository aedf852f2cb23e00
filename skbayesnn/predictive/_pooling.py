"""Pooling of the means of two kinds of networks by their predictive variances."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._members import Member

STEP = 1e-5  # of standardised inputs, near the best step of central differences


@dataclass(frozen=True)
class Pooled(Member):
    """Network with input-dependent noise whose mean is pooled with that of other networks.

    Where a network expects much noise, its training rows count for little, and the mean of networks
    with constant noise is more accurate. Two forecasts with variances ``v`` and ``v'`` of their
    errors are combined with weights proportional to ``1/v`` and ``1/v'`` (Bates and Granger 1969,
    "The combination of forecasts", Operational Research Quarterly 20). Variances here are those of
    a target, noise included. Error bars remain those of the network.

    Parameters
    ----------
    network, theta, precision, noise, shift, free
        Attributes of `Member`.
    others : Ensemble
        Networks with constant noise.
    """

    others: Ensemble | None = None

    @property
    def doubles_per_row(self):
        """Memory that a row to predict takes."""
        return super().doubles_per_row + self.others.doubles_per_row

    def outputs(self, X):
        """Pooled means ``(1, n, n_outputs)``."""
        return self.mean_and_covariance(X)[0][None]

    def mean_and_covariance(self, X):
        """Pooled means, and the covariances of the network itself."""
        mean, covariance = super().mean_and_covariance(X)
        return self._pooled(mean, covariance, X), covariance

    def linearised(self, X):
        """Pooled means ``(n, n_outputs)``, and the derivatives of the network itself."""
        mean, J = super().linearised(X)
        return self._pooled(mean, self.precision.project(J), X), J

    def _pooled(self, mean, covariance, X):
        """Means of the network and of the others, weighted by their inverse variances."""
        own = np.diagonal(covariance, axis1=1, axis2=2) + self.noise.variances(X)[0]
        others, covariance = self.others.moments(X)
        theirs = np.diagonal(covariance, axis1=1, axis2=2)
        return mean + own / (own + theirs) * (others - mean)

    def gradients(self, X):
        """Derivatives of the pooled means, by central differences."""
        steps = STEP * np.eye(X.shape[1])
        slopes = [(self.outputs(X + h) - self.outputs(X - h)) / (2.0 * STEP) for h in steps]
        return np.stack(slopes, axis=-1)

    def _slopes(self, X):
        start = 0
        for slopes, factors in super()._slopes(X):
            rows = slice(start, start + len(slopes))
            yield self.gradients(X[rows])[0], factors
            start = rows.stop
