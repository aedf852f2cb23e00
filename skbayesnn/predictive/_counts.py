"""Counts: Poisson and negative binomial distributions averaged over their log rates.

The outputs ``f`` are log rates per unit of exposure. A network with a Gaussian posterior of its
weights gives a count the probability ``int P(t | e exp(f)) N(f; m, v) df``, evaluated by the
trapezoidal rule, whose error is exponentially small for such integrands (Trefethen & Weideman
2014). Means and variances are those of log-normal distributions. Of large counts the cube roots are
nearly normal, and are mixed as such.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, entr, logsumexp, pdtr

from skbayesnn.posterior import Poisson, log_count_probability
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._mixture import Components, Mixture
from skbayesnn.predictive._noise import NORMAL, GaussianNoise

REACH = 8.0  # standard deviations of a log rate that are covered
COARSEST, MOST_NODES = 1.0, 512  # largest spacing of nodes, in sd of the log rate; their number
LEAST_DISPERSION = 1e-8  # of a Poisson law among negative binomial ones
# of a log rate: a factor of 50 either way. Networks that are linearised in their weights exceed it
# between the rows, where the mean exp(f + variance/2) of one would outweigh all others
MOST_VARIANCE = 4.0
HIGHEST = 300.0  # log rate at which rates are cut off, so that no square overflows
LARGEST = 2.0**60  # largest quantile of a count, and mean of one that is drawn
N_VALUES = 128  # counts that are tabulated; larger ones are grouped
PER_OCTAVE = 8  # groups of larger counts, each up to the double of the last
# probability of the largest counts, which sums leave out: for moments of functions, for entropies
OMITTED, OMITTED_LOGS = 1e-9, 1e-6
# mean from which, and dispersion up to which, cube roots of counts are taken as normal: errors of
# quantiles below 0.04 standard deviations, of entropies below 0.01 nats
LARGE_MEAN, SMALL_DISPERSION = 64.0, 0.5
SKEWED = 2.0  # nodes per unit of one over the root of the curvature: tails are steeper
FINE = 0.3  # spacing of nodes, in the log rate, of these normal laws


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

    def roots(self, weights):
        """`Mixture` of normal laws of the cube roots of the counts.

        A count of mean ``mu`` and variance ``mu^2 / k`` is about as a Gamma variable of shape ``k``
        (Wilson & Hilferty 1931): its root has the mean ``mu^(1/3) (1 - 1/(9 k))`` and the variance
        ``mu^(2/3) / (9 k)``.
        """
        z, step = np.zeros(1), 1.0
        if np.any(self.variances > 0.0):
            step = np.clip(FINE / np.sqrt(self.variances.max()), 2.0 * REACH / MOST_NODES, 0.5)
            z = np.linspace(-REACH, REACH, 2 * int(REACH / step) + 1)
        shares, z = np.exp(-0.5 * z * z), z[:, None, None, None]
        between, within = (1.0 - step**2) * self.variances, step**2 * self.variances
        log_means = self.log_means + z * np.sqrt(between) + 0.5 * within
        log_means = np.minimum(log_means, HIGHEST).reshape(-1, *self.log_means.shape[1:])
        relative = (1.0 + self.dispersions) * np.exp(np.minimum(within, HIGHEST)) - 1.0
        relative = np.tile(relative, (len(z), 1, 1)) + np.exp(-log_means)
        relative, roots = np.minimum(relative, 1.0), np.exp(log_means / 3.0)
        weights = np.outer(shares / shares.sum(), weights).ravel()
        means, scales = roots * (1.0 - relative / 9.0), roots * relative**0.5 / 3
        return Mixture([Components(weights, means, scales, NORMAL)])

    def of_rows(self, rows):
        """Select rows."""
        return self._replace(log_means=self.log_means[:, rows], variances=self.variances[:, rows])

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
        # in the log rate the probability of a count t has the curvature 1 / (1/t + dispersion)
        largest = np.maximum(np.maximum(np.exp(log_means), t), 1.0)
        widest = SKEWED * np.max(sd / np.sqrt(1.0 / largest + self.dispersions))
        step = np.clip(1.0 / max(widest, 1.0), 2.0 * REACH / MOST_NODES, COARSEST)
        z = np.linspace(-REACH, REACH, 2 * int(REACH / step) + 1)
        shares = np.exp(-0.5 * z * z)
        for node, share in zip(z, shares / shares.sum(), strict=True):
            yield np.minimum(self.log_means + node * sd, HIGHEST), share


@dataclass(frozen=True)
class CountNoise(GaussianNoise):
    """Variation of counts about their mean; ``squared_scales``: dispersions, 0 for Poisson."""

    @classmethod
    def of_networks(cls, likelihood, beta, state=None):
        if isinstance(likelihood, Poisson):
            return cls(np.zeros((len(beta), 1)))
        return super().of_networks(likelihood, beta)

    def laws_at(self, outputs, covariances, exposures=None):
        """`CountLaws` of outputs ``(m, n, 1)`` with covariances ``(m, n, 1, 1)`` or ``None``."""
        log_means = outputs if exposures is None else outputs + np.log(exposures)
        variances = 0.0 * log_means
        if covariances is not None:
            variances = np.minimum(covariances[..., 0], MOST_VARIANCE)
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
            mean, spread, within = self._moments_of(laws)
            parts = {"total": spread + within, "epistemic": spread, "aleatoric": within}
            return mean, parts[kind][..., None]

        return self._over_laws(moments, X, errors)

    def _moments_of(self, laws):
        """Mean of counts, variance of their mean, and mean variance given it, ``(n, 1)`` each."""
        mean, spread, within = laws.moments()
        centre = self._mixed(mean)
        return centre, self._mixed(spread + (mean - centre) ** 2), self._mixed(within)

    def cdf(self, X, y, errors=None):
        """Probability of counts no larger than ``y``, ``(n, 1)``."""
        mixed = self._over_laws(lambda laws, y: self._mixed(laws.cdf(y)), X, errors, y)
        return np.minimum(mixed, 1.0)  # sums of rounded shares may exceed it

    def log_density(self, X, y, errors=None):
        """Log probability of counts, ``(n,)``; ``-inf`` where ``y`` is no count."""
        possible = (y >= 0.0) & (y == np.floor(y))
        weights = self.member_weights[:, None, None]
        logs = self._over_laws(
            lambda laws, t: logsumexp(laws.log_probability(t), axis=0, b=weights),
            X,
            errors,
            np.where(possible, y, 0.0),
        )
        return np.where(possible, logs, -np.inf)[:, 0]

    def quantiles(self, X, probabilities, errors=None):
        """Smallest counts whose `cdf` reaches given probabilities, ``(n, 1)`` for each.

        Those of large counts are approximations, see `CountLaws.roots`.
        """

        def of_groups(t, width, p):
            below = np.cumsum(p, axis=0)
            below[-1] = 1.0
            for q in probabilities:
                first = np.argmax(below >= q, axis=0)[None]
                above, own = (np.take_along_axis(some, first, 0)[0] for some in (below - q, p))
                last, size = (t + 0.5 * (width - 1.0))[first[0]], width[first[0]]
                share = above / np.maximum(own, np.finfo(float).tiny)
                yield last - np.minimum(np.floor(share * size), size - 1.0)

        def of_roots(roots):
            for q in roots.quantiles(probabilities):
                yield np.ceil(np.maximum(q, 0.0) ** 3 - 0.5)

        return self._by_size(of_groups, of_roots, 0.5 - 0.5 * np.max(probabilities), X, errors)

    def function_moments(self, X, function, errors=None):
        """Mean and variance of a function of counts, ``(n, 1)``."""

        def of_groups(t, width, p):
            values = function(np.broadcast_to(t[:, None, None], p.shape))
            mean = np.sum(p * values, axis=0)
            yield mean
            yield np.sum(p * (values - mean) ** 2, axis=0)

        def of_roots(roots):
            def of_root(u):
                return function(np.maximum(u, 0.0) ** 3)

            mean = roots.mean_of(of_root)
            yield mean
            yield roots.mean_of(lambda u: (of_root(u) - mean) ** 2)

        return self._by_size(of_groups, of_roots, OMITTED, X, errors)

    def entropy(self, X, errors=None):
        """Entropies ``-sum_t P(t) ln P(t)`` of counts, ``(n, 1)``."""

        def of_groups(t, width, p):
            yield np.sum(entr(p) + p * np.log(width)[:, None, None], axis=0)

        def of_roots(roots):  # H[t] = H[u] + E ln 3 u^2, the latter to fourth order
            ((weights, means, scales, _),) = roots.components
            square = (scales / means) ** 2
            logs = np.log(3.0 * means**2) - square - 1.5 * square**2
            yield roots.entropy() + np.tensordot(weights, logs, 1)

        return self._by_size(of_groups, of_roots, OMITTED_LOGS, X, errors)[0]

    def targets(self, X, rng, size, errors=None):
        """Draw counts, ``(size, n, 1)``."""
        log_means = self.draw(X, rng, size, noisy=True)
        if errors is not None:
            log_means = log_means + np.log(errors)
        return rng.poisson(np.exp(np.minimum(log_means, np.log(LARGEST)))).astype(float)

    def _by_size(self, of_groups, of_roots, omitted, X, errors):
        """Evaluate one of two generators by `_groups`, or by `CountLaws.roots` of large counts."""

        def by_size(laws):
            mean, spread, within = self._moments_of(laws)
            large = (mean >= LARGE_MEAN) & (mean + 5.0 * np.sqrt(spread + within) > N_VALUES)
            large &= self._mixed(laws.dispersions) <= SMALL_DISPERSION
            small, large = np.flatnonzero(~large), np.flatnonzero(large)
            results = []
            if len(small):
                results.append(list(of_groups(*self._groups(laws.of_rows(small), omitted))))
            if len(large):
                roots = laws.of_rows(large).roots(self.member_weights)
                results.append(list(of_roots(roots)))
            order = np.argsort(np.concatenate([small, large]))
            return tuple(np.concatenate(some)[order] for some in zip(*results, strict=True))

        return self._over_laws(by_size, X, errors)

    def _groups(self, laws, omitted):
        """Group all counts but the largest, which have a given probability.

        Returned are the centres and sizes of groups, ``(k,)``, and their probabilities ``(k, n,
        1)``. Counts below `N_VALUES` are groups of their own.
        """
        mean, spread, within = self._moments_of(laws)
        end = int(np.max(np.minimum(mean + 5.0 * np.sqrt(spread + within) + 8.0, N_VALUES)))
        p = laws.table(end, self.member_weights)
        while end < N_VALUES and np.any(np.sum(p, axis=0) < 1.0 - omitted):
            end = min(2 * end, N_VALUES)
            p = laws.table(end, self.member_weights)
        edges, p, highest = np.arange(end + 1.0), [p], np.max(laws.moments()[0])
        left = 1.0 - np.sum(p[0], axis=0)
        while end < LARGEST and (np.any(left > omitted) or end < highest):
            more = np.rint(end * 2.0 ** (np.arange(PER_OCTAVE + 1) / PER_OCTAVE))
            for low, high in pairwise(more):
                logs = laws.log_probability(np.full_like(mean, 0.5 * (low + high - 1.0)))
                p.append(self._mixed(np.exp(logs))[None] * (high - low))
            left = np.sum(p[-PER_OCTAVE:], axis=0)[0]  # still larger counts are less probable
            edges, end = np.append(edges, more[1:]), 2 * end
        return 0.5 * (edges[:-1] + edges[1:] - 1.0), np.diff(edges), np.concatenate(p)

    def _over_laws(self, function, X, exposures, *arrays):
        """Apply a function of `CountLaws`, and of further arrays, to blocks of rows."""
        noise = CountNoise(self.typical_noise_variances)
        exposures = np.ones((len(X), 1)) if exposures is None else exposures

        def of_rows(X, exposures, *arrays):
            means, covariances = self.member_moments(X, "epistemic")
            return function(noise.laws_at(means, covariances, exposures), *arrays)

        return self._by_rows(of_rows, X, exposures, *arrays, width=MOST_NODES // 16)
