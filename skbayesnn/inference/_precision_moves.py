"""Precisions drawn anew at fixed weights, beside the dynamics."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._stepwise import Stepwise, tested


class Redraws(NamedTuple):
    """Random numbers of a transition.

    Attributes
    ----------
    which : ndarray of int, shape (n,)
        Free precisions, one after the other.
    gamma, log_uniform : ndarray of shape (n_chains, n)
    """

    which: np.ndarray
    gamma: np.ndarray
    log_uniform: np.ndarray

    @property
    def n_steps(self):
        """Of every chain."""
        return len(self.which)


class PrecisionMoves(Stepwise):
    """Gibbs draws of free precisions given their weights in the position.

    Together with `ScaleMoves`, at which weights keep their prior probability, they interweave the
    centred and the non-centred parametrisation (Yu & Meng 2011): one of both moves fast wherever
    a chain is. A Metropolis test makes them right for any hyperprior, and where the same precision
    belongs to weights that are integrated out.

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
        """Random numbers of every chain from its own generator."""
        n = len(self.which)
        if n == 0:
            return None
        gamma, uniform = np.empty((2, len(rngs), n))
        for i, rng in enumerate(rngs):
            gamma[i] = rng.standard_gamma(self.shapes)
            rng.random(out=uniform[i])
        return Redraws(self.which, gamma, np.log(uniform))

    def step(self, energy, phase, drawn, at):
        """One precision of every chain."""
        which, gamma = drawn.which[at[1]], drawn.gamma[at]
        position, log_volume = self.joint.redrawn(phase.position, which, gamma)
        return tested(energy, phase, position, log_volume, drawn.log_uniform[at])
