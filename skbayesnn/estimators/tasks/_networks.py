"""Single networks of a fitted estimator, in the units of X and y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from skbayesnn._docs import documented
from skbayesnn._typing import Array
from skbayesnn.network import Network, outputs
from skbayesnn.predictive import class_probabilities

NETWORK = """Networks at a minimum, or drawn ones.

Parameters
----------
coefs, intercepts : list of ndarray
    Weights ``(fan_in, fan_out)`` and biases ``(fan_out,)`` of every layer.
weight : float
    Weight of the network in the predictions.
log_evidence : float
    Log evidence in nats, targets in their own units; ``nan`` where it is not available.
activation : str
    Activation function of the hidden units.
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


@dataclass(frozen=True)
class FittedNetwork:
    """Network at one distinct minimum, or one draw, in the units of X and y."""

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
            Outputs in units of y; for classifiers activations, whose sigmoid or softmax gives the
            probabilities.
        """
        X = check_array(X, dtype=np.float64)
        sizes = *(len(coefs) for coefs in self.coefs), self.coefs[-1].shape[1]
        if X.shape[1] != sizes[0]:
            raise ValueError(f"X has {X.shape[1]} features, the network takes {sizes[0]}.")
        layers = map(np.vstack, zip(self.coefs, self.intercepts, strict=True))
        network = Network(sizes, self.activation)
        return outputs(network, network.pack(list(layers)), X)


@documented(NETWORK)
@dataclass(frozen=True)
class RegressionNetwork(FittedNetwork):
    """Network at one minimum, or one draw, of a regressor in the units of X and y.

    Parameters
    ----------
    y_is_1d : bool
        Whether targets had no axis of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.estimators import RegressionNetwork
    >>> coefs, intercepts = [np.array([[2.0]])], [np.array([1.0])]
    >>> RegressionNetwork(coefs, intercepts, 1.0, np.nan, "tanh", True).predict([[0.0], [3.0]])
    array([1., 7.])
    """

    y_is_1d: bool

    def predict(self, X: ArrayLike) -> Array:
        """Predict outputs at the network's weights, without error bars.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Outputs in units of y.
        """
        f = self.outputs(X)
        return f[:, 0] if self.y_is_1d else f


@documented(NETWORK)
@dataclass(frozen=True)
class ClassificationNetwork(FittedNetwork):
    """Network at one minimum, or one draw, of a classifier in the units of X.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, in the order of the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.estimators import ClassificationNetwork
    >>> coefs, intercepts, classes = [np.array([[2.0]])], [np.array([0.0])], np.array(["a", "b"])
    >>> network = ClassificationNetwork(coefs, intercepts, 1.0, np.nan, "tanh", classes)
    >>> network.predict([[-3.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    classes: np.ndarray

    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict class probabilities at the network's weights, not moderated.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Class probabilities, in the order of ``classes``.
        """
        return class_probabilities(self.outputs(X))

    def predict(self, X: ArrayLike) -> Array:
        """Predict the most probable class at the network's weights.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        return self.classes[np.argmax(self.predict_proba(X), axis=1)]
