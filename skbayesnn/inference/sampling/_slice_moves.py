"""Slice sampling for classifiers without hidden layers, in addition to the dynamics.

If a linear boundary separates the classes, only the prior bounds the weights. The posterior is then
a widening cone with walls of constant steepness, in which steps of one size are too long near the
tip or too short elsewhere. Slice sampling adapts the size of every step (Neal 2003), and the
outputs along a line cost one product with the inputs.
"""

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.optimise._steps import find_mode
from skbayesnn.network import with_constant
from skbayesnn.posterior import Hyperparameters
from skbayesnn.samplers import Metric

PRIOR_SDS = (1.0, 10.0, 100.0)  # prior sds at whose modes the shapes of directions are taken
LINES_PER_SCALE = 3  # updates of weights for each update of a precision
LEAST_LINES = 12  # fewest lines of a transition; otherwise one per identified weight
LARGEST = 200  # most weights, as the number of lines grows with them
STEEPEST = 690.0  # largest log odds whose exponentials do not overflow in sums
NEWTON_STEPS = 30
UNLIKELY = 10.0  # nats of evidence by which wide priors may fall behind the narrowest


def serves_slices(joint, settings):
    """Return True if a small linear classifier may have weights far larger than 1.

    This is the case if wide priors have a considerable evidence (Laplace approximation). Otherwise
    the dynamics mix well on their own.
    """
    posterior = joint.posterior
    linear = posterior.likelihood.classes and not posterior.network.hidden_layer_sizes
    linear = linear and posterior.groups.centred
    if not linear or posterior.network.n_weights > LARGEST:
        return False
    log_evidence = [
        0.5 * np.sum(np.log(posterior.groups.expand(mode.hyper.alpha)))
        - 0.5 * mode.precision.log_det
        - mode.energy
        for mode in _modes(joint, settings)
    ]
    return bool(max(log_evidence[1:]) > log_evidence[0] - UNLIKELY)


def _modes(joint, settings):
    """Modes of the posterior as points, from the narrowest prior to the widest."""
    posterior, modes = joint.posterior, []
    theta = np.zeros(posterior.network.n_weights)
    method = Method.choose(posterior, settings)
    for sd in PRIOR_SDS:
        hyper = Hyperparameters(np.full(len(posterior.groups.names), sd**-2), np.ones(0))
        modes.append(find_mode(posterior, method, theta, hyper, NEWTON_STEPS, tol=1e-6).point)
        theta = modes[-1].theta
    return modes


def shapes_at_modes(joint, settings):
    """Square roots of the Laplace covariance of a linear classifier under several priors.

    Their shape is ``(m, k, k)``.
    """
    posterior = joint.posterior
    hessians = np.stack(
        [posterior.hessian(mode.theta, mode.hyper) for mode in _modes(joint, settings)]
    )
    return Metric.from_precisions(hessians).factor


class SliceMoves:
    """Slice updates of the weights in units of their prior sds, ``z``, and of precisions.

    Weights move along random lines by elliptical slice sampling (Murray, Adams & MacKay 2010). At
    fixed ``z`` all weights of a group grow together when its ``ln alpha`` falls (the non-centred
    parametrisation of Papaspiliopoulos, Roberts & Skold 2007), which takes a chain from the tip of
    the cone to its far end in a single step.

    The joint posterior is that of a classifier without hidden layers; its targets may be
    ``(n_chains, n, n_outputs)``. The ``shapes`` ``(m, k, k)`` are linear maps from normal random
    numbers to directions, one of which is chosen at random.
    """

    def __init__(self, joint, shapes):
        self.joint, self.shapes, posterior = joint, shapes, joint.posterior
        self.layer = posterior.network.shapes[-1]  # inputs with the bias, outputs
        self.inputs = np.ascontiguousarray(with_constant(posterior.network, posterior.X).T)
        self.targets = np.swapaxes(posterior.y, -1, -2)
        self.n_lines = max(LEAST_LINES, self.layer[0] * max(1, self.layer[1] - 1))
        self.groups = np.flatnonzero(joint.free.alpha)

    def __call__(self, energy, phase, rngs):
        """Update every chain (a transition of `samplers`)."""
        joint = self.joint
        place = joint.place(phase.position)
        state = _State(self, place)
        if self.layer[1] > 1:
            state.renew_common_part(rngs)
        pause = LINES_PER_SCALE * max(1, len(self.groups))
        for line in range(1, self.n_lines + 1):
            state.move_along_line(rngs)
            if line % pause == 0 or line == self.n_lines:
                for group in self.groups:
                    state.move_scale(group, rngs)
        shift = state.log_alpha - np.log(place.hyper.alpha)
        position, _ = joint.rescaled(phase.position, shift)
        position[:, : joint.n_sampled] = state.z * state.sd / joint.place(position).scales
        return type(phase)(position, phase.momentum, *energy(position))

    def odds(self, theta):
        """Log odds of every class against the right one, ``(n_chains, n_outputs, n)``.

        They are linear in the weights. A single output gives the log odds of the wrong class alone.
        """
        W = theta.reshape(-1, *self.layer)
        f = np.swapaxes(W, -1, -2) @ self.inputs
        if self.layer[1] == 1:
            return (1.0 - 2.0 * self.targets) * f
        return f - np.sum(self.targets * f, axis=-2, keepdims=True)

    def log_likelihood(self, odds):
        """Log likelihood ``sum_n s_n ln P(t_n)``, of shape ``(n_chains,)``."""
        ratios = np.exp(np.minimum(odds, STEEPEST)).sum(axis=-2)
        if self.layer[1] == 1:
            ratios += 1.0
        return -np.sum(self.joint.posterior.sample_weight * np.log(ratios), axis=-1)


