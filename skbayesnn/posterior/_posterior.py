"""The energy ``M(w)``: minus the log posterior of the weights, with its derivatives."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skbayesnn.network import (
    Network,
    forward,
    hessian,
    hessian_product,
    hessian_width,
    jacobian,
    row_blocks,
    second_derivative_along,
    vector_jacobian,
)
from skbayesnn.posterior._priors import WeightGroups


class Hyperparameters(NamedTuple):
    """Precisions of weight groups, ``(..., n_groups)``, and of the noise, ``(..., n_levels)``."""

    alpha: np.ndarray
    beta: np.ndarray

    def select(self, index):
        """The hyperparameters of some of many networks (the leading axis)."""
        return Hyperparameters(self.alpha[index], self.beta[index])

    def repeated(self, times):
        """The same for several networks: a new leading axis."""
        return Hyperparameters(np.tile(self.alpha, (times, 1)), np.tile(self.beta, (times, 1)))


class Energies(NamedTuple):
    """``E_W^c`` of every weight group, ``(..., n_groups)``, and ``E_D`` of every noise level."""

    weights: np.ndarray
    data: np.ndarray

    def total(self, hyper):
        """``M = sum_c alpha_c E_W^c + sum_l beta_l E_D,l`` (MacKay 1992, equation 3.5)."""
        return np.sum(hyper.alpha * self.weights, -1) + np.sum(hyper.beta * self.data, -1)


@dataclass(frozen=True)
class Posterior:
    """Everything the posterior of the weights depends on but the hyperparameters.

    Every method takes weights ``theta`` of shape ``(..., k)`` and hyperparameters with the same
    leading axes, and sums over rows in blocks of bounded size.

    Parameters
    ----------
    network : Network
    likelihood : Gaussian, Bernoulli or Categorical
    groups : WeightGroups
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n, n_outputs)
    sample_weight : ndarray of shape (n,)
        How often every row counts.
    """

    network: Network
    likelihood: object
    groups: WeightGroups
    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray

    @property
    def n_rows(self):
        """Number of rows, counted with their weights."""
        return float(np.sum(self.sample_weight))

    def with_network(self, network, labels):
        """The same data for a network of another layout, with its weights' group labels."""
        return replace(self, network=network, groups=WeightGroups(labels, self.groups.names))

    def energies(self, theta):
        """Energies of the weights and of the data, by group and level."""
        data = 0.0
        for rows in row_blocks(len(self.X), max(self.network.layer_sizes)):
            f = forward(self.network, theta, self.X[rows]).outputs
            data = data + self.likelihood.errors(f, self.y[rows], self.sample_weight[rows])
        return Energies(0.5 * self.groups.sums(theta**2), data)

    def misfit(self, theta, beta):
        """``E_D`` of every noise level, and the gradient of ``sum_l beta_l E_D,l``.

        Returns
        -------
        errors : ndarray of shape (..., n_levels)
        gradient : ndarray of shape (..., k)
        """
        errors, gradient = 0.0, 0.0
        for rows in row_blocks(len(self.X), max(self.network.layer_sizes)):
            trace = forward(self.network, theta, self.X[rows], 1)
            some_errors, residual = self.likelihood.errors_and_gradient(
                trace.outputs, self.y[rows], self.sample_weight[rows], beta
            )
            errors = errors + some_errors
            gradient = gradient + vector_jacobian(trace, residual)
        return errors, gradient

    def gradient(self, theta, hyper):
        """``dM/dw`` of shape ``(..., k)``."""
        return self.energies_and_gradient(theta, hyper)[1]

    def energies_and_gradient(self, theta, hyper):
        """`energies` and `gradient` from one pass through the network, without any curvature."""
        errors, gradient = self.misfit(theta, hyper.beta)
        energies = Energies(0.5 * self.groups.sums(theta**2), errors)
        return energies, self.groups.expand(hyper.alpha) * theta + gradient

    def hessian(self, theta, hyper, exact=True):
        """``A = grad grad M`` of shape ``(..., k, k)``; Gauss-Newton unless ``exact``."""
        return self.gradient_and_hessian(theta, hyper, exact)[1]

    def data_hessian(self, theta, beta, exact=True):
        """Hessian of ``sum_l beta_l E_D,l``; a unit vector ``beta`` gives that of one level."""
        return hessian(self._blocks(theta, beta, 1 + exact, hessian_width(self.network)), exact)

    def gradient_and_hessian(self, theta, hyper, exact=False):
        """`gradient` and `hessian` from one pass through the network."""
        alpha = self.groups.expand(hyper.alpha)
        gradient = alpha * theta

        def blocks():
            nonlocal gradient
            width = hessian_width(self.network)
            for block in self._blocks(theta, hyper.beta, 1 + exact, width):
                gradient = gradient + vector_jacobian(*block[:2])
                yield block

        matrix = hessian(blocks(), exact)
        diagonal = np.arange(self.network.n_weights)
        matrix[..., diagonal, diagonal] += alpha
        return gradient, matrix

    def hessian_product(self, theta, hyper, vector, exact=True):
        """``A v`` without forming ``A``; ``vector`` is ``(..., k)``."""
        result = self.groups.expand(hyper.alpha) * vector
        width = max(self.network.layer_sizes)
        for trace, residual, curvature in self._blocks(theta, hyper.beta, 2, width):
            result = result + hessian_product(trace, vector, residual, curvature, exact)
        return result

    def with_best_outputs(self, theta, hyper):
        """Replace the linear output layer by its conditional optimum, where that has a closed form.

        Given the hidden weights, Gaussian noise makes the output layer a ridge regression: variable
        projection (Golub & Pereyra 1973). Other likelihoods return ``theta`` as it is. ``(...,
        k)``.
        """
        network = self.network
        if not (self.likelihood.has_noise and network.hidden_layer_sizes):
            return theta
        gram, moment = 0.0, 0.0
        for rows in row_blocks(len(self.X), max(network.layer_sizes)):
            z = forward(network, theta, self.X[rows]).inputs[-1]
            weighted = np.swapaxes(z * self.sample_weight[rows, None], -1, -2)
            gram, moment = gram + weighted @ z, moment + weighted @ self.y[rows]
        precisions = self.likelihood.precisions(hyper.beta)[..., None, None]  # (..., o, 1, 1)
        alpha = network.layers(self.groups.expand(hyper.alpha))[-1]
        system = precisions * gram[..., None, :, :]
        units = np.arange(gram.shape[-1])
        system[..., units, units] += np.swapaxes(alpha, -1, -2)
        moment = precisions * np.swapaxes(moment, -1, -2)[..., None]
        best = np.swapaxes(np.linalg.solve(system, moment)[..., 0], -1, -2)
        result = theta.copy()
        result[..., network.slices[-1]] = best.reshape(*best.shape[:-2], -1)
        return result

    def bending_force(self, theta, hyper, step):
        """``sum_n J_n^T Lambda_n d2f_n``, with the outputs' second derivatives along ``step``.

        What geodesic acceleration needs (Transtrum & Sethna 2012). Shape ``(..., k)``.
        """
        result = np.zeros_like(theta)
        for trace, _, curvature in self._blocks(
            theta, hyper.beta, 2, max(self.network.layer_sizes)
        ):
            bend = second_derivative_along(trace, step)
            if curvature.ndim == bend.ndim:
                force = curvature * bend
            else:
                force = (curvature @ bend[..., None])[..., 0]
            result = result + vector_jacobian(trace, force)
        return result

    def weighted_jacobian(self, theta, hyper):
        """Matrix ``S`` with ``S^T S`` the Gauss-Newton data Hessian, for the dual form.

        Returns
        -------
        ndarray of shape (..., n * n_outputs, k)
            Memory for all rows at once: meant for fewer rows than weights.
        """
        parts = []
        for trace, _, curvature in self._blocks(theta, hyper.beta, 1, self.network.n_weights):
            J = jacobian(trace)
            if curvature.ndim == trace.outputs.ndim:
                J = np.sqrt(curvature)[..., None] * J
            else:
                J = _symmetric_root(curvature) @ J
            parts.append(J.reshape(*J.shape[:-3], -1, J.shape[-1]))
        return np.concatenate(parts, axis=-2)

    def _blocks(self, theta, beta, order, doubles_per_row):
        """Traces with residual and curvature of the misfit, block by block."""
        for rows in row_blocks(len(self.X), doubles_per_row):
            trace = forward(self.network, theta, self.X[rows], order)
            yield (
                trace,
                *self.likelihood.derivatives(
                    trace.outputs, self.y[rows], self.sample_weight[rows], beta
                ),
            )


def _symmetric_root(matrices):
    """Square roots of positive semi-definite matrices ``(..., p, p)``."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
