"""Likelihoods: misfits of outputs to targets, and derivatives with respect to the outputs.

Sums over rows are computed network by network, never as one product over the leading axes, so that
their rounding does not depend on the number of networks evaluated together.

A likelihood depends on outputs ``f`` ``(..., n, n_outputs)`` and `Targets`, not on a network. Its
*misfit* is minus the log probability of the targets up to the normaliser of the noise. The
precisions ``beta`` of its *noise levels* are hyperparameters; classifiers have no level.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from skbayesnn.posterior.priors._weight_groups import sums_by

HIGHEST = 300.0  # log precision or rate beyond which exponentials would overflow


class Misfit(NamedTuple):
    """Value of a misfit, and its energies by noise level."""

    value: np.ndarray  # (...)
    # (..., n_levels), energies ``E_l``: ``beta_l E_l - n_l / 2`` is the derivative of the value,
    # less the log normaliser, with respect to ``ln beta_l``; ``n_l`` are the
    # `Likelihood.noise_counts`
    errors: np.ndarray


class Likelihood:
    """Base class of likelihoods, with defaults that subclasses override."""

    compiled = None  # name of the likelihood in the compiled core, if it is there
    n_levels = 0
    classes = False  # whether targets are classes
    quadratic = False  # whether the misfit is quadratic in the outputs
    linear = True  # whether the misfit is linear in beta
    conjugate = True  # False: no output layer is integrated out or regressed, nor in the core
    one_curvature = True  # whether the curvature of steps is the exact one
    bends = False  # whether the misfit is so flat at outliers that searches pass many saddles
    variance_factor = 1.0  # variance of the noise times its precision

    def misfit(self, outputs, targets, beta):
        """`Misfit` at given outputs."""
        raise NotImplementedError

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``r`` ``(..., n, n_outputs)`` and curvature ``Lambda`` in the outputs.

        The curvature is ``(..., n, n_outputs)`` if diagonal, otherwise with one more axis. Unless
        ``exact`` it is positive, as required for Gauss-Newton steps, error bars and ``gamma``.
        """
        raise NotImplementedError

    def moments(self, outputs, targets, beta):
        """Mean and variance of targets at given outputs, ``(..., n, n_outputs)`` each."""
        raise NotImplementedError

    def misfit_and_gradient(self, outputs, targets, beta):
        """Misfit and its gradient with respect to the outputs."""
        gradient = self.derivatives(outputs, targets, beta, exact=False)[0]
        return self.misfit(outputs, targets, beta), gradient

    def compiled_targets(self, targets):
        """Convert `Targets` to those that the compiled core takes."""
        return targets

    def level_sizes(self):
        """Number of outputs of every noise level."""
        return np.zeros(0, dtype=int)

    def noise_counts(self, targets, beta):
        """Number of targets that measure each noise level, ``(..., n_levels)``."""
        return np.sum(targets.weight) * self.level_sizes()

    def log_normaliser(self, beta, n_rows):
        """Log normaliser of the density of all rows, of shape ``(...)``."""
        return np.zeros(beta.shape[:-1])

    def noise_sd(self, beta):
        """Noise standard deviation as a scale of the outputs, ``(..., n_outputs)`` or 1."""
        return 1.0

    def output_rows(self, outputs, targets, beta):
        """`Targets` of the ridge regression of the linear output layer given the hidden units.

        If the noise weights rows by their residuals, the regression is one step of expectation
        maximisation. Only ``conjugate`` likelihoods with noise levels have one.
        """
        raise NotImplementedError

    def identified(self, outputs):
        """Project outputs on the identified part, which determines the probabilities."""
        return outputs

    def n_independent(self, n_outputs):
        """Number of independent targets of a row."""
        return n_outputs


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Gaussian likelihood of ``t = f + noise`` with noise levels per output or shared by some."""

    levels: np.ndarray  # (n_outputs,), noise level of every output
    # (n_outputs,), relative precisions: output ``o`` has noise precision ``relative_o *
    # beta[levels_o]``; outputs measured in different units share a noise level in their own units
    # by this factor
    relative: np.ndarray

    compiled = "gaussian"
    quadratic = True

    @classmethod
    def per_output(cls, n_outputs):
        """Build a likelihood with one noise level for each output."""
        return cls(np.arange(n_outputs), np.ones(n_outputs))

    @cached_property
    def n_levels(self):
        """Number of noise levels."""
        return int(self.levels.max()) + 1

    def level_sizes(self):
        return np.bincount(self.levels)

    @cached_property
    def membership(self):
        """Indicator matrix of shape (n_outputs, n_levels)."""
        return (self.levels[:, None] == np.arange(self.n_levels)).astype(float)

    def precisions(self, beta):
        """Noise precision of every output, ``(..., n_outputs)``."""
        return beta[..., self.levels] * self.relative

    def noise_sd(self, beta):
        """Noise standard deviation ``tau_o^(-1/2)`` of every output, ``(..., n_outputs)``."""
        return self.precisions(beta) ** -0.5

    def misfit(self, outputs, targets, beta):
        """Misfit with ``E_l = 1/2 sum_n s_n F_n (f_n - t_n)^2`` of every level (Bishop 5.14)."""
        squares = (outputs - targets.y) ** 2
        if targets.factors is not None:
            squares = targets.factors * squares
        squares = 0.5 * (targets.weight @ squares) * self.relative
        errors = sums_by(self.membership, squares)
        return Misfit(np.sum(beta * errors, axis=-1), errors)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``r`` and (diagonal) curvature of the misfit, both ``(..., n, n_outputs)``."""
        curvature = targets.counts * self.precisions(beta)[..., None, :]
        return curvature * (outputs - targets.y), curvature

    def moments(self, outputs, targets, beta):
        variance = self.variance_factor / self.precisions(beta)[..., None, :]
        return outputs, np.broadcast_to(variance, outputs.shape)

    def log_normaliser(self, beta, n_rows):
        """Log normaliser ``N/2 log beta - N/2 log 2 pi`` (MacKay 1992, equation 3.8), ``(...)``."""
        precisions = self.precisions(beta)
        return 0.5 * n_rows * np.sum(np.log(precisions / (2.0 * np.pi)), axis=-1)

    def output_rows(self, outputs, targets, beta):
        """`Targets` of the exact ridge regression, as the noise is Gaussian."""
        return targets._replace(precision=self.precisions(beta))


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Likelihood of two classes: ``P(t = 1) = sigmoid(a)``; ``y`` is ``(n, 1)``, zeros and ones."""

    compiled = "bernoulli"
    classes = True

    def misfit(self, outputs, targets, beta):
        """Misfit ``-G = sum_n s_n [log(1 + e^a) - t a]`` (MacKay 1992, equation 5.1)."""
        rows = np.logaddexp(0.0, outputs) - targets.y * outputs
        return _without_level((targets.weight @ rows)[..., 0])

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient and (diagonal) curvature, both ``(..., n, 1)``."""
        p, weight = expit(outputs), targets.weight[:, None]
        return weight * (p - targets.y), weight * p * expit(-outputs)

    def moments(self, outputs, targets, beta):
        p = expit(outputs)
        return p, p * (1.0 - p)


