"""Input-dependent noise: a network of the means and a network of the log noise precision.

Given the precision of every residual, the network of the means has ordinary Gaussian noise.
The slope of its evidence with respect to the log precision of a residual is ``gamma_m / 2 - beta_m
E_Dm`` with ``gamma_m = 1 - beta_m g_m^T A^-1 g_m`` (MacKay 1992, chapter 6). The slope of the
likelihood, by contrast, would drive the precision to infinity where a point is fitted exactly.
Given ``gamma_m`` and the residuals, this slope is that of a misfit of the noise network alone. The
two networks are therefore trained, re-estimated, pruned and evaluated in turns, each like any other
network.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.posterior import (
    INTERCEPT,
    Hyperparameters,
    LogUniform,
    Posterior,
    SquaredResiduals,
    WeightGroups,
    weight_groups,
)

LEVEL = "level"  # the prior group of the output biases
LEAST_GAMMA = 1e-6


class NoisePlan(NamedTuple):
    """Noise network to train."""

    network: Network  # network from the inputs to the log precision of every output
    groups: WeightGroups  # weight groups, with the output biases in a group of their own, `LEVEL`

    @classmethod
    def build(cls, mean_network, hidden_layer_sizes, prior, feature_names=None):
        """Build a noise network for a network of the means, with weight groups of the same kind."""
        ends = mean_network.layer_sizes[0], mean_network.n_outputs
        network = Network((ends[0], *hidden_layer_sizes, ends[1]), mean_network.activation)
        if isinstance(prior, str):  # the output biases form a group of their own in any case
            prior = prior.removesuffix(INTERCEPT)
        groups = weight_groups(network, prior, feature_names)
        labels = groups.labels.copy()
        labels[network.n_weights - network.n_outputs :] = len(groups.names)
        return cls(network, WeightGroups(labels, [*groups.names, LEVEL]))

    def settings(self, settings):
        """Settings of the search for minima of the noise network.

        The flat prior of a noise level is replaced by a Gaussian of the same density at its centre.
        It is so wide that it hardly affects the output biases.
        """
        free = np.arange(len(self.groups.names)) < len(self.groups.names) - 1
        width = 2.0 * np.pi * np.exp(-2.0 * np.mean(settings.free.beta_prior.log_width))
        fixed = Hyperparameters(np.where(free, 1.0, width), np.ones(0))
        free = FreeHyperparameters.sharing(free, np.zeros(0, dtype=bool), LogUniform())
        return settings._replace(free=free, fixed=fixed)


def rounding_variance(y):
    """Variance ``d^2 / 12`` of rounding, ``d`` being the smallest gap between values of a target.

    Rounded targets ``(n, n_outputs)``, such as integers, can be fitted exactly at some rows by
    chance. The noise there is no smaller than the rounding error. The variances ``(n_outputs,)``
    are zero where no value occurs twice.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference.noise._noise_network import rounding_variance
    >>> rounding_variance(np.array([[1.0], [3.0], [4.0], [3.0]])).round(3)
    array([0.083])
    """
    gaps = [np.diff(np.sort(column)) for column in y.T]
    steps = [np.min(gap[gap > 0]) if np.any(gap > 0) and not gap.all() else 0.0 for gap in gaps]
    return np.square(steps) / 12.0


def with_rows(posterior, log_precision):
    """Posterior of the means given log precisions of all residuals, and the mean ``ln beta``."""
    level = posterior.sample_weight @ log_precision / posterior.n_rows
    return replace(posterior, factors=np.exp(log_precision - level)), level


def residuals_and_gamma(posterior, theta, hyper, precision):
    """Residuals of the means, and the remaining degrees of freedom of each.

    Both have shape (n, n_outputs), with ``gamma_m = 1 - beta_m g_m^T A^-1 g_m`` (MacKay 1992,
    chapter 6). The noise is Gaussian, and ``precision`` that of the weights.
    """
    parts, n_outputs = [], posterior.network.n_outputs
    for rows in row_blocks(len(posterior.X), n_outputs * posterior.network.n_weights):
        trace = forward(posterior.network, theta, posterior.X[rows], order=1)
        targets = posterior.targets(rows)._replace(weight=np.ones(len(trace.outputs)))
        _, beta = posterior.likelihood.derivatives(trace.outputs, targets, hyper.beta)
        variance = np.diagonal(precision.project(jacobian(trace)), axis1=1, axis2=2)
        parts.append((trace.outputs - targets.y, 1.0 - beta * variance))
    return tuple(np.concatenate(some) for some in zip(*parts, strict=True))


def squared_residuals(posterior, theta, hyper, settings):
    """Targets of the noise network and their factors, see `SquaredResiduals`.

    Both have shape (n, n_outputs). The posterior is that of the means, see `with_rows`.
    """
    precision = Method.choose(posterior, settings).point(posterior, theta, hyper).precision
    if precision.definite:
        residuals, gamma = residuals_and_gamma(posterior, theta, hyper, precision)
    else:  # numerically singular
        residuals = outputs(posterior.network, theta, posterior.X) - posterior.y
        gamma = np.ones_like(residuals)
    gamma = np.clip(gamma, LEAST_GAMMA, 1.0)
    floor = np.exp(-settings.free.beta_prior.high)  # keeps the targets positive for noise-free data
    return residuals**2 / gamma + floor, gamma


def expected_noise_posterior(posterior, network, groups):
    """Posterior of a noise network whose squared residuals are all 1, their expectation at level 1.

    These placeholder targets are replaced by squared residuals later, or only the curvature is
    used.
    """
    y = np.ones((len(posterior.X), network.n_outputs))
    return Posterior(network, SquaredResiduals(), groups, posterior.X, y, posterior.sample_weight)


def noise_posterior(posterior, minimum, settings):
    """Posterior of the noise network of a minimum, given the residuals of its means (`Pair.round`).

    The given posterior is that of the means, see `gaussian_around`.
    """
    noise = minimum.noise
    with Method.choose(posterior, settings).threads():
        y, factors = squared_residuals(posterior, minimum.theta, minimum.hyper, settings)
    expected = expected_noise_posterior(posterior, noise.network, noise.groups)
    return replace(expected, y=y, factors=factors)
