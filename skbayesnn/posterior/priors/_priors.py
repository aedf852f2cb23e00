"""Gaussian priors of weights in groups with a common precision."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

INTERCEPT = "+intercept"  # ends the names of groupings in which output biases are by themselves


@dataclass(frozen=True)
class WeightGroups:
    """Independent Gaussian prior of mean zero; the weights of a group share a precision.

    The prior of the weights is ``N(m, P^-1)``, where ``P`` has a block ``alpha_c R_c`` for every
    group ``c``. The methods are common to all priors. Here ``m`` is zero and ``R_c`` is 1;
    `GaussianPrior` generalises both.

    Parameters
    ----------
    labels : ndarray of int, shape (k,)
        Group of every weight.
    names : list of str
    """

    labels: np.ndarray
    names: list

    coupled = False  # True if R has elements off its diagonal
    one_size = False  # True for networks of one layout: no unit can be deleted or added
    centred = True  # True if m is zero and R is 1

    @cached_property
    def sizes(self):
        """Number ``k_c`` of weights of every group."""
        return np.bincount(self.labels, minlength=len(self.names))

    @cached_property
    def membership(self):
        """Indicator matrix of shape (k, n_groups)."""
        return (self.labels[:, None] == np.arange(len(self.names))).astype(float)

    def expand(self, alpha):
        """Precision of every weight, ``(..., k)``, from one per group, ``(..., n_groups)``."""
        return alpha[..., self.labels]

    def sums(self, values):
        """Sum per group: ``(..., k)`` to ``(..., n_groups)``."""
        return (values[..., None, :] @ self.membership)[..., 0, :]

    def relabelled(self, labels):
        """Prior of weights with other labels."""
        return replace(self, labels=labels)

    def deviation(self, theta):
        """Deviation ``w - m`` from the mean."""
        return theta

    def applied(self, vectors):
        """Product ``R v`` for ``v`` of shape (..., k)."""
        return vectors

    def diagonal(self, alpha):
        """Diagonal of the precision, ``(..., k)``."""
        return self.expand(alpha)

    def add_to(self, matrices, alpha):
        """Add the precision to matrices ``(..., k, k)``, in place."""
        each = np.arange(len(self.labels))
        matrices[..., each, each] += self.expand(alpha)

    def least(self, alpha):
        """Smallest eigenvalue of the precision, at precisions ``(n_groups,)``."""
        return np.min(alpha)

    def energies(self, theta):
        """Energy ``E_W^c = 1/2 (w - m)^T R_c (w - m)`` of every group, ``(..., n_groups)``."""
        return 0.5 * self.sums(theta * theta)

    def pull(self, theta, alpha):
        """Gradient ``P (w - m)`` of minus the log density, ``(..., k)`` (Bishop 2006, 4.141)."""
        return self.expand(alpha) * theta

    def product(self, vectors, alpha):
        """Product ``P v`` for ``v`` of shape (..., k)."""
        return self.expand(alpha) * vectors

    def pulls(self, theta, alpha):
        """Contribution of every group to `pull`, ``(n_groups, k)``."""
        return (self.pull(theta, alpha)[:, None] * self.membership).T

    def traces(self, precision):
        """Trace ``Tr(R_c A^-1)`` of every group, for a `Precision` ``A``."""
        return self.sums(precision.variances())

    def log_normaliser(self, alpha):
        """Log normaliser ``1/2 log det P``; the factor of ``2 pi`` cancels in evidences."""
        return 0.5 * self.sizes @ np.log(alpha)

    def draw(self, alpha, rng):
        """Draw weights from the prior, ``(..., k)``, at precisions ``(..., n_groups)``."""
        sd = self.expand(alpha) ** -0.5
        return rng.standard_normal(sd.shape) * sd

    def start(self, rng, sd):
        """Draw starting weights of given standard deviations, ``(k,)``."""
        return rng.standard_normal(len(sd)) * sd

    def within(self, group, covariance, theta):
        """Covariance and deviation of the weights of a group, in units in which ``R_c`` is 1."""
        members = np.flatnonzero(self.labels == group)
        return covariance[np.ix_(members, members)], theta[members]

    def white(self, theta):
        """Weights ``u`` in units in which ``m`` is zero and ``R`` is 1, ``(..., k)``."""
        return theta

    def coloured(self, white):
        """Inverse of `white`."""
        return white

    def white_gradient(self, gradient):
        """Gradient with respect to ``u``, ``(..., k)``, from the gradient in the weights."""
        return gradient

    def white_matrix(self, matrix):
        """Hessian with respect to ``u``, ``(..., k, k)``, from the Hessian in the weights."""
        return matrix

    def conditional(self, part, theta):
        """Conditional prior of a slice of the weights given all others."""
        return replace(self, labels=self.labels[part])

    def is_invariant(self, images, signs):
        """Return True if the density is invariant under a signed permutation of the weights.

        ``images`` ``(k,)`` are the indices of the weights that move to each place.
        """
        return bool(np.all(self.labels == self.labels[images]))


def weight_groups(network, prior, feature_names=None):
    """Group the weights of a network (MacKay 1992, section 3.4; Neal 1996, section 1.2.3).

    Parameters
    ----------
    network : Network
    prior : str or array-like of shape (k,)
        ``"single"``: one group. ``"layer"``: per hidden layer its weights and its biases, and the
        output layer with its biases. ``"ard"``: as ``"layer"``, with the first layer's weights
        split by input. Without a hidden layer the output layer is the first layer. An array gives
        the label of every weight, in the order of ``theta``. With ``"+intercept"`` after a name,
        the biases of the outputs form a separate group ``"intercept"``.
    feature_names : list of str, optional
        Names of the inputs, for the groups of ``"ard"``.

    Examples
    --------
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import weight_groups
    >>> groups = weight_groups(Network((2, 3, 1)), "ard", ["age", "dose"])
    >>> groups.names
    ['input_age', 'input_dose', 'hidden1_biases', 'output']
    >>> groups.sizes
    array([3, 3, 3, 4])
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
