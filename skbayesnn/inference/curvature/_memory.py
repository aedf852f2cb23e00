"""Memory that a search for minima takes."""

import os

import numpy as np
from joblib import effective_n_jobs

from skbayesnn.inference.curvature._method import Curvature, Method
from skbayesnn.network import BLOCK_DOUBLES, hessian_width

FIXED = 2**20  # bytes of small arrays and objects
ROW_COPIES = 6  # copies of X and y: given, sorted, distinct, standardised, temporary
PER_UNIT = 5  # doubles per row and unit: activations, their derivatives, back-propagated ones
JACOBIANS = 2  # Jacobians of a block of training rows, for predictions at the end
MATRICES = 6  # matrices of the size of a Hessian during its assembly, factorisation, inverse


def memory_of_search(posterior, settings, n_starts, n_jobs=None):
    """Estimate the peak memory of `find_minima` in bytes, summed over all processes.

    The estimate is within a factor of two if no units are pruned. A noise network is not counted.
    """
    method, network = Method.choose(posterior, settings), posterior.network
    n, k, roots = len(posterior.X), network.n_weights, len(posterior.X) * network.n_outputs
    n_processes = min(effective_n_jobs(n_jobs), max(n_starts, 1))
    sizes, width = network.layer_sizes, hessian_width(network)
    factors = sum(rows**2 + columns**2 for rows, columns in network.shapes)
    jacobians = JACOBIANS * min(roots * k, BLOCK_DOUBLES)
    form = {  # doubles of one curvature, further doubles of a step, and doubles of predictions
        Curvature.DENSE: (k**2, MATRICES * k**2, jacobians),
        Curvature.DUAL: (roots * k, 4 * roots * k + MATRICES * roots**2, jacobians),
        Curvature.KRONECKER: (factors, MATRICES * factors + 50 * k, 0),
    }
    one, besides, predicted = form[method.curvature]
    traces = PER_UNIT * sum(sizes) * min(n, BLOCK_DOUBLES // max(sizes) + 1)
    minimum = 0.0
    if method.dense:
        minimum = (PER_UNIT * sum(sizes) + width) * min(n, BLOCK_DOUBLES // width + 1)
        minimum += MATRICES * k**2
    kept = 2 * n_starts * (k**2 if method.dense else one)
    rows = ROW_COPIES * n * (posterior.X.shape[1] + posterior.y.shape[1])
    doubles = (rows + max(traces + one + besides, minimum, predicted)) * n_processes + kept
    return FIXED * n_processes + 8.0 * doubles


def machine_memory():
    """Physical memory of this machine in bytes; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return np.inf


def readable(n_bytes):
    """Format a number of bytes with its unit."""
    for unit in ("KiB", "MiB", "GiB"):
        n_bytes /= 1024.0
        if n_bytes < 1000.0 or unit == "GiB":
            break
    digits = 1 if n_bytes < 10.0 else 0
    return f"{n_bytes:.{digits}f} {unit}"


def check_memory(n_bytes, what, advice):
    """Raise ``MemoryError`` if an operation needs more memory than the machine has.

    Parameters
    ----------
    n_bytes : float
    what : str
        Subject of the sentence in the error message.
    advice : str
        Sentence of the error message that says what to do instead.

    Examples
    --------
    >>> from skbayesnn.inference import check_memory
    >>> check_memory(1e3, "A small matrix", "Nothing need be done.")
    """
    if n_bytes > machine_memory():
        raise MemoryError(
            f"{what} needs about {readable(n_bytes)} of memory, and the machine has "
            f"{readable(machine_memory())}. {advice}"
        )
