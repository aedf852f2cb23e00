"""Transitions of positions that alternate with those of the dynamics.

`ScaleMoves` are Metropolis steps that rescale groups of weights, `UnitMoves` slice sampling of the
weights into units, and `renewal` makes Gibbs updates of conditions.
"""

import numpy as np

from skbayesnn.samplers import Phase

MAX_UNITS = 8  # most units updated by one transition
TRIES = 16  # most angles of a unit; the bracket is then about 2^-15 of the ellipse


class Stepwise:
    """Transition of `samplers` that consists of successive steps of every chain.

    The ``compiled`` twin of an energy, if it has one, makes all steps in place, by its method
    ``method``, which takes a phase and the random numbers. Subclasses define ``method``;
    ``n_steps``; ``draw(rngs)``, which returns arrays of the random numbers of all steps, of every
    chain from its own generator; and ``step(energy, phase, drawn, i)``, which makes a step of every
    chain.
    """

    def __call__(self, energy, phase, rngs):
        """Make all steps of every chain."""
        if self.n_steps == 0:
            return phase
        drawn = self.draw(rngs)
        compiled = getattr(getattr(energy, "compiled", None), self.method, None)
        if compiled is not None:
            phase = Phase(*map(np.ndarray.copy, phase))
            compiled(phase, *drawn)
            return phase
        for i in range(self.n_steps):
            phase = self.step(energy, phase, drawn, i)
        return phase


def tested(energy, phase, position, log_volume, log_uniform):
    """Accept or reject proposed positions by Metropolis tests.

    ``log_volume`` holds the log Jacobian determinants of the maps to the proposals, or log ratios
    of their densities that the energy leaves out.
    """
    with np.errstate(all="ignore"):
        value, gradient = energy(position)
        accepted = log_uniform < phase.value - value + log_volume
    moved = Phase(position, phase.momentum, value, gradient)
    return phase.replaced(accepted, moved.select(accepted))


class ScaleMoves(Stepwise):
    """Metropolis steps that rescale groups of weights together with their priors.

    The directions are tried in turn: each group alone, all groups in the position together, all
    hidden groups, and hidden groups against the output layer; likewise for a noise network. Step
    sizes are log-uniform over two decades, times a normal number. Each direction is tried
    ``n_sweeps`` times.
    """

    method = "rescalings"

    def __init__(self, joint, n_sweeps=1):
        self.joint = joint
        n_groups = len(joint.groups.names)
        sampled = joint.sizes > 0
        directions = [*np.eye(n_groups), sampled.astype(float)]
        if not joint.integrated:  # incoming and outgoing weights: nearly linear units
            n_hidden = joint.posterior.network.slices[-1].start  # weights of hidden layers
            member = joint.posterior.groups.membership[:n_hidden]
            hidden = member.any(axis=0).astype(float)
            directions += [
                np.append(some, np.zeros(n_groups - len(hidden)))
                for some in (hidden, 2.0 * hidden - 1.0)
            ]
        directions += joint.further_directions
        directions = np.array(directions)
        kept = np.any(directions[:, joint.free.alpha] != 0, axis=1)
        self.directions = np.tile(directions[kept], (n_sweeps, 1))
        self.n_steps = len(self.directions)

    def draw(self, rngs):
        """Draw changes of ``ln alpha``, ``(m, n_steps, n_groups)``, and log uniforms."""
        normal, place, uniform = np.empty((3, len(rngs), self.n_steps))
        for i, rng in enumerate(rngs):
            rng.standard_normal(out=normal[i])
            rng.random(out=place[i])
            rng.random(out=uniform[i])
        sizes = normal * 10.0 ** (2.0 * place - 1.0)
        return sizes[..., None] * self.directions, np.log(uniform)

    def step(self, energy, phase, drawn, i):
        """Try one direction for every chain."""
        shifts, log_uniform = drawn
        position, log_volume = self.joint.rescaled(phase.position, shifts[:, i])
        return tested(energy, phase, position, log_volume, log_uniform[:, i])


class UnitMoves(Stepwise):
    """Elliptical slice sampling of the weights into each hidden unit, or output, in turn.

    The posterior has other length scales at networks with saturated units or large output weights.
    The steps of the dynamics, tuned to typical networks, are far too short or far too long there,
    and a chain in such a region stays for long. Slice sampling adapts the step size.

    Given their precisions these weights are normal a priori. With a second draw ``n`` from that
    prior they are rotated to ``w cos t + n sin t`` (Murray, Adams & MacKay 2010, figure 2). If
    there are more than `MAX_UNITS` units, as many are chosen at random. A unit is left unchanged
    after `TRIES` rejected angles, which keeps the target invariant: the probabilities of a move and
    of its reverse are equal.
    """

    method = "unit_slices"

    def __init__(self, joint):
        self.joint, network = joint, joint.posterior.network
        self.unit = np.full(max(network.n_weights, joint.n_sampled), -1)
        self.n_units = 0
        layers = network.layers(np.arange(network.n_weights))
        for weights in layers[:-1] or layers:  # outputs if there are no hidden units
            self.unit[weights] = self.n_units + np.arange(weights.shape[1])
            self.n_units += weights.shape[1]
        self.unit = self.unit[: joint.n_sampled]
        self.n_steps = min(self.n_units, MAX_UNITS)

    def draw(self, rngs):
        """Draw the random numbers of all steps.

        They are the unit that every weight leads to or -1 ``(n_sampled,)``, units in the order of
        their updates ``(m, n_steps)``, normal ``(m, n_sampled)``, exponential ``(m, n_steps)`` and
        uniform numbers ``(m, n_steps, TRIES)``.
        """
        m, n, n_sampled = len(rngs), self.n_steps, len(self.unit)
        chosen, normal = np.tile(np.arange(n), (m, 1)), np.empty((m, n_sampled))
        exponential, uniform = np.empty((m, n)), np.empty((m, n, TRIES))
        for i, rng in enumerate(rngs):
            if n < self.n_units:
                chosen[i] = rng.permutation(self.n_units)[:n]
            rng.standard_normal(out=normal[i])
            rng.standard_exponential(out=exponential[i])
            rng.random(out=uniform[i])
        return self.unit, chosen, normal, exponential, uniform

    def step(self, energy, phase, drawn, i):
        """Update the weights of one unit of every chain."""
        _, chosen, normal, exponential, uniform = drawn
        chosen, uniform = chosen[:, i], uniform[:, i]
        joint = self.joint
        share = joint.place(phase.position).share.take(joint.groups.labels[: len(self.unit)], -1)
        own = self.unit == chosen[:, None]
        other = normal / np.sqrt(share)

        def rest(value, position):  # the energy without the prior of these weights
            return value - 0.5 * np.sum(own * share * position[:, : own.shape[1]] ** 2, axis=-1)

        level = rest(phase.value, phase.position) + exponential[:, i]
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


def renewal(joint):
    """Transition of `samplers` that redraws the variables on which the energy is conditional."""

    def renewed(energy, phase, rngs):
        position = joint.renewed(phase.position, rngs)
        return Phase(position, phase.momentum, *energy(position))

    return renewed


def extra_moves(joint, n_sweeps):
    """Transitions that alternate with those of the dynamics, with some sweeps of `ScaleMoves`.

    Without sweeps only the conditioning variables are redrawn, as for the classic samplers.
    """
    moves: list = [ScaleMoves(joint, n_sweeps)] if n_sweeps else []
    if n_sweeps and not joint.integrated:
        # all weights are sampled, so that their posterior scales differ between units
        moves.append(UnitMoves(joint))
    return [*moves, renewal(joint)] if joint.n_conditions else moves
