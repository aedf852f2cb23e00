"""Coordinates of samplers: weights and hyperparameters as one position.

A position ``q`` holds the weights in units of their typical standard deviation given the precision
of their group, ``v_i = (alpha_c + h_c)^(1/2) w_i`` (of an informative prior its `white` ones),
where ``h_c`` is the precision that the data give a weight of the group, and every free log
precision through a `PrecisionMap`. A strong prior leads to Neal's (1992) unit-prior weights times a
scale per class, which removes the funnel between a precision and weights that the data leave
undetermined. Under a weak prior the coordinates are proportional to the weights themselves, which
the data determine. Papaspiliopoulos, Roberts & Skold (2007) call the first parametrisation
non-centred, the second centred, and intermediate ones partially non-centred.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from skbayesnn.posterior._posterior import Hyperparameters, Posterior
from skbayesnn.posterior.priors._weight_groups import WeightGroups

COARSE = 3.0  # nats of ln alpha per unit of psi where the data leave it open
EDGE = 7.0  # coordinate at which positions made from precisions at a bound are put


class PrecisionMap(NamedTuple):
    """Map from unbounded coordinates ``eta`` to log precisions in their interval.

    ``psi = psi_low + (psi_high - psi_low) sigmoid(eta)`` and ``ln alpha = ln h + s psi +
    (t - s) ln(1 + exp psi)``. The slope is ``s`` where the weights determine their precision, and
    ``t`` where the prior is so strong that the data leave the precision undetermined. A sampler
    then crosses both regions at the same pace. All parameters have the shape ``(n_free,)``.
    """

    centre: np.ndarray  # ln h
    fine: np.ndarray  # s
    coarse: np.ndarray  # t
    low: np.ndarray  # ends of the interval of psi
    high: np.ndarray

    def _curve(self, psi):
        return self.centre + self.fine * psi + (self.coarse - self.fine) * np.logaddexp(0.0, psi)

    def _invert(self, log_precision):
        """Solve `_curve` for ``psi`` by Newton's method, from the right."""
        # both asymptotes of the convex curve are below it
        psi = np.minimum(
            (log_precision - self.centre) / self.fine, (log_precision - self.centre) / self.coarse
        )
        for _ in range(100):
            slope = self.fine + (self.coarse - self.fine) * expit(psi)
            step = (self._curve(psi) - log_precision) / slope
            moving = np.abs(step) > 1e-12 * (1.0 + np.abs(psi))
            if not np.any(moving):
                break
            psi = np.where(moving, psi - step, psi)  # each stops by itself, whatever the others do
        return psi

    def eta(self, log_precision):
        """Coordinates of log precisions; infinite at and beyond the bounds."""
        share = (self._invert(log_precision) - self.low) / (self.high - self.low)
        return logit(np.clip(share, 0.0, 1.0))

    def log_precision(self, eta):
        """Log precision ``ln alpha`` at ``eta``."""
        return self._curve(self.low + (self.high - self.low) * expit(eta))

    def derivatives(self, eta):
        """Derivative ``d ln alpha / d eta``, and the derivative of its logarithm."""
        place = expit(eta)
        width = self.high - self.low
        bend = expit(self.low + width * place)
        slope = self.fine + (self.coarse - self.fine) * bend
        inner = width * place * expit(-eta)
        second = (self.coarse - self.fine) * bend * (1.0 - bend) / slope
        return slope * inner, second * inner + 1.0 - 2.0 * place


class Place(NamedTuple):
    """Weights, precisions and conditions at positions.

    The white weights are in units in which their prior has mean zero and ``R`` is 1; they are equal
    to ``theta`` under centred priors.
    """

    v: np.ndarray  # (..., n_sampled)
    eta: np.ndarray  # (..., n_free)
    hyper: Hyperparameters
    theta: np.ndarray  # weights (..., n_sampled)
    white: np.ndarray  # v times scales, (..., n_sampled)
    scales: np.ndarray  # (alpha_c + h_c)^(-1/2), (..., n_sampled)
    share: np.ndarray  # of the prior in the precision, alpha_c / (alpha_c + h_c), (..., n_groups)
    conditions: np.ndarray  # rest of the position, (..., n_conditions)


