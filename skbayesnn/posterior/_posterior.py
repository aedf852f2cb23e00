"""Energy ``M(w)``: minus the log posterior of the weights, with its derivatives."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skbayesnn.network import (
    Network,
    forward,
    hessian,
    hessian_width,
    jacobian,
    kronecker_factors,
    row_blocks,
    vector_jacobian,
)
from skbayesnn.posterior.kernels._compiled import compiled_model
from skbayesnn.posterior.likelihoods._likelihoods import Likelihood, Misfit
from skbayesnn.posterior.likelihoods._output_layer import (
    Targets,
    regression_system,
    ridge,
    symmetric_root,
)
from skbayesnn.posterior.priors._weight_groups import WeightGroups


class Hyperparameters(NamedTuple):
    """Precisions of weight groups, ``(..., n_groups)``, and of the noise, ``(..., n_levels)``.

    Classifiers have no noise level: their ``beta`` is empty.
    """

    alpha: np.ndarray
    beta: np.ndarray


class Energies(NamedTuple):
    """Terms of the energy ``M(w)`` at given noise precisions."""

    weights: np.ndarray  # (..., n_groups), energy ``E_W^c`` of every weight group
    # (...), misfit: ``sum_l beta_l E_D,l`` for Gaussian noise, ``-G`` for classes
    misfit: np.ndarray
    errors: np.ndarray  # (..., n_levels), energy ``E_D`` of every noise level, see `Misfit`

    def total(self, hyper):
        """Total ``M = sum_c alpha_c E_W^c + sum_l beta_l E_D,l`` (MacKay 1992, equation 3.3)."""
        return (hyper.alpha * self.weights).sum(axis=-1) + self.misfit


MAX_INPUTS = 128  # of matrices in the compiled core, which forms products of all pairs of inputs


@dataclass(frozen=True)
class Posterior:
    """Posterior of the weights as a function of the hyperparameters.

    Every method takes weights ``theta`` of shape ``(..., k)`` and hyperparameters with the same
    leading axes, and sums over rows in blocks of bounded size. Time-critical methods call the
    compiled core where it supports the model.
    """

    network: Network
    likelihood: Likelihood
    groups: WeightGroups
    X: np.ndarray  # (n, n_features)
    y: np.ndarray  # (n, n_outputs)
    sample_weight: np.ndarray  # (n,), number of repetitions of every row
    # (n, n_outputs), factors of the misfit of every target, see `Targets`
    factors: np.ndarray | None = None
    # (n, n_outputs), further number that belongs to every target, see `Targets`
    known: np.ndarray | None = None

    @cached_property
    def compiled(self):
        """Compiled twin of the time-critical methods, or ``None``."""
        return compiled_model(self)

    @property
    def is_compiled(self):
        """True if matrices are made in the compiled core, faster than by matrix products."""
        narrow = self.network.layer_sizes[0] <= MAX_INPUTS
        return bool(narrow and self.compiled and self.compiled.is_small)

    def __getstate__(self):
        """State without derived arrays."""
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    @property
    def n_rows(self):
        """Number of rows as the sum of their weights."""
        return float(np.sum(self.sample_weight))

    @property
    def level_counts(self):
        """Number of targets of every noise level, ``(n_levels,)``."""
        return self.n_rows * self.likelihood.level_sizes()

    def with_network(self, network, labels):
        """Posterior of the same data for another network, with group labels of its weights."""
        return replace(self, network=network, groups=self.groups.relabelled(labels))

    def noise_counts(self, beta):
        """Number of targets that measure each noise level, ``(..., n_levels)``."""
        return self.likelihood.noise_counts(self.targets(), beta)

    def of_rows(self, rows):
        """Posterior of a subset of the rows."""
        y, weight, factors, known, _ = self.targets(rows)
        return replace(
            self, X=self.X[rows], y=y, sample_weight=weight, factors=factors, known=known
        )

    def scaled(self, factor):
        """Posterior with the weights of the rows multiplied by ``factor``."""
        return replace(self, sample_weight=factor * self.sample_weight)

    def targets(self, rows=slice(None)):
        """`Targets` of some rows."""
        factors = None if self.factors is None else self.factors[rows]
        known = None if self.known is None else self.known[rows]
        return Targets(self.y[rows], self.sample_weight[rows], factors, known)

    def energies(self, theta, beta):
        """`Energies` of weights ``(..., k)`` at noise precisions ``(..., n_levels)``."""
        if self.compiled:
            value, errors, *_ = self.compiled.evaluate(theta, beta, 0)
            return Energies(self.groups.energies(theta), value, errors)
        total = None
        for targets, trace in self._traces(theta, 0, max(self.network.layer_sizes)):
            total = _plus(total, self.likelihood.misfit(trace.outputs, targets, beta))
        return Energies(self.groups.energies(theta), *total)

    def energies_and_gradient(self, theta, hyper):
        """`energies` and `gradient` from one pass through the network, without any curvature."""
        misfit, gradient = self.misfit_and_gradient(theta, hyper.beta)
        gradient = self.groups.pull(theta, hyper.alpha) + gradient
        return Energies(self.groups.energies(theta), *misfit), gradient

    def misfit_and_gradient(self, theta, beta):
        """Misfit, and its gradient with respect to the weights, ``(..., k)``."""
        if self.compiled:
            value, errors, gradient, _ = self.compiled.evaluate(theta, beta, 1)
            return Misfit(value, errors), gradient
        total, gradient = None, 0.0
        for targets, trace in self._traces(theta, 1, max(self.network.layer_sizes)):
            misfit, residual = self.likelihood.misfit_and_gradient(trace.outputs, targets, beta)
            total = _plus(total, misfit)
            gradient = gradient + vector_jacobian(trace, residual)
        return total, gradient

    def hessian(self, theta, hyper, exact=True):
        """Hessian ``A = grad grad M``, ``(..., k, k)``; Gauss-Newton unless ``exact``."""
        return self.expansion(theta, hyper, exact)[2]

    def expansion(self, theta, hyper, exact=False):
        """`Energies`, gradient and `hessian` of ``M(w)`` from one pass through the network."""
        misfit, gradient, matrix = self.data_expansion(theta, hyper.beta, exact)
        self.groups.add_to(matrix, hyper.alpha)
        gradient = self.groups.pull(theta, hyper.alpha) + gradient
        return Energies(self.groups.energies(theta), *misfit), gradient, matrix

    def traces(self, ends, hyper, matrix, exact=True):
        """Traces ``Tr(B A)`` with ``A`` at several weights ``(m, k)``, and a symmetric ``B``."""
        if self.is_compiled and self.groups.centred:
            hessians = self.compiled.evaluate(ends, hyper.beta, 2, exact)[-1]
            prior = self.groups.expand(hyper.alpha) @ matrix.diagonal()
            return np.tensordot(hessians, matrix) + prior
        # one at a time: the curvature of a large network fills the memory
        return np.array([np.sum(self.hessian(end, hyper, exact) * matrix) for end in ends])

    def data_expansion(self, theta, beta, exact):
        """`Misfit`, its gradient and its Hessian."""
        if self.is_compiled:
            value, errors, gradient, matrix = self.compiled.evaluate(theta, beta, 2, exact)
            return Misfit(value, errors), gradient, matrix
        total, gradient, width = None, 0.0, hessian_width(self.network, exact)

        def blocks():
            nonlocal total, gradient
            for targets, trace in self._traces(theta, 1 + exact, width):
                total = _plus(total, self.likelihood.misfit(trace.outputs, targets, beta))
                residual, curvature = self.likelihood.derivatives(
                    trace.outputs, targets, beta, exact
                )
                gradient = gradient + vector_jacobian(trace, residual)
                yield trace, residual, curvature

        matrix = hessian(blocks(), exact)
        return total, gradient, matrix

    @property
    def is_quadratic(self):
        """True if ``M`` is quadratic in the weights, so that the posterior is Gaussian."""
        return self.likelihood.quadratic and not self.network.hidden_layer_sizes

    def with_best_outputs(self, theta, hyper):
        """Replace the linear output layer by its conditional optimum if that has a closed form.

        Given the hidden weights and Gaussian noise the output layer is a ridge regression: variable
        projection (Golub & Pereyra 1973). Otherwise, and under a prior that is not centred at zero,
        ``theta`` is returned unchanged. Shape ``(..., k)``.
        """
        network, likelihood, gram, moment = self.network, self.likelihood, 0.0, 0.0
        linear = network.hidden_layer_sizes and likelihood.n_levels and likelihood.conjugate
        if not (linear and self.groups.centred):
            return theta
        alpha = self.groups.expand(hyper.alpha)
        if self.is_compiled:
            return self.compiled.best_outputs(theta, alpha, hyper.beta)
        sd = np.swapaxes(network.layers(alpha)[-1], -1, -2) ** -0.5
        for targets, trace in self._traces(theta, 0, max(network.layer_sizes)):
            rows = likelihood.output_rows(trace.outputs, targets, hyper.beta)
            found = regression_system(rows, trace.inputs[-1], sd)
            gram, moment = gram + found[0], moment + found[1]
        best = np.swapaxes(sd * ridge(gram, moment, len(self.X))[0], -1, -2)
        result = theta.copy()
        result[..., network.slices[-1]] = best.reshape(*best.shape[:-2], -1)
        return result

    def weighted_jacobians(self, theta, hyper):
        """Blocks of rows of ``S`` with ``S^T S`` the Gauss-Newton data Hessian, ``(..., m, k)``.

        The rows of all blocks are ``n * n_outputs``.
        """
        width = self.network.n_weights
        for trace, curvature in self._blocks(theta, hyper.beta, 1, width):
            if curvature.ndim == trace.outputs.ndim:
                root = np.sqrt(curvature)[..., None] * np.eye(curvature.shape[-1])
            else:
                root = symmetric_root(curvature)
            J = root @ jacobian(trace)
            yield J.reshape(*J.shape[:-3], -1, J.shape[-1])

    def kronecker_factors(self, theta, hyper):
        """Kronecker factors of the Gauss-Newton matrix of every layer, the prior included.

        See `KroneckerPrecision`. If weights from one input have several precisions, their mean is
        used.
        """
        total, width = None, max(self.network.layer_sizes[1:]) * self.network.n_outputs
        for targets, trace in self._traces(theta, 1, width):
            curvature = self.likelihood.derivatives(trace.outputs, targets, hyper.beta, False)[1]
            found = kronecker_factors(trace, curvature, targets.weight)
            if total is not None:
                found = [(F + f, G + g) for (F, G), (f, g) in zip(total, found, strict=True)]
            total = found
        prior = self.network.layers(self.groups.diagonal(hyper.alpha))
        return [
            (alpha.mean(axis=1), F / self.n_rows, G)
            for alpha, (F, G) in zip(prior, total, strict=True)
        ]

    def _traces(self, theta, order, doubles_per_row):
        for rows in row_blocks(len(self.X), doubles_per_row):
            yield self.targets(rows), forward(self.network, theta, self.X[rows], order)

    def _blocks(self, theta, beta, order, doubles_per_row):
        """Iterate over traces with the positive curvature of the misfit, block by block."""
        width = max(doubles_per_row, self.network.n_outputs**2)
        for targets, trace in self._traces(theta, order, width):
            yield trace, self.likelihood.derivatives(trace.outputs, targets, beta, exact=False)[1]


def _plus(total, part):
    """Sum tuples of arrays field by field; ``None`` stands for an empty total."""
    return part if total is None else type(part)(*(a + b for a, b in zip(total, part, strict=True)))
