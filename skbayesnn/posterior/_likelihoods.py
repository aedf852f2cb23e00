"""Noise models: how well outputs explain targets, and derivatives with respect to the outputs.

Sums over rows are taken network by network, never as one product over the leading axes, so that
their last bits do not depend on how many networks are evaluated together.

A likelihood sees outputs ``f`` ``(..., n, n_outputs)`` and `Targets`; it knows no network. Its
*misfit* is minus the log probability of the targets up to the normaliser of the noise. The
precisions ``beta`` of its *noise levels* are hyperparameters; classifiers have no level.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from skbayesnn.posterior._output_layer import Rows


class Targets(NamedTuple):
    """Targets of some rows, and how much they count.

    Attributes
    ----------
    y : ndarray of shape (n, n_outputs)
    weight : ndarray of shape (n,)
        How often every row counts.
    factors : ndarray of shape (n, n_outputs), or None
        By which the misfit of every target is multiplied: precisions given per row, relative to
        those of the noise levels. ``None``: all 1.
    variances : ndarray of shape (n, n_outputs), or None
        Of the measurement errors of every target, where these are known.
    """

    y: np.ndarray
    weight: np.ndarray
    factors: np.ndarray | None = None
    variances: np.ndarray | None = None

    @property
    def counts(self):
        """``s_n F_no``, of shape (n, 1) or (n, n_outputs)."""
        weight = self.weight[:, None]
        return weight if self.factors is None else weight * self.factors


class Misfit(NamedTuple):
    """Value of a misfit, and how it depends on the noise levels.

    Attributes
    ----------
    value : ndarray of shape (...)
    errors : ndarray of shape (..., n_levels)
        ``E_l``: ``beta_l E_l - n_l / 2`` is the derivative of the value, less the log normaliser,
        with respect to ``ln beta_l``; ``n_l`` are the `Likelihood.noise_counts`.
    """

    value: np.ndarray
    errors: np.ndarray


class Likelihood:
    """What every noise model answers. Subclasses say what is different."""

    compiled = None  # its name in the compiled core, if it is there
    n_levels = 0
    quadratic = False  # whether the misfit is, in the outputs
    linear = True  # whether the misfit is, in beta
    one_curvature = True  # whether that of steps is the exact one
    bends = False  # whether the misfit is so flat at outliers that searches pass many saddles
    variance_factor = 1.0  # variance of the noise times its precision

    def misfit(self, outputs, targets, beta):
        """`Misfit` at some outputs."""
        raise NotImplementedError

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``r`` ``(..., n, n_outputs)`` and curvature ``Lambda`` in the outputs.

        The curvature is ``(..., n, n_outputs)`` if diagonal, else with one more axis. Unless
        ``exact`` it is positive: the one that steps, error bars and ``gamma`` are made from.
        """
        raise NotImplementedError

    def misfit_and_gradient(self, outputs, targets, beta):
        """`misfit`, and the gradient of `derivatives`."""
        return self.misfit(outputs, targets, beta), self.derivatives(outputs, targets, beta)[0]

    def level_sizes(self):
        """Number of outputs of every noise level."""
        return np.zeros(0, dtype=int)

    def noise_counts(self, targets, beta):
        """By how many targets each noise level is measured, ``(..., n_levels)``: all of its own."""
        return np.sum(targets.weight) * self.level_sizes()

    def log_normaliser(self, beta, n_rows):
        """Logarithm of the density's constant, all rows together, of shape ``(...)``."""
        return np.zeros(beta.shape[:-1])

    def noise_sd(self, beta):
        """Scale on which changes of the outputs matter, ``(..., n_outputs)`` or 1."""
        return 1.0

    def output_rows(self, outputs, targets, beta):
        """`Rows` of the ridge regression that a linear output layer is, given the hidden units.

        Where the noise weighs rows by their residuals: of one step of expectation maximisation.
        Only likelihoods with noise levels have one; ``None`` where outputs cannot be told apart.
        """
        raise NotImplementedError

    def identified(self, outputs):
        """Outputs without what changes no probability."""
        return outputs

    def n_independent(self, n_outputs):
        """Targets of a row that do not follow from each other."""
        return n_outputs


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Targets ``t = f + noise`` with a Gaussian noise level per output, or shared by some.

    Parameters
    ----------
    levels : ndarray of int, shape (n_outputs,)
        The noise level of every output.
    relative : ndarray of shape (n_outputs,)
        Output ``o`` has noise precision ``relative_o * beta[levels_o]``. Outputs measured in
        different units share a noise level in their own units through this factor.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Gaussian, Targets
    >>> outputs, targets = np.array([[1.0], [2.0]]), Targets(np.array([[0.0], [4.0]]), np.ones(2))
    >>> noise, beta = Gaussian.per_output(1), np.array([2.0])
    >>> noise.misfit(outputs, targets, beta).errors
    array([2.5])
    >>> gradient, curvature = noise.derivatives(outputs, targets, beta)
    >>> gradient
    array([[ 2.],
           [-4.]])
    """

    levels: np.ndarray
    relative: np.ndarray

    compiled = "gaussian"
    quadratic = True

    @classmethod
    def per_output(cls, n_outputs):
        """One noise level for each output."""
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
        """``tau_o^(-1/2)`` of every output, ``(..., n_outputs)``."""
        return self.precisions(beta) ** -0.5

    def misfit(self, outputs, targets, beta):
        """``E_l = 1/2 sum_n s_n F_n (f_n - t_n)^2`` per level (Bishop 5.14), and their sum."""
        squares = (outputs - targets.y) ** 2
        if targets.factors is not None:
            squares = targets.factors * squares
        squares = 0.5 * (targets.weight @ squares) * self.relative
        errors = (squares[..., None, :] @ self.membership)[..., 0, :]
        return Misfit(np.sum(beta * errors, axis=-1), errors)

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient ``r`` and (diagonal) curvature of the misfit, both ``(..., n, n_outputs)``."""
        curvature = targets.counts * self.precisions(beta)[..., None, :]
        gradient = curvature * (outputs - targets.y)
        if curvature.shape != outputs.shape:
            curvature = np.broadcast_to(curvature, outputs.shape)
        return gradient, curvature

    def level_derivatives(self, outputs, targets, beta, level, exact=True):
        """Derivatives of what `derivatives` returns with respect to ``ln beta_l``."""
        alone = beta * (np.arange(self.n_levels) == level)
        return self.derivatives(outputs, targets, alone)

    def level_information(self, outputs, targets, beta):
        """Second derivatives of the misfit in ``ln beta``, ``(..., n_levels, n_levels)``."""
        energies = beta * self.misfit(outputs, targets, beta).errors
        return energies[..., None] * np.eye(self.n_levels)

    def log_normaliser(self, beta, n_rows):
        """``N/2 log beta - N/2 log 2 pi`` (MacKay 1992, equation 3.8), of shape ``(...)``."""
        precisions = self.precisions(beta)
        return 0.5 * n_rows * np.sum(np.log(precisions / (2.0 * np.pi)), axis=-1)

    def output_rows(self, outputs, targets, beta):
        """As the noise is Gaussian, exactly."""
        return Rows(targets.y, targets.weight, self.precisions(beta), targets.factors)


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Two classes: ``P(t = 1) = sigmoid(a)``; ``y`` is ``(n, 1)`` of zeros and ones."""

    compiled = "bernoulli"

    def misfit(self, outputs, targets, beta):
        """``-G = sum_n s_n [log(1 + e^a) - t a]`` (MacKay 1992, equation 5.1)."""
        return self.misfit_and_gradient(outputs, targets, beta)[0]

    def derivatives(self, outputs, targets, beta, exact=True):
        """Gradient and (diagonal) curvature, both ``(..., n, 1)``."""
        p, weight = expit(outputs), targets.weight[:, None]
        return weight * (p - targets.y), weight * p * expit(-outputs)

    def misfit_and_gradient(self, outputs, targets, beta):
        """`misfit`, and its gradient from the same exponentials."""
        small = np.exp(-np.abs(outputs))
        likely = 1.0 / (1.0 + small)  # sigmoid(|a|)
        rows = np.maximum(outputs, 0.0) - np.log(likely) - targets.y * outputs
        p = np.where(outputs > 0, likely, small * likely)
        value = (targets.weight @ rows)[..., 0]
        return _without_level(value), targets.weight[:, None] * (p - targets.y)


@dataclass(frozen=True)
class Categorical(Likelihood):
    """Several classes: ``P(t = c) = softmax(a)_c``; ``y`` is ``(n, n_classes)``, one-hot."""

    compiled = "categorical"

    def misfit(self, outputs, targets, beta):
        """``-G = sum_n s_n [logsumexp(a) - a_t]`` (Bishop 4.108)."""
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
        """`misfit`, and its gradient from the same exponentials."""
        shifted = outputs - outputs.max(axis=-1, keepdims=True)
        p = np.exp(shifted)
        total = p.sum(axis=-1, keepdims=True)
        p /= total
        rows = np.log(total[..., 0]) - np.sum(targets.y * shifted, axis=-1)
        value = np.sum(rows * targets.weight, axis=-1)
        return _without_level(value), targets.weight[:, None] * (p - targets.y)

    def identified(self, outputs):
        """A shift that all classes share changes no probability."""
        return outputs - outputs.mean(axis=-1, keepdims=True)

    def n_independent(self, n_outputs):
        """Probabilities sum to 1."""
        return n_outputs - 1


def _without_level(value):
    """`Misfit` of a likelihood without noise levels."""
    return Misfit(value, np.zeros((*value.shape, 0)))
