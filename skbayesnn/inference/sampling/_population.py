"""Evidence and posterior draws of networks by sequential Monte Carlo.

Particles are drawn from the prior of the weights, with precisions near those of the posterior
(`NearPrecisions`), and annealed to the posterior. Small pilot populations locate the precisions of
the posterior; a larger population starts there.

If the precisions are free while the likelihood has a small exponent, the data are explained by noise
alone, and particles may miss the narrow modes that fit them (a transition of first order: the two
explanations hardly overlap). Such modes are found from a narrow first density, which holds the
precisions at those of the modes until the exponent is near 1.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference.sampling._moves import moves_beside
from skbayesnn.inference.sampling._tempered import NearPrecisions, Tempered
from skbayesnn.inference.task._deadline import NEVER, OutOfTime
from skbayesnn.samplers import Schedule, Stage, anneal, combine

FIRST = Schedule(n_chains=16, n_moves=2, n_steps=10, effective=0.5, n_last_moves=4, n_last_steps=10)
SECOND = Schedule(n_moves=2, effective=0.6, n_last_steps=32)
CHAIN_ROWS = 2**11  # target for chains of a population times rows, within the following limits
FEWEST_CHAINS, MOST_CHAINS = 16, 32
N_DRAWS = 1024  # target for the states of all chains at the posterior; limits for each chain follow
FEWEST_MOVES, MOST_MOVES = 4, 16
SPREAD = 0.7  # sd of the first coordinates of precisions, which cover most of their intervals
LEAST_SPREAD = 0.1  # least sd about those that a pilot population has found
NARROW = 0.02  # sd of a narrow density
NEEDED = 5.0  # nats that a narrow density must gain for a pilot population
SYSTEMATIC = 0.2  # nats of error common to all populations; by tests/benchmarks/evidence_truth.py


class Particles(NamedTuple):
    """Draws from a posterior, and an estimate of its evidence.

    Attributes
    ----------
    joint : JointPosterior
    log_evidence, log_evidence_std : float
        Log evidence and its standard error, in nats, for standardised targets.
    position : ndarray of shape (n_chains, n_moves, d + n_conditions)
        Draws: states of short chains.
    narrow : bool
        True if the posterior is found from narrow first densities only.
    """

    joint: object
    log_evidence: float
    log_evidence_std: float
    position: np.ndarray
    narrow: bool = False

    def informed(self, information):
        """Convert to coordinates fitted to the data, see `Coordinates`.

        Parameters
        ----------
        information : ndarray of shape (n_groups,)
            Precision ``h_c`` that the data give a weight of each group.
        """
        joint = replace(self.joint, information=information)
        return self._replace(joint=joint, position=self.joint.converted(self.position, joint))

    def chosen(self, size, rng):
        """Select positions ``(size, d + n_conditions)``, thinned along the chains if possible.

        The first ones are the last states of different chains.
        """
        n_chains, n_moves = self.position.shape[:2]
        every = max(1, n_chains * n_moves // size)
        states = self.position[rng.permutation(n_chains), ::-1][:, ::every]
        return np.swapaxes(states, 0, 1).reshape(-1, states.shape[-1])[:size]


class PathFromPrior:
    """Annealing path from the first density to the posterior, by powers of their ratio.

    Parameters
    ----------
    joint : JointPosterior
    first : NearPrecisions
    deadline : Deadline
        Time after which the next stage raises `OutOfTime`.
    """

    def __init__(self, joint, first, deadline=NEVER):
        self.joint, self.first, self.deadline = joint, first, deadline

    def draw(self, rng, size):
        """Draw positions from the first density."""
        return self.first.draw(rng, size)

    def misfit(self, q):
        """Minus log ratio of the joint density to the first density."""
        return Tempered(self.joint, self.first, 1.0, -1.0).values(q)

    def stage(self, exponent, position, rngs):
        """Build the `Stage` of an exponent, redrawing the conditions."""
        if self.deadline.passed:
            raise OutOfTime
        energy = Tempered.at_temperature(self.joint, self.first, exponent)
        position = energy.joint.renewed(position, rngs, keep_outputs=True)
        return Stage(position, energy, moves_beside(energy.joint, 1))


class _PathWithConditions(PathFromPrior):
    """Annealing path for energies conditional on factors of the rows' precisions.

    The tempered likelihood is that of the weights, with the factors integrated out.
    """

    def misfit(self, q):
        """Minus log ratio of the joint density, factors integrated out, to the first density."""
        moving = q[..., self.joint.n_sampled : self.joint.dimension]
        return self.joint.misfit(q) + self.first.change(moving)[0]


def _annealed(joint, first, rng, schedule, deadline):
    """Anneal populations that start from a density; ``None`` after the deadline."""
    path = _PathWithConditions if joint.n_conditions else PathFromPrior
    with blas_threads(joint.posterior.network.n_weights):
        try:
            found = anneal(path(joint, first, deadline), rng, schedule)
        except OutOfTime:
            return None
    log_evidence, spread = combine(found.log_evidences)
    error = float(np.hypot(spread, SYSTEMATIC if joint.dimension else 0.0))
    return Particles(joint, log_evidence, error, found.position)


def scout(joint, rng, deadline=NEVER, near=None):
    """Locate the precisions of the posterior by small pilot populations.

    The first one starts from precisions of all orders of magnitude, the second one from a narrow
    density. Their evidences are too low by up to dozens of nats.

    Parameters
    ----------
    joint : JointPosterior
    rng : numpy.random.Generator
    deadline : Deadline
    near : ndarray of shape (n_free,), optional
        Coordinates of precisions of a mode, ``nan`` for unknown ones.

    Returns
    -------
    Particles or None
        Those of the second population if it finds more; ``None`` if there was no time.
    """
    wide = NearPrecisions.about(joint, np.zeros(joint.n_free), np.full(joint.n_free, SPREAD))
    found = _annealed(joint, wide, rng, FIRST, deadline)
    if found is None or near is None:
        return found
    sd = np.where(np.isnan(near), SPREAD, NARROW)
    first = NearPrecisions.about(joint, np.nan_to_num(near), sd)
    other = _annealed(joint, first, rng, FIRST, deadline)
    if other is None or other.log_evidence < found.log_evidence + NEEDED:
        return found
    return other._replace(narrow=True)


def sample_population(joint, eta, rng, deadline=NEVER, more=1, narrow=False):
    """Draw from the posterior, and estimate its evidence with a standard error.

    Parameters
    ----------
    joint : JointPosterior
    eta : ndarray of shape (m, n_free)
        Coordinates of precisions drawn from the posterior, near which the particles start.
    rng : numpy.random.Generator
    deadline : Deadline
    more : int, default=1
        Factor of the usual number of particles.
    narrow : bool, default=False
        Start from a narrow density.

    Returns
    -------
    Particles or None
        ``None`` if there was no time for it.
    """
    sd = np.full(joint.n_free, NARROW) if narrow else np.maximum(eta.std(axis=0), LEAST_SPREAD)
    first = NearPrecisions.about(joint, eta.mean(axis=0), sd)
    n_chains = more * int(np.clip(CHAIN_ROWS // len(joint.posterior.X), FEWEST_CHAINS, MOST_CHAINS))
    n_moves = int(np.clip(N_DRAWS // (SECOND.n_populations * n_chains), FEWEST_MOVES, MOST_MOVES))
    schedule = SECOND._replace(n_chains=n_chains, n_last_moves=n_moves)
    found = _annealed(joint, first, rng, schedule, deadline)
    return None if found is None else found._replace(narrow=narrow)


def sample_after(drawn, rng, deadline=NEVER, more=1):
    """Run `sample_population` near the precisions of earlier draws.

    Parameters
    ----------
    drawn : Particles or Drawn
    rng : numpy.random.Generator
    deadline : Deadline
    more : int, default=1
    """
    joint = drawn.joint
    position = drawn.position.reshape(-1, drawn.position.shape[-1])
    eta = position[:, joint.n_sampled : joint.dimension]
    return sample_population(joint, eta, rng, deadline, more, drawn.narrow)
