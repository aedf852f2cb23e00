"""Joint posterior energy of weights and hyperparameters, for samplers."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skbayesnn.network import forward, hidden_gradient, row_blocks
from skbayesnn.posterior.joint._coordinates import Coordinates
from skbayesnn.posterior.kernels._compiled import compiled_joint
from skbayesnn.posterior.likelihoods._likelihoods import Gaussian
from skbayesnn.posterior.likelihoods._output_layer import (
    OutputLayer,
    complete,
    integrated,
    left_out_outputs,
)
from skbayesnn.posterior.priors._weight_groups import sums_by


class Derivatives(NamedTuple):
    """Minus log likelihood and its gradient in natural coordinates."""

    value: np.ndarray  # (...)
    theta: np.ndarray  # by the sampled weights, (..., n_sampled)
    log_alpha: np.ndarray  # by ln alpha at fixed sampled weights, (..., n_groups)
    log_beta: np.ndarray  # (..., n_levels)


class JointEnergy(NamedTuple):
    """Minus log prior and minus log likelihood, ``(...)``, with gradients ``(..., dimension)``."""

    prior: np.ndarray
    prior_gradient: np.ndarray
    data: np.ndarray
    data_gradient: np.ndarray


@dataclass(frozen=True)
class JointPosterior(Coordinates):
    """Joint posterior of weights and free hyperparameters.

    With Gaussian noise and hidden layers the linear output layer is integrated out: given the
    hidden units it is a Bayesian linear regression (Bishop 2006, section 3.5). The position then
    holds the hidden weights only. Every method accepts leading axes, one entry per chain.

    Subclasses for other noise models have positions with further entries: weights of further
    networks, or conditions (see `Phase`) beyond the ``dimension`` entries that move. "All weights"
    below refers to the network of the means.
    """

    noise_network = None  # `Network` of input-dependent noise
    further_directions = ()  # for rescaling groups, besides those of the network of the means
    state_names = ()  # of the entries of `noise_state` that are positive parameters

    @cached_property
    def compiled(self):
        """Compiled twin of energy and transitions; ``None`` if the core lacks the likelihood."""
        posterior, law = self.posterior, self.posterior.likelihood
        # given factors of the rows the noise is Gaussian
        if law.n_levels and law.conjugate and type(law) is not Gaussian:
            posterior = replace(posterior, likelihood=Gaussian(law.levels, law.relative))
        return compiled_joint(self, posterior, self.noise_network)

    def __getstate__(self):
        """State without derived arrays."""
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    def terms(self, q):
        """Both parts of the energy at positions, with gradients in the moving coordinates."""
        place = self.place(q)
        stretch, _ = self.precision_map.derivatives(place.eta)
        natural = self._likelihood(place)
        # u_i = v_i (alpha_c + h_c)^(-1/2): the chain rule for v_i and ln alpha_c
        by_white = self._of_means_alone(natural.theta, self.posterior.groups.white_gradient)
        pull = sums_by(self._membership, place.white * by_white)
        # d u_i / d ln alpha_c = -u_i/2 alpha_c / (alpha_c + h_c), at fixed v_i
        by_alpha = natural.log_alpha - 0.5 * place.share * pull
        free = by_alpha[..., self.free.alpha], natural.log_beta[..., self.free.beta]
        by_eta = np.concatenate(free, axis=-1) * stretch
        gradient = np.concatenate([by_white * place.scales, by_eta], axis=-1)
        return JointEnergy(*self._prior(place, stretch), natural.value, gradient)

    def __call__(self, q):
        """Energy, minus the log posterior density up to the evidence, and its gradient."""
        if self.compiled:
            return self.compiled.values(q, gradients=True)
        terms = self.terms(q)
        return terms.prior + terms.data, terms.prior_gradient + terms.data_gradient

    def _prior(self, place, stretch):
        """Minus log prior density of a position, and its gradient."""
        v, share = place.v, place.share
        squares = sums_by(self._membership, v * v)
        # the prior of v_i = u_i (alpha_c + h_c)^(1/2) is normal with the precision ``share``
        normal = share * squares - self.sizes * np.log(share / (2.0 * np.pi))
        by_alpha = 0.5 * (1.0 - share) * (share * squares - self.sizes)
        value, by_eta = self.hyperprior(place.eta)
        n_alpha = self.n_alpha  # the first coordinates are those of weight precisions
        by_eta[..., :n_alpha] += by_alpha[..., self.free.alpha] * stretch[..., :n_alpha]
        gradient = np.concatenate([share.take(self._labels, axis=-1) * v, by_eta], axis=-1)
        return value.sum(axis=-1) + 0.5 * normal.sum(axis=-1), gradient

    def hyperprior(self, eta):
        """Minus log prior density of each coordinate of the precisions, and its derivative."""
        stretch, change = self.precision_map.derivatives(eta)
        logs, priors = self.precision_map.log_precision(eta), self.free.priors
        slope = change + priors.slope(logs) * stretch
        return -np.log(stretch) - priors.log_density(logs), -slope

    def curvature(self, q):
        """Gauss-Newton approximation of the Hessian of the energy, ``(..., dimension, dimension)``.

        It is positive definite. An output layer that is integrated out is evaluated at its
        conditional mean, and its directions are eliminated by a Schur complement as in variable
        projection (Golub & Pereyra 1973).
        """
        place, groups = self.place(q), self.groups
        k, m, n_alpha = len(groups.labels), self.n_sampled, self.n_alpha
        theta = self._with_outputs(place)
        white = theta if self.posterior.groups.centred else place.white
        share, (stretch, _) = place.share, self.precision_map.derivatives(place.eta)
        scale = groups.expand(place.hyper.alpha) ** -0.5  # output layer: non-centred
        scale[..., :m] = place.scales
        rho = np.ones_like(scale)  # prior precisions of v
        rho[..., :m] = share[..., self._labels]
        matrix, prior = self._data_hessian(theta, place), self.posterior.groups
        for _ in range(0 if prior.centred else 2):  # in white weights: rows, then columns
            matrix = self._of_means_alone(np.swapaxes(matrix, -1, -2), prior.white_gradient)
        # the chain rule with d u / d v = diag(scale) and d u / d eta = pull
        member = groups.membership[:, self.free.alpha]
        pull = member * (-0.5 * (rho * white)[..., None] * stretch[..., None, :n_alpha])
        pulled, of_weights = matrix @ pull, matrix
        weights, alphas = np.arange(k), np.arange(k, k + n_alpha)
        matrix = np.empty((*q.shape[:-1], k + n_alpha, k + n_alpha))
        matrix[..., :k, :k] = scale[..., :, None] * of_weights * scale[..., None, :]
        matrix[..., :k, k:] = scale[..., None] * pulled
        matrix[..., k:, :k] = np.swapaxes(matrix[..., :k, k:], -1, -2)
        matrix[..., k:, k:] = np.swapaxes(pull, -1, -2) @ pulled
        matrix[..., weights, weights] += rho
        # expected second derivatives of minus the log prior of v by ln alpha
        by_alpha = (0.5 * self.sizes * (1.0 - share) ** 2)[..., self.free.alpha]
        matrix[..., alphas, alphas] += by_alpha * stretch[..., :n_alpha] ** 2
        out, kept = slice(m, k), np.r_[:m, k : k + n_alpha]
        if m < k:
            cross = matrix[..., out, :][..., kept]
            rest = np.linalg.solve(matrix[..., out, out], cross)
            matrix = matrix[..., kept[:, None], kept] - np.swapaxes(cross, -1, -2) @ rest
        full = np.zeros((*q.shape[:-1], self.dimension, self.dimension))
        full[..., : len(kept), : len(kept)] = matrix
        eta, middle = np.arange(m, self.dimension), expit(place.eta)
        full[..., eta, eta] += 2.0 * middle * (1.0 - middle)  # of the logistic map
        full[..., eta, eta] += self.free.priors.shape * stretch**2  # expected, of the hyperprior
        betas = eta[n_alpha:]
        information = self._level_information(place)[..., self.free.beta]
        full[..., betas, betas] += information * stretch[..., n_alpha:] ** 2
        return full

    def complete_weights(self, q, rngs):
        """All weights ``(n_chains, k)`` at the positions of chains.

        An output layer that is integrated out is drawn from its exact conditional posterior, for
        each chain from its own generator.
        """
        normal = None
        if self.integrated:
            normal = np.stack([rng.standard_normal(self._output_labels.shape) for rng in rngs])
        return self._of_means(self._with_outputs(self.place(q), normal))

    def output_layers(self, q):
        """Posteriors of the output layers given the positions ``(m, d)``, as `OutputLayer`.

        ``None`` unless the output layer is integrated out.
        """
        return OutputLayer.of(*self._regression(self.place(q))) if self.integrated else None

    def left_out_outputs(self, q):
        """Mean and variance of the output of every row given the targets of the other rows.

        Hidden weights and precisions are those of positions ``(m, d)``; both results are of shape
        ``(m, n, n_outputs)``. ``None`` as for `output_layers`.
        """
        if not self.integrated:
            return None
        width, found = self._output_labels.size, []
        for positions in row_blocks(len(q), 4 * len(self.posterior.X) * width):
            place = self.place(q[positions])
            found.append(left_out_outputs(*self._regression(place)))
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def typical_hyper(self, q):
        """Precisions at positions, with a typical noise precision if the noise varies."""
        return self.place(q).hyper

    def noise_state(self, q):
        """Parameters of the noise besides its level, ``(..., m)``, here none."""
        return np.empty((*q.shape[:-1], 0))

    def noise_functions(self, state, X):
        """Functions of the inputs that a noise state defines, ``(..., n, m)``, here none."""
        return np.empty((*state.shape[:-1], len(X), 0))

    def renewed(self, q, rngs, keep_outputs=False):
        """Redraw the conditions of positions, if any, for each chain from its generator."""
        return q

    def density(self, phase):
        """Minus log posterior density at a phase, up to the evidence, ``(...)``."""
        return phase.value

    def mean_weights(self, q):
        """All weights at positions, with the conditional mean of an integrated output layer."""
        return self._of_means(self._with_outputs(self.place(q)))

    def _of_means(self, theta):
        """Weights of the network of the means among those of all groups, ``(..., k)``."""
        if not self.n_noise:
            return theta
        return np.concatenate([theta[..., : self.n_mean], theta[..., self.n_sampled :]], axis=-1)

    def _output_sd(self, hyper):
        """Prior standard deviations of the weights into outputs, ``(..., n_outputs, width)``."""
        return (hyper.alpha**-0.5).take(self._output_labels, axis=-1)

    def _with_outputs(self, place, normal=None):
        """Append output weights that are integrated out, ``conditional mean + sd * normal``.

        The standard normal numbers ``(..., n_outputs, width)`` are zero by default.
        """
        if not self.integrated:
            return place.theta
        if normal is None:
            normal = np.zeros(self._output_labels.shape)
        layer = OutputLayer.of(*self._regression(place)).weights(normal).swapaxes(-1, -2)
        return np.concatenate([place.theta, layer.reshape(*layer.shape[:-2], -1)], axis=-1)

    def _regression(self, place):
        """Arguments of `OutputLayer.of` for an output layer that is integrated out."""
        sd = self._output_sd(place.hyper)
        return self._rows(place), self._features(place.theta, order=0).inputs[-1], sd

    # --- natural coordinates ---------------------------------------------------------------------

    def _likelihood(self, place):
        """`Derivatives` of minus the log likelihood, with all constants."""
        if self.integrated:
            return self._of_rows(place, self._rows(place))[0]
        posterior, hyper = self.posterior, place.hyper
        misfit, gradient = posterior.misfit_and_gradient(place.theta, hyper.beta)
        value = misfit.value - posterior.likelihood.log_normaliser(hyper.beta, posterior.n_rows)
        by_beta = hyper.beta * misfit.errors - 0.5 * posterior.noise_counts(hyper.beta)
        return Derivatives(value, gradient, np.zeros_like(hyper.alpha), by_beta)

    def _rows(self, place):
        """Targets with the precisions of their noise."""
        posterior = self.posterior
        precision = posterior.likelihood.precisions(place.hyper.beta)
        return posterior.targets()._replace(precision=precision)

    def _level_information(self, place):
        """Expected second derivatives in ``ln beta``, ``(..., n_levels)``."""
        return 0.5 * self.posterior.noise_counts(place.hyper.beta)

    def _data_hessian(self, theta, place):
        """Gauss-Newton Hessian of the misfit in the weights of all groups."""
        return self.posterior.data_expansion(theta, place.hyper.beta, exact=False)[2]

    def _features(self, theta, order):
        """Trace of the hidden layers over all rows, output weights set to zero."""
        network = self.posterior.network
        full = np.zeros((*theta.shape[:-1], network.n_weights))
        full[..., : self.n_mean] = theta[..., : self.n_mean]
        return forward(network, full, self.posterior.X, order)

    def _of_rows(self, place, rows):
        """Likelihood of Gaussian noise: its `Derivatives`, and the `Regression` they come from.

        The output layer is integrated out if applicable (Bishop 2006, 3.86). The normaliser of the
        density is included for ``rows.precision``, but not for ``rows.factors``.
        """
        posterior, theta, hyper = self.posterior, place.theta, place.hyper
        if self.integrated:
            trace = self._features(theta, order=1)
            sd = self._output_sd(hyper)
            found = integrated(rows, trace.inputs[-1], sd)
            by_theta = hidden_gradient(trace, found.gradient)
            flat = found.log_alpha.reshape(*theta.shape[:-1], -1)  # summed by group
            by_alpha = sums_by(self.groups.membership[self.n_sampled :], flat)
        else:
            found = complete(rows, forward(posterior.network, theta, posterior.X, 1))
            by_theta, by_alpha = found.gradient, np.zeros_like(hyper.alpha)
        n_rows = posterior.n_rows
        normaliser = 0.5 * n_rows * np.log(rows.precision / (2.0 * np.pi)).sum(axis=-1)
        by_beta = sums_by(self.posterior.likelihood.membership, found.log_precision - 0.5 * n_rows)
        return Derivatives(found.value - normaliser, by_theta, by_alpha, by_beta), found
