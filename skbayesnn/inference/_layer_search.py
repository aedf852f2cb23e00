"""Training by gradients: the precisions of whole layers move by values of the evidence."""

import numpy as np

from skbayesnn.inference._evidence import log_evidence_fixed
from skbayesnn.inference._method import Point
from skbayesnn.inference._precision_kronecker import KroneckerPrecision
from skbayesnn.inference._reestimation import fair_moves, noise_precisions
from skbayesnn.inference._stochastic import CheckedCounts
from skbayesnn.posterior import Hyperparameters

FIRST, LAST = 1.2, 0.4  # length of the first steps in ln alpha, and up to which none is made
FURTHER, BACK = 1.5, -0.5  # factor of a step after one that raised the evidence, or did not
ANEW = 0.6  # least length of the steps after a re-estimation that promised much
MUCH = 1.0  # nats
ROUGH = 1e-2  # decrease of M (nats) by one quasi-Newton step that ends a descent
SHARE = 1e-3  # the same, of the nats that are not worth work
MAX_MOVE = np.log(10.0)  # of any precision by one re-estimation
TINY = np.finfo(float).tiny


class LayerSearch:
    """Rule of training by gradients: precisions move while this raises the evidence.

    The counts ``gamma_i = 1 - alpha_i (A^-1)_ii`` (MacKay 1992, equation 2.23) take ``A`` as
    constant. They say how groups within a layer differ, and how large the noise is, but not where a
    layer as a whole belongs: with units in their linear range precisions drift for ever from one
    layer to the next, and where classes can be separated ``A`` changes with the size of all
    weights. Layers as a whole therefore move by a pattern search (Hooke & Jeeves 1961) of the
    evidence at the minima to which descents lead. Its sweeps and re-estimations of all else take
    turns.

    The curvature has Kronecker factors. Those alone find too many well-determined weights, so what
    the data add to ``log det A`` is multiplied by the ratio of the numbers, see `CheckedCounts`.

    Parameters
    ----------
    posterior : Posterior
    method : Method
    free : FreeHyperparameters
    tol : float
        Nats that a re-estimation promises at the end.
    """

    def __init__(self, posterior, method, free, tol):
        self.posterior, self.free, self.tol = posterior, free, tol
        self.descent_tol = max(ROUGH, SHARE * method.resolution)
        self._moved = free.alpha & (posterior.groups.sizes > 0)
        layers = _groups_by_layer(posterior) & self._moved
        self._layers = layers[layers.any(axis=1)]
        self._counts, self._course = CheckedCounts(), None

    def after(self, search, trial):
        """Judge the minimum to which a descent has led, and say from where the next one begins."""
        return self._next(search.accepted(trial, search.point._replace(theta=trial.theta)))

    def stuck(self, search):
        """The same where a descent led no lower."""
        return self._next(search)

    def _next(self, search):
        theta, hyper = search.point.theta, search.point.hyper
        energies = self.posterior.energies(theta, hyper.beta)
        factors = self.posterior.kronecker_factors(theta, hyper)
        found = Point(theta, hyper, energies, None, KroneckerPrecision(factors))
        try:
            if self._course is None:
                self._course = self._searched(found)
                there = next(self._course)
            else:
                there = self._course.send(found)
        except StopIteration as end:
            return search._replace(point=end.value, done=True, converged=True)
        return search._replace(point=there, done=False)

    def _searched(self, point):
        """Yield where descents are to begin, be sent where they end, and return the best point."""
        steps = np.full(len(self._layers), FIRST)
        while True:
            total = self._counts.total(self.posterior, point)
            best = self._log_evidence(point)
            longer = np.flatnonzero(np.abs(steps) > LAST)
            for layer in longer:
                logs = np.log(point.hyper.alpha) + steps[layer] * self._layers[layer]
                found = yield self._moved_to(point, logs, point.hyper.beta)
                value = self._log_evidence(found)
                steps[layer] *= FURTHER if value > best else BACK
                if value > best:
                    point, best = found, value
            logs, beta, gain = self._reestimated(point, total)
            if gain >= self.tol:
                point = yield self._moved_to(point, logs, beta)
                if gain > MUCH:
                    steps = np.copysign(np.maximum(np.abs(steps), ANEW), steps)
            elif not len(longer):
                return point

    def _log_evidence(self, point):
        """Of the precisions, up to a constant."""
        alpha = point.hyper.alpha
        prior = np.sum(np.log(self.posterior.groups.diagonal(alpha)))
        log_det = prior + self._counts.share * (point.precision.log_det - prior)
        value = log_evidence_fixed(self.posterior, point.hyper, point.energies, log_det)
        return value + np.sum(self.free.alpha_prior.log_kernel(np.log(alpha))[self._moved])

    def _reestimated(self, point, total):
        """Precisions of groups within their layers, and of the noise; nats that this promises."""
        hyper, free = point.hyper, self.free
        moves, gamma = fair_moves(self.posterior, point, total, free.alpha_prior)
        for groups in self._layers:  # as a whole these have moved
            moves = moves - groups * (moves @ (groups * gamma) / max(groups @ gamma, TINY))
        given = hyper.beta, point.energies, gamma, free.beta_prior
        noise = np.log(noise_precisions(self.posterior, *given) / hyper.beta)
        moves = np.clip(np.where(self._moved, moves, 0.0), -MAX_MOVE, MAX_MOVE)
        noise = np.clip(np.where(free.beta, noise, 0.0), -MAX_MOVE, MAX_MOVE)
        logs = self._within(np.log(hyper.alpha) + moves, hyper)
        beta = np.where(free.beta, free.beta_prior.clip(hyper.beta * np.exp(noise)), hyper.beta)
        gain = (gamma + free.alpha_prior.counts) @ (logs - np.log(hyper.alpha)) ** 2
        counts = self.posterior.level_counts + free.beta_prior.counts
        return logs, beta, 0.25 * (gain + counts @ np.log(beta / hyper.beta) ** 2)

    def _moved_to(self, point, logs, beta):
        """The same weights at other precisions."""
        hyper = Hyperparameters(np.exp(self._within(logs, point.hyper)), beta)
        return point._replace(hyper=hyper, energies=self.posterior.energies(point.theta, beta))

    def _within(self, logs, hyper):
        """Logarithms of precisions inside the range of their priors, of those that are free."""
        clipped = np.clip(logs, *self.free.alpha_prior.log_range)
        return np.where(self._moved, clipped, np.log(hyper.alpha))


def _groups_by_layer(posterior):
    """Whether a layer has weights of a group, ``(n_layers, n_groups)``; each row once."""
    sizes = [rows * columns for rows, columns in posterior.network.shapes]
    layer = np.repeat(np.arange(len(sizes)), sizes) == np.arange(len(sizes))[:, None]
    return np.unique(layer @ posterior.groups.membership > 0, axis=0)
