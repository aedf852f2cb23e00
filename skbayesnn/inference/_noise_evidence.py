"""The evidence of two networks, one for the means and one for their noise."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference._evidence import EvidenceTerms
from skbayesnn.network import outputs

PRIOR_DRAWS = 100, 500  # least and most networks drawn from the prior
ROWS_DRAWN_FOR = 1e6  # rows times draws that are wanted between these


@dataclass(frozen=True, repr=False)
class NoiseNetworkTerms(EvidenceTerms):
    """Terms of the evidence with a noise network; the others as in `EvidenceTerms`.

    Attributes
    ----------
    noise_weight_prior : float
        ``-sum_c alpha_c E_v^c + 1/2 sum_c k_c log alpha_c`` over the noise network's weights. Its
        output biases have the hyperprior of a constant noise level instead.
    noise_log_det : float
        ``-1/2 log det A_v``.
    noise_symmetry : float
    noise_weight_precision_occam : float
    """

    noise_weight_prior: float = 0.0
    noise_log_det: float = 0.0
    noise_symmetry: float = 0.0
    noise_weight_precision_occam: float = 0.0


def occam_of_idle(network, groups, posterior, prior, levels):
    """Log evidence of the noise network over that of constant noise where it is not needed.

    The noise network is then off, under precisions of which none means anything while another is
    large, so that their factors one by one are all 1. But its posterior hardly differs from its
    prior: networks drawn from the latter, the level of each at its best, average the likelihood.

    Parameters
    ----------
    network : Network
    groups : WeightGroups
    posterior : Posterior
        With squared residuals as targets.
    prior : Hyperpriors
        Of the precisions of the noise network's weights.
    levels : Hyperpriors
        Of the noise precisions.
    """
    n_draws = int(np.clip(ROWS_DRAWN_FOR / len(posterior.X), *PRIOR_DRAWS))
    rng = np.random.default_rng(0)
    log_alpha = prior.quantile(rng.random((n_draws, len(groups.names))))
    v = rng.standard_normal((n_draws, network.n_weights))
    v = v * np.exp(-0.5 * log_alpha)[:, groups.labels]
    counted = posterior.targets().counts
    total, constant = np.sum(counted, axis=0), np.sum(counted * posterior.y, axis=0)
    gains = np.empty(n_draws)
    for i in range(n_draws):
        g = np.clip(outputs(network, v[i], posterior.X), *levels.log_range)
        g = g - np.sum(counted * g, axis=0) / total
        even = np.sum(counted * np.exp(g) * posterior.y, axis=0)
        gains[i] = 0.5 * total @ np.log(constant / even)
    return float(min(logsumexp(gains) - np.log(n_draws), 0.0))