@dataclass(frozen=True)
class Coordinates:
    """Maps between positions and weights with precisions."""

    posterior: Posterior
    free: object  # `FreeHyperparameters`: masks of the inferred precisions, and their priors
    fixed: Hyperparameters  # values of the fixed precisions
    # (n_groups,), precisions h_c by the data; zeros make the coordinates fully non-centred
    information: np.ndarray
    integrate_outputs: bool = True  # False keeps all weights in the position

    # layout of a position, derived from the above
    integrated: bool = field(init=False)  # True if the output layer is integrated out
    n_mean: int = field(init=False)  # weights of the network of the means in the position
    n_noise: int = field(init=False)  # weights of the noise, which follow those of the means
    n_sampled: int = field(init=False)  # both
    n_alpha: int = field(init=False)  # free precisions of weights
    n_free: int = field(init=False)  # all free precisions
    dimension: int = field(init=False)  # length of a position
    groups: WeightGroups = field(init=False)  # of sampled weights, then of those integrated out
    _labels: np.ndarray = field(init=False)  # groups of the sampled weights, (n_sampled,)
    _membership: np.ndarray = field(init=False)  # (n_sampled, n_groups)
    sizes: np.ndarray = field(init=False)  # number of sampled weights of every group
    # group of every output weight that is integrated out, (n_outputs, width)
    _output_labels: np.ndarray = field(init=False)

    n_conditions = 0
    further_weights = np.empty(0, dtype=int), []  # group of every weight of the noise, and names

    def __post_init__(self):
        network, likelihood = self.posterior.network, self.posterior.likelihood
        groups, (labels, names) = self.posterior.groups, self.further_weights
        integrated = (
            groups.centred  # else the prior of the output layer depends on the other weights
            and self.integrate_outputs
            and likelihood.n_levels > 0
            and likelihood.conjugate
        )
        n_mean = network.slices[-1].start if integrated else network.n_weights
        if names:
            labels = labels + len(groups.names)
            labels = np.concatenate([groups.labels[:n_mean], labels, groups.labels[n_mean:]])
            groups = WeightGroups(labels, [*groups.names, *names])
        n_noise = len(self.further_weights[0])
        n_sampled, n_free = n_mean + n_noise, int(np.sum(self.free.mask))
        rows, n_outputs = network.shapes[-1]
        membership = np.ascontiguousarray(groups.membership[:n_sampled])
        vars(self).update(
            integrated=integrated,
            n_mean=n_mean,
            n_noise=n_noise,
            n_sampled=n_sampled,
            n_alpha=int(np.sum(self.free.alpha)),
            n_free=n_free,
            dimension=n_sampled + n_free,
            groups=groups,
            _labels=groups.labels[:n_sampled],
            _membership=membership,
            sizes=np.sum(membership, axis=0),
            _output_labels=groups.labels[n_sampled:].reshape(rows * integrated, n_outputs).T,
        )

    @cached_property
    def precision_map(self):
        """Map from coordinates to the free precisions."""
        n_beta = int(np.sum(self.free.beta))
        known = np.maximum(self.information, np.exp(self.free.alpha_prior.low))
        centre = np.concatenate([np.log(known)[self.free.alpha], np.zeros(n_beta)])
        fine = np.sqrt(2.0 / np.maximum(self.sizes, 1.0))[self.free.alpha]
        fine = np.minimum(np.concatenate([fine, np.full(n_beta, COARSE)]), COARSE)
        priors, coarse = self.free.priors, np.full(len(centre), COARSE)
        bare = PrecisionMap(centre, fine, coarse, centre, centre)
        return bare._replace(low=bare._invert(priors.low), high=bare._invert(priors.high))

    def place(self, q):
        """Decompose positions into weights, precisions and conditions."""
        m, d = self.n_sampled, self.dimension
        v, eta, conditions = q[..., :m], q[..., m:d], q[..., d:]
        precisions = np.exp(self.precision_map.log_precision(eta))
        n_alpha, lead = self.n_alpha, q.shape[:-1]
        alpha = np.empty((*lead, len(self.free.alpha)))
        beta = np.empty((*lead, len(self.free.beta)))
        alpha[...], beta[...] = self.fixed
        alpha[..., self.free.alpha] = precisions[..., :n_alpha]
        beta[..., self.free.beta] = precisions[..., n_alpha:]
        total = alpha + self.information
        scales = (total**-0.5).take(self._labels, axis=-1)
        hyper, white = Hyperparameters(alpha, beta), v * scales
        theta = self._of_means_alone(white, self.posterior.groups.coloured)
        return Place(v, eta, hyper, theta, white, scales, alpha / total, conditions)

    def _of_means_alone(self, values, change):
        """Replace the entries for the means' weights in ``values`` of shape (..., n_sampled)."""
        if self.posterior.groups.centred:
            return values
        m = self.n_mean
        return np.concatenate([change(values[..., :m]), values[..., m:]], axis=-1)

    def position(self, theta, hyper):
        """Positions of given weights ``(..., n_sampled)``, or more, and precisions.

        Precisions at (or beyond) a bound are moved slightly inside, as the bound is at infinity.
        """
        total = (hyper.alpha + self.information)[..., self._labels]
        white = self._of_means_alone(theta[..., : self.n_sampled], self.posterior.groups.white)
        v = white * np.sqrt(total)
        return np.concatenate([v, self.coordinates(*hyper)], axis=-1)

    def converted(self, q, other):
        """Convert positions to those of the same posterior in coordinates with other ``h_c``."""
        place = self.place(q)
        moving = Coordinates.position(other, place.theta, place.hyper)
        return np.concatenate([moving, place.conditions], axis=-1)

    def coordinates_in(self, q):
        """Coordinates ``eta`` of the free precisions in positions, ``(..., n_free)``."""
        return q[..., self.n_sampled : self.dimension]

    def coordinates(self, alpha, beta):
        """Coordinates ``eta`` of the free ones among given precisions, ``(..., n_free)``."""
        free = np.concatenate([alpha[..., self.free.alpha], beta[..., self.free.beta]], axis=-1)
        return np.clip(self.precision_map.eta(np.log(free)), -EDGE, EDGE)

    def drawn_coordinates(self, draws):
        """Coordinates ``eta`` of draws with fields ``alpha`` and ``beta``, ``(..., n_free)``."""
        return self.coordinates(draws.alpha, draws.beta)

    def rescaled(self, q, shift):
        """Rescale groups of weights together with their prior standard deviations.

        A change of ``ln alpha`` multiplies every weight of a group by the same factor as its prior
        standard deviation, so that the weights keep their prior probability. Such a step needs no
        gradient, and crosses plateaus on which all units are saturated or all are linear. The
        ``shift`` ``(..., n_groups)`` is ignored for fixed precisions.

        Returned are positions and the logarithm of the Jacobian determinant of this map, ``(...)``;
        ``-inf`` where a precision has left its interval.
        """
        place = self.place(q)
        n_alpha = self.n_alpha
        eta = place.eta.copy()
        log_alpha = np.log(place.hyper.alpha) + shift
        map_of_alpha = PrecisionMap(*(field[:n_alpha] for field in self.precision_map))
        eta[..., :n_alpha] = map_of_alpha.eta(log_alpha[..., self.free.alpha])
        inside = np.all(np.isfinite(eta), axis=-1)
        eta = np.where(inside[..., None], eta, place.eta)
        moved = np.concatenate([place.v, eta, place.conditions], axis=-1)
        after = self.place(moved)
        ratio = place.share / after.share
        moved[..., : self.n_sampled] *= np.sqrt(ratio)[..., self._labels]
        stretch = (
            self.precision_map.derivatives(place.eta)[0] / self.precision_map.derivatives(eta)[0]
        )
        log_volume = 0.5 * np.sum(self.sizes * np.log(ratio), -1) + np.sum(np.log(stretch), -1)
        return moved, np.where(inside, log_volume, -np.inf)

    def draw_prior(self, rng):
        """Draw a position from the prior."""
        log_precision = self.free.priors.quantile(rng.random(self.n_free))
        return self.draw_weights(self.precision_map.eta(log_precision), rng)

    def draw_weights(self, eta, rng):
        """Draw weights from the prior at given coordinates of precisions, and return positions."""
        q = np.concatenate([rng.standard_normal((*eta.shape[:-1], self.n_sampled)), eta], axis=-1)
        q[..., : self.n_sampled] /= np.sqrt(Coordinates.place(self, q).share[..., self._labels])
        return q