@dataclass(frozen=True)
class Categorical(Likelihood):
    """Likelihood of classes: ``P(t = c) = softmax(a)_c``; ``y`` is ``(n, n_classes)``, one-hot."""

    compiled = "categorical"
    classes = True

    def misfit(self, outputs, targets, beta):
        """Misfit ``-G = sum_n s_n [logsumexp(a) - a_t]`` (Bishop 4.108)."""
        return self.misfit_and_gradient(outputs, targets, beta)[0]

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``(..., n, n_classes)``, full curvature ``diag(p) - p p^T`` (Bishop 4.110)."""
        p = np.exp(outputs - logsumexp(outputs, axis=-1, keepdims=True))
        weight = targets.weight[:, None]
        weighted = weight * p
        curvature = -weighted[..., :, None] * p[..., None, :]
        classes = np.arange(p.shape[-1])
        curvature[..., classes, classes] += weighted
        return weight * (p - targets.y), curvature

    def misfit_and_gradient(self, outputs, targets, beta):
        """Misfit and its gradient, from the same exponentials."""
        shifted = outputs - outputs.max(axis=-1, keepdims=True)
        p = np.exp(shifted)
        total = p.sum(axis=-1, keepdims=True)
        p /= total
        rows = np.log(total[..., 0]) - np.sum(targets.y * shifted, axis=-1)
        value = np.sum(rows * targets.weight, axis=-1)
        return _without_level(value), targets.weight[:, None] * (p - targets.y)

    def moments(self, outputs, targets, beta):
        p = softmax(outputs, axis=-1)
        return p, p * (1.0 - p)

    def identified(self, outputs):
        """Remove the shift common to all classes, which changes no probability."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def n_independent(self, n_outputs):
        """Number of independent targets: one less than classes, as probabilities sum to 1."""
        return n_outputs - 1


class SquaredResiduals(Likelihood):
    """Likelihood of input-dependent noise given the residuals.

    Given the precision of every residual, the network of the means has Gaussian noise with
    ``factors``, and the noise network, whose output is the log precision ``h``, has this likelihood
    with squared residuals as targets. Each has a posterior of one network.

    A residual whose square is ``q`` and which has ``gamma`` degrees of freedom left contributes
    ``1/2 (exp(h) q - gamma h)`` to the misfit, of slope ``beta E_D - gamma/2`` (MacKay 1992,
    chapter 6): minus the derivative of the evidence with respect to the log precision, where the
    slope of the likelihood would be ``beta E_D - 1/2``. Targets are ``q / gamma``, and their
    factors ``gamma``.
    """

    compiled = "squared_residuals"
    one_curvature = False

    def misfit(self, outputs, targets, beta):
        """Misfit ``1/2 sum_n s_n gamma_n (exp(h_n) q_n / gamma_n - h_n)``, shape ``(...)``."""
        rows = targets.counts * (self._ratios(outputs, targets) - outputs)
        return _without_level(0.5 * np.sum(rows, axis=(-2, -1)))

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``s (exp(h) q - gamma) / 2`` and (diagonal) curvature.

        The exact curvature is ``s exp(h) q / 2``; otherwise the curvature is its expectation at the
        true precision, ``s gamma / 2``.
        """
        ratios, counts = self._ratios(outputs, targets), 0.5 * targets.counts
        curvature = counts * ratios if exact else np.broadcast_to(counts, outputs.shape)
        return counts * (ratios - 1.0), curvature

    @staticmethod
    def _ratios(outputs, targets):
        return np.exp(np.minimum(outputs, HIGHEST)) * targets.y


def _without_level(value):
    return Misfit(value, np.zeros((*value.shape, 0)))
