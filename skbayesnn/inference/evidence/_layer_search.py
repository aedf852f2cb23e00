"""Training by gradients, with a pattern search of the evidence over the precisions of layers."""

import numpy as np

from skbayesnn.inference.curvature._method import Point
from skbayesnn.inference.curvature._precision_kronecker import KroneckerPrecision
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.inference.optimise._reestimation import (
    fair_moves,
    noise_precisions,
    weights_by_layer,
)
from skbayesnn.posterior import Hyperparameters

FIRST, LAST = 1.2, 0.4  # first and least length of steps in ln alpha
FURTHER, BACK = 1.5, -0.5  # factors of the step after success and failure
ANEW = 0.6  # least length of steps after a re-estimation with a large predicted gain
MUCH = 1.0  # predicted gain (nats) that counts as large
ROUGH = 0.1  # least decrease of M (nats) by one quasi-Newton step for a descent to continue
MAX_MOVE = np.log(10.0)  # largest change of a log precision by one re-estimation
TINY = np.finfo(float).tiny


class LayerSearch:
    """Update rule of precisions in training by gradients, which increases the evidence.

    The counts ``gamma_i = 1 - alpha_i (A^-1)_ii`` (MacKay 1992, equation 2.23) treat ``A``
    as constant. Re-estimation by them works for the ratios of precisions within a layer and for the
    noise, but not for the common factor of a layer: with units in their linear range, precisions
    drift without limit from one layer to the next, and for separable classes ``A`` changes with
    the scale of all weights. The common factors are therefore found by a pattern search (Hooke &
    Jeeves 1961) over the evidence at the minima that descents reach. Its sweeps alternate with
    re-estimation of the other precisions.

    The curvature is approximated by Kronecker factors.

    The search has converged when the predicted gain of a re-estimation is below ``tol`` nats.
    """

    def __init__(self, posterior, method, free, tol):
        self.posterior, self.free, self.tol = posterior, free, tol
        self.descent_tol = max(ROUGH, method.resolution)
        self._moved = free.alpha & (posterior.groups.sizes > 0)
        # distinct sets of groups with weights in a layer, as masks (n_sets, n_groups)
        layers = np.unique(weights_by_layer(posterior) > 0, axis=0) & self._moved
        self._layers = layers[layers.any(axis=1)]
        self._course = None

    def after(self, search, trial):
        """Evaluate the minimum that a descent has reached, and set the start of the next one."""
        return self._next(search.accepted(trial, search.point._replace(theta=trial.theta)))

    def stuck(self, search):
        """Continue after a descent that did not lower the energy."""
        return self._next(search)

    def _next(self, search):
        """Pass the current point to the pattern search, and return the search at its next start."""
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
        """Generate starts of descents; receives their end points and returns the best one."""
        steps = np.full(len(self._layers), FIRST)
        while True:
            best = self._log_evidence(point)
            longer = np.flatnonzero(np.abs(steps) > LAST)
            for layer in longer:
                logs = np.log(point.hyper.alpha) + steps[layer] * self._layers[layer]
                found = yield self._moved_to(point, logs, point.hyper.beta)
                value = self._log_evidence(found)
                steps[layer] *= FURTHER if value > best else BACK
                if value > best:
                    point, best = found, value
            logs, beta, gain = self._reestimated(point)
            if gain >= self.tol:
                point = yield self._moved_to(point, logs, beta)
                if gain > MUCH:
                    steps = np.copysign(np.maximum(np.abs(steps), ANEW), steps)
            elif not len(longer):
                return point

    def _log_evidence(self, point):
        """Log evidence plus log hyperprior of the precisions, up to a constant."""
        prior = self.free.alpha_prior.log_kernel(np.log(point.hyper.alpha))
        return log_evidence_fixed(self.posterior, point) + np.sum(prior[self._moved])

    def _reestimated(self, point):
        """Re-estimate noise and relative precisions within layers; also returns predicted gain."""
        hyper, free = point.hyper, self.free
        moves, gamma = fair_moves(self.posterior, point, free.alpha_prior)
        for groups in self._layers:  # keep the common factor of every layer
            moves = moves - groups * (moves @ (groups * gamma) / max(groups @ gamma, TINY))
        beta = noise_precisions(self.posterior, hyper.beta, point.energies, gamma, free.beta_prior)
        noise = np.log(beta / hyper.beta)
        moves = np.clip(np.where(self._moved, moves, 0.0), -MAX_MOVE, MAX_MOVE)
        noise = np.clip(np.where(free.beta, noise, 0.0), -MAX_MOVE, MAX_MOVE)
        logs = self._within(np.log(hyper.alpha) + moves, hyper)
        beta = np.where(free.beta, free.beta_prior.clip(hyper.beta * np.exp(noise)), hyper.beta)
        gain = (gamma + free.alpha_prior.counts) @ (logs - np.log(hyper.alpha)) ** 2
        counts = self.posterior.level_counts + free.beta_prior.counts
        return logs, beta, 0.25 * (gain + counts @ np.log(beta / hyper.beta) ** 2)

    def _moved_to(self, point, logs, beta):
        """Point with the same weights and other precisions."""
        hyper = Hyperparameters(np.exp(self._within(logs, point.hyper)), beta)
        return point._replace(hyper=hyper, energies=self.posterior.energies(point.theta, beta))

    def _within(self, logs, hyper):
        """Log precisions, clipped to the range of their priors where free, else unchanged."""
        clipped = np.clip(logs, *self.free.alpha_prior.log_range)
        return np.where(self._moved, clipped, np.log(hyper.alpha))
