"""Counts with a logarithmic link: Poisson, and negative binomial with an inferred dispersion.

A count has the mean ``mu = e exp(f)`` with the output ``f`` of the network and the exposure ``e``,
which `Targets` hold as ``known`` (``None``: 1 for all).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from skbayesnn.posterior.likelihoods._likelihoods import (
    HIGHEST,
    Gaussian,
    Likelihood,
    Misfit,
    _without_level,
)


class Poisson(Likelihood):
    """Likelihood of counts ``P(t) = mu^t exp(-mu) / t!``; ``y`` is ``(n, 1)``.

    The misfit leaves out ``t ln e - ln t!``, which no parameter changes. Counts of exposure ``e``
    are rates ``t / e`` of weight ``e``.
    """

    compiled = "poisson"
    conjugate = False

    def misfit(self, outputs, targets, beta):
        """Misfit ``sum_n s_n (mu_n - t_n f_n)``."""
        rows = np.exp(_bounded(outputs, targets)) - targets.y * outputs
        return _without_level((targets.weight @ rows)[..., 0])

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``s (mu - t)`` and (diagonal) curvature ``s mu``, both ``(..., n, 1)``."""
        weight, mean = targets.weight[:, None], np.exp(_bounded(outputs, targets))
        return weight * (mean - targets.y), weight * mean

    def moments(self, outputs, targets, beta):
        mean = np.exp(_bounded(outputs, targets))
        return mean, mean

    def compiled_targets(self, targets):
        """Convert counts to rates, with the exposures as factors."""
        if targets.known is None:
            return targets
        return targets._replace(y=targets.y / targets.known, factors=targets.known, known=None)


@dataclass(frozen=True)
class NegativeBinomial(Gaussian):
    """Likelihood of counts of variance ``mu + mu^2 / r``; ``y`` is ``(n, 1)``.

    Such a count is Poisson with its mean multiplied by a Gamma-distributed factor of mean 1 and
    variance ``1 / r``. The size ``r`` is the precision ``beta`` of the single noise level. With ``D
    = sum_n s_n d(-ln P_n) / d ln r`` it is re-estimated from ``E = (D + n_l / 2) / r``. The number
    ``n_l`` is about twice the information about ``ln r``, so that this is nearly Newton's step. If
    counts vary less than Poisson's, ``E`` may be negative, and ``r`` grows to its bound.

    ``levels`` and ``relative`` are those of a single output, see `Gaussian`.
    """

    compiled = None
    quadratic = False
    linear = False
    conjugate = False

    log_normaliser = Likelihood.log_normaliser  # the misfit holds all constants
    noise_sd = Likelihood.noise_sd

    def misfit(self, outputs, targets, beta):
        """Misfit ``-sum_n s_n ln P(t_n)``, and ``E``."""
        r, t, logs = beta[..., None, :], targets.y, _bounded(outputs, targets)
        mean = np.exp(logs)
        log_total = np.log1p(mean / r)
        rows = gammaln(t + r) - gammaln(r) - gammaln(t + 1.0) - r * log_total
        rows = rows + t * (logs - np.log(r) - log_total)
        # of every row by ln r
        slope = -r * (digamma(t + r) - digamma(r) - log_total + (mean - t) / (r + mean))
        slope = (targets.weight @ slope) + 0.5 * self.noise_counts(targets, beta)
        return Misfit(-(targets.weight @ rows)[..., 0], slope / beta)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``s r (mu - t) / (r + mu)`` and curvature ``s r mu (r + t) / (r + mu)^2``."""
        weight, r = targets.weight[:, None], beta[..., None, :]
        mean = np.exp(_bounded(outputs, targets))
        total = r + mean
        shrunk = weight * (r / total)
        return shrunk * (mean - targets.y), shrunk * (mean / total) * (r + targets.y)

    def moments(self, outputs, targets, beta):
        mean = np.exp(_bounded(outputs, targets))
        return mean, mean + mean**2 / beta[..., None, :]

    def noise_counts(self, targets, beta):
        """Effective number of targets ``n_l`` that measure the dispersion, ``(..., 1)``."""
        r = beta[..., None, :]
        shares = targets.y / (targets.y + r)
        return targets.weight @ (shares**2 * (2.0 + r) / (1.0 + r))


def _bounded(outputs, targets):
    """Logarithms of the means of counts, ``ln e + f``, cut off at `HIGHEST`."""
    logs = outputs if targets.known is None else outputs + np.log(targets.known)
    return np.minimum(logs, HIGHEST)
