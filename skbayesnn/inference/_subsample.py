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

    Returns
    -------
    Posterior or None

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import subsample
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Posterior, weight_groups
    >>> network, X = Network((1, 2, 1)), np.zeros((50, 1))
    >>> groups, noise = weight_groups(network, "single"), Gaussian.per_output(1)
    >>> posterior = Posterior(network, noise, groups, X, X, np.ones(50))
    >>> len(subsample(posterior, 10, np.random.default_rng(0)).X)
    10
    """
    if not n_rows:
        return None
    rows = np.sort(rng.choice(len(posterior.X), n_rows, replace=False))
    return posterior.of_rows(rows)
