"""Unbounded coordinates of precisions that have bounds."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

COARSE = 3.0  # nats of ln alpha per unit of psi where the data leave it open


class PrecisionMap(NamedTuple):
    """Map from unbounded coordinates ``eta`` to log precisions in their interval.

    ``psi = psi_low + (psi_high - psi_low) sigmoid(eta)`` and ``ln alpha = ln h + s psi +
    (t - s) ln(1 + exp psi)``. The slope is ``s`` where the weights determine their precision, and
    ``t`` where the prior is so strong that the data leave the precision undetermined. A sampler
    then crosses both regions at the same pace.

    Attributes
    ----------
    centre, fine, coarse : ndarray of shape (n_free,)
        Parameters ``ln h``, ``s`` and ``t``.
    low, high : ndarray of shape (n_free,)
        Ends of the interval of ``psi``.
    """

    centre: np.ndarray
    fine: np.ndarray
    coarse: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def build(cls, log_range, centre, fine, coarse):
        """Build the map for intervals of ``ln alpha``, given their lower and upper ends."""
        bare = cls(centre, fine, coarse, centre, centre)
        low, high = (bare._invert(end) for end in log_range)
        return bare._replace(low=low, high=high)

    def select(self, index):
        """Select the map of some of the precisions."""
        return PrecisionMap(*(field[index] for field in self))

    def _curve(self, psi):
        return self.centre + self.fine * psi + (self.coarse - self.fine) * np.logaddexp(0.0, psi)

    def _invert(self, log_precision):
        """Solve `_curve` for ``psi`` by Newton's method, from the right."""
        # both asymptotes of the convex curve are below it
        psi = np.minimum(
            (log_precision - self.centre) / self.fine, (log_precision - self.centre) / self.coarse
        )
        for _ in range(100):
            slope = self.fine + (self.coarse - self.fine) * expit(psi)
            step = (self._curve(psi) - log_precision) / slope
            moving = np.abs(step) > 1e-12 * (1.0 + np.abs(psi))
            if not np.any(moving):
                break
            psi = np.where(moving, psi - step, psi)  # each stops by itself, whatever the others do
        return psi

    def eta(self, log_precision):
        """Coordinates of log precisions; infinite at and beyond the bounds."""
        share = (self._invert(log_precision) - self.low) / (self.high - self.low)
        return logit(np.clip(share, 0.0, 1.0))

    def log_precision(self, eta):
        """Log precision ``ln alpha`` at ``eta``."""
        return self._curve(self.low + (self.high - self.low) * expit(eta))

    def derivatives(self, eta):
        """Derivative ``d ln alpha / d eta``, and the derivative of its logarithm."""
        place = expit(eta)
        width = self.high - self.low
        bend = expit(self.low + width * place)
        slope = self.fine + (self.coarse - self.fine) * bend
        inner = width * place * expit(-eta)
        second = (self.coarse - self.fine) * bend * (1.0 - bend) / slope
        return slope * inner, second * inner + 1.0 - 2.0 * place
