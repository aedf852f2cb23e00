"""Gaussian priors of weights in groups with a common precision."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

INTERCEPT = "+intercept"  # ends the names of groupings in which output biases are by themselves


def sums_by(membership, values):
    """Sums ``(..., n_groups)`` of values ``(..., k)`` by an indicator matrix ``(k, n_groups)``.

    Their rounding does not depend on the number of networks, the leading axes.
    """
    return (values[..., None, :] @ membership)[..., 0, :]


@dataclass(frozen=True)
class WeightGroups:
    """Gaussian prior of the weights; those of a group share a factor of their precision.

    The prior is ``N(m, P^-1)``, where ``P`` has a block ``alpha_c R_c`` for every group ``c``. Its
    energy is ``1/2 (w - m)^T P (w - m)`` and the Hessian of the posterior gains ``P`` (Bishop 2006,
    equations 4.140-4.142). By default ``m`` is zero and ``R`` is 1. An informative prior may have
    any mean and precision: in sequential learning the posterior of one batch of data is such a
    prior for the next one.
    """

    labels: np.ndarray  # (k,), group of every weight
    names: list
    mean: np.ndarray | float = 0.0  # (k,), mean ``m``
    # (k,) or (k, k), positive definite ``R``, or its diagonal if ``R`` is diagonal; groups are
    # independent
    shape: np.ndarray | float = 1.0

    @cached_property
    def centred(self):
        """True if ``m`` is zero and ``R`` is 1; others belong to one layout of a network."""
        return np.ndim(self.shape) == 0

    @cached_property
    def coupled(self):
        """True if ``R`` has elements off its diagonal."""
        return np.ndim(self.shape) == 2

    @cached_property
    def sizes(self):
        """Number ``k_c`` of weights of every group."""
        return np.bincount(self.labels, minlength=len(self.names))

    @cached_property
    def membership(self):
        """Indicator matrix of shape (k, n_groups)."""
        return (self.labels[:, None] == np.arange(len(self.names))).astype(float)

    @cached_property
    def _factor(self):
        """Lower Cholesky factor ``L`` with ``R = L L^T``, or the roots of the diagonal."""
        return np.linalg.cholesky(self.shape) if self.coupled else np.sqrt(self.shape)

    def expand(self, alpha):
        """Factor of every weight, ``(..., k)``, from one per group, ``(..., n_groups)``."""
        return alpha[..., self.labels]

    def sums(self, values):
        """Sum per group: ``(..., k)`` to ``(..., n_groups)``."""
        return sums_by(self.membership, values)

    def relabelled(self, labels):
        """Prior of weights with other labels."""
        if self.centred:
            return replace(self, labels=labels)
        if not np.array_equal(labels, self.labels):
            raise ValueError("A prior with a mean or a precision matrix belongs to one network.")
        return self

    def applied(self, vectors):
        """Product ``R v`` for ``v`` of shape (..., k)."""
        return vectors @ self.shape if self.coupled else vectors * self.shape

    def diagonal(self, alpha):
        """Diagonal of the precision, ``(..., k)``."""
        return self.expand(alpha) * (np.diag(self.shape) if self.coupled else self.shape)

    def add_to(self, matrices, alpha):
        """Add the precision to matrices ``(..., k, k)``, in place."""
        if self.coupled:
            matrices += self.expand(alpha)[..., :, None] * self.shape
            return
        each = np.arange(len(self.labels))
        matrices[..., each, each] += self.expand(alpha) * self.shape

    def least(self, alpha):
        """Smallest eigenvalue of the precision, at factors ``(n_groups,)``."""
        if self.coupled:
            return np.linalg.eigvalsh(self.expand(alpha)[:, None] * self.shape)[0]
        return np.min(self.diagonal(alpha))

    def energies(self, theta):
        """Energy ``E_W^c = 1/2 (w - m)^T R_c (w - m)`` of every group, ``(..., n_groups)``."""
        deviation = theta - self.mean
        return 0.5 * self.sums(deviation * self.applied(deviation))

    def pull(self, theta, alpha):
        """Gradient ``P (w - m)`` of minus the log density, ``(..., k)`` (Bishop 2006, 4.141)."""
        return self.expand(alpha) * self.applied(theta - self.mean)

    def product(self, vectors, alpha):
        """Product ``P v`` for ``v`` of shape (..., k)."""
        return self.expand(alpha) * self.applied(vectors)

    def pulls(self, theta, alpha):
        """Contribution of every group to `pull`, ``(n_groups, k)``."""
        return (self.pull(theta, alpha)[:, None] * self.membership).T

    def log_normaliser(self, alpha):
        """Log normaliser ``1/2 log det P``; the factor of ``2 pi`` cancels in evidences."""
        roots = np.diag(self._factor) if self.coupled else self._factor
        return 0.5 * self.sizes @ np.log(alpha) + np.sum(np.log(roots))

    def draw(self, alpha, rng):
        """Draw weights from the prior, ``(..., k)``, at factors ``(..., n_groups)``."""
        sd = self.expand(alpha) ** -0.5
        return self.coloured(rng.standard_normal(sd.shape) * sd)

    def start(self, rng, sd):
        """Draw starting weights of given standard deviations, ``(k,)``.

        They are near the mean of an informative prior, on its scale where that is narrower.
        """
        if not self.centred:
            sd = np.minimum(sd, self.diagonal(np.ones(len(self.names))) ** -0.5)
        return self.mean + rng.standard_normal(len(sd)) * sd

    def white(self, theta):
        """Weights ``u`` in units in which ``m`` is zero and ``R`` is 1, ``(..., k)``."""
        deviation = theta - self.mean
        return deviation @ self._factor if self.coupled else deviation * self._factor

    def coloured(self, white):
        """Inverse of `white`."""
        return self.mean + self.white_gradient(white, trans=1)

    def white_gradient(self, gradient, trans=0):
        """Gradient ``L^-1 g`` with respect to ``u``, from that in the weights, ``(..., k)``.

        With ``trans=1`` it is ``L^-T g``.
        """
        if not self.coupled:
            return gradient / self._factor
        columns = gradient.reshape(-1, len(self.mean)).T
        solved = solve_triangular(self._factor, columns, lower=True, trans=trans).T
        return solved.reshape(gradient.shape)


def fan_ins(network, groups):
    """Number of inputs of the units that the weights of every group lead to; 1 for biases alone."""
    found = np.ones(len(groups.names))
    layers = zip(network.layer_sizes, network.layers(groups.labels), strict=False)
    for width, labels in layers:
        found[np.unique(labels[:width])] = max(width, 1)
    return found


def weight_groups(network, prior, feature_names=None):
    """Group the weights of a network (MacKay 1992, section 3.4; Neal 1996, section 1.2.3).

    Parameters
    ----------
    network : Network
    prior : str or array-like of shape (k,)
        ``"single"``: one group. ``"layer"`` or ``"auto"``: per hidden layer its weights and its
        biases, and the output layer with its biases. ``"ard"``: with the first layer's weights also
        split by input. Without a hidden layer the output layer is the first layer. An array gives
        the label of every weight, in the order of ``theta``. With ``"+intercept"`` after a name,
        the biases of the outputs form a separate group ``"intercept"``.
    feature_names : list of str, optional
        Names of the inputs, for the groups of ``"ard"``.
    """
    if not isinstance(prior, str):
        names, labels = np.unique(np.asarray(prior), return_inverse=True)
        return WeightGroups(labels.ravel(), [str(name) for name in names])
    if prior.endswith(INTERCEPT):
        if not network.output_bias:
            raise ValueError(f"prior={prior!r} needs output biases, which the network has not.")
        groups = weight_groups(network, prior.removesuffix(INTERCEPT), feature_names)
        labels = groups.labels.copy()
        labels[-network.n_outputs :] = len(groups.names)
        used, labels = np.unique(labels, return_inverse=True)
        names = [*groups.names, INTERCEPT.removeprefix("+")]
        return WeightGroups(labels.ravel(), [names[group] for group in used])
    if prior == "single":
        return WeightGroups(np.zeros(network.n_weights, dtype=int), ["weights"])
    parts, names = [], []
    for layer, (rows, columns) in enumerate(network.shapes):
        hidden, width = layer < len(network.shapes) - 1, network.layer_sizes[layer]
        labels = np.empty((rows, columns), dtype=int)
        if layer == 0 and prior == "ard":
            inputs = feature_names or [f"x{i}" for i in range(width)]
            labels[:width] = len(names) + np.arange(width)[:, None]
            names += [f"input_{name}" for name in inputs]
        elif hidden:
            labels[:width] = len(names)
            names.append(f"hidden{layer + 1}_weights")
        else:
            labels[:width] = len(names)
        labels[width:] = len(names)
        if np.any(labels == len(names)):
            names.append(f"hidden{layer + 1}_biases" if hidden else "output")
        parts.append(labels.ravel())
    return WeightGroups(np.concatenate(parts), names)
