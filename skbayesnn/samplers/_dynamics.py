"""Hamiltonian dynamics of many chains at once, discretised by the leapfrog method."""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12
UNSTABLE = 1000.0  # rise of the total energy, in nats, at which a trajectory counts as divergent


class Metric(NamedTuple):
    """Metric by which positions move with velocity ``F p`` for standard normal momenta ``p``.

    This is equivalent to a mass matrix ``(F F^T)^-1``, without linear systems to solve (Neal 2011,
    section 5.4.2.4).

    Attributes
    ----------
    factor : ndarray of shape (n_chains, d, d) or (n_chains, d)
        Matrices ``F``, or the diagonals of diagonal ones.
    """

    factor: np.ndarray

    @classmethod
    def identity(cls, n_chains, dimension):
        """Build identity metrics."""
        return cls(np.ones((n_chains, dimension)))

    @classmethod
    def from_precisions(cls, precisions, power=1.0):
        """Build ``F = A^(-power/2)`` from positive definite ``A`` of shape (n_chains, d, d).

        Power 1 whitens a Gaussian of this precision; power 0 is the identity. Intermediate powers
        suit distributions whose precision varies with the position: directions that are narrow in
        one region and wide in another are then not restricted to the narrowest width.

        Eigenvalues below `ROUNDING` times the largest, which are dominated by rounding, are raised
        to that bound; any metric leaves the target invariant.
        """
        values, vectors = np.linalg.eigh(precisions)
        largest = np.max(values, axis=-1, initial=0.0)
        values = np.maximum(values, ROUNDING * largest[:, None])
        scaled = vectors * (values ** (-0.5 * power))[:, None, :]
        return cls(scaled @ np.swapaxes(vectors, -1, -2))

    def select(self, chains):
        """Select the metrics of some chains."""
        return Metric(self.factor[chains])

    def velocity(self, momentum):
        """Velocity ``F p``, shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * momentum
        return (self.factor @ momentum[..., None])[..., 0]

    def force(self, gradient):
        """Gradient ``F^T g`` in the coordinates of the momenta, shape (n_chains, d)."""
        if self.factor.ndim == 2:
            return self.factor * gradient
        return (gradient[..., None, :] @ self.factor)[..., 0, :]


class Phase(NamedTuple):
    """Points of phase space, one per chain, with the energy and its gradient.

    Attributes
    ----------
    position : ndarray of shape (n_chains, d + n_conditions)
        Positions. The energy is conditional on the entries beyond ``d``, which the dynamics keeps
        fixed.
    momentum : ndarray of shape (n_chains, d)
        Momenta in the coordinates of the metric, where their distribution is standard normal.
    value : ndarray of shape (n_chains,)
        Potential energy, minus log density up to a constant.
    gradient : ndarray of shape (n_chains, d)
    """

    position: np.ndarray
    momentum: np.ndarray
    value: np.ndarray
    gradient: np.ndarray

    @property
    def total(self):
        """Potential plus kinetic energy, the Hamiltonian, of shape (n_chains,)."""
        return self.value + 0.5 * np.sum(self.momentum**2, axis=-1)

    def replaced(self, chains, other):
        """Copy with the given chains replaced by those of ``other`` (all of them, in order)."""
        result = Phase(*map(np.ndarray.copy, self))
        for mine, theirs in zip(result, other, strict=True):
            mine[chains] = theirs
        return result

    def select(self, chains):
        """Select some of the chains."""
        return Phase(
            self.position[chains], self.momentum[chains], self.value[chains], self.gradient[chains]
        )


def start(energy, position):
    """Evaluate the energy at given positions, with zero momenta."""
    value, gradient = energy(position)
    return Phase(position, np.zeros_like(gradient), value, gradient)


def moved(position, step):
    """Add a step to the first entries of positions."""
    if step.shape == position.shape:
        return position + step
    moved = position.copy()
    moved[:, : step.shape[1]] += step
    return moved


def leapfrog(energy, phase, step_size, n_steps, metric):
    """Follow the trajectory of every chain for its own number of leapfrog steps.

    One step is ``p <- p - eps/2 g``, ``x <- x + eps p``, ``p <- p - eps/2 g`` (MacKay 2003,
    algorithm 41.8; Neal 2011, equations 5.18-5.20), which is reversible and preserves volume. A
    chain stops if its energy has risen by more than `UNSTABLE` or is not a number.

    The energy maps positions ``(m, d + n_conditions)`` to values ``(m,)`` and gradients ``(m, d)``,
    row by row. Its optional method ``trajectories`` moves the chains of a phase in place, all steps
    at once, and returns the chains that it has left out. ``step_size`` and ``n_steps`` have one
    entry per chain. The ends of trajectories that diverged have infinite value.
    """
    initial = phase.total
    result, taken = Phase(*map(np.ndarray.copy, phase)), 0
    left = np.arange(len(initial))
    if hasattr(energy, "trajectories"):
        left = energy.trajectories(result, step_size, n_steps, metric, UNSTABLE)
    active = left[n_steps[left] > 0]
    moving, own, eps = result.select(active), metric.select(active), step_size[active, None]
    with np.errstate(all="ignore"):  # unstable dynamics overflows
        force = own.force(moving.gradient)
        while len(active):
            taken += 1
            half = moving.momentum - 0.5 * eps * force
            position = moved(moving.position, eps * own.velocity(half))
            value, gradient = energy(position)
            force = own.force(gradient)
            moving = Phase(position, half - 0.5 * eps * force, value, gradient)
            lost = ~(moving.total - initial[active] < UNSTABLE)
            going = ~lost & (n_steps[active] > taken)
            if not going.all():
                moving.value[lost] = np.inf
                done = ~going
                for mine, theirs in zip(result, moving, strict=True):
                    mine[active[done]] = theirs[done]
                active, moving, force = active[going], moving.select(going), force[going]
                own, eps = own.select(going), eps[going]
    return result
