"""Which of its symmetric copies a network is: for evidences that begin at a minimum.

The joint density of data and weights is the same at all copies of a network, which arise by
relabelling hidden units and changing their signs (MacKay 1992, section 3.2). Particles that begin
at a minimum reach some copies and not others: units that do little change their roles, others
never do. Let ``K(w) >= 0`` tell how much a network looks like the minimum, unit by unit. The shares
``c(w) = K(w) / sum_g K(g w)`` of a network among its copies ``g w`` add up to 1; hence the evidence
is the number of copies times the integral of ``c`` times the joint density, which lives where
``K`` is large, near the minimum only.

``K`` is a product of Student-t densities, one for each unit. Its sum over the copies is a product,
over the layers, of permanents, of matrices in which units that do nothing have equal columns; it
is built up unit by unit, counting how many units have taken which role.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from skbayesnn.inference._symmetries import kinds_of_units
from skbayesnn.network import forward
from skbayesnn.samplers import log_sum_exp

MOST_ROWS = 12  # at which what units take in is compared
MOST_STATES = 2**12  # of the counts of roles that are taken
TAILS = 6.0  # degrees of freedom of what a unit is like
LEAST_RATIO = 1e-6  # of variances of what a unit takes in, in its different directions


class Role(NamedTuple):
    """What some units of a minimum are like.

    Attributes
    ----------
    units : ndarray of int
    mean : ndarray of shape (n_rows,)
        Of what they take in, at some rows.
    whitener : ndarray of shape (n_rows, rank)
    log_norm : float
    """

    units: np.ndarray
    mean: np.ndarray
    whitener: np.ndarray
    log_norm: float

    @classmethod
    def of(cls, units, taken_in, rank, idle=False):
        """From draws ``(n, n_units, n_rows)``; idle units may take in the opposite as well."""
        draws = taken_in.reshape(-1, taken_in.shape[-1])
        if idle:
            draws = np.concatenate([draws, -draws])
        values, vectors = np.linalg.eigh(np.cov(draws.T).reshape(2 * draws.shape[1:]))
        values, vectors = values[-rank:], vectors[:, -rank:]
        values = np.maximum(values, LEAST_RATIO * max(values[-1], LEAST_RATIO))
        whitener = vectors / np.sqrt(values)
        return cls(units, draws.mean(axis=0), whitener, -0.5 * np.sum(np.log(values)))

    @property
    def distance(self):
        """Squared distance of the mean from zero, in standard deviations."""
        return np.sum((self.mean @ self.whitener) ** 2)


class Roles(NamedTuple):
    """Roles side by side, of the same rank.

    Attributes
    ----------
    whitener : ndarray of shape (n_rows, n_roles * rank)
    mean : ndarray of shape (n_roles, rank)
        As whitened.
    log_norm : ndarray of shape (n_roles,)
    """

    whitener: np.ndarray
    mean: np.ndarray
    log_norm: np.ndarray

    @classmethod
    def of(cls, roles):
        """From a list of `Role`."""
        mean = np.stack([role.mean @ role.whitener for role in roles])
        whitener = np.hstack([role.whitener for role in roles])
        return cls(whitener, mean, np.array([role.log_norm for role in roles]))

    def densities(self, taken_in):
        """Log densities of units, and the densities of their mirror images over their own.

        Parameters
        ----------
        taken_in : ndarray of shape (n, n_units, n_rows)

        Returns
        -------
        log_density, ratio : ndarray of shape (n, n_units, n_roles)
        """
        n_roles, rank = self.mean.shape
        white = (taken_in @ self.whitener).reshape(*taken_in.shape[:2], n_roles, rank)
        same, mirrored = (
            1.0 + np.einsum("nurk,nurk->nur", away, away) / TAILS
            for away in (white - self.mean, white + self.mean)
        )
        power = -0.5 * (TAILS + rank)
        log_same = np.log(same)
        ratio = np.exp(power * (np.log(mirrored) - log_same))
        return self.log_norm + power * log_same, ratio


class Copies:
    """Shares of networks among their symmetric copies.

    Parameters
    ----------
    joint : JointPosterior
    likeness : sequence of ndarray of shape (n_draws, d)
        Draws of positions like each of some minima.
    shares : ndarray of shape (n_minima,)
        ``K`` is the sum of that of the minima with these factors.
    """

    def __init__(self, joint, likeness, shares):
        self.joint, self.network = joint, joint.posterior.network
        X = joint.posterior.X
        n_rows = min(len(X), MOST_ROWS)
        self.rows = X[np.linspace(0, len(X) - 1, n_rows).astype(int)]
        self.kinds = kinds_of_units(self.network, joint.posterior.groups.labels)
        self.log_shares = np.log(shares)
        self.minima = [self._roles_of(draws) for draws in likeness]
        by_layer = zip(*self.minima, strict=True)
        self.side_by_side = [Roles.of([r for some in layer for r in some]) for layer in by_layer]

    @property
    def n_states(self):
        """Counts of roles that are kept track of, at most."""
        layers = [roles for layers in self.minima for roles in layers]
        return max((_n_states(roles) for roles in layers), default=1)

    def log_share(self, q):
        """``ln c`` of positions."""
        if not self.network.hidden_layer_sizes:
            return np.zeros(len(q))
        taken_in = self._taken_in(q)
        own, total = np.zeros((2, len(self.minima), len(q)))
        for layer, (some, kinds) in enumerate(zip(taken_in, self.kinds, strict=True)):
            log_density, ratio = self.side_by_side[layer].densities(some)
            either = log_density + np.log1p(ratio) if self.network.phi.odd else log_density
            first = 0
            for i, layers in enumerate(self.minima):
                its = slice(first, first + len(layers[layer]))
                mine, every = _likeness(
                    log_density[..., its], either[..., its], layers[layer], kinds
                )
                own[i] += mine
                total[i] += every
                first = its.stop
        shares = self.log_shares[:, None]
        return log_sum_exp(own + shares, axis=0) - log_sum_exp(total + shares, axis=0)

    def _taken_in(self, q):
        """Weighted inputs of all units of every hidden layer, ``(n, n_units, n_rows)``."""
        theta, network = self.joint.place(q).theta, self.network
        full = np.zeros((len(q), network.n_weights))
        full[:, : self.joint.n_mean] = theta[:, : self.joint.n_mean]
        trace = forward(network, full, self.rows)
        pairs = zip(trace.inputs[:-1], trace.layers[:-1], strict=True)
        return [np.swapaxes(inputs @ weights, 1, 2) for inputs, weights in pairs]

    def _roles_of(self, draws):
        """The roles in every layer of a minimum."""
        found = []
        sizes = self.network.layer_sizes
        for taken_in, kinds, fan_in in zip(self._taken_in(draws), self.kinds, sizes, strict=False):
            rank = min(len(self.rows), fan_in + 1)
            roles = [Role.of(np.array([j]), taken_in[:, [j]], rank) for j in range(len(kinds))]
            idle = np.array([role.distance < rank for role in roles])
            kept = [role for role, off in zip(roles, idle, strict=True) if not off]
            for kind in np.unique(kinds[idle]):
                units = np.flatnonzero(idle & (kinds == kind))
                kept.append(Role.of(units, taken_in[:, units], rank, idle=True))
            found.append(kept)
        return found


def _likeness(log_density, either, roles, kinds):
    """``ln K`` of one layer, and the logarithm of its sum over the copies.

    Parameters
    ----------
    log_density, either : ndarray of shape (n, n_units, n_roles)
        Of units as they are, and with either sign where that makes a copy.
    roles : list of Role
        Of one minimum.
    kinds : ndarray of shape (n_units,)
    """
    own = sum(log_density[:, role.units, i].sum(axis=1) for i, role in enumerate(roles))
    if np.any(kinds != kinds[0]):
        others = kinds[:, None] != kinds[[role.units[0] for role in roles]]
        either = np.where(others, -np.inf, either)
    return own, log_permanent(either, [len(role.units) for role in roles])


def _n_states(roles):
    return math.prod(len(role.units) + 1 for role in roles)


def log_permanent(logs, sizes):
    """Logarithm of the permanent of matrices whose columns ``r`` occur ``sizes[r]`` times.

    Parameters
    ----------
    logs : ndarray of shape (n, n_units, n_roles)
    sizes : list of int
        They sum to ``n_units``.
    """
    top = logs.max(axis=2, keepdims=True)
    factors = np.ascontiguousarray(np.moveaxis(np.exp(logs - top), 0, -1))
    strides, levels = _levels(tuple(sizes))
    taken = np.zeros((math.prod(size + 1 for size in sizes), len(logs)))
    taken[0] = 1.0
    for unit, level in zip(factors, levels, strict=True):
        for factor, stride, states in zip(unit, strides, level, strict=True):
            taken[states] += taken[states - stride] * factor
    orders = np.sum(gammaln(np.array(sizes) + 1.0))  # equal columns may be exchanged
    with np.errstate(divide="ignore"):
        return np.log(taken[-1]) + top.sum(axis=(1, 2)) + orders


@lru_cache(maxsize=64)
def _levels(sizes):
    """Counts of roles as numbers: what one more of each role adds, and which follow one another.

    For every number of units the counts that they can have, those with some of a role, role by
    role.
    """
    counts = np.indices([size + 1 for size in sizes]).reshape(len(sizes), -1)
    strides = [math.prod(size + 1 for size in sizes[role + 1 :]) for role in range(len(sizes))]
    totals = counts.sum(axis=0)
    return strides, [
        [np.flatnonzero((totals == level) & (some > 0)) for some in counts]
        for level in range(1, sum(sizes) + 1)
    ]
