"""Transitions that rescale whole groups of weights, beside those of the dynamics."""

import numpy as np


def hidden_groups(posterior):
    """Which groups hold weights of hidden layers, ``(n_groups,)``."""
    hidden = posterior.groups.membership[: posterior.network.slices[-1].start]
    return hidden.sum(axis=0) > 0


class ScaleMoves:
    """Metropolis steps that rescale groups of weights together with their priors.

    They take turns: each group alone, all groups in the position together, all hidden ones, hidden
    ones against the output layer. The size of a step is spread over decades.
    """

    def __init__(self, joint):
        self.joint = joint
        n_groups = len(joint.posterior.groups.names)
        sampled = joint.sizes > 0
        directions = [*np.eye(n_groups), sampled.astype(float)]
        if not joint.integrated:  # incoming and outgoing weights: nearly linear units
            directions.append(hidden_groups(joint.posterior).astype(float))
            directions.append(2.0 * directions[-1] - 1.0)
        self.directions = [d for d in directions if np.any(d[joint.free.alpha] != 0)]

    def __call__(self, energy, phase, rngs, count):
        """One step of every chain (a transition of `samplers`)."""
        if not self.directions:
            return phase
        direction = self.directions[count % len(self.directions)]
        sizes = np.array([rng.standard_normal() * 10.0 ** rng.uniform(-1.0, 1.0) for rng in rngs])
        position, log_volume = self.joint.rescaled(phase.position, sizes[:, None] * direction)
        with np.errstate(all="ignore"):
            value, gradient = energy(position)
            log_ratio = phase.value - value + log_volume
        accepted = np.log([rng.random() for rng in rngs]) < log_ratio
        moved = type(phase)(position, phase.momentum, value, gradient)
        return phase.replaced(accepted, moved.select(accepted))
