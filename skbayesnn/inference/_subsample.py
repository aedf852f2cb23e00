"""Training on some of many rows first, so that few Hessians of all rows are needed."""

import numpy as np


def subsample(posterior, n_rows, rng):
    """The posterior of some rows, with the same network and prior.

    Its minimum and its precisions lie near those of all rows, from where a few steps lead to
    the latter. What is found on the part is a start only, never a result.

    Parameters
    ----------
    posterior : Posterior
    n_rows : int
        See `Method`; 0 for none.
    rng : numpy.random.Generator
        Chooses the rows, all equally likely; how often a row counts plays no role in it.
    """
    if not n_rows:
        return None
    rows = np.sort(rng.choice(len(posterior.X), n_rows, replace=False))
    return posterior.of_rows(rows)
