"""Settings of searches, and minima, which several tests of this folder share."""

import numpy as np

from skbayesnn.inference import Method
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.inference.task._settings import FreeHyperparameters, Settings
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
