"""Transitions that rescale whole groups of weights, beside those of the dynamics."""

import numpy as np


def hidden_groups(posterior):
    """Which groups hold weights of hidden layers, ``(n_groups,)``."""
    hidden = posterior.groups.membership[: posterior.network.slices[-1].start]
    return hidden.sum(axis=0) > 0


def _each(rngs, method, *given):
    """A number for every chain from its own generator; all at once if they share one."""
    if rngs[0] is rngs[-1]:
        return getattr(rngs[0], method)(*given, size=len(rngs))
    return np.array([getattr(rng, method)(*given) for rng in rngs])


class ScaleMoves:
    """Metropolis steps that rescale groups of weights together with their priors.

    One after the other: each group alone, all groups in the position together, all hidden ones,
    hidden ones against the output layer; of a noise network likewise. The size of a step is spread
    over decades.

    Parameters
    ----------
    joint : JointPosterior
    n_sweeps : int, default=1
        How often each direction is tried.
    reversible : bool, default=False
        Whether all steps together are to be a reversible transition: their order is then reversed
        every other time, at random.
    """

    def __init__(self, joint, n_sweeps=1, reversible=False):
        self.joint, self.n_sweeps, self.reversible = joint, n_sweeps, reversible
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
        self.directions = [d for d in directions if np.any(d[joint.free.alpha] != 0)]

    def __call__(self, energy, phase, rngs):
        """Steps of every chain in all directions (a transition of `samplers`)."""
        order = self.directions * self.n_sweeps
        if self.reversible and rngs[0].random() < 0.5:
            order = order[::-1]
        for direction in order:
            phase = self._step(energy, phase, rngs, direction)
        return phase

    def _step(self, energy, phase, rngs, direction):
        sizes = _each(rngs, "standard_normal") * 10.0 ** _each(rngs, "uniform", -1.0, 1.0)
        position, log_volume = self.joint.rescaled(phase.position, sizes[:, None] * direction)
        with np.errstate(all="ignore"):
            value, gradient = energy(position)
            log_ratio = phase.value - value + log_volume
        accepted = np.log(_each(rngs, "random")) < log_ratio
        moved = type(phase)(position, phase.momentum, value, gradient)
        return phase.replaced(accepted, moved.select(accepted))
