"""Weights in the units of users: networks, and Gaussian posteriors around minima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._memory import check_memory
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator
from skbayesnn.network import Network, outputs

COPIES = 4  # matrices of all weights in memory while one is computed
SINGULAR = (
    "The curvature at this minimum is numerically singular, so there is no Gaussian around it. "
    "Use fewer hidden units, or another activation where units can be rotated into each other."
)
WEIGHTS = """Networks, and posteriors of their weights.

Parameters
----------
names : tuple of str
    Names of the weights, such as ``hidden1[x0 -> 2]`` (from input ``x0`` to unit 2 of the first
    hidden layer, counted from 0), ``hidden1[bias -> 2]`` and ``output[2]``; with several outputs or
    classes ``output[2 -> 1]``.
weight : float
    Share in the predictions.
log_evidence : float
    Log evidence in nats, targets in their own units; ``nan`` where it is not available.
user_units : WeightUnits
    Map from standardised units to the units of X and y.
"""


class OnDemand(Sequence):
    """Sequence whose items a function makes, from their index, on access."""

    def __init__(self, size, make):
        self._size, self._make = size, make

    def __len__(self):
        return self._size

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        return self._make(range(self._size)[index])

    def __repr__(self):
        first = f", the first {self[0]!r}" if self._size else ""
        return f"<{self._size} items{first}>"


@documented(WEIGHTS)
@dataclass(frozen=True)
class FittedNetwork:
    """Network at one distinct minimum, or one draw, in the units of X and y.

    Parameters
    ----------
    coefs, intercepts : list of ndarray
        Weights ``(fan_in, fan_out)`` and biases ``(fan_out,)`` of every layer.
    activation : str
        Activation function of the hidden units.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.estimators import FittedNetwork
    >>> network = FittedNetwork([np.array([[2.0]])], [np.array([1.0])], 1.0, np.nan, "tanh")
    >>> network.outputs([[0.0], [3.0]])
    array([[1.],
           [7.]])
    """

    coefs: list
    intercepts: list
    weight: float
    log_evidence: float
    activation: str

    def outputs(self, X: ArrayLike) -> Array:
        """Outputs of the network at its weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, not standardised.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Predictions in units of y; for classifiers activations, whose sigmoid (two classes) or
            softmax gives the probabilities.
        """
        X = check_array(X, dtype=np.float64)
        sizes = *(len(coefs) for coefs in self.coefs), self.coefs[-1].shape[1]
        if X.shape[1] != sizes[0]:
            raise ValueError(f"X has {X.shape[1]} features, the network takes {sizes[0]}.")
        layers = map(np.vstack, zip(self.coefs, self.intercepts, strict=True))
        network = Network(sizes, self.activation)
        return outputs(network, network.pack(list(layers)), X)


@dataclass(frozen=True)
class WeightUnits:
    """Affine map from weights for standardised inputs and outputs to weights in the user's units.

    With ``x = (X - m) / s`` and ``Y = c f + d`` a network keeps its form: weights of inputs are
    divided by ``s``, ``m / s`` times them is subtracted from the biases of their layer, weights and
    biases of the output layer are multiplied by ``c``, and ``d`` is added to its biases. Every
    method takes weights ``(..., k)``.
    """

    network: Network
    X_scaling: Scaling
    y_scaling: Scaling

    def weights(self, theta):
        """Convert weights to the units of X and y."""
        layers = self._linear(theta)
        layers[-1][..., self.network.layer_sizes[-2] :, :] += self.y_scaling.shift
        return self.network.pack(layers)

    def deviations(self, vectors):
        """Convert differences of weights: the linear part of the map."""
        return self.network.pack(self._linear(vectors))

    def standard_deviations(self, precision):
        """Standard deviations of weights, ``(k,)``, from a `Precision` in standardised units."""
        network = self.network
        layers = [w.copy() for w in network.layers(np.sqrt(precision.variances()))]
        layers[0][: network.layer_sizes[0]] /= self.X_scaling.scale[:, None]
        if network.has_biases(0):  # which depend on the weights of the inputs
            shifts = np.append(-self.X_scaling.shift / self.X_scaling.scale, 1.0)
            fan_in, units = network.shapes[0]
            to_bias = np.zeros((units, 1, network.n_weights))
            for unit in range(units):
                to_bias[unit, 0, np.arange(fan_in) * units + unit] = shifts
            layers[0][-1] = np.sqrt(precision.project(to_bias)[:, 0, 0])
        layers[-1] *= self.y_scaling.scale
        return network.pack(layers)

    def split(self, theta):
        """Split weights ``(k,)`` into ``(coefs, intercepts)`` as in scikit-learn.

        Missing biases of a layer are zero.
        """
        layers = list(zip(self.network.layers(theta), self.network.layer_sizes[:-1], strict=True))
        return [w[:n].copy() for w, n in layers], [w[n:].sum(axis=0) for w, n in layers]

    def _linear(self, theta):
        layers = [w.copy() for w in self.network.layers(theta)]
        first, d = layers[0], self.network.layer_sizes[0]
        first[..., :d, :] /= self.X_scaling.scale[:, None]
        first[..., d:, :] -= (self.X_scaling.shift @ first[..., :d, :])[..., None, :]
        layers[-1] *= self.y_scaling.scale
        return layers


def weight_names(network, inputs, outputs):
    """Make readable names of all weights, in the order of ``theta``.

    Hidden units are counted from 0. A single output is not named.
    """
    names = []
    for layer, (rows, columns) in enumerate(network.shapes):
        last = layer == len(network.shapes) - 1
        title = "output" if last else f"hidden{layer + 1}"
        targets = [f" -> {name}" for name in (outputs if last else range(columns))]
        if last and columns == 1:
            targets = [""]
        width = network.layer_sizes[layer]
        sources = [*(range(width) if layer else inputs), *["bias"] * (rows - width)]
        names += [f"{title}[{source}{target}]" for source in sources for target in targets]
    return tuple(names)


@documented(WEIGHTS)
@dataclass(frozen=True, repr=False, eq=False)
class GaussianPosterior:
    """Gaussian approximation of the posterior around one minimum.

    The mean is the most probable weight vector, the precision is the Hessian ``A`` of minus the log
    posterior there (MacKay 1992, equation 3.6; Bishop 2006, equation 5.167), at the precisions of
    weights and noise that were inferred. For a linear model with Gaussian noise it is exact. The
    equivalent minima that arise by label switching have the same Gaussian, up to the order.

    Parameters
    ----------
    theta : ndarray of shape (k,)
        Most probable weights, in standardised units.
    gaussian : Precision or None
        ``A`` in standardised units; ``None`` where it is numerically singular.
    prior : ndarray of shape (k,) or None
        Prior precision of every weight, in standardised units; ``None`` if the prior couples them.
    exact : bool
        Whether ``A`` is the exact Hessian or the Gauss-Newton approximation.

    Notes
    -----
    Classifiers predict with another Gaussian, the one closest to the posterior, whose centre may
    lie away from the most probable weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> X = np.linspace(0, 10, 30)[:, None]
    >>> y = 2.0 * X[:, 0] + np.random.default_rng(0).standard_normal(30)
    >>> model = EvidenceMLPRegressor(()).fit(X, y)
    >>> posterior = model.posterior_[0]
    >>> posterior.names
    ('output[x0]', 'output[bias]')
    >>> bool(np.allclose(posterior.mean, [model.coefs_[0][0, 0], model.intercepts_[0][0]]))
    True
    >>> bool(np.isclose(posterior.gamma.sum(), model.n_effective_weights_))
    True
    """

    names: tuple
    weight: float
    log_evidence: float
    user_units: WeightUnits
    theta: np.ndarray
    gaussian: object
    prior: np.ndarray | None
    exact: bool

    def sample(self, n_samples: int = 1, random_state: RandomState = 0) -> Array:
        """Draw weights from the Gaussian.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Weights, in the order of ``names``.
        """
        rng, size = generator(random_state), count(n_samples, "n_samples")
        return self.user_units.weights(self.theta + self._definite.draw(rng, size))

    @property
    def mean(self):
        """Most probable weights, ``(k,)``."""
        return self.user_units.weights(self.theta)

    @property
    def std(self):
        """Standard deviation of every weight, ``(k,)``: ``coefs_std_`` and ``intercepts_std_``."""
        return self.user_units.standard_deviations(self._definite)

    @property
    def precision(self):
        """Hessian ``A`` of minus the log posterior, ``(k, k)``."""
        self._check_memory("precision")
        to_standardised = np.linalg.inv(self.user_units.deviations(np.eye(len(self.names))))
        return to_standardised @ self._definite.dense() @ to_standardised.T

    @property
    def covariance(self):
        """Covariance ``A^-1`` of the weights, ``(k, k)``."""
        self._check_memory("covariance")
        change = self.user_units.deviations
        return change(change(self._definite.covariance()).T)

    @cached_property
    def eigenvalues(self):
        """Eigenvalues of the Hessian in coordinates where the prior precision is 1, ``(k,)``.

        ``mu_a = 1 + lambda_a``, largest first, with ``A u_a = mu_a diag(alpha) u_a``. With a single
        ``alpha`` the eigenvalues of ``A`` are ``alpha mu_a``, and MacKay's, of the likelihood
        alone, ``alpha (mu_a - 1)``. They do not depend on the units. For the directions ``u_a``, in
        standardised units, use ``scipy.linalg.eigh(gaussian.dense(), np.diag(prior))``.
        """
        gaussian = self._definite
        if self.prior is None:
            raise ValueError(
                "The prior couples weights, so that eigenvalues and gamma are not defined. Use "
                "precision and covariance."
            )
        return gaussian.eigenvalues(self.prior)

    @property
    def gamma(self):
        """Effective number of parameters along the direction of every eigenvalue, ``(k,)``.

        ``gamma_a = lambda_a / (lambda_a + 1) = 1 - 1 / mu_a`` (MacKay 1992, equation 2.23), from 1
        (well determined by the data) to 0 (by the prior alone); negative where the misfit curves
        downwards. The sum is the effective number of parameters. ``n_effective_weights_``, which
        uses the Gauss-Newton Hessian, differs from it where ``A`` is exact and the network has
        hidden units, and in Kronecker factors.
        """
        return 1.0 - 1.0 / self.eigenvalues

    @property
    def _definite(self):
        if self.gaussian is None:
            raise AttributeError(SINGULAR)
        return self.gaussian

    def _check_memory(self, what):
        """Raise ``MemoryError`` if a matrix of all weights is too large."""
        k = len(self.names)
        check_memory(COPIES * 8.0 * k**2, f"The {what} of {k} weights", "Use std or sample.")

    def __repr__(self):
        facts = f"{len(self.names)} weights in user units, share {self.weight:.3g}, log evidence"
        curvature = "exact" if self.exact else f"Gauss-Newton ({type(self.gaussian).__name__})"
        curvature = "no Gaussian" if self.gaussian is None else f"{curvature} Hessian"
        return f"<{type(self).__name__}: {facts} {self.log_evidence:.2f}, {curvature}>"
