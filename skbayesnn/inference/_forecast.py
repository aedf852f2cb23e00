"""How long a search will take, from a trial on this machine."""

from time import perf_counter

import numpy as np

from skbayesnn.inference._batches import BATCH, SAMPLE, STAGES, WARM
from skbayesnn.inference._method import Method
from skbayesnn.inference._training import EARLY
from skbayesnn.posterior import Hyperparameters

SCALE = 0.3  # of the weights with which it is tried
POINTS, POINTS_OF_LINEAR = 900.0, 15.0  # as many evaluations of the curvature take as long
POINTS_OF_EARLY = 2.5 * EARLY  # where training ends early
GRADIENTS = 600.0  # of a start trained by descents
STEP = 2.0  # of training on a batch, compared with its gradient
AROUND = 0.02  # seconds of everything else
TRIALS = 3


def seconds_of_start(posterior, settings):
    """Seconds that a start takes, from the time of one evaluation: right to a factor of three.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings
    """
    method = Method.choose(posterior, settings)
    n_weights, n_levels = posterior.network.n_weights, posterior.likelihood.n_levels
    theta = posterior.groups.start(np.random.default_rng(0), np.full(n_weights, SCALE))
    hyper = Hyperparameters(np.ones(len(posterior.groups.names)), np.ones(n_levels))
    with method.threads():
        if method.by_batches:
            rows = np.arange(min(BATCH, len(posterior.X)))
            sample = posterior.of_rows(np.arange(min(SAMPLE, len(posterior.X))))
            step = _seconds(lambda: posterior.of_rows(rows).misfit_and_gradient(theta, hyper.beta))
            stage = _seconds(lambda: method.point(sample, theta, hyper))
            return AROUND + STEP * settings.limits.batch_steps * step + (STAGES - WARM) * stage
        n_points = POINTS if posterior.network.hidden_layer_sizes else POINTS_OF_LINEAR
        n_points = POINTS_OF_EARLY if method.early else n_points
        seconds = n_points * _seconds(lambda: method.point(posterior, theta, hyper, method.exact))
        if method.by_gradients:
            seconds += GRADIENTS * _seconds(lambda: posterior.energies_and_gradient(theta, hyper))
    return AROUND + seconds


def _seconds(function):
    """Of a call, the fastest of a few."""
    times = []
    for _ in range(TRIALS):
        begun = perf_counter()
        function()
        times.append(perf_counter() - begun)
    return min(times)
