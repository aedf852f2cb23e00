"""How much memory a search for minima takes, and by which methods it goes about it."""

import os
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from skbayesnn.inference._descent import by_descent
from skbayesnn.inference._gauss_newton import (
    DENSE_LIMIT,
    is_of_some_rows,
    n_rows_of_curvature,
    serves_dual,
)
from skbayesnn.inference._minima import trained_together
from skbayesnn.inference._subsample import part_size
from skbayesnn.network import BLOCK_DOUBLES, hessian_width

FIXED = 2**20  # bytes of small things
ROW_COPIES = 6  # of X and y: as given, sorted, distinct, standardised, on the way
PER_UNIT = 5  # numbers per row and unit: values, slopes, bends and their derivatives
MATRICES = 6  # of the size of a Hessian, while one is assembled, factored and inverted


class Requirements(NamedTuple):
    """What a search takes.

    Attributes
    ----------
    n_bytes : float
        Estimate of the largest amount of memory at any time, of all processes together, within a
        factor of two if no units are pruned. A network for the noise is not counted.
    plan : str
        The methods that the sizes of the problem ask for.
    """

    n_bytes: float
    plan: str

    def __str__(self):
        return f"{self.plan}; about {readable(self.n_bytes)} of memory"


def requirements(posterior, settings, n_starts, n_jobs=None):
    """Memory and methods of `find_minima`.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings
    n_starts : int
    n_jobs : int, optional

    Returns
    -------
    Requirements

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings, requirements
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, Posterior
    >>> from skbayesnn.posterior import weight_groups
    >>> network = Network((1, 2, 1))
    >>> groups, X = weight_groups(network, "single"), np.zeros((50, 1))
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, X, np.ones(50))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, Hyperparameters(np.ones(1), np.ones(1)))
    >>> requirements(posterior, settings, n_starts=1).plan
    '50 rows, 7 weights: training by Gauss-Newton steps, exact Hessian at the minima'
    """
    n, k, outputs = len(posterior.X), posterior.network.n_weights, posterior.network.n_outputs
    n_processes = min(effective_n_jobs(n_jobs), max(n_starts, 1))
    together = trained_together(k, n_starts, n_jobs)
    dual, roots = serves_dual(posterior), n_rows_of_curvature(posterior) * outputs
    dense = k <= DENSE_LIMIT

    sizes, width = posterior.network.layer_sizes, hessian_width(posterior.network)
    steps = together * PER_UNIT * sum(sizes) * min(n, BLOCK_DOUBLES // max(sizes) + 1)
    if dual:
        steps += (together + 4) * roots * k + MATRICES * roots**2
    else:
        steps += (2 * together + MATRICES) * k**2
    minimum = (PER_UNIT * sum(sizes) + width) * min(n, BLOCK_DOUBLES // width + 1)
    minimum += MATRICES * k**2 if dense else 0.0
    kept = 2 * n_starts * (k**2 if not dual or dense else roots * k)

    rows = ROW_COPIES * n * (posterior.X.shape[1] + posterior.y.shape[1])
    doubles = rows * n_processes + max(steps, minimum) * n_processes + kept
    return Requirements(FIXED * n_processes + 8.0 * doubles, _plan(posterior, settings, dual))


def _plan(posterior, settings, dual):
    """The methods in words."""
    n, k = len(posterior.X), posterior.network.n_weights
    if by_descent(posterior):
        training = "descents by gradients"
    elif dual:
        training = "Gauss-Newton steps in dual form, as weights outnumber the targets"
    else:
        training = "Gauss-Newton steps"
    part = part_size(posterior)
    begun = f", begun on {part} of the rows" if part else ""
    exact = settings.exact and k <= DENSE_LIMIT
    curvature = "exact Hessian" if exact else "Gauss-Newton curvature"
    if is_of_some_rows(posterior):
        curvature += f" of {n_rows_of_curvature(posterior)} rows"
    return f"{n} rows, {k} weights: training by {training}{begun}, {curvature} at the minima"


def machine_memory():
    """Bytes of memory that this machine has; infinite where the system does not tell.

    Examples
    --------
    >>> from skbayesnn.inference import machine_memory
    >>> machine_memory() > 1e6
    True
    """
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return np.inf


def readable(n_bytes):
    """Bytes in words.

    Examples
    --------
    >>> from skbayesnn.inference import readable
    >>> readable(200 * 2**20)
    '200 MiB'
    """
    for unit in ("KiB", "MiB", "GiB"):
        n_bytes /= 1024.0
        if n_bytes < 1000.0 or unit == "GiB":
            break
    digits = 1 if n_bytes < 10.0 else 0
    return f"{n_bytes:.{digits}f} {unit}"
