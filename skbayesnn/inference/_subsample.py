"""Training on some of many rows first, so that few Hessians of all rows are needed."""

from dataclasses import replace

import numpy as np

PART_ROWS = 10_000  # rows on which training begins, at least
ROWS_PER_WEIGHT = 20  # and at least so many for each weight
WORTHWHILE = 5  # times as many rows from which the training begins on a part of them


def subsample(posterior, rng):
    """The posterior of some rows, with the same network and prior, where there are many.

    Its minimum and its precisions lie near those of all rows, from where a few steps lead to
    the latter. What is found on the part is a start only, never a result.

    Parameters
    ----------
    posterior : Posterior
    rng : numpy.random.Generator
        Chooses the rows, all equally likely; how often a row counts plays no role in it.

    Returns
    -------
    Posterior or None
        ``None`` if training on all rows from the beginning is cheap enough, or if there are no
        hidden units.
    """
    size = part_size(posterior)
    if not size:
        return None
    rows = np.sort(rng.choice(len(posterior.X), size, replace=False))
    return replace(
        posterior,
        X=posterior.X[rows],
        y=posterior.y[rows],
        sample_weight=posterior.sample_weight[rows],
    )


def part_size(posterior):
    """Number of rows on which training begins; 0 if it begins on all of them."""
    network = posterior.network
    size = max(PART_ROWS, ROWS_PER_WEIGHT * network.n_weights)
    worthwhile = network.hidden_layer_sizes and len(posterior.X) >= WORTHWHILE * size
    return size if worthwhile else 0
