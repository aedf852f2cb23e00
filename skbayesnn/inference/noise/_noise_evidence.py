"""Laplace evidence of a network of the means together with a noise network."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.evidence._evidence import EvidenceTerms
from skbayesnn.network import outputs

PRIOR_DRAWS = 100, 500  # smallest and largest number of networks drawn from the prior
ROWS_DRAWN_FOR = 1e6  # target for rows times draws, within these limits


@dataclass(frozen=True, repr=False)
class NoiseNetworkTerms(EvidenceTerms):
    """Terms of the log evidence with a noise network; the others are those of `EvidenceTerms`.

    Attributes
    ----------
    noise_weight_prior : float
        ``-sum_c alpha_c E_v^c + 1/2 sum_c k_c log alpha_c`` over the weights ``v`` of the noise
        network. Its output biases have the hyperprior of a constant noise level instead.
    noise_log_det : float
        ``-1/2 log det A_v``.
    """

    noise_weight_prior: float = 0.0
    noise_log_det: float = 0.0
    noise_symmetry: float = 0.0
    noise_weight_precision_occam: float = 0.0


def occam_of_idle(plan, posterior, prior, levels):
    """Log ratio of the evidences of a noise network that is switched off and of constant noise.

    Where the noise is constant, the noise network is switched off by large weight precisions. As
    soon as one of them is large the others are undetermined, so that the product of their separate
    Occam factors is 1 and fails as an approximation. The posterior of the noise network, however,
    hardly differs from its prior. The evidence is therefore the Monte Carlo mean of the likelihood
    over networks drawn from the prior, each at its most probable noise level.

    The posterior of the noise network has squared residuals as targets. ``prior`` and ``levels``
    are the `Hyperpriors` of the precisions of its weights and of the noise precisions.
    """
    n_draws = int(np.clip(ROWS_DRAWN_FOR / len(posterior.X), *PRIOR_DRAWS))
    rng = np.random.default_rng(0)
    log_alpha = prior.quantile(rng.random((n_draws, len(plan.groups.names))))
    v = rng.standard_normal((n_draws, plan.network.n_weights))
    v = v * np.exp(-0.5 * log_alpha)[:, plan.groups.labels]
    counted = posterior.targets().counts
    total, constant = np.sum(counted, axis=0), np.sum(counted * posterior.y, axis=0)
    gains = np.empty(n_draws)
    for i in range(n_draws):
        g = np.clip(outputs(plan.network, v[i], posterior.X), *levels.log_range)
        g = g - np.sum(counted * g, axis=0) / total
        even = np.sum(counted * np.exp(g) * posterior.y, axis=0)
        gains[i] = 0.5 * total @ np.log(constant / even)
    return float(min(logsumexp(gains) - np.log(n_draws), 0.0))
