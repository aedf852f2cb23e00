"""Counts: Poisson and negative binomial distributions averaged over their log rates.

The outputs ``f`` are log rates per unit of exposure. A network with a Gaussian posterior of its
weights gives a count the probability ``int P(t | e exp(f)) N(f; m, v) df``, evaluated by the
trapezoidal rule, whose error is exponentially small for such integrands (Trefethen & Weideman
2014). Means and variances are those of log-normal distributions. Of large counts the cube roots are
nearly normal, and are mixed as such.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln, entr, gammaln, logsumexp, pdtr

from skbayesnn.posterior import Poisson
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._mixture import Components, Mixture
from skbayesnn.predictive._noise import NORMAL, GaussianNoise, variances_of

REACH = 8.0  # standard deviations of a log rate that are covered
NEAR = 5.0  # of sums over many counts, whose error is 1e-5
FLAT, SHARP = 0.8, 2.0  # nodes per root of the curvature: of such sums; of counts in steep tails
MAX_NODES = 512  # for the log rate
MIN_DISPERSION = 1e-8  # of a Poisson law among negative binomial ones
# of a log rate: a factor of 50 either way. Networks that are linearised in their weights exceed it
# between the rows, where the mean exp(f + variance/2) of one would outweigh all others
MAX_VARIANCE = 4.0
HIGHEST = 300.0  # log rate at which rates are cut off, so that no square overflows
LARGEST = 2.0**60  # largest quantile of a count, and mean of one that is drawn
N_VALUES = 128  # counts that are tabulated; larger ones are grouped
PER_OCTAVE = 8  # groups of larger counts, each up to the double of the last
# probability of the largest counts, which sums leave out: for moments of functions, for entropies
OMITTED, OMITTED_LOGS = 1e-9, 1e-6
TINY = np.finfo(float).tiny
# mean from which, and dispersion up to which, cube roots of counts are taken as normal: errors of
# quantiles below 0.04 standard deviations; dispersion up to which errors of entropies are below
# 0.01 nats
LARGE_MEAN, SMALL_DISPERSION, SMALLER_DISPERSION = 64.0, 0.5, 0.2
FINE = 0.3  # spacing of nodes, in the log rate, of these normal laws
FARTHEST = 5.0  # sd of a log rate that they cover


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
        r, logs = self.sizes, []
        for log_mean, share in self._nodes(t, REACH, SHARP):
            mean = np.exp(log_mean)
            if r is None:
                each = t * log_mean - mean
            else:
                log_total = np.log1p(mean / r)
                each = t * (log_mean - np.log(r) - log_total) - r * log_total
            logs.append(np.log(share) + each)
        factor = -gammaln(t + 1.0) if r is None else -betaln(t + 1.0, r) - np.log(t + r)
        return factor + (logs[0] if len(logs) == 1 else logsumexp(logs, axis=0))

    def cdf(self, t):
        """Probability of counts no larger than ``t`` ``(n, 1)``, of shape (m, n, 1)."""
        known, total, r = np.maximum(np.floor(t), 0.0), 0.0, self.sizes
        for log_mean, share in self._nodes(t, NEAR, FLAT):
            mean = np.exp(log_mean)
            below = pdtr(known, mean) if r is None else betainc(r, known + 1.0, r / (r + mean))
            total = total + share * below
        return np.where(t < 0.0, 0.0, total)

    def of_rows(self, rows):
        """Select rows."""
        return self._replace(log_means=self.log_means[:, rows], variances=self.variances[:, rows])

    def moments(self):
        """Mean, variance of the expected count, and mean variance given it, ``(m, n, 1)`` each."""
        mean = np.exp(np.minimum(self.log_means + 0.5 * self.variances, HIGHEST))
        relative = np.expm1(np.minimum(self.variances, HIGHEST))
        return mean, mean**2 * relative, mean + self.dispersions * mean**2 * (1.0 + relative)

    @property
    def sizes(self):
        """Sizes of negative binomial laws; ``None`` if all laws are Poisson."""
        some = self.dispersions.any()
        return 1.0 / np.maximum(self.dispersions, MIN_DISPERSION) if some else None

    def _nodes(self, t, reach, sharpness):
        """Yield log means ``(m, n, 1)`` and their shares, for averages at counts ``t``."""
        sd = np.sqrt(self.variances)
        for z, share in zip(*self.rule(t, reach, sharpness), strict=True):
            yield np.minimum(self.log_means + z * sd, HIGHEST), share

    def rule(self, t, reach, sharpness):
        """Nodes of log rates, in standard deviations, and their shares, as of `_nodes`.

        In the log rate the probability of a count has the curvature ``1 / (1/rate + dispersion)``;
        steps of a root of the total curvature have an error of ``exp(-2 pi^2)``. The integrand is
        largest at a rate between ``t`` and the most probable one, at most ``reach / sd`` above.
        """
        if not self.variances.any():
            return np.zeros(1), np.ones(1)
        sd = np.sqrt(np.maximum(self.variances, TINY))
        rate = np.exp(np.minimum(self.log_means, HIGHEST))
        largest = np.maximum(np.minimum(np.maximum(rate, t), t + reach / sd), 1.0)
        curvature = np.max(self.variances / (1.0 / largest + self.dispersions))
        step = max((1.0 + sharpness**2 * curvature) ** -0.5, 2.0 * reach / MAX_NODES)
        z = np.linspace(-reach, reach, 2 * int(reach / step) + 1)
        shares = np.exp(-0.5 * z * z)
        return z, shares / shares.sum()


class CountMixture(NamedTuple):
    """Predictive distributions of counts at rows ``(n, 1)``: laws of networks with weights.

    It stands for `Mixture`.
    """

    laws: CountLaws
    weights: np.ndarray  # (m,)

    def moments(self, kind="total"):
        """Mean ``(n, 1)`` and variance ``(n, 1, 1)`` of counts; see `Ensemble.moments`."""
        mean, spread, within = self._moments
        parts = {"total": spread + within, "epistemic": spread, "aleatoric": within}
        return mean, parts[kind][..., None]

    @property
    def _moments(self):
        """Mean of counts, variance of their mean, and mean variance given it, ``(n, 1)`` each."""
        mean, spread, within = self.laws.moments()
        centre = self._mixed(mean)
        return centre, self._mixed(spread + (mean - centre) ** 2), self._mixed(within)

    def cdf(self, t):
        """Probability of counts no larger than ``t``, ``(1, n, 1)``."""
        return np.minimum(self._mixed(self.laws.cdf(t)), 1.0)[None]  # sums of shares may exceed it

    def log_density(self, t):
        """Log probability of counts, ``(n,)``; ``-inf`` where ``t`` is no count."""
        possible = (t >= 0.0) & (t == np.floor(t))
        logs = self.laws.log_probability(np.where(possible, t, 0.0))
        logs = logsumexp(logs, axis=0, b=self.weights[:, None, None])
        return np.where(possible, logs, -np.inf)[:, 0]

    def quantiles(self, probabilities):
        """Smallest counts whose `cdf` reaches given probabilities, ``(n, 1)`` for each.

        Those of large counts are approximations, see `roots`.
        """
        omitted = 0.3 * (1.0 - np.max(probabilities))

        def of_groups(mixture):
            t, width, p = mixture._groups(omitted)
            below = np.cumsum(p, axis=1)
            below[:, -1] = 1.0
            for q in probabilities:
                first = np.argmax(below >= q, axis=1)[:, None]
                above, own = (np.take_along_axis(some, first, 1) for some in (below, p))
                last, size = (t + 0.5 * (width - 1.0))[first], width[first]
                share = (above - q) / np.maximum(own, TINY)
                yield last - np.minimum(np.floor(share * size), size - 1.0)

        def of_roots(mixture):
            for q in mixture.roots().quantiles(probabilities):
                yield np.ceil(np.maximum(q, 0.0) ** 3 - 0.5) + 0.0  # no -0

        return self._by_size(of_groups, of_roots)

    def moments_of(self, function):
        """Mean and variance of a function of counts, ``(n, 1)``."""

        def of_groups(mixture):
            t, _, p = mixture._groups(OMITTED)
            values = function(t[:, None, None])[:, 0, 0]
            mean = (p @ values)[:, None]
            return mean, np.sum(p * (values - mean) ** 2, axis=1, keepdims=True)

        def of_roots(mixture):
            return mixture.roots().moments_of(lambda u: function(np.maximum(u, 0.0) ** 3))

        return self._by_size(of_groups, of_roots)

    def entropy(self):
        """Entropies ``-sum_t P(t) ln P(t)`` of counts, ``(n, 1)``."""

        def entropies(mixture):
            if mixture._dispersion <= SMALLER_DISPERSION:
                return (mixture._entropies(),)
            _, width, p = mixture._groups(OMITTED_LOGS, by_roots=False)
            return ((np.sum(entr(p), axis=1) + p @ np.log(width))[:, None],)

        return self._by_size(entropies, entropies)[0]

    def _entropies(self):
        """Entropies ``(n, 1)``: of a table, and by `roots` ``u`` of counts beyond it."""
        p = self.table(N_VALUES)
        total, first = np.sum(entr(p), axis=1, keepdims=True), np.cbrt(N_VALUES - 0.5)
        more = np.flatnonzero(1.0 - np.sum(p, axis=1) > OMITTED_LOGS)
        if len(more):
            roots = self.of_rows(more).roots()
            total[more] += roots.entropy(first, lambda u: np.log(3.0 * u * u))  # ln dt/du
        return total

    def of_rows(self, rows):
        """Select rows."""
        return self._replace(laws=self.laws.of_rows(rows))

    @property
    def _dispersion(self):
        return self._mixed(self.laws.dispersions).item()

    def _mixed(self, values):
        return np.tensordot(self.weights, values, 1)

    def _by_size(self, of_groups, of_roots):
        """Evaluate one function of rows of like size, the other of those whose counts are large."""
        mean, spread, within = self._moments
        reach = mean + 5.0 * np.sqrt(spread + within)
        large = (mean >= LARGE_MEAN) & (reach > N_VALUES) & (self._dispersion <= SMALL_DISPERSION)
        parts, results = list(_alike(np.where(large, np.inf, reach))), []
        for rows in parts:
            results.append((of_roots if large[rows[0]] else of_groups)(self.of_rows(rows)))
        order = np.argsort(np.concatenate(parts))
        return tuple(np.concatenate(some)[order] for some in zip(*results, strict=True))

    def _groups(self, omitted, by_roots=True):
        """Group all counts but the largest, which have a given probability.

        Returned are the centres and sizes of groups, ``(k,)``, and their probabilities ``(n, k)``.
        Counts below `N_VALUES` are groups of their own. Others have the probabilities of `roots` if
        dispersions are small, else those in the middle times the size.
        """
        end, p = N_VALUES, self.table(N_VALUES)
        edges, highest = np.arange(end + 1.0), np.max(self.laws.moments()[0])
        left, roots = 1.0 - np.sum(p, axis=1), None
        while end < LARGEST and (np.any(left > omitted) or end < highest):
            more = np.rint(end * 2.0 ** (np.arange(PER_OCTAVE + 1) / PER_OCTAVE))
            if by_roots and self._dispersion <= SMALL_DISPERSION:
                roots = roots or self.roots()
                own = np.diff(roots.cdf(*np.cbrt(more - 0.5)), axis=0)
            else:
                centres = 0.5 * (more[:-1] + more[1:] - 1.0)
                logs = np.stack([self.laws.log_probability(t) for t in centres], axis=1)
                own = self._mixed(np.exp(logs)) * np.diff(more)[:, None, None]
            own = own[..., 0].T
            left = np.sum(own, axis=1)  # still larger counts are less probable
            p, edges, end = np.hstack([p, own]), np.append(edges, more[1:]), 2 * end
        beyond, total = p[:, N_VALUES:], np.maximum(1.0 - p[:, :N_VALUES].sum(axis=1), 0.0)
        beyond *= (total / np.maximum(beyond.sum(axis=1), TINY))[:, None]
        return 0.5 * (edges[:-1] + edges[1:] - 1.0), np.diff(edges), p

    def table(self, size):
        """Probabilities ``(n, size)`` of counts below ``size``."""
        laws = self.laws
        network, z, shares = self._at_nodes(*laws.rule(float(size), NEAR, FLAT))
        log_means = laws.log_means[network] + z * np.sqrt(laws.variances[network])
        log_means = np.ascontiguousarray(log_means[..., 0].T)
        odds, r = np.exp(np.minimum(log_means, HIGHEST)), laws.sizes
        if r is None:
            none, u, w = np.exp(-odds), 0.0 * odds, odds
        else:
            r = r[network, 0, 0]
            total = 1.0 + odds / r
            none, u = np.exp(-r * np.log(total)), odds / (r * total)
            w = r * u
        p = none * (shares * self.weights[network])
        # P(k + 1) / P(k) = (u k + w) / (k + 1)
        table = np.empty((len(p), size))
        for k in range(size):
            table[:, k] = p.sum(axis=1)
            p = p * (u * k + w) / (k + 1.0)
        return table

    def roots(self):
        """`Mixture` of normal laws of the cube roots of the counts.

        A count of mean ``mu`` and variance ``mu^2 / k`` is about as a Gamma variable of shape ``k``
        (Wilson & Hilferty 1931): its root has the mean ``mu^(1/3) (1 - 1/(9 k))`` and the variance
        ``mu^(2/3) / (9 k)``.
        """
        laws, z, step = self.laws, np.zeros(1), 1.0
        if np.any(laws.variances > 0.0):
            step = np.clip(FINE / np.sqrt(laws.variances.max()), 2.0 * REACH / MAX_NODES, 0.5)
            z = np.linspace(-FARTHEST, FARTHEST, 2 * int(FARTHEST / step) + 1)
        shares = np.exp(-0.5 * z * z)
        network, z, shares = self._at_nodes(z, shares / shares.sum())
        variances = laws.variances[network]
        within = step**2 * variances
        log_means = laws.log_means[network] + z * np.sqrt(variances - within) + 0.5 * within
        log_means = np.minimum(log_means, HIGHEST)
        relative = (1.0 + laws.dispersions[network]) * np.exp(np.minimum(within, HIGHEST)) - 1.0
        relative = np.minimum(relative + np.exp(-log_means), 1.0)
        roots, weights = np.exp(log_means / 3.0), shares * self.weights[network]
        means, scales = roots * (1.0 - relative / 9.0), roots * relative**0.5 / 3
        return Mixture([Components(weights, means, scales, NORMAL)])

    def _at_nodes(self, z, shares):
        """Networks ``(k,)``, uncertain ones at all nodes ``(k, 1, 1)``, with shares ``(k,)``."""
        uncertain = np.any(self.laws.variances > 0.0, axis=(1, 2))
        certain, uncertain = np.flatnonzero(~uncertain), np.flatnonzero(uncertain)
        network = np.append(certain, np.repeat(uncertain, len(z)))
        z = np.append(np.zeros(len(certain)), np.tile(z, len(uncertain)))
        shares = np.append(np.ones(len(certain)), np.tile(shares, len(uncertain)))
        return network, z[:, None, None], shares


@dataclass(frozen=True)
class CountNoise(GaussianNoise):
    """Variation of counts about their mean; ``squared_scales``: dispersions, 0 for Poisson."""

    @classmethod
    def of_networks(cls, likelihood, beta, state=None):
        if isinstance(likelihood, Poisson):
            return cls(np.zeros((len(beta), 1)))
        return super().of_networks(likelihood, beta)

    def laws_at(self, outputs, spread, exposures=None):
        """`CountLaws` of outputs ``(m, n, 1)`` with a spread as of `GaussianNoise`."""
        log_means = outputs if exposures is None else outputs + np.log(exposures)
        variances = np.clip(variances_of(spread), 0.0, MAX_VARIANCE) + 0.0 * log_means
        return CountLaws(log_means, variances, self.squared_scales[:, None])

    def draw(self, X, shape, rng):
        """Draw the logarithms of the Gamma-distributed factors of negative binomial means."""
        if not self.squared_scales.any():
            return np.zeros(shape)
        size = np.broadcast_to(1.0 / self.squared_scales[:, None], shape)
        return np.log(np.maximum(rng.gamma(size) / size, TINY))

    def pointwise(self, y, outputs, spread, X, known=None):
        """Predict as `GaussianNoise.pointwise`; ``known`` are exposures.

        The distribution function leaves out half of the probability of ``y``, so that it is
        centred at 1/2 for a calibrated model.
        """
        laws = self.laws_at(outputs, spread, known)
        logs, (mean, spread, within) = laws.log_probability(y), laws.moments()
        return logs[..., 0], mean, laws.cdf(y) - 0.5 * np.exp(logs), spread + within


@dataclass(frozen=True)
class CountEnsemble(Ensemble):
    """Mixture of the predictive distributions of counts.

    ``errors`` of its methods are the exposures ``(n, 1)``.
    """

    mixture_width = MAX_NODES // 16

    def mean(self, X, errors=None):
        """Mean of counts, ``(n, 1)``."""
        return self.moments(X, errors=errors)[0]

    def moments(self, X, kind="total", errors=None):
        """Mean ``(n, 1)`` and variance ``(n, 1, 1)`` of counts; see `Ensemble.moments`."""
        return self._over_mixtures(lambda mixture: mixture.moments(kind), X, errors)

    def log_density(self, X, y, errors=None):
        """Log probability of counts, ``(n,)``; ``-inf`` where ``y`` is no count."""
        return self._over_mixtures(CountMixture.log_density, X, errors, y)

    def targets(self, X, rng, size, errors=None):
        """Draw counts, ``(size, n, 1)``."""
        log_means = self.draw(X, rng, size, noisy=True)
        if errors is not None:
            log_means = log_means + np.log(errors)
        return rng.poisson(np.exp(np.minimum(log_means, np.log(LARGEST)))).astype(float)

    def mixture(self, X, errors=None):
        """Make the `CountMixture` of rows."""
        noise = CountNoise(self.typical_noise_variances)
        means, covariances = self.member_moments(X, "epistemic")
        return CountMixture(noise.laws_at(means, covariances, errors), self.member_weights)


def _alike(values):
    """Yield indices of rows with the same power of two of values ``(n, 1)``."""
    octave = np.frexp(np.clip(values[:, 0], 4.0, 2.0 * LARGEST))[1]
    for kind in np.unique(octave):
        yield np.flatnonzero(octave == kind)
