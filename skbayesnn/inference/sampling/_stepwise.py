"""Base class of transitions that consist of many steps."""

import numpy as np

from skbayesnn.samplers import Phase


class Stepwise:
    """Transition of `samplers` that consists of successive steps of every chain.

    The compiled core makes the steps as far as it can, and NumPy makes those that fail there.
    Subclasses define ``method``, the name of the energy's method for steps in the core;
    ``draw(rngs)``, which returns the random numbers of all steps in a NamedTuple, or ``None`` if
    there are no steps; and ``step(energy, phase, drawn, at)``, which makes one step of some chains,
    ``at`` holding the indices of the chains and of their steps.
    """

    def __call__(self, energy, phase, rngs):
        """Make all steps of every chain."""
        drawn = self.draw(rngs)
        if drawn is None:
            return phase
        phase, done = Phase(*(field.copy() for field in phase)), np.zeros(len(rngs), dtype=int)
        n, core = drawn.n_steps, getattr(energy, self.method, None)
        while True:
            if core is not None:
                done = core(phase, *drawn, done)
            (left,) = np.nonzero(done < n)
            if len(left) == 0:
                return phase
            made = self.step(energy, phase.select(left), drawn, (left, done[left]))
            phase = phase.replaced(left, made)
            done[left] += 1


def tested(energy, phase, position, log_volume, log_uniform):
    """Accept or reject proposed positions by Metropolis tests.

    ``log_volume`` holds the log Jacobian determinants of the maps to the proposals.
    """
    with np.errstate(all="ignore"):
        value, gradient = energy(position)
        accepted = log_uniform < phase.value - value + log_volume
    moved = Phase(position, phase.momentum, value, gradient)
    return phase.replaced(accepted, moved.select(accepted))
