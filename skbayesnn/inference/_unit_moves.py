"""Slice sampling of hidden units, beside the dynamics.

Networks whose units are saturated, or whose output weights are large, have widths of their own: the
steps of the dynamics, which suit typical networks, are there far too short or far too long, and a
chain that has got there stays for long. Slices find their width by themselves.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.samplers import Phase

MOST_UNITS = 8  # of a transition
TRIES = 16  # the slice is then 2^-15 of the ellipse


class Drawn(NamedTuple):
    """Random numbers of a transition, of every chain from its own generator.

    Attributes
    ----------
    chosen : ndarray of int, shape (n_chains, n)
        Units, one after the other.
    normal : ndarray of shape (n_chains, n_sampled)
    exponential : ndarray of shape (n_chains, n)
    uniform : ndarray of shape (n_chains, n, TRIES)
    """

    chosen: np.ndarray
    normal: np.ndarray
    exponential: np.ndarray
    uniform: np.ndarray

    @classmethod
    def of(cls, rngs, n_units, n_sampled):
        """Draw them."""
        m, n = len(rngs), min(n_units, MOST_UNITS)
        chosen, normal = np.tile(np.arange(n), (m, 1)), np.empty((m, n_sampled))
        exponential, uniform = np.empty((m, n)), np.empty((m, n, TRIES))
        for i, rng in enumerate(rngs):
            if n < n_units:
                chosen[i] = rng.permutation(n_units)[:n]
            rng.standard_normal(out=normal[i])
            rng.standard_exponential(out=exponential[i])
            rng.random(out=uniform[i])
        return cls(chosen, normal, exponential, uniform)


class UnitMoves:
    """Elliptical slice sampling of the weights into one hidden unit after another.

    Given their precisions these weights are normal a priori; with a second draw ``n`` from that
    prior they turn into ``w cos t + n sin t`` (Murray, Adams & MacKay 2010, figure 2). Of more than
    `MOST_UNITS` units so many, chosen at random, are moved. After `TRIES` angles a unit stays as it
    is, which leaves the target invariant: a way to another point is as probable as the way back.

    Parameters
    ----------
    joint : JointPosterior
    """

    def __init__(self, joint):
        self.joint, network = joint, joint.posterior.network
        self.unit, self.n_units = np.full(network.n_weights, -1), 0
        for weights in network.layers(np.arange(network.n_weights))[:-1]:
            self.unit[weights] = self.n_units + np.arange(weights.shape[1])
            self.n_units += weights.shape[1]
        self.unit = self.unit[: joint.n_sampled]

    def __call__(self, energy, phase, rngs):
        """Slices of units of every chain (a transition of `samplers`)."""
        drawn = Drawn.of(rngs, self.n_units, self.joint.n_sampled)
        done, n = np.zeros(len(rngs), dtype=int), drawn.chosen.shape[1]
        phase = Phase(*(field.copy() for field in phase))
        while True:
            if hasattr(energy, "unit_slices"):
                done = energy.unit_slices(phase, self.unit, *drawn, done)
            (left,) = np.nonzero(done < n)
            if len(left) == 0:
                return phase
            at = left, done[left]
            given = drawn.chosen[at], drawn.normal[left], drawn.exponential[at], drawn.uniform[at]
            phase = phase.replaced(left, self._slice(energy, phase.select(left), *given))
            done[left] += 1

    def _slice(self, energy, phase, chosen, normal, exponential, uniform):
        """New weights of one unit of every chain."""
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
