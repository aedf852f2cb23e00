"""The evidence of two networks, one for the means and one for their noise."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference._evidence import EvidenceTerms
from skbayesnn.network import outputs

IDLE = 0.1  # well-determined weights below which the noise network does nothing
PRIOR_DRAWS = 100, 500  # least and most networks drawn from the prior
ROWS_DRAWN_FOR = 1e6  # rows times draws that are wanted between these


@dataclass(frozen=True)
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


def with_noise(pair):
    """Both minima as one: the evidence of the whole (MacKay 1992, equation 6.1).

    Parameters
    ----------
    pair : Pair
        Both at a minimum.

    Returns
    -------
    Minimum
        Of the means, whose ``noise`` is the minimum of the noise network.
    """
    mean, noise = pair.mean.minimum, pair.noise.minimum
    biases = noise.groups.labels == len(noise.groups.names) - 1
    pull = 0.5 * noise.hyper.alpha[-1] * np.sum(noise.theta[biases] ** 2)
    occam = noise.terms.weight_precision_occam
    if np.sum(noise.gamma[:-1]) < IDLE:
        occam = _occam_of_idle(pair)
    terms = NoiseNetworkTerms(
        **vars(mean.terms),
        noise_weight_prior=noise.terms.weight_prior + float(pull),  # flat for the biases
        noise_log_det=noise.terms.log_det,
        noise_symmetry=noise.terms.symmetry,
        noise_weight_precision_occam=occam,
    )
    problem = mean.problem or (noise.problem and f"noise network: {noise.problem}")
    converged = mean.converged and noise.converged
    return replace(
        mean,
        terms=terms,
        noise=noise,
        converged=converged,
        problem=problem,
        n_iter=pair.n_iter,
    )


def _occam_of_idle(pair):
    """Log evidence of the noise network over that of constant noise where it is not needed.

    The noise network is then off, under precisions of which none means anything while another is
    large, so that their factors one by one are all 1. But its posterior hardly differs from its
    prior: networks drawn from the latter, the level of each at its best, average the likelihood.
    """
    network, groups = pair.plan
    posterior, prior = pair.noise.posterior, pair.noise.settings.free.prior
    n_draws = int(np.clip(ROWS_DRAWN_FOR / len(posterior.X), *PRIOR_DRAWS))
    rng = np.random.default_rng(0)
    log_alpha = rng.uniform(*prior.log_range, (n_draws, len(groups.names)))
    v = rng.standard_normal((n_draws, network.n_weights))
    v = v * np.exp(-0.5 * log_alpha)[:, groups.labels]
    q, gamma = np.split(posterior.y, 2, axis=1)
    counted = posterior.sample_weight[:, None] * gamma
    total = np.sum(counted, axis=0)
    constant = posterior.sample_weight @ q
    gains = np.empty(n_draws)
    for i in range(n_draws):
        g = np.clip(outputs(network, v[i], posterior.X), *prior.log_range)
        g = g - np.sum(counted * g, axis=0) / total
        gains[i] = 0.5 * total @ np.log(constant / (posterior.sample_weight @ (np.exp(g) * q)))
    return float(min(logsumexp(gains) - np.log(n_draws), 0.0))
