"""Counts: Poisson and negative binomial distributions averaged over their log rates.

The outputs ``f`` are log rates per unit of exposure. A network with a Gaussian posterior of its
weights gives a count the probability ``int P(t | e exp(f)) N(f; m, v) df``, evaluated by the
trapezoidal rule, whose error is exponentially small for such integrands (Trefethen & Weideman
2014). Means and variances are those of log-normal distributions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, logsumexp, pdtr

from skbayesnn.posterior import log_count_probability
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._noise import GaussianNoise

REACH = 8.0  # standard deviations of a log rate that are covered
COARSEST, MOST_NODES = 0.5, 512  # largest spacing of nodes, in sd of the log rate; their number
LEAST_DISPERSION = 1e-8  # of a Poisson law among negative binomial ones
HIGHEST = 300.0  # log rate at which rates are cut off, so that no square overflows
LARGEST = 2.0**60  # largest quantile of a count, and mean of one that is drawn
N_VALUES = 256  # values of a count that are tabulated, or over which functions are summed
OMITTED = 1e-9  # probability of the larger values that these sums leave out


class CountLaws(NamedTuple):
    """Laws of counts under each of several networks.

    The logarithm of the mean count has a mean and a variance, ``(m, n, 1)``. A count of mean ``mu``
    has the variance ``mu + a mu^2`` with the dispersion ``a``, ``(m, 1, 1)``; 0: Poisson.
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

    def table(self, size, weights):
        """Probabilities of the counts below ``size``, ``(size, n, 1)``, by recursion.

        All networks are mixed with the given ``weights`` ``(m,)``.
        """
        table, r = np.zeros((size, *self.log_means.shape[1:])), self._sizes
        for log_mean, share in self._nodes(float(size)):
            mean = np.exp(log_mean)
            p, odds = np.exp(-mean), mean
            if r is not None:
                p, odds = (r / (r + mean)) ** r, mean / (r + mean)
            p = p * share
            for k in range(size):
                table[k] += np.tensordot(weights, p, 1)
                p *= odds if r is None else odds * (k + r)
                p /= k + 1.0
        return table

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
        """Predict as `GaussianNoise.pointwise`; ``known`` are exposures.

        The distribution function leaves out half of the probability of ``y``, so that it is
        centred at 1/2 for a calibrated model.
        """
        laws = self.laws_at(outputs, covariances, known)
        logs, (mean, spread, within) = laws.log_probability(y), laws.moments()
        return logs[..., 0], mean, laws.cdf(y) - 0.5 * np.exp(logs), spread + within


