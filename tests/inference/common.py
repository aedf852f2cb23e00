"""Settings of searches, minima, and evidences, which several tests of this folder share."""

import numpy as np

from skbayesnn.inference import Method
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.inference.sampling._population import sample_population
from skbayesnn.inference.task._problem import FreeHyperparameters, Settings
from skbayesnn.posterior import Hyperparameters, LogUniform


def free_all(posterior, free=True):
    """All precisions are free, or none."""
    n_groups, n_levels = len(posterior.groups.names), posterior.likelihood.n_levels
    return FreeHyperparameters.sharing(
        np.full(n_groups, free), np.full(n_levels, free), LogUniform()
    )


def settings_of(posterior, fixed=None, **options):
    """`Settings` of a search with all precisions free, or all of them fixed at some values."""
    free = free_all(posterior, fixed is None)
    if fixed is None:
        fixed = Hyperparameters(np.ones(len(free.alpha)), np.ones(len(free.beta)))
    return Settings(free, fixed, **options)


def method_of(posterior, **options):
    """The `Method` with all precisions free."""
    return Method.choose(posterior, settings_of(posterior, **options))


def mode_of(posterior, theta, hyper, **options):
    """`find_mode` with the method of the posterior."""
    return find_mode(posterior, method_of(posterior), theta, hyper, **options)


def log_marginal(X, y, alpha, log_precision):
    """Of linear means, the weights integrated out; ``log_precision`` of shape (..., n)."""
    Phi, precision = np.hstack([X, np.ones_like(X)]), np.exp(log_precision)
    A = alpha * np.eye(2) + (Phi.T * precision[..., None, :]) @ Phi
    b = (precision * y) @ Phi
    inner = np.sum(b * np.linalg.solve(A, b[..., None])[..., 0], axis=-1)
    rows = np.sum(log_precision - np.log(2.0 * np.pi) - precision * y**2, axis=-1)
    return 0.5 * (inner + rows) + np.log(alpha) - 0.5 * np.linalg.slogdet(A)[1]


def population_evidence(sampled, n_runs=1):
    """Mean of several estimates, as the error of one, from few populations, is itself uncertain."""
    seeds = np.random.SeedSequence(1).spawn(n_runs)
    eta = np.concatenate(sampled.joint.drawn_coordinates(sampled.draws))
    rngs = [np.random.default_rng(seed) for seed in seeds]
    runs = [sample_population(sampled.joint, eta, rng) for rng in rngs]
    values, errors = np.transpose([(run.log_evidence, run.log_evidence_std) for run in runs])
    return np.mean(values), np.sqrt(np.mean(errors**2) / n_runs)
