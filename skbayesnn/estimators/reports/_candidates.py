"""Models that predict together, or were tried, with their shares in the predictions."""

from collections import Counter
from typing import NamedTuple

import numpy as np


class Candidate(NamedTuple):
    """Model that predicts, or was tried.

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
    noise : str
        Noise model; empty for classes and counts, ``"no"`` without noise.
    n_weights : int
        Number of weights before pruning.
    share : float
        Share in the predictions.
    log_evidence : float
        Log evidence measured by sampling, in nats, for targets in their own units; ``nan`` if it
        was not.
    held_out_log_density : float
        Mean held-out log density (nats per row), the criterion where there are many rows; else
        ``nan``.
    """

    hidden_layer_sizes: tuple
    noise: str
    n_weights: int
    share: float
    log_evidence: float = np.nan
    held_out_log_density: float = np.nan


def drawn_candidates(fit, shares):
    """Models from whose posteriors networks were drawn, with their shares in the predictions."""
    found = []
    for drawn, share in zip(fit.drawn, shares, strict=True):
        network, noise = drawn.posed.posterior.network, drawn.name(fit.problem).partition(", ")[2]
        evidence = float(drawn.log_evidence + fit.problem.log_scale)
        model = network.hidden_layer_sizes, noise.removesuffix(" noise"), network.n_weights
        found.append(Candidate(*model, float(share), evidence))
    return tuple(found)


def tried_candidates(fit, shares):
    """Networks that were tried under constant noise; a Counter has ``shares`` by hidden layers."""
    noise = "constant" if fit.problem.likelihood.n_levels else ""
    return tuple(
        Candidate(
            tried.hidden_layer_sizes,
            noise,
            tried.n_weights,
            float(shares.pop(tried.hidden_layer_sizes, 0.0)),
            float(tried.log_evidence),
            float(tried.held_out_log_density),
        )
        for tried in fit.growth
    )


def shares_of_sizes(laplace):
    """Shares of the networks of the minima of a `Combined`, by hidden layers before pruning."""
    shares = Counter()
    for (posterior, _), share in zip(laplace.fit.pool, laplace.shares, strict=False):
        shares[posterior.network.hidden_layer_sizes] += share
    return shares
