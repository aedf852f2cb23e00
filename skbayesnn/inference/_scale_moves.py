"""Transitions that rescale whole groups of weights, beside those of the dynamics."""

import numpy as np

from skbayesnn.samplers import Phase


def hidden_groups(posterior):
    """Which groups hold weights of hidden layers, ``(n_groups,)``."""
    hidden = posterior.groups.membership[: posterior.network.slices[-1].start]
    return hidden.sum(axis=0) > 0


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
        kept = [d for d in directions if np.any(d[joint.free.alpha] != 0)]
        self.directions = np.reshape(kept, (len(kept), n_groups))

    def __call__(self, energy, phase, rngs):
        """Steps of every chain in all directions (a transition of `samplers`)."""
        if len(self.directions) == 0:
            return phase
        directions = np.tile(self.directions, (self.n_sweeps, 1))
        if self.reversible and rngs[0].random() < 0.5:
            directions = directions[::-1]
        normal, place, uniform = np.empty((3, len(rngs), len(directions)))
        for i, rng in enumerate(rngs):
            rng.standard_normal(out=normal[i])
            rng.random(out=place[i])
            rng.random(out=uniform[i])
        sizes = normal * 10.0 ** (2.0 * place - 1.0)
        return self._steps(energy, phase, sizes[..., None] * directions, np.log(uniform))

    def _steps(self, energy, phase, shifts, log_uniform):
        """All steps, those of the compiled core as far as it gets, else one after the other."""
        done, n = np.zeros(len(shifts), dtype=int), shifts.shape[1]
        phase = Phase(*(field.copy() for field in phase))
        while True:
            if hasattr(energy, "rescalings"):
                done = energy.rescalings(phase, shifts, log_uniform, done)
            (left,) = np.nonzero(done < n)
            if len(left) == 0:
                return phase
            given = shifts[left, done[left]], log_uniform[left, done[left]]
            phase = phase.replaced(left, self._step(energy, phase.select(left), *given))
            done[left] += 1

    def _step(self, energy, phase, shift, log_level):
        position, log_volume = self.joint.rescaled(phase.position, shift)
        with np.errstate(all="ignore"):
            value, gradient = energy(position)
            log_ratio = phase.value - value + log_volume
        accepted = log_level < log_ratio
        moved = Phase(position, phase.momentum, value, gradient)
        return phase.replaced(accepted, moved.select(accepted))
