"""Training on mini-batches, for large networks on many rows where curvature is too expensive.

A stage consists of some hundred steps at fixed precisions, each with the gradient of one batch.
After it the precisions are re-estimated from the curvature on a sample of the rows.
"""

import numpy as np

from skbayesnn._progress import NEVER
from skbayesnn.inference.optimise._damped import Step
from skbayesnn.inference.optimise._reestimation import fair_moves, noise_precisions
from skbayesnn.posterior import Hyperparameters

STAGES = 30  # number of stages of training
FURTHER, SHORTER = 10, 0.2  # stages of a network trained before, and factor of their step length
WARM = 6  # stages before the first re-estimation of precisions
BATCH = 256  # rows of a batch
EPOCHS = 500  # most passes through all rows
TARGETS = 2.0  # per weight, below which there are fewer passes
RATE = 6e-2  # initial learning rate for one input, with cosine decay to zero
MEMORY_OF_GRADIENT, MEMORY_OF_SQUARE = 0.9, 0.999  # decay rates of Adam's moving averages
SAMPLE = 2048  # rows from which precisions are re-estimated
MAX_MOVE = 1.0  # largest change of any log precision in one re-estimation
TINY = 1e-12
AT_ONCE = 100  # steps between checks of the deadline


def steps_per_stage(posterior, most):
    """Steps of a stage, if the whole training takes ``most`` steps and `EPOCHS` at most.

    The epochs are in proportion to targets per weight below two: more would fit the noise.
    """
    share = min(1.0, posterior.y.size / (TARGETS * posterior.network.n_weights))
    return max(1, min(most, int(EPOCHS * share * len(posterior.X) / BATCH)) // STAGES)


class BatchSteps:
    """Stochastic gradient steps by Adam (Kingma & Ba 2015).

    The learning rate of a layer is divided by the square root of its number of inputs, so that
    the summed inputs of units change equally fast in layers of any width.

    Batches are drawn without replacement within an epoch. The steps are deterministic given the
    rows, weights and precisions.

    A stage has ``per_stage`` steps, with learning rates ``shorter`` by a factor.
    """

    def __init__(self, posterior, n_stages, per_stage, shorter=1.0, deadline=NEVER):
        self._rng, self._n_done, self._deadline = np.random.default_rng(0), 0, deadline
        self._per_stage, self._n_steps = per_stage, n_stages * per_stage
        self._order, k = np.empty(0, dtype=int), posterior.network.n_weights
        self._mean, self._square = np.zeros(k), np.zeros(k)
        fan_in, fan_out = np.transpose(posterior.network.shapes)
        self._rate = shorter * RATE * np.repeat(fan_in**-0.5, fan_in * fan_out)

    def trial(self, posterior, search):
        """Run one stage, which the deadline cuts short; its result is always accepted."""
        theta, hyper = search.point.theta.copy(), search.point.hyper
        n = len(posterior.X)
        batches = np.stack([self._batch(n) for _ in range(self._per_stage)]).astype(np.intp)
        done = self._n_done + 1.0 + np.arange(self._per_stage)
        length = 0.5 * (1.0 + np.cos(np.pi * done / self._n_steps))
        length /= 1.0 - MEMORY_OF_GRADIENT**done
        self._n_done += self._per_stage
        correction = 1.0 - MEMORY_OF_SQUARE**done
        for first in range(0, self._per_stage, AT_ONCE):
            if self._deadline.passed:
                break
            some = slice(first, first + AT_ONCE)
            self._descend(posterior, batches[some], hyper, length[some], correction[some], theta)
        return Step(theta, search.point.energies, -np.inf, 0.0)

    def _batch(self, n):
        """Rows of the next batch; a new permutation is drawn at the end of each epoch."""
        if len(self._order) < min(BATCH, n):
            self._order = self._rng.permutation(n)
        rows, self._order = self._order[:BATCH], self._order[BATCH:]
        return rows

    def _descend(self, posterior, batches, hyper, length, correction, theta):
        """Update the weights in place, by one Adam step for every batch.

        Likelihoods of the compiled core with priors of mean zero use its loop over batches.

        Batches are rows of shape (n_steps, n_batch). ``length`` (n_steps,) are factors of the
        learning rate, with the bias correction of the mean, and ``correction`` (n_steps,) the bias
        corrections of the averaged squares, ``1 - beta_2^t``.
        """
        n, groups = len(posterior.X), posterior.groups
        if posterior.compiled and groups.centred:
            posterior.compiled.descend(
                batches,
                groups.expand(hyper.alpha) / n,
                hyper.beta,
                self._rate,
                length,
                correction,
                MEMORY_OF_GRADIENT,
                MEMORY_OF_SQUARE,
                TINY,
                theta,
                self._mean,
                self._square,
            )
            return
        for i, rows in enumerate(batches):
            _, gradient = posterior.of_rows(rows).misfit_and_gradient(theta, hyper.beta)
            gradient = gradient / len(rows) + groups.pull(theta, hyper.alpha) / n
            self._mean += (1.0 - MEMORY_OF_GRADIENT) * (gradient - self._mean)
            self._square += (1.0 - MEMORY_OF_SQUARE) * (gradient**2 - self._square)
            size = np.sqrt(self._square / correction[i])
            theta -= length[i] * self._rate * self._mean / (size + TINY)


class SampledReestimation:
    """Re-estimation of precisions, by the curvature on a sample of rows, in training on batches.

    The updates are those of `fair_moves`.
    """

    def __init__(self, posterior, method, hyper, free, n_stages):
        n, rng = len(posterior.X), np.random.default_rng(0)
        sample = posterior.of_rows(np.sort(rng.choice(n, min(n, SAMPLE), replace=False)))
        self.posterior = sample.scaled(posterior.n_rows / sample.n_rows)
        self.method, self.free, self.n_stages = method, free, n_stages
        self._moving = np.append(free.alpha & (posterior.groups.sizes > 0), free.beta)
        self._logs = np.log(np.concatenate(hyper))

    def _reestimated(self, search, trial):
        """Re-estimate the precisions from the curvature at the new weights."""
        point = self.method.point(self.posterior, trial.theta, search.point.hyper)
        search, hyper = search.accepted(trial, point), point.hyper
        if not (self._moving.any() and point.precision.definite):
            return search
        moves, gamma = fair_moves(self.posterior, point, self.free.alpha_prior)
        prior = self.free.beta_prior
        beta = noise_precisions(self.posterior, hyper.beta, point.energies, gamma, prior)
        moves = np.clip(np.append(moves, np.log(beta / hyper.beta)), -MAX_MOVE, MAX_MOVE)
        logs = np.clip(self._logs + moves, *self.free.prior.log_range)
        self._logs = np.where(self._moving, logs, self._logs)
        precisions = np.where(self._moving, np.exp(self._logs), np.concatenate(hyper))
        hyper = Hyperparameters(*np.split(precisions, [len(hyper.alpha)]))
        return search._replace(point=point._replace(hyper=hyper))

    def after(self, search, trial):
        """Re-estimate the precisions, except in the first stages."""
        n_done = search.n_iter + 1
        if n_done > WARM * self.n_stages / STAGES:
            search = self._reestimated(search, trial)
        else:
            search = search.accepted(trial, search.point._replace(theta=trial.theta))
        ended = n_done >= self.n_stages
        return search._replace(done=ended, converged=ended)
