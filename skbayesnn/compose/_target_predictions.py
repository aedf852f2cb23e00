"""Predictions of targets from predictions of transformed targets."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators import ask, probabilities, tails


class TransformedPredictions:
    """Mixin of the predictions of a regressor of transformed targets, in units of the targets.

    The predictions are those of ``regressor_``, transformed back by ``_map``.
    """

    regressor_: Any
    prediction: str
    _map: Any
    _y_is_1d: bool

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the median or mean of the targets, see ``prediction``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Also return the total standard deviation, see `predict_std`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, in units of y.
        y_std : ndarray of the same shape
            Standard deviation; only with ``return_std``.
        """
        if self.prediction == "median":
            centre = self.predict_quantiles(X, 0.5)
            return (centre, self.predict_std(X)) if return_std else centre
        return self.predict_expectation(X, _itself, return_std)

    def predict_std(self, X: ArrayLike) -> Array:
        """Predict the standard deviation of the targets, due to weights and noise together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Standard deviation about the mean in units of y, by quadrature. Networks with Student-t
            noise are left out as long as they have less than half of the weight.

        Raises
        ------
        ValueError
            If most networks have Student-t noise, under which it need not exist.
        """
        return self.predict_expectation(X, _itself, return_std=True)[1]

    def predict_expectation(
        self, X: ArrayLike, function: Callable[..., Any], return_std: bool = False
    ) -> Any:
        """Predict the mean of a function of the target, such as a cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        function : callable
            Function as in `EvidenceMLPRegressor.predict_expectation`.
        return_std : bool, default=False
            Also return the standard deviation of the function.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean, in units of the function.
        std : ndarray of the same shape
            Standard deviation; only with ``return_std``.
        """

        def of_transformed(t):
            return function(self._taken_back(t))

        return self._ask("predict_expectation", X, of_transformed, return_std)

    def predict_quantiles(self, X: ArrayLike, q: ArrayLike = 0.5) -> Array:
        """Predict quantiles of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        q : float or array-like, default=0.5
            Lower-tail probabilities, between 0 and 1; 0.5 is the median.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Quantiles, in units of y, for each output by itself; the axes of ``q`` come last.
        """
        q = probabilities(q, "q")
        check_is_fitted(self)
        low = self._ask("predict_quantiles", X, q)
        if not self._map.increasing.all():
            high = self._ask("predict_quantiles", X, 1.0 - q)
            increasing = self._map.increasing.reshape(-1, *(1,) * q.ndim)
            low = np.where(increasing[0] if self._y_is_1d else increasing, low, high)
        if self._y_is_1d:
            return self._map.inverse(low[..., None])[..., 0]
        t = np.moveaxis(low, 1, -1)
        return np.moveaxis(self._map.inverse(t), -1, 1)

    def predict_interval(self, X: ArrayLike, coverage: ArrayLike = 0.95) -> Array:
        """Predict a central interval of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        coverage : float or array-like of shape (n_coverages,), default=0.95
            Probability inside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper end, in units of y; of several coverages of shape (..., n_coverages, 2).
        """
        return self.predict_quantiles(X, tails(coverage))

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Compute the log density of targets under their predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log density in nats, y in its own units; joint over the outputs.

        Raises
        ------
        ValueError
            If the transformation is not finite or has no finite slope at some target.
        """
        t = self._map.forward(self._checked(y))
        slopes = self._map.log_slope(t).sum(axis=1)
        if not np.all(np.isfinite(slopes)):
            wrong = np.asarray(y)[~np.isfinite(slopes)][0]
            raise ValueError(
                f"The transformation has no finite slope at y = {wrong}, so there is no density."
            )
        return self._ask("log_predictive_density", X, self._shaped(t)) + slopes

    def predictive_cdf(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Compute the predictive probability of a target no larger than ``y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Probabilities between 0 and 1, for each output by itself.
        """
        y = self._checked(y)

        def of_transformed(t):
            return self._ask("predictive_cdf", X, self._shaped(t)).reshape(t.shape)

        return self._shaped(self._map.cdf(y, of_transformed))

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0) -> Array:
        """Draw functions from the posterior, without noise, in units of y.

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
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            Drawn functions of ``t``, transformed back: medians of the targets, given the weights.
        """
        return self._functions("sample_y", X, n_samples, random_state)

    def sample_prior(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> Array:
        """Draw functions from the prior at the inferred precisions, in units of y.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            Functions as in `sample_y`.
        """
        return self._functions("sample_prior", X, n_samples, random_state)

    def _ask(self, method, X, *args):
        """Call a method of the regressor, which may be a pipeline."""
        check_is_fitted(self)
        return ask(self.regressor_, method, X, *args)

    def _functions(self, method, X, n_samples, random_state):
        """Transform functions of the regressor back."""
        t = self._ask(method, X, n_samples, random_state)
        if self._y_is_1d:
            return self._taken_back(t.ravel()).reshape(t.shape)
        return np.moveaxis(self._map.inverse(np.moveaxis(t, 1, -1)), -1, 1)

    def _taken_back(self, t):
        """Transform ``(m,)`` or ``(m, n_outputs)`` values back to targets."""
        return self._map.inverse(t[:, None])[:, 0] if self._y_is_1d else self._map.inverse(t)

    def _checked(self, y):
        """Check targets: return ``(n, n_outputs)`` with the number of outputs of the model."""
        check_is_fitted(self)
        y, _ = as_targets(y)
        if y.shape[1] != len(self._map.spread):
            raise ValueError(
                f"y has {y.shape[1]} outputs, the model was fitted with {len(self._map.spread)}."
            )
        return y

    def _shaped(self, t):
        """Drop the axis of outputs if y had none."""
        return t[:, 0] if self._y_is_1d else t


def _itself(y):
    """Return the target unchanged."""
    return y


def as_targets(y):
    """Convert targets to numbers of shape (n, n_outputs), with a flag for shape (n,)."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return (y[:, None], True) if y.ndim == 1 else (y, False)
