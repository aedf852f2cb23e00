"""Slice sampling of hidden units, in addition to the dynamics.

The posterior has other length scales at networks with saturated units or large output weights. The
steps of the dynamics, tuned to typical networks, are far too short or far too long there, and a
chain in such a region stays for long. Slice sampling adapts the step size.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference.sampling._stepwise import Stepwise
from skbayesnn.samplers import Phase

MOST_UNITS = 8  # most units updated by one transition
TRIES = 16  # most angles of a unit; the bracket is then about 2^-15 of the ellipse


class Slices(NamedTuple):
    """Random numbers of one transition, of every chain from its own generator.

    Attributes
    ----------
    unit : ndarray of int, shape (n_sampled,)
        Hidden unit that every weight leads to, or -1.
    chosen : ndarray of int, shape (n_chains, n)
        Indices of the units, in the order of their updates.
    normal : ndarray of shape (n_chains, n_sampled)
    exponential : ndarray of shape (n_chains, n)
    uniform : ndarray of shape (n_chains, n, TRIES)
    """

    unit: np.ndarray
    chosen: np.ndarray
    normal: np.ndarray
    exponential: np.ndarray
    uniform: np.ndarray

    @property
    def n_steps(self):
        """Number of steps of every chain."""
        return self.chosen.shape[1]


class UnitMoves(Stepwise):
    """Elliptical slice sampling of the weights into each hidden unit in turn.

    Given their precisions these weights are normal a priori. With a second draw ``n`` from that
    prior they are rotated to ``w cos t + n sin t`` (Murray, Adams & MacKay 2010, figure 2). If
    there are more than `MOST_UNITS` units, as many are chosen at random. A unit is left unchanged
    after `TRIES` rejected angles, which keeps the target invariant: the probabilities of a move and
    of its reverse are equal.

    Parameters
    ----------
    joint : JointPosterior
    """

    method = "unit_slices"

    def __init__(self, joint):
        self.joint, network = joint, joint.posterior.network
        self.unit = np.full(max(network.n_weights, joint.n_sampled), -1)
        self.n_units = 0
        for weights in network.layers(np.arange(network.n_weights))[:-1]:
            self.unit[weights] = self.n_units + np.arange(weights.shape[1])
            self.n_units += weights.shape[1]
        self.unit = self.unit[: joint.n_sampled]

    def draw(self, rngs):
        """Draw the random numbers of every chain from its own generator."""
        m, n, n_sampled = len(rngs), min(self.n_units, MOST_UNITS), len(self.unit)
        chosen, normal = np.tile(np.arange(n), (m, 1)), np.empty((m, n_sampled))
        exponential, uniform = np.empty((m, n)), np.empty((m, n, TRIES))
        for i, rng in enumerate(rngs):
            if n < self.n_units:
                chosen[i] = rng.permutation(self.n_units)[:n]
            rng.standard_normal(out=normal[i])
            rng.standard_exponential(out=exponential[i])
            rng.random(out=uniform[i])
        return Slices(self.unit, chosen, normal, exponential, uniform)

    def step(self, energy, phase, drawn, at):
        """Update the weights of one unit of every chain."""
        normal = drawn.normal[at[0]]
        chosen, exponential, uniform = drawn.chosen[at], drawn.exponential[at], drawn.uniform[at]
        joint = self.joint
        share = joint.place(phase.position).share.take(joint.groups.labels[: len(self.unit)], -1)
        own = self.unit == chosen[:, None]
        other = normal / np.sqrt(share)

        def rest(value, position):  # the energy without the prior of these weights
            return value - 0.5 * np.sum(own * share * position[:, : own.shape[1]] ** 2, axis=-1)

        level = rest(phase.value, phase.position) + exponential
        angle = 2.0 * np.pi * uniform[:, 0]
        low, high, outside = angle - 2.0 * np.pi, angle.copy(), np.arange(len(chosen))
        start, result = phase, phase
        for attempt in range(1, TRIES + 1):
            position = start.position[outside]
            v, t = position[:, : own.shape[1]], angle[outside, None]
            v[...] = np.where(own[outside], v * np.cos(t) + other[outside] * np.sin(t), v)
            with np.errstate(all="ignore"):
                value, gradient = energy(position)
            inside = value - 0.5 * np.sum((own * share)[outside] * v**2, -1) < level[outside]
            moved = Phase(position, start.momentum[outside], value, gradient)
            result = result.replaced(outside[inside], moved.select(inside))
            outside = outside[~inside]
            if len(outside) == 0 or attempt == TRIES:
                return result
            below = angle < 0.0
            low, high = np.where(below, angle, low), np.where(below, high, angle)
            angle = low + (high - low) * uniform[:, attempt]
