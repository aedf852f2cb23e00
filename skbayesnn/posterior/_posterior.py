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
    kronecker_factors,
    row_blocks,
    second_derivative_along,
    vector_jacobian,
)
from skbayesnn.posterior._priors import WeightGroups


class Hyperparameters(NamedTuple):
    """Precisions of weight groups, ``(..., n_groups)``, and of the noise, ``(..., n_levels)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Hyperparameters
    >>> hyper = Hyperparameters(alpha=np.array([1.0, 0.1]), beta=np.array([25.0]))
    >>> hyper.repeated(3).alpha.shape  # for three networks
    (3, 2)
    """

    alpha: np.ndarray
    beta: np.ndarray

    def select(self, index):
        """The hyperparameters of some of many networks (the leading axis)."""
        return Hyperparameters(self.alpha[index], self.beta[index])

    def repeated(self, times):
        """The same for several networks: a new leading axis."""
        return Hyperparameters(np.tile(self.alpha, (times, 1)), np.tile(self.beta, (times, 1)))


class Energies(NamedTuple):
    """``E_W^c`` of every weight group, ``(..., n_groups)``, and ``E_D`` of every noise level.

    ``excess`` is what the misfit has beyond ``sum_l beta_l E_D,l``: zero unless it depends on
    ``beta`` in another way, and then all belongs to the ``beta`` at which it was evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.posterior import Energies, Hyperparameters
    >>> energies = Energies(weights=np.array([2.0]), data=np.array([0.5]))
    >>> print(energies.total(Hyperparameters(alpha=np.array([0.1]), beta=np.array([4.0]))))
    2.2
    """

    weights: np.ndarray
    data: np.ndarray
    excess: np.ndarray = 0.0

    def total(self, hyper):
        """``M = sum_c alpha_c E_W^c + sum_l beta_l E_D,l`` (MacKay 1992, equation 3.5)."""
        terms = np.sum(hyper.alpha * self.weights, -1) + np.sum(hyper.beta * self.data, -1)
        return terms + self.excess

    def select(self, index):
        """The energies of some of many networks (the leading axis)."""
        excess = self.excess[index] if np.ndim(self.excess) else self.excess
        return Energies(self.weights[index], self.data[index], excess)


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

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, Posterior, weight_groups
    >>> network = Network((1, 1))
    >>> X, y = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(2))
    >>> hyper = Hyperparameters(alpha=np.array([0.1]), beta=np.array([4.0]))
    >>> posterior.gradient(np.array([2.0, 1.0]), hyper)  # the line passes through both points
    array([0.2, 0.1])
    >>> posterior.hessian(np.array([2.0, 1.0]), hyper)
    array([[4.1, 4. ],
           [4. , 8.1]])
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

    def energies(self, theta, beta=None):
        """Energies of the weights and of the data, by group and level.

        Only a misfit that is not linear in ``beta`` asks for it.
        """
        data, excess = 0.0, 0.0
        for rows in row_blocks(len(self.X), max(self.network.layer_sizes)):
            f = forward(self.network, theta, self.X[rows]).outputs
            given = (f, self.y[rows], self.sample_weight[rows], beta)
            data = data + self.likelihood.errors(*given)
            excess = excess + self.likelihood.excess(*given)
        return Energies(0.5 * self.groups.sums(theta**2), data, excess)

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
        if not self.likelihood.linear:
            energies = self.energies(theta, hyper.beta)
        return energies, self.groups.expand(hyper.alpha) * theta + gradient

    def hessian(self, theta, hyper, exact=True):
        """``A = grad grad M`` of shape ``(..., k, k)``; Gauss-Newton unless ``exact``."""
        return self.gradient_and_hessian(theta, hyper, exact)[1]

    def data_hessian(self, theta, beta, exact=True):
        """Hessian of the misfit."""
        width = hessian_width(self.network)
        return hessian(self._blocks(theta, beta, exact, 1 + exact, width), exact)

    def level_information(self, theta, beta, level):
        """Gauss-Newton Hessian of the misfit, of the outputs of one noise level alone."""
        mine = self.likelihood.levels == level
        blocks = self._blocks(theta, beta, False, 1, hessian_width(self.network))
        return hessian(((trace, r, curvature * mine) for trace, r, curvature in blocks), False)

    def level_derivatives(self, theta, beta, level, exact=True):
        """Derivatives of the misfit's gradient and Hessian with respect to one ``ln beta``.

        Returns
        -------
        gradient : ndarray of shape (k,)
        hessian : ndarray of shape (k, k)
        """
        gradient = np.zeros_like(theta)

        def blocks():
            nonlocal gradient
            for rows in row_blocks(len(self.X), hessian_width(self.network)):
                trace = forward(self.network, theta, self.X[rows], 1 + exact)
                block = self.likelihood.level_derivatives(
                    trace.outputs, self.y[rows], self.sample_weight[rows], beta, level, exact
                )
                gradient = gradient + vector_jacobian(trace, block[0])
                yield (trace, *block)

        matrix = hessian(blocks(), exact)
        return gradient, matrix

    def noise_information(self, theta, beta):
        """Second derivatives of the misfit in ``ln beta``, ``(n_levels, n_levels)``."""
        total = 0.0
        for rows in row_blocks(len(self.X), max(self.network.layer_sizes)):
            f = forward(self.network, theta, self.X[rows]).outputs
            total = total + self.likelihood.noise_information(
                f, self.y[rows], self.sample_weight[rows], beta
            )
        return total

    def gradient_and_hessian(self, theta, hyper, exact=False):
        """`gradient` and `hessian` from one pass through the network."""
        alpha = self.groups.expand(hyper.alpha)
        gradient = alpha * theta

        def blocks():
            nonlocal gradient
            width = hessian_width(self.network)
            for block in self._blocks(theta, hyper.beta, exact, 1 + exact, width):
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
        for trace, residual, curvature in self._blocks(theta, hyper.beta, exact, 2, width):
            result = result + hessian_product(trace, vector, residual, curvature, exact)
        return result

    def with_best_outputs(self, theta, hyper):
        """Replace the linear output layer by its conditional optimum, where that has a closed form.

        Given the hidden weights, Gaussian noise makes the output layer a ridge regression: variable
        projection (Golub & Pereyra 1973). Where noise weighs rows by their residuals the regression
        keeps the present weights, one step of expectation maximisation. Classifiers return
        ``theta`` as it is. ``(..., k)``.
        """
        network = self.network
        if not (self.likelihood.has_noise and network.hidden_layer_sizes):
            return theta
        system, moment = self._output_regression(theta, hyper)
        alpha = network.layers(self.groups.expand(hyper.alpha))[-1]
        units = np.arange(system.shape[-1])
        system[..., units, units] += np.swapaxes(alpha, -1, -2)
        best = np.swapaxes(np.linalg.solve(system, moment)[..., 0], -1, -2)
        result = theta.copy()
        result[..., network.slices[-1]] = best.reshape(*best.shape[:-2], -1)
        return result

    def _output_regression(self, theta, hyper):
        """``Z^T W Z`` and ``Z^T W t`` of every output: ``(..., n_outputs, width, width or 1)``."""
        network, gram, moment = self.network, 0.0, 0.0
        if not self.likelihood.equal_rows:
            for trace, r, W in self._blocks(theta, hyper.beta, False, 0, max(network.layer_sizes)):
                z, W = trace.inputs[-1], np.swapaxes(W, -1, -2)
                weighted = np.swapaxes(z, -1, -2)[..., None, :, :] * W[..., None, :]
                target = np.swapaxes(trace.outputs, -1, -2)[..., None] * W[..., None]
                target = target - np.swapaxes(r, -1, -2)[..., None]  # W t = W f - r
                gram = gram + weighted @ z[..., None, :, :]
                moment = moment + np.swapaxes(z, -1, -2)[..., None, :, :] @ target
            return gram, moment
        for rows in row_blocks(len(self.X), max(network.layer_sizes)):
            z = forward(network, theta, self.X[rows]).inputs[-1]
            weighted = np.swapaxes(z * self.sample_weight[rows, None], -1, -2)
            gram, moment = gram + weighted @ z, moment + weighted @ self.y[rows]
        precisions = self.likelihood.precisions(hyper.beta)[..., None, None]  # (..., o, 1, 1)
        moment = precisions * np.swapaxes(moment, -1, -2)[..., None]
        return precisions * gram[..., None, :, :], moment

    def bending_force(self, theta, hyper, step):
        """``sum_n J_n^T Lambda_n d2f_n``, with the outputs' second derivatives along ``step``.

        What geodesic acceleration needs (Transtrum & Sethna 2012). Shape ``(..., k)``.
        """
        result = np.zeros_like(theta)
        width = max(self.network.layer_sizes)
        for trace, _, curvature in self._blocks(theta, hyper.beta, False, 2, width):
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
        for trace, _, curvature in self._blocks(
            theta, hyper.beta, False, 1, self.network.n_weights
        ):
            J = jacobian(trace)
            if curvature.ndim == trace.outputs.ndim:
                J = np.sqrt(curvature)[..., None] * J
            else:
                J = _symmetric_root(curvature) @ J
            parts.append(J.reshape(*J.shape[:-3], -1, J.shape[-1]))
        return np.concatenate(parts, axis=-2)

    def kronecker_factors(self, theta, hyper):
        """Factors of every layer's Gauss-Newton matrix of one network, the prior among them.

        Returns
        -------
        list of tuple
            See `KroneckerGaussian`. Where weights from one input have several precisions their
            mean takes their place.
        """
        total, width = None, sum(self.network.layer_sizes)
        for rows in row_blocks(len(self.X), width * self.network.n_outputs):
            trace = forward(self.network, theta, self.X[rows], 1)
            s = self.sample_weight[rows]
            _, curvature = self.likelihood.derivatives(
                trace.outputs, self.y[rows], s, hyper.beta, False
            )
            if curvature.ndim == trace.outputs.ndim:
                roots = np.sqrt(curvature)[..., None] * np.eye(self.network.n_outputs)
            else:
                roots = _symmetric_root(curvature)
            found = kronecker_factors(trace, roots, s)
            if total is not None:
                found = [(F + f, G + g) for (F, G), (f, g) in zip(total, found, strict=True)]
            total = found
        prior = self.network.layers(self.groups.expand(hyper.alpha))
        return [
            (alpha.mean(axis=1), F / self.n_rows, G)
            for alpha, (F, G) in zip(prior, total, strict=True)
        ]

    def _blocks(self, theta, beta, exact, order, doubles_per_row):
        """Traces with residual and curvature (for steps unless ``exact``), block by block."""
        for rows in row_blocks(len(self.X), doubles_per_row):
            trace = forward(self.network, theta, self.X[rows], order)
            yield (
                trace,
                *self.likelihood.derivatives(
                    trace.outputs, self.y[rows], self.sample_weight[rows], beta, exact
                ),
            )


def _symmetric_root(matrices):
    """Square roots of positive semi-definite matrices ``(..., p, p)``."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
