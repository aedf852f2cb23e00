"""Precisions drawn anew at fixed weights, beside the dynamics."""

import numpy as np

from skbayesnn.samplers import Phase


class PrecisionMoves:
    """Gibbs draws of free precisions given their weights in the position.

    Together with `ScaleMoves`, at which weights keep their prior probability, they interweave the
    centred and the non-centred parametrisation (Yu & Meng 2011): one of both moves fast wherever
    a chain is. A Metropolis test makes them right for any hyperprior, and where the same precision
    belongs to weights that are integrated out.

    Parameters
    ----------
    joint : JointPosterior
    """

    def __init__(self, joint):
        self.joint, sizes = joint, joint.sizes[joint.free.alpha]
        self.which = np.flatnonzero(sizes > 0)
        self.shapes = 0.5 * sizes[self.which]

    def __call__(self, energy, phase, rngs):
        """Steps of every chain (a transition of `samplers`)."""
        n = len(self.which)
        if n == 0:
            return phase
        gamma, uniform = np.empty((2, len(rngs), n))
        for i, rng in enumerate(rngs):
            gamma[i] = rng.standard_gamma(self.shapes)
            rng.random(out=uniform[i])
        log_uniform = np.log(uniform)
        phase, done = Phase(*(field.copy() for field in phase)), np.zeros(len(rngs), dtype=int)
        while True:
            if hasattr(energy, "redraws"):
                done = energy.redraws(phase, self.which, gamma, log_uniform, done)
            (left,) = np.nonzero(done < n)
            if len(left) == 0:
                return phase
            at = left, done[left]
            given = self.which[done[left]], gamma[at], log_uniform[at]
            phase = phase.replaced(left, self._step(energy, phase.select(left), *given))
            done[left] += 1

    def _step(self, energy, phase, which, gamma, log_level):
        position, log_volume = self.joint.redrawn(phase.position, which, gamma)
        with np.errstate(all="ignore"):
            value, gradient = energy(position)
            accepted = log_level < phase.value - value + log_volume
        moved = Phase(position, phase.momentum, value, gradient)
        return phase.replaced(accepted, moved.select(accepted))
