"""Derivatives of predictions by the inputs, with their posterior uncertainty."""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator


class Gradients:
    """Mixin of the derivatives of functions by the inputs, for all estimators."""

    _check_X: Any
    _ensemble: Any
    _X_scaling: Any
    _y_scaling: Any
    _y_is_1d: bool

    @overload
    def predict_gradient(self, X: ArrayLike, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict_gradient(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict_gradient(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the derivatives of the function by the inputs.

        The function is the mean of the target; for classes the log odds, which each
        network has as its activations. For two classes these are ``ln(p_1 / p_0)``; for more
        ``ln p_c`` less its mean over the classes, since a constant that all activations share has
        no effect (Aitchison 1982). Networks average; log odds are those before moderation.

        With the most probable weights ``w``, the Gaussian of precision ``A`` around them and
        the network linearised in its weights, the derivative has the variance ``g^T A^-1 g`` with
        ``g = d2 f / dx dw``. Drawn networks have the moments of their derivatives, and mixtures the
        sum of both parts (law of total variance).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Also return the posterior standard deviations of the derivatives.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
            Derivatives in units of y over those of X; of log odds in nats, with an axis of classes
            if there are more than two.
        std : ndarray of the same shape
            Standard deviations, of the weights alone; only with ``return_std``.

        Notes
        -----
        In a pipeline the derivatives are those by the inputs of its last step. At the kinks of
        ``activation="relu"`` a unit counts as inactive.
        """
        X = self._check_X(X)
        if not return_std:
            return self._by_input(self._ensemble.gradient(X))
        mean, variance = self._ensemble.gradient_moments(X)
        return self._by_input(mean), self._by_input(np.sqrt(variance))

    def sample_gradient(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> Array:
        """Draw derivatives of functions from the posterior.

        With equal seeds they belong to the functions that ``sample_y`` draws.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions; each is drawn jointly over all rows.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_features, n_samples)
            Derivatives in the units of `predict_gradient`; of several outputs of shape
            (n_samples_X, n_outputs, n_features, n_samples).
        """
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        draws = self._ensemble.draw_gradients(X, generator(random_state), n_samples)
        return np.moveaxis(self._by_input(draws), 0, -1)

    def _by_input(self, values):
        """Convert ``(..., n_outputs, n_features)`` to user units; drop a single output's axis."""
        values = values * (self._y_scaling.scale[:, None] / self._X_scaling.scale)
        one = values.shape[-2] == 1 if is_classifier(self) else self._y_is_1d
        return values[..., 0, :] if one else values
