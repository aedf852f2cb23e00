"""Weights and hyperparameters as one position: the energy that samplers move in.

A position ``q`` holds the weights in units of their typical standard deviation given the precision
of their group, ``v_i = (alpha_c + h_c)^(1/2) w_i``, where ``h_c`` is what the data tell about a
weight of the group, and every free log precision through a `PrecisionMap`. Where the prior is
strong this is Neal's (1992) unit-prior weights times a scale per class, which removes the funnel
between a precision and weights that the data leave open; where it is weak the weights themselves
are kept, which the data determine. Papaspiliopoulos, Roberts & Skold (2007) call the first
non-centred, the second centred, and what lies between them partially non-centred.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skbayesnn.network import forward, hidden_gradient
from skbayesnn.posterior._posterior import Hyperparameters
from skbayesnn.posterior._precision_map import COARSE, PrecisionMap
from skbayesnn.posterior._ridge import ridge, spectrum

CACHE_DOUBLES = 2**15  # 256 KiB
FARTHEST = 7.0  # coordinate at which positions made from precisions at a bound are put


class _Derivatives(NamedTuple):
    """Minus log likelihood and its gradient in natural coordinates.

    Attributes
    ----------
    value : ndarray of shape (...)
    theta : ndarray of shape (..., m)
        With respect to the sampled weights.
    log_alpha : ndarray of shape (..., n_groups)
        Direct dependence, at fixed sampled weights.
    log_beta : ndarray of shape (..., n_levels)
    """

    value: np.ndarray
    theta: np.ndarray
    log_alpha: np.ndarray
    log_beta: np.ndarray


class Place(NamedTuple):
    """What a position means.

    Attributes
    ----------
    v, eta : ndarray of shape (..., n_sampled) and (..., n_free)
        The position's two parts.
    hyper : Hyperparameters
    theta, scales : ndarray of shape (..., n_sampled)
        Weights ``theta = v scales``, ``scales = (alpha_c + h_c)^(-1/2)``.
    share : ndarray of shape (..., n_groups)
        ``alpha_c / (alpha_c + h_c)``.
    """

    v: np.ndarray
    eta: np.ndarray
    hyper: Hyperparameters
    theta: np.ndarray
    scales: np.ndarray
    share: np.ndarray


class JointEnergy(NamedTuple):
    """Minus log prior and minus log likelihood, ``(...)``, with gradients ``(..., dimension)``."""

    prior: np.ndarray
    prior_gradient: np.ndarray
    data: np.ndarray
    data_gradient: np.ndarray


@dataclass(frozen=True)
class JointPosterior:
    """Posterior of weights and free hyperparameters together.

    With Gaussian noise and hidden layers the linear output layer is integrated out: given the
    hidden units it is Bayesian linear regression (Bishop 2006, section 3.5), so that the position
    holds the hidden weights only. Every method accepts leading axes, one entry per chain.

    Parameters
    ----------
    posterior : Posterior
    free : FreeHyperparameters
        Which precisions are inferred, and their common prior.
    fixed : Hyperparameters
        Values of the others.
    information : ndarray of shape (n_groups,)
        ``h_c``; zeros make the coordinates non-centred throughout.
    integrate_outputs : bool, default=True
        ``False`` keeps all weights in the position.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, weight_groups
    >>> from skbayesnn.posterior import JointPosterior, Posterior
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> groups = weight_groups(network, "single")
    >>> noise, y = Gaussian.per_output(1), np.sin(3 * X)
    >>> posterior = Posterior(network, noise, groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> fixed = Hyperparameters(np.ones(1), np.ones(1))
    >>> joint = JointPosterior(posterior, free, fixed, information=np.zeros(1))
    >>> joint.dimension  # 6 hidden weights, 2 precisions; the output layer is integrated out
    8
    >>> q = joint.draw_prior(np.random.default_rng(0))
    >>> value, gradient = joint.energy(q)
    >>> gradient.shape
    (8,)
    """

    posterior: object
    free: object
    fixed: Hyperparameters
    information: np.ndarray
    integrate_outputs: bool = True

    @cached_property
    def integrated(self):
        """Whether the output layer is integrated out."""
        return self.integrate_outputs and self.posterior.likelihood.has_noise

    @cached_property
    def n_sampled(self):
        """Number of weights in the position."""
        network = self.posterior.network
        return network.slices[-1].start if self.integrated else network.n_weights

    @property
    def dimension(self):
        """Length of a position."""
        return self.n_sampled + self.n_free

    @cached_property
    def n_alpha(self):
        """Number of free precisions of weights."""
        return int(np.sum(self.free.alpha))

    @cached_property
    def n_free(self):
        """Number of free precisions."""
        return int(np.sum(self.free.mask))

    @cached_property
    def _labels(self):
        return self.posterior.groups.labels[: self.n_sampled]

    @cached_property
    def _membership(self):
        return self.posterior.groups.membership[: self.n_sampled]

    @cached_property
    def _counts(self):
        """Targets of every noise level."""
        return self.posterior.n_rows * self.posterior.likelihood.level_sizes()

    @cached_property
    def _batch(self):
        """Number of positions whose arrays together still fit into a processor's cache."""
        width = max(self.posterior.network.layer_sizes)
        return max(8, CACHE_DOUBLES // (len(self.posterior.X) * width))

    @cached_property
    def sizes(self):
        """Number of sampled weights of every group."""
        return np.sum(self._membership, axis=0)

    @cached_property
    def _map(self):
        """How the free precisions depend on their coordinates."""
        n_beta = int(np.sum(self.free.beta))
        known = np.maximum(self.information, np.exp(self.free.prior.log_range[0]))
        centre = np.concatenate([np.log(known)[self.free.alpha], np.zeros(n_beta)])
        fine = np.sqrt(2.0 / np.maximum(self.sizes, 1.0))[self.free.alpha]
        fine = np.minimum(np.concatenate([fine, np.full(n_beta, COARSE)]), COARSE)
        coarse = np.full(len(centre), COARSE)
        return PrecisionMap.build(self.free.prior.log_range, centre, fine, coarse)

    # --- between positions and weights ---------------------------------------------------------

    def place(self, q):
        """What positions ``(..., dimension)`` mean."""
        v, eta = q[..., : self.n_sampled], q[..., self.n_sampled :]
        precisions = np.exp(self._map.log_precision(eta))
        n_alpha, lead = self.n_alpha, q.shape[:-1]
        alpha = np.empty((*lead, len(self.free.alpha)))
        beta = np.empty((*lead, len(self.free.beta)))
        alpha[...], beta[...] = self.fixed
        alpha[..., self.free.alpha] = precisions[..., :n_alpha]
        beta[..., self.free.beta] = precisions[..., n_alpha:]
        total = alpha + self.information
        scales = (total**-0.5)[..., self._labels]
        return Place(v, eta, Hyperparameters(alpha, beta), v * scales, scales, alpha / total)

    def position(self, theta, hyper):
        """Where given weights ``(..., k)`` and precisions are.

        Precisions at (or beyond) a bound are moved inside a little: the bound is at infinity.
        """
        total = (hyper.alpha + self.information)[..., self._labels]
        v = theta[..., : self.n_sampled] * np.sqrt(total)
        return np.concatenate([v, self.coordinates(*hyper)], axis=-1)

    def coordinates(self, alpha, beta):
        """``eta`` of the free ones among given precisions, ``(..., n_free)``."""
        free = np.concatenate([alpha[..., self.free.alpha], beta[..., self.free.beta]], axis=-1)
        return np.clip(self._map.eta(np.log(free)), -FARTHEST, FARTHEST)

    def rescaled(self, q, shift):
        """Positions after a change of ``ln alpha`` at which weights keep their prior probability.

        Every weight of a group is multiplied by the same factor as its prior standard deviation: a
        step that needs no gradient, and crosses in one go plateaus on which all units are saturated
        or all are linear.

        Parameters
        ----------
        q : ndarray of shape (..., dimension)
        shift : ndarray of shape (..., n_groups)
            Change of ``ln alpha``; that of fixed precisions is ignored.

        Returns
        -------
        q : ndarray of shape (..., dimension)
        log_volume : ndarray of shape (...)
            Logarithm of the Jacobian determinant of this map; ``-inf`` where a precision has left
            its interval.
        """
        place = self.place(q)
        n_alpha = self.n_alpha
        eta = place.eta.copy()
        log_alpha = np.log(place.hyper.alpha)[..., self.free.alpha] + shift[..., self.free.alpha]
        part = self._map.select(slice(n_alpha))
        eta[..., :n_alpha] = part.eta(log_alpha)
        inside = np.all(np.isfinite(eta), axis=-1)
        eta = np.where(inside[..., None], eta, place.eta)
        moved = np.concatenate([place.v, eta], axis=-1)
        after = self.place(moved)
        ratio = place.share / after.share
        moved[..., : self.n_sampled] *= np.sqrt(ratio)[..., self._labels]
        stretch = self._map.derivatives(place.eta)[0] / self._map.derivatives(eta)[0]
        log_volume = 0.5 * np.sum(self.sizes * np.log(ratio), -1) + np.sum(np.log(stretch), -1)
        return moved, np.where(inside, log_volume, -np.inf)

    def draw_prior(self, rng):
        """A position drawn from the prior."""
        return self.draw_weights(self.draw_coordinates(rng), rng)

    def draw_coordinates(self, rng):
        """Coordinates of the precisions drawn from their prior."""
        return self._map.eta(rng.uniform(*self.free.prior.log_range, self.n_free))

    def draw_weights(self, eta, rng):
        """A position with given coordinates of the precisions, its weights drawn from the prior."""
        q = np.concatenate([rng.standard_normal(self.n_sampled), eta])
        q[: self.n_sampled] /= np.sqrt(self.place(q).share[self._labels])
        return q

    # --- energies --------------------------------------------------------------------------------

    def terms(self, q):
        """Both parts of the energy at positions ``(..., dimension)``, with their gradients.

        Returns
        -------
        JointEnergy
        """
        if q.ndim == 2 and len(q) > self._batch:
            parts = [self.terms(q[i : i + self._batch]) for i in range(0, len(q), self._batch)]
            return JointEnergy(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
        place = self.place(q)
        stretch, change = self._map.derivatives(place.eta)
        return JointEnergy(*self._prior(place, stretch, change), *self._data(place, stretch))

    def energy(self, q):
        """Minus log posterior density up to the evidence, and its gradient."""
        terms = self.terms(q)
        return terms.prior + terms.data, terms.prior_gradient + terms.data_gradient

    def _prior(self, place, stretch, change):
        """Minus log prior density of a position, and its gradient."""
        v, share = place.v, place.share
        squares = self._sum_groups(v * v)
        normal = share * squares - self.sizes * np.log(share / (2.0 * np.pi))
        by_alpha = 0.5 * (1.0 - share) * (share * squares - self.sizes)
        value, by_eta = self.hyperprior(place.eta, stretch, change)
        n_alpha = self.n_alpha
        by_eta[..., :n_alpha] += by_alpha[..., self.free.alpha] * stretch[..., :n_alpha]
        gradient = np.concatenate([share[..., self._labels] * v, by_eta], axis=-1)
        return value.sum(axis=-1) + 0.5 * normal.sum(axis=-1), gradient

    def hyperprior(self, eta, stretch=None, change=None):
        """Minus log prior density of each coordinate of the precisions, and its derivative."""
        if stretch is None:
            stretch, change = self._map.derivatives(eta)
        return -np.log(stretch) - self.free.prior.log_density, -change

    def _data(self, place, stretch):
        """Minus log likelihood (all constants included), and its gradient."""
        natural = (self._marginal if self.integrated else self._complete)(place.theta, place.hyper)
        # theta_i = v_i (alpha_c + h_c)^(-1/2): the chain rule for v_i and ln alpha_c
        by_v = natural.theta * place.scales
        pull = self._sum_groups(place.theta * natural.theta)
        by_alpha = natural.log_alpha - 0.5 * place.share * pull
        by_precision = np.concatenate(
            [by_alpha[..., self.free.alpha], natural.log_beta[..., self.free.beta]], axis=-1
        )
        return natural.value, np.concatenate([by_v, by_precision * stretch], axis=-1)

    def curvature(self, q):
        """Gauss-Newton Hessian of `energy`, positive definite: ``(..., dimension, dimension)``.

        An output layer that is integrated out stands at its conditional mean, and its directions
        are eliminated (Schur complement) as in variable projection (Golub & Pereyra 1973).
        """
        posterior, place = self.posterior, self.place(q)
        k, m, n_alpha = posterior.network.n_weights, self.n_sampled, self.n_alpha
        theta = self.mean_weights(q)
        share, (stretch, _) = place.share, self._map.derivatives(place.eta)
        scale = posterior.groups.expand(place.hyper.alpha) ** -0.5  # output layer: non-centred
        scale[..., :m] = place.scales
        rho = np.ones_like(scale)
        rho[..., :m] = share[..., self._labels]
        to_weights = np.zeros((*q.shape[:-1], k, k + n_alpha))  # d theta / d (v, eta)
        weights, alphas = np.arange(k), np.arange(k, k + n_alpha)
        to_weights[..., weights, weights] = scale
        member = posterior.groups.membership[:, self.free.alpha]
        pull = -0.5 * (rho * theta)[..., None] * stretch[..., None, :n_alpha]
        to_weights[..., k:] = member * pull
        matrix = posterior.data_hessian(theta, place.hyper.beta, exact=False) @ to_weights
        matrix = np.swapaxes(to_weights, -1, -2) @ matrix
        matrix[..., weights, weights] += rho
        determined = (0.5 * self.sizes * (1.0 - share) ** 2)[..., self.free.alpha]
        matrix[..., alphas, alphas] += determined * stretch[..., :n_alpha] ** 2
        out, kept = slice(m, k), np.r_[:m, k : k + n_alpha]
        if m < k:
            cross = matrix[..., out, :][..., kept]
            rest = np.linalg.solve(matrix[..., out, out], cross)
            matrix = matrix[..., kept[:, None], kept] - np.swapaxes(cross, -1, -2) @ rest
        full = np.zeros((*q.shape[:-1], self.dimension, self.dimension))
        full[..., : len(kept), : len(kept)] = matrix
        eta, middle = np.arange(m, self.dimension), expit(place.eta)
        full[..., eta, eta] += 2.0 * middle * (1.0 - middle)  # of the logistic map
        betas = eta[n_alpha:]
        full[..., betas, betas] += 0.5 * self._counts[self.free.beta] * stretch[..., n_alpha:] ** 2
        return full

    def complete_weights(self, q, rngs):
        """All weights ``(n_chains, k)`` at positions ``(n_chains, dimension)``.

        An output layer that is integrated out is drawn from its exact conditional posterior, each
        chain's from its own generator.
        """
        place = self.place(q)
        if not self.integrated:
            return place.theta
        normal = np.stack([rng.standard_normal(self._output_shape) for rng in rngs])
        return self._with_outputs(place, normal)

    def mean_weights(self, q):
        """All weights at positions; an output layer that is integrated out has its mean."""
        place = self.place(q)
        if not self.integrated:
            return place.theta
        return self._with_outputs(place, np.zeros(self._output_shape))

    @property
    def _output_shape(self):
        width, n_outputs = self.posterior.network.shapes[-1]
        return n_outputs, width

    def _with_outputs(self, place, normal):
        """Append output weights: their conditional mean plus ``covariance^(1/2) normal``."""
        gram, moment, sd = self._output_layer(self._features(place.theta), place.hyper)
        values, vectors = spectrum(gram, len(self.posterior.X))
        shrink = 1.0 / (1.0 + values)
        to_eigenvectors = np.swapaxes(vectors, -1, -2)
        along = (to_eigenvectors @ moment[..., None])[..., 0] * shrink
        along = along + np.sqrt(shrink) * (to_eigenvectors @ normal[..., None])[..., 0]
        layer = np.swapaxes(sd * (vectors @ along[..., None])[..., 0], -1, -2)
        return np.concatenate([place.theta, layer.reshape(*layer.shape[:-2], -1)], axis=-1)

    # --- natural coordinates ---------------------------------------------------------------------

    def _sum_groups(self, values):
        return (values[..., None, :] @ self._membership)[..., 0, :]

    def _complete(self, theta, hyper):
        """Likelihood given all weights."""
        posterior = self.posterior
        errors, gradient = posterior.misfit(theta, hyper.beta)
        value = (hyper.beta * errors).sum(axis=-1)
        value = value - posterior.likelihood.log_normaliser(hyper.beta, posterior.n_rows)
        by_beta = hyper.beta * errors - 0.5 * self._counts
        return _Derivatives(value, gradient, np.zeros_like(hyper.alpha), by_beta)

    def _features(self, theta):
        """Trace of the hidden layers over all rows, output weights set to zero."""
        network = self.posterior.network
        full = np.zeros((*theta.shape[:-1], network.n_weights))
        full[..., : self.n_sampled] = theta
        return forward(network, full, self.posterior.X, order=1)

    def _output_layer(self, trace, hyper):
        """Ridge regression of the targets on the hidden units, in units of the prior.

        Returns the scaled Gram matrices ``A^(-1/2) beta Z^T Z A^(-1/2)``, the moments ``A^(-1/2)
        beta Z^T y`` and the prior sds ``A^(-1/2)`` of every output's weights, ``(..., n_outputs,
        width, width)`` and ``(..., n_outputs, width)``.
        """
        posterior = self.posterior
        z = trace.inputs[-1]
        weighted = np.swapaxes(z * posterior.sample_weight[:, None], -1, -2)
        gram, moment = weighted @ z, np.swapaxes(weighted @ posterior.y, -1, -2)
        precision = posterior.likelihood.precisions(hyper.beta)
        labels = posterior.groups.labels[self.n_sampled :].reshape(posterior.network.shapes[-1])
        sd = np.swapaxes(hyper.alpha[..., labels], -1, -2) ** -0.5
        gram = gram[..., None, :, :] * (sd[..., :, None] * sd[..., None, :])
        return gram * precision[..., None, None], moment * sd * precision[..., None], sd

    def _marginal(self, theta, hyper):
        """Likelihood with the output layer integrated out (Bishop 2006, equation 3.86)."""
        posterior = self.posterior
        trace = self._features(theta)
        gram, moment, sd = self._output_layer(trace, hyper)
        scaled, inverse, log_det = ridge(gram, moment, len(posterior.X))  # scaled: mean weights
        z, weight = trace.inputs[-1], posterior.sample_weight
        precision = posterior.likelihood.precisions(hyper.beta)
        mean = np.swapaxes(scaled * sd, -1, -2)
        residual = z @ mean - posterior.y
        squares = precision * (weight @ residual**2)
        value = 0.5 * np.sum(squares + np.sum(scaled**2, -1) + log_det, axis=-1)
        value = value - posterior.likelihood.log_normaliser(hyper.beta, posterior.n_rows)

        covariance = inverse * (sd[..., :, None] * sd[..., None, :])  # (..., o, width, width)
        weights = precision[..., None, None] * covariance
        pull = z @ np.sum(weights, axis=-3)  # from 1/2 log det
        pull = pull + (residual * precision[..., None, :]) @ np.swapaxes(mean, -1, -2)
        by_theta = hidden_gradient(trace, pull * weight[:, None])

        # 1/2 alpha (m^2 + S^-1) - 1/2 of every output weight, summed by group
        determined = 0.5 * (scaled**2 + np.diagonal(inverse, axis1=-2, axis2=-1) - 1.0)
        flat = np.swapaxes(determined, -1, -2).reshape(*theta.shape[:-1], -1)
        by_alpha = (flat[..., None, :] @ posterior.groups.membership[self.n_sampled :])[..., 0, :]

        # beta/2 (residuals^2 + Tr S^-1 Z^T Z) - n/2 of every output, summed by level
        trace_term = np.sum(1.0 - np.diagonal(inverse, axis1=-2, axis2=-1), axis=-1)
        per_output = 0.5 * (squares + trace_term - posterior.n_rows)
        levels = posterior.likelihood.levels[:, None] == np.arange(posterior.likelihood.n_levels)
        by_beta = (per_output[..., None, :] @ levels.astype(float))[..., 0, :]
        return _Derivatives(value, by_theta, by_alpha, by_beta)
