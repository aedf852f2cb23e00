"""Subsamples of many rows for initial training, so that few Hessians of all rows are needed."""

import numpy as np


def subsample(posterior, n_rows, rng):
    """Posterior of a random subset of the rows, with the same network and prior.

    Its minimum and its precisions lie near those of all rows, and a few steps lead from the former
    to the latter. The minimum of the subset serves as a starting point only, never as a result.

    Parameters
    ----------
    posterior : Posterior
    n_rows : int
        Number of rows, see `Method`; 0 for no subsample.
    rng : numpy.random.Generator
        Generator that draws the rows uniformly, irrespective of their weights.
    """
    if not n_rows:
        return None
    rows = np.sort(rng.choice(len(posterior.X), n_rows, replace=False))
    return posterior.of_rows(rows)
