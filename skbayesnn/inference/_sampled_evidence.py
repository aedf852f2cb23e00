"""The evidence of a sampled model, by sequential Monte Carlo."""

import numpy as np
from joblib import Parallel, delayed

from skbayesnn._threads import blas_threads
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.samplers import anneal, combine

N_POPULATIONS, N_PARTICLES = 6, 64  # for the evidence
LEAST_SPREAD = 0.1  # of the coordinates of precisions where annealing begins
PRIOR_SHARE = 0.05  # of each coordinate's own prior in where annealing begins
LOGISTIC_SD = np.pi / np.sqrt(3.0)


class _Reference:
    """Where annealing begins: the prior, but for precisions near those of the posterior.

    The coordinates of the precisions are logistic with the draws' mean and twice their variance,
    mixed with a little of their own prior, so that no part of the posterior is out of reach. From
    that prior alone, which spans six decades for each, hardly any particle would get there; the
    evidence stays exact, whatever the reference.
    """

    def __init__(self, joint, draws):
        self.joint = joint
        eta = np.concatenate(joint.coordinates(draws.alpha, draws.beta))  # all chains
        self.centre = eta.mean(axis=0)
        self.scale = np.maximum(eta.std(axis=0), LEAST_SPREAD) * np.sqrt(2.0) / LOGISTIC_SD

    def draw(self, rng):
        """A position."""
        near = self.centre + self.scale * rng.logistic(size=len(self.centre))
        far = self.joint.draw_coordinates(rng)
        return self.joint.draw_weights(
            np.where(rng.random(len(near)) < PRIOR_SHARE, far, near), rng
        )

    def terms(self, q):
        """Minus log of this density, minus log of posterior over it, and both gradients."""
        joint = self.joint
        terms, eta = joint.terms(q), q[..., joint.n_sampled :]
        half = 0.5 * (eta - self.centre) / self.scale
        near = -2.0 * np.logaddexp(half, -half) - np.log(self.scale) + np.log1p(-PRIOR_SHARE)
        prior, prior_slope = joint.hyperprior(eta)
        far = np.log(PRIOR_SHARE) - prior
        log_density = np.logaddexp(near, far)
        slope = -np.exp(near - log_density) * np.tanh(half) / self.scale
        slope = slope - np.exp(far - log_density) * prior_slope
        change, change_gradient = np.sum(prior + log_density, axis=-1), prior_slope + slope
        by_prior, by_data = terms.prior_gradient.copy(), terms.data_gradient.copy()
        by_prior[..., joint.n_sampled :] -= change_gradient
        by_data[..., joint.n_sampled :] += change_gradient
        return terms.prior - change, by_prior, terms.data + change, by_data


def estimate_evidence(joint, draws, seed, n_jobs=None):
    """``log P(D | H)`` by sequential Monte Carlo, with a standard error.

    Independent populations of particles give the spread of the estimate. All symmetric copies of
    all minima are counted by themselves.

    Parameters
    ----------
    joint : JointPosterior
    draws : Draws
        From the posterior: they tell where precisions are likely.
    seed : numpy.random.SeedSequence
    n_jobs : int, optional

    Returns
    -------
    log_evidence, standard_error : float
        In nats, for targets in standardised units.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, SamplingSettings, Settings
    >>> from skbayesnn.inference import estimate_evidence, run_chains, start_sampling
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> from skbayesnn.samplers import Plan
    >>> network, X = Network((1, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> sampling = SamplingSettings(settings, Plan(), n_warmup=20, n_draws=20)
    >>> seeds = np.random.SeedSequence(0).spawn(2)
    >>> joint, chains = start_sampling(posterior, sampling, seeds)
    >>> draws = run_chains(joint, chains, sampling).draws
    >>> value, error = estimate_evidence(joint, draws, np.random.SeedSequence(1))
    >>> 0 < error < 1
    True
    """
    reference = _Reference(joint, draws)
    populations = Parallel(n_jobs=n_jobs)(
        delayed(_anneal)(reference, child) for child in seed.spawn(N_POPULATIONS)
    )
    return combine(np.array(populations))


def _anneal(reference, seed):
    """Log evidence from one population."""
    rng = np.random.default_rng(seed)
    with blas_threads(reference.joint.posterior.network.n_weights):
        position = np.stack([reference.draw(rng) for _ in range(N_PARTICLES)])
        move = ScaleMoves(reference.joint)
        return anneal(reference.terms, position, rng, move).log_evidence