class _State:
    """State of the chains within a transition."""

    def __init__(self, moves, place):
        self.moves, self.labels = moves, moves.joint.groups.labels
        self.log_alpha = np.log(place.hyper.alpha)
        self.z = place.theta / self.sd
        self.odds = moves.odds(place.theta)
        self.log_likelihood = moves.log_likelihood(self.odds)

    @property
    def sd(self):
        """Prior standard deviations of the weights, ``(n_chains, k)``."""
        return np.exp(-0.5 * self.log_alpha)[:, self.labels]

    def renew_common_part(self, rngs):
        """Draw the part common to all classes from its prior, as the likelihood ignores it."""
        layer = (len(rngs), *self.moves.layer)
        common = (1.0 / self.sd).reshape(layer)
        common /= np.linalg.norm(common, axis=-1, keepdims=True)
        z = self.z.reshape(layer)
        new = np.stack([rng.standard_normal(layer[1]) for rng in rngs])
        change = new - np.sum(common * z, axis=-1)
        self.z = (z + common * change[..., None]).reshape(self.z.shape)

    def move_along_line(self, rngs):
        """Update the coordinate along a random direction by elliptical slice sampling.

        The coordinate ``a = d z`` is standard normal a priori and independent of the orthogonal
        complement. With another normal number ``b`` it is rotated to ``a cos t + b sin t`` (Murray,
        Adams & MacKay 2010, figure 2).
        """
        direction, sd = self._directions(rngs), self.sd
        growth = self.moves.odds(direction * sd)
        a = np.sum(self.z * direction, axis=-1)
        b = np.array([rng.standard_normal() for rng in rngs])

        def change(angle, chains):
            return a[chains] * (np.cos(angle) - 1.0) + b[chains] * np.sin(angle)

        def odds(angle, chains):
            return self.odds[chains] + change(angle, chains)[:, None, None] * growth[chains]

        high = np.array([rng.uniform(0.0, 2.0 * np.pi) for rng in rngs])
        angle = self._shrink(odds, np.zeros(len(rngs)), high - 2.0 * np.pi, high, rngs)
        self.z = self.z + change(angle, slice(None))[:, None] * direction

    def _directions(self, rngs):
        """Random unit vectors without the part common to all classes."""
        moves, (n_inputs, n_outputs) = self.moves, self.moves.layer
        chosen = [rng.integers(len(moves.shapes)) for rng in rngs]
        normal = np.stack([rng.standard_normal(n_inputs * n_outputs) for rng in rngs])
        theta = (moves.shapes[chosen] @ normal[..., None]).reshape(-1, n_inputs, n_outputs)
        if n_outputs > 1:
            theta = theta - theta.mean(axis=-1, keepdims=True)
        direction = theta.reshape(normal.shape) / self.sd
        return direction / np.linalg.norm(direction, axis=-1, keepdims=True)

    def move_scale(self, group, rngs):
        """Update a precision at fixed ``z`` by slice sampling of its prior times the likelihood."""
        moves, start = self.moves, self.log_alpha[:, group].copy()
        own = moves.odds(self.z * self.sd * (self.labels == group))
        rest = self.odds - own

        def odds(log_alpha, chains):
            factor = np.exp(-0.5 * (log_alpha - start[chains]))
            return rest[chains] + factor[:, None, None] * own[chains]

        prior = moves.joint.free.alpha_prior[group]
        low, high = np.tile(prior.log_range, (len(rngs), 1)).T
        self.log_alpha[:, group] = self._shrink(odds, start, low, high, rngs, prior.log_kernel)

    def _shrink(self, odds, start, low, high, rngs, log_prior=np.zeros_like):
        """Draw new points by the shrinkage procedure (Neal 2003, figure 5), and store their odds.

        ``odds`` maps points ``(m,)`` and the indices of their chains to odds there. Chains start at
        the points ``start`` within ``low`` and ``high``, all ``(n_chains,)``. The prior of points
        ``(m,)`` is uniform in these intervals by default.
        """
        low, high = low.copy(), high.copy()
        level = self.log_likelihood - [rng.standard_exponential() for rng in rngs]
        level = level + log_prior(start)
        point, outside = np.empty(len(rngs)), np.arange(len(rngs))
        while len(outside):
            point[outside] = [rngs[c].uniform(low[c], high[c]) for c in outside]
            tried = odds(point[outside], outside)
            value = self.moves.log_likelihood(tried)
            inside = value + log_prior(point[outside]) > level[outside]
            chains = outside[inside]
            self.odds[chains], self.log_likelihood[chains] = tried[inside], value[inside]
            outside = outside[~inside]
            below = point[outside] < start[outside]
            low[outside[below]] = point[outside[below]]
            high[outside[~below]] = point[outside[~below]]
        return point
