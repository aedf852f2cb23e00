"""The evidence of a sampled model, by sequential Monte Carlo."""

import numpy as np
from joblib import Parallel, delayed

from skbayesnn._threads import blas_threads
from skbayesnn.inference._moves import moves_beside
from skbayesnn.samplers import Stage, anneal, combine

N_POPULATIONS = 6
N_PARTICLES = 16, 64  # of a population, at least and at most
PARTICLE_ROWS = 2**13  # particles times rows, beyond the least number of particles
LEAST_SPREAD = 0.1  # of the coordinates of precisions where annealing begins
PRIOR_SHARE = 0.05  # of each coordinate's own prior in where annealing begins
LOGISTIC_SD = np.pi / np.sqrt(3.0)


class _Path:
    """From where annealing begins, the prior but for precisions near those of the posterior.

    The coordinates of the precisions are logistic with the draws' mean and twice their variance,
    mixed with a little of their own prior, so that no part of the posterior is out of reach. From
    that prior alone, which spans six decades for each, hardly any particle would get there; the
    evidence stays exact, whatever the reference.
    """

    def __init__(self, joint, draws):
        self.joint = joint
        eta = np.concatenate(joint.drawn_coordinates(draws))  # all chains
        self.centre = eta.mean(axis=0)
        self.scale = np.maximum(eta.std(axis=0), LEAST_SPREAD) * np.sqrt(2.0) / LOGISTIC_SD

    def draw(self, rng):
        """A position."""
        near = self.centre + self.scale * rng.logistic(size=len(self.centre))
        far = self.joint.draw_coordinates(rng)
        return self.joint.draw_weights(
            np.where(rng.random(len(near)) < PRIOR_SHARE, far, near), rng
        )

    def misfit(self, q):
        """Minus log of posterior over the density where annealing begins, up to the evidence."""
        return self._terms(q)[2]

    def stage(self, temperature, position, rngs):
        """The `Stage` of a temperature."""

        def energy(q):
            prior, prior_gradient, data, data_gradient = self._terms(q)
            return prior + temperature * data, prior_gradient + temperature * data_gradient

        return Stage(position, energy, moves_beside(self.joint, 1))

    def _terms(self, q):
        """Minus log of the first density, minus log of posterior over it, and both gradients."""
        joint = self.joint
        terms, moving = joint.terms(q), slice(joint.n_sampled, joint.dimension)
        change, change_gradient = self._change(q[..., moving])
        by_prior, by_data = terms.prior_gradient.copy(), terms.data_gradient.copy()
        by_prior[..., moving] -= change_gradient
        by_data[..., moving] += change_gradient
        return terms.prior - change, by_prior, terms.data + change, by_data

    def _change(self, eta):
        """Log of the first density over the prior of precisions, and its gradient."""
        half = 0.5 * (eta - self.centre) / self.scale
        near = -2.0 * np.logaddexp(half, -half) - np.log(self.scale) + np.log1p(-PRIOR_SHARE)
        prior, prior_slope = self.joint.hyperprior(eta)
        far = np.log(PRIOR_SHARE) - prior
        log_density = np.logaddexp(near, far)
        slope = -np.exp(near - log_density) * np.tanh(half) / self.scale
        slope = slope - np.exp(far - log_density) * prior_slope
        return np.sum(prior + log_density, axis=-1), prior_slope + slope


class _ConditionalPath(_Path):
    """The same for energies that are conditional on factors of the rows' precisions.

    The likelihood whose power is taken is that of all weights, the factors integrated out. At every
    temperature it is a mixture over factors again, so that the output layer can be integrated out.
    """

    def misfit(self, q):
        """As before, of all weights."""
        moving = q[..., self.joint.n_sampled : self.joint.dimension]
        return self.joint.misfit(q) + self._change(moving)[0]

    def stage(self, temperature, position, rngs):
        """The `Stage` of a temperature, factors drawn anew."""
        joint = self.joint.tempered(temperature)
        moving = slice(joint.n_sampled, joint.dimension)

        def energy(q):
            value, gradient = joint.energy(q)
            change, change_gradient = self._change(q[..., moving])
            gradient[..., moving] -= (1.0 - temperature) * change_gradient
            return value - (1.0 - temperature) * change, gradient

        return Stage(
            joint.renewed(position, rngs, keep_outputs=True), energy, moves_beside(joint, 1)
        )


def estimate_evidence(joint, draws, seed, n_jobs=None):
    """``log P(D | H)`` by sequential Monte Carlo, with a standard error.

    Independent populations of particles give the spread of the estimate. The more rows there are,
    the fewer particles: 64 for up to 128 rows, 16 from 512 rows on. All symmetric copies of all
    minima are counted by themselves.

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
    """
    path = (_ConditionalPath if joint.n_conditions else _Path)(joint, draws)
    populations = Parallel(n_jobs=n_jobs)(
        delayed(_anneal)(path, child) for child in seed.spawn(N_POPULATIONS)
    )
    return combine(np.array(populations))


def _anneal(path, seed):
    """Log evidence from one population."""
    rng = np.random.default_rng(seed)
    with blas_threads(path.joint.posterior.network.n_weights):
        n = int(np.clip(PARTICLE_ROWS // len(path.joint.posterior.X), *N_PARTICLES))
        position = np.stack([path.draw(rng) for _ in range(n)])
        return anneal(path, position, rng).log_evidence
