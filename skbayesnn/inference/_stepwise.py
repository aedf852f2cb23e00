"""The frame of transitions that consist of many steps."""

import numpy as np

from skbayesnn.samplers import Phase


class Stepwise:
    """A transition of `samplers`: of every chain one step after the other.

    The compiled core makes them as far as it gets, and where it cannot a step is made in NumPy.
    What is made of this has ``method``, the name of the energy's method that makes them in the
    core; ``draw(rngs)``, the random numbers of all steps in a NamedTuple, or ``None`` if there are
    no steps; and ``step(energy, phase, drawn, at)``, one step of some chains, whose indices and
    steps are ``at``.
    """

    def __call__(self, energy, phase, rngs):
        """All steps of every chain."""
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
    """Metropolis steps to given positions, whose log volumes are those of the maps there."""
    with np.errstate(all="ignore"):
        value, gradient = energy(position)
        accepted = log_uniform < phase.value - value + log_volume
    moved = Phase(position, phase.momentum, value, gradient)
    return phase.replaced(accepted, moved.select(accepted))