@dataclass(frozen=True)
class CountEnsemble(Ensemble):
    """Mixture of the predictive distributions of counts.

    ``errors`` of its methods are the exposures ``(n, 1)``.
    """

    def mean(self, X, errors=None):
        """Mean of counts, ``(n, 1)``."""
        return self.moments(X, errors=errors)[0]

    def moments(self, X, kind="total", errors=None):
        """Mean ``(n, 1)`` and variance ``(n, 1, 1)`` of counts; see `Ensemble.moments`."""

        def moments(laws):
            mean, spread, within = laws.moments()
            centre = self._mixed(mean)
            spread, within = self._mixed(spread + (mean - centre) ** 2), self._mixed(within)
            parts = {"total": spread + within, "epistemic": spread, "aleatoric": within}
            return centre, parts[kind][..., None]

        return self._over_laws(moments, X, errors)

    def cdf(self, X, y, errors=None):
        """Probability of counts no larger than ``y``, ``(n, 1)``."""
        mixed = self._over_laws(lambda laws, y: self._mixed(laws.cdf(y)), X, errors, y)
        return np.minimum(mixed, 1.0)  # sums of rounded shares may exceed it

    def log_density(self, X, y, errors=None):
        """Log probability of counts, ``(n,)``; ``-inf`` where ``y`` is no count."""
        possible = (y >= 0.0) & (y == np.floor(y))
        logs = self._over_laws(self._log_probability, X, errors, np.where(possible, y, 0.0))
        return np.where(possible, logs, -np.inf)[:, 0]

    def quantiles(self, X, probabilities, errors=None):
        """Smallest counts whose `cdf` reaches given probabilities, ``(n, 1)`` for each."""

        def quantiles(laws):
            table = self._table(laws, np.max(probabilities))
            if table is None:
                return tuple(self._quantile(laws, probability) for probability in probabilities)
            below = np.cumsum(table, axis=0)
            below[-1] = 1.0
            return tuple(np.argmax(below >= some, axis=0).astype(float) for some in probabilities)

        return self._over_laws(quantiles, X, errors)

    def function_moments(self, X, function, errors=None):
        """Mean and variance of a function of counts, ``(n, 1)``; see `summed`."""
        mean = self.summed(X, lambda t, logs: np.exp(logs) * function(t), errors)
        square = self.summed(X, lambda t, logs: np.exp(logs) * function(t) ** 2, errors)
        return mean, np.maximum(square - mean**2, 0.0)

    def targets(self, X, rng, size, errors=None):
        """Draw counts, ``(size, n, 1)``."""
        log_means = self.draw(X, rng, size, noisy=True)
        if errors is not None:
            log_means = log_means + np.log(errors)
        return rng.poisson(np.exp(np.minimum(log_means, np.log(LARGEST)))).astype(float)

    def summed(self, X, function, errors=None):
        """Sum a function of counts and their log probabilities over all counts, ``(n, 1)``.

        Above `N_VALUES` counts, values at a regular spacing stand for the others.
        """

        def summed(laws):
            table = self._table(laws, 1.0 - OMITTED)
            if table is not None:
                logs = np.log(np.maximum(table, np.finfo(float).tiny))
                return sum(function(np.full_like(own, t), own) for t, own in enumerate(logs))
            spacing = np.ceil((self._quantile(laws, 1.0 - OMITTED) + 1.0) / N_VALUES)
            total = 0.0
            for i in range(N_VALUES):
                total = total + function(i * spacing, self._log_probability(laws, i * spacing))
            return spacing * total

        return self._over_laws(summed, X, errors)

    def _table(self, laws, probability):
        """Probabilities ``(size, n, 1)`` of all counts that together have a probability.

        ``None`` if these are more than `N_VALUES` in a row.
        """
        mean, spread, within = laws.moments()
        size = int(np.max(np.minimum(mean + 5.0 * np.sqrt(spread + within), N_VALUES))) + 8
        while size <= N_VALUES:
            table = laws.table(size, self.member_weights)
            if np.all(np.sum(table, axis=0) >= probability):
                return table
            size *= 2
        return None

    def _log_probability(self, laws, t):
        return logsumexp(laws.log_probability(t), axis=0, b=self.member_weights[:, None, None])

    def _quantile(self, laws, probability):
        """Smallest counts whose distribution function reaches a probability, by bisection."""
        low, high = self._bracket(laws, probability)
        while np.any(wide := high - low > np.maximum(1.0, 1e-12 * high)):
            middle = np.where(wide, np.floor(0.5 * (low + high)), high)
            found = self._mixed(laws.cdf(middle)) >= probability
            low, high = np.where(found, low, middle), np.where(found, middle, high)
        return high

    def _bracket(self, laws, probability):
        """Counts whose distribution function does not reach a probability, and that reach it."""
        high = np.maximum(np.ceil(self._mixed(laws.moments()[0])), 1.0)
        low = np.full_like(high, -1.0)
        while np.any(short := (self._mixed(laws.cdf(high)) < probability) & (high < LARGEST)):
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        return low, high

    def _over_laws(self, function, X, exposures, *arrays):
        """Apply a function of `CountLaws`, and of further arrays, to blocks of rows."""
        noise = CountNoise(self.typical_noise_variances)
        exposures = np.ones((len(X), 1)) if exposures is None else exposures

        def of_rows(X, exposures, *arrays):
            means, covariances = self.member_moments(X, "epistemic")
            return function(noise.laws_at(means, covariances, exposures), *arrays)

        return self._by_rows(of_rows, X, exposures, *arrays, width=MOST_NODES // 16)
