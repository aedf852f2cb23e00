"""Forecast of the time that a search takes, from timings on this machine."""

from time import perf_counter

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._training import EARLY
from skbayesnn.inference.optimise._batches import BATCH, SAMPLE, STAGES, WARM, steps_per_stage
from skbayesnn.posterior import Hyperparameters

SCALE = 0.3  # scale of the weights at which evaluations are timed
POINTS, POINTS_OF_LINEAR = 900.0, 15.0  # curvature evaluations per start
POINTS_OF_EARLY = 2.5 * EARLY  # their number with early stopping
GRADIENTS = 600.0  # gradient evaluations of a start trained by gradients
STEP = 2.0  # time of a step on a batch, relative to its gradient
AROUND = 0.02  # seconds of overhead
TRIALS = 3  # calls that are timed, of which the fastest counts
TIMED = 2e7  # rows times squared outputs, and times weights, on which they are timed


def seconds_of_start(posterior, settings):
    """Predict the seconds that a start takes, to a factor of three, by timing one evaluation."""
    method, n = Method.choose(posterior, settings), len(posterior.X)
    n_weights, n_levels = posterior.network.n_weights, posterior.likelihood.n_levels
    theta = posterior.groups.start(np.random.default_rng(0), np.full(n_weights, SCALE))
    hyper = Hyperparameters(np.ones(len(posterior.groups.names)), np.ones(n_levels))
    n_timed = min(n, max(1, int(TIMED / max(n_weights, posterior.network.n_outputs**2))))
    part = posterior.of_rows(np.arange(n_timed))
    with method.threads():
        per_row = _seconds(lambda: method.point(part, theta, hyper, method.exact)) / n_timed
        if method.by_batches:
            rows = np.arange(min(BATCH, n))
            step = _seconds(lambda: posterior.of_rows(rows).misfit_and_gradient(theta, hyper.beta))
            n_steps = STAGES * steps_per_stage(posterior, settings.limits.batch_steps)
            return AROUND + STEP * n_steps * step + (STAGES - WARM) * min(SAMPLE, n) * per_row
        n_points = POINTS if posterior.network.hidden_layer_sizes else POINTS_OF_LINEAR
        seconds = (POINTS_OF_EARLY if method.early else n_points) * n * per_row
        if method.by_gradients:
            gradient = _seconds(lambda: part.energies_and_gradient(theta, hyper))
            seconds += GRADIENTS * gradient * n / n_timed
    return AROUND + seconds


def _seconds(function):
    """Seconds of a call, the minimum over a few trials."""
    times = []
    for _ in range(TRIALS):
        begun = perf_counter()
        function()
        times.append(perf_counter() - begun)
    return min(times)
