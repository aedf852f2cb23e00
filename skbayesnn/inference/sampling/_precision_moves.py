"""Gibbs updates of the precisions at fixed weights, in addition to the dynamics."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.sampling._stepwise import Stepwise, tested


class Redraws(NamedTuple):
    """Random numbers of one transition.

    Attributes
    ----------
    which : ndarray of int, shape (n,)
        Indices of the free precisions, in the order of their updates.
    gamma, log_uniform : ndarray of shape (n_chains, n)
    """

    which: np.ndarray
    gamma: np.ndarray
    log_uniform: np.ndarray

    @property
    def n_steps(self):
        """Number of steps of every chain."""
        return len(self.which)


class PrecisionMoves(Stepwise):
    """Gibbs draws of the free precisions given the weights in the position.

    Together with `ScaleMoves`, which keep the prior probability of the weights, they interweave the
    centred and the non-centred parametrisation (Yu & Meng 2011), one of which mixes fast in any
    region. A Metropolis test corrects the draws for any hyperprior, and for precisions that are
    shared with weights that are integrated out.

    Parameters
    ----------
    joint : JointPosterior
    """

    method = "redraws"

    def __init__(self, joint):
        self.joint, sizes = joint, joint.sizes[joint.free.alpha]
        self.which = np.flatnonzero(sizes > 0)
        self.shapes = 0.5 * sizes[self.which]

    def draw(self, rngs):
        """Draw the random numbers of every chain from its own generator."""
        n = len(self.which)
        if n == 0:
            return None
        gamma, uniform = np.empty((2, len(rngs), n))
        for i, rng in enumerate(rngs):
            gamma[i] = rng.standard_gamma(self.shapes)
            rng.random(out=uniform[i])
        return Redraws(self.which, gamma, np.log(uniform))

    def step(self, energy, phase, drawn, at):
        """Update one precision of every chain."""
        which, gamma = drawn.which[at[1]], drawn.gamma[at]
        position, log_volume = self.joint.redrawn(phase.position, which, gamma)
        return tested(energy, phase, position, log_volume, drawn.log_uniform[at])
