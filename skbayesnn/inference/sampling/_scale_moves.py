"""Metropolis transitions that rescale groups of weights, in addition to the dynamics."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.sampling._stepwise import Stepwise, tested


class Rescalings(NamedTuple):
    """Random numbers of one transition.

    Attributes
    ----------
    shifts : ndarray of shape (n_chains, n, n_groups)
        Changes of ``ln alpha``.
    log_uniform : ndarray of shape (n_chains, n)
    """

    shifts: np.ndarray
    log_uniform: np.ndarray

    @property
    def n_steps(self):
        """Number of steps of every chain."""
        return self.log_uniform.shape[1]


def hidden_groups(posterior):
    """Mask of the groups with weights of hidden layers, ``(n_groups,)``."""
    hidden = posterior.groups.membership[: posterior.network.slices[-1].start]
    return hidden.sum(axis=0) > 0


class ScaleMoves(Stepwise):
    """Metropolis steps that rescale groups of weights together with their priors.

    The directions are tried in turn: each group alone, all groups in the position together, all
    hidden groups, and hidden groups against the output layer; likewise for a noise network. Step
    sizes are log-uniform over two decades, times a normal number.

    Parameters
    ----------
    joint : JointPosterior
    n_sweeps : int, default=1
        Number of times each direction is tried.
    """

    method = "rescalings"

    def __init__(self, joint, n_sweeps=1):
        self.joint, self.n_sweeps = joint, n_sweeps
        n_groups = len(joint.groups.names)
        sampled = joint.sizes > 0
        directions = [*np.eye(n_groups), sampled.astype(float)]
        if not joint.integrated:  # incoming and outgoing weights: nearly linear units
            hidden = hidden_groups(joint.posterior).astype(float)
            directions += [
                np.append(some, np.zeros(n_groups - len(hidden)))
                for some in (hidden, 2.0 * hidden - 1.0)
            ]
        directions += joint.further_directions
        kept = [d for d in directions if np.any(d[joint.free.alpha] != 0)]
        self.directions = np.reshape(kept, (len(kept), n_groups))

    def draw(self, rngs):
        """Draw the random numbers of every chain from its own generator."""
        if len(self.directions) == 0:
            return None
        directions = np.tile(self.directions, (self.n_sweeps, 1))
        normal, place, uniform = np.empty((3, len(rngs), len(directions)))
        for i, rng in enumerate(rngs):
            rng.standard_normal(out=normal[i])
            rng.random(out=place[i])
            rng.random(out=uniform[i])
        sizes = normal * 10.0 ** (2.0 * place - 1.0)
        return Rescalings(sizes[..., None] * directions, np.log(uniform))

    def step(self, energy, phase, drawn, at):
        """Try one direction for every chain."""
        position, log_volume = self.joint.rescaled(phase.position, drawn.shifts[at])
        return tested(energy, phase, position, log_volume, drawn.log_uniform[at])
