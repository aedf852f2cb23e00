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


@documented()
@dataclass(frozen=True)
class FittedNetwork:
    """Network at one distinct minimum, or one draw, in the units of X and y.

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
