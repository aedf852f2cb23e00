"""Ensembles of networks for counts: the predictive distribution of counts at any input."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skbayesnn.predictive._counts import MOST_NODES
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._noise import CountNoise

LARGEST = 2.0**60  # largest quantile of a count, and mean of one that is drawn
N_VALUES = 256  # values of a count, of equal spacing, over which functions are summed
OMITTED = 1e-9  # probability of the larger values that these sums leave out


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
            return tuple(self._quantile(laws, probability) for probability in probabilities)

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
            spacing = np.ceil((self._quantile(laws, 1.0 - OMITTED) + 1.0) / N_VALUES)
            total = 0.0
            for i in range(N_VALUES):
                total = total + function(i * spacing, self._log_probability(laws, i * spacing))
            return spacing * total

        return self._over_laws(summed, X, errors)

    def _log_probability(self, laws, t):
        return logsumexp(laws.log_probability(t), axis=0, b=self.member_weights[:, None, None])

    def _quantile(self, laws, probability):
        """Smallest counts whose distribution function reaches a probability, by bisection."""

        def reaches(t):
            return self._mixed(laws.cdf(t)) >= probability

        high = np.maximum(np.ceil(self._mixed(laws.moments()[0])), 1.0)
        low = np.full_like(high, -1.0)
        while np.any(short := ~reaches(high) & (high < LARGEST)):
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        while np.any(wide := high - low > np.maximum(1.0, 1e-12 * high)):
            middle = np.where(wide, np.floor(0.5 * (low + high)), high)
            found = reaches(middle)
            low, high = np.where(found, low, middle), np.where(found, middle, high)
        return high

    def _mixed(self, values):
        return np.tensordot(self.member_weights, values, 1)

    def _over_laws(self, function, X, exposures, *arrays):
        """Apply a function of `CountLaws`, and of further arrays, to blocks of rows."""
        noise = CountNoise(self.typical_noise_variances)
        exposures = np.ones((len(X), 1)) if exposures is None else exposures

        def of_rows(X, exposures, *arrays):
            given = *self.member_moments(X, "epistemic"), exposures
            return function(noise.laws_at(*given), *arrays)

        return self._by_rows(of_rows, X, exposures, *arrays, width=MOST_NODES // 16)
