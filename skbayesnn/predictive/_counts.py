"""Laws of counts: Poisson and negative binomial distributions averaged over their log rates.

The outputs ``f`` are log rates per unit of exposure. A network with a Gaussian posterior of its
weights gives a count the probability ``int P(t | e exp(f)) N(f; m, v) df``, evaluated by the
trapezoidal rule, whose error is exponentially small for such integrands (Trefethen & Weideman
2014). Means and variances are those of log-normal distributions.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, logsumexp, pdtr

from skbayesnn.posterior import log_count_probability

REACH = 8.0  # standard deviations of a log rate that are covered
COARSEST, MOST_NODES = 0.5, 512  # largest spacing of nodes, in sd of the log rate; their number
LEAST_DISPERSION = 1e-8  # of a Poisson law among negative binomial ones
HIGHEST = 300.0  # log rate at which rates are cut off, so that no square overflows


class CountLaws(NamedTuple):
    """Laws of counts under each of several networks.

    Attributes
    ----------
    log_means : ndarray of shape (m, n, 1)
        Means of the logarithm of the mean count.
    variances : ndarray of shape (m, n, 1)
        Variances of this logarithm.
    dispersions : ndarray of shape (m, 1, 1)
        Dispersions ``a``: the variance of a count of mean ``mu`` is ``mu + a mu^2``. 0: Poisson.
    """

    log_means: np.ndarray
    variances: np.ndarray
    dispersions: np.ndarray

    def log_probability(self, t):
        """Log probability of counts ``t`` ``(n, 1)``, of shape (m, n, 1)."""
        size = self._sizes
        nodes = ((log_mean, np.log(share)) for log_mean, share in self._nodes(t))
        logs = [log_count_probability(t, at, size) + log_share for at, log_share in nodes]
        return logs[0] if len(logs) == 1 else logsumexp(logs, axis=0)

    def cdf(self, t):
        """Probability of counts no larger than ``t`` ``(n, 1)``, of shape (m, n, 1)."""
        known, total, size = np.maximum(np.floor(t), 0.0), 0.0, self._sizes
        for log_mean, share in self._nodes(t):
            mean = np.exp(log_mean)
            if size is not None:
                total = total + share * betainc(size, known + 1.0, size / (size + mean))
            else:
                total = total + share * pdtr(known, mean)
        return np.where(t < 0.0, 0.0, total)

    def moments(self):
        """Mean, variance of the expected count, and mean variance given it, ``(m, n, 1)`` each."""
        mean = np.exp(np.minimum(self.log_means + 0.5 * self.variances, HIGHEST))
        relative = np.expm1(np.minimum(self.variances, HIGHEST))
        return mean, mean**2 * relative, mean + self.dispersions * mean**2 * (1.0 + relative)

    @property
    def _sizes(self):
        """Sizes of negative binomial laws; ``None`` if all laws are Poisson."""
        some = self.dispersions.any()
        return 1.0 / np.maximum(self.dispersions, LEAST_DISPERSION) if some else None

    def _nodes(self, t):
        """Yield log means ``(m, n, 1)`` and their shares, for averages at counts ``t``."""
        sd = np.sqrt(np.maximum(self.variances, 0.0))
        log_means = np.minimum(self.log_means, HIGHEST)
        if not sd.any():
            yield log_means, 1.0
            return
        # in the log rate the probability of a count is as wide as one over the root of the count
        widest = np.max(sd * np.sqrt(np.maximum(np.exp(log_means), t)))
        step = np.clip(1.0 / max(widest, 1.0), 2.0 * REACH / MOST_NODES, COARSEST)
        z = np.linspace(-REACH, REACH, 2 * int(REACH / step) + 1)
        shares = np.exp(-0.5 * z * z)
        for node, share in zip(z, shares / shares.sum(), strict=True):
            yield np.minimum(self.log_means + node * sd, HIGHEST), share
