"""Prediction methods of regressors that are one method of the predictive distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._typing import Array
from skbayesnn.estimators.predictions._distribution import PARTS


@documented(PARTS)
class Predictions:
    """Mixin of the predictions that are one method of ``predict_distribution(X)``."""

    predict_distribution: Callable[..., Any]

    def predict_std(
        self,
        X: ArrayLike,
        kind: str = "total",
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Predict the standard deviation, or one of its parts, in units of y."""
        return self.predict_distribution(X, measurement_std, exposure).std(kind)

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.95,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Predict a central interval for a new target, noise included.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper end, in units of y; of several coverages of shape (..., n_coverages, 2).
        """
        return self.predict_distribution(X, measurement_std, exposure).interval(coverage)

    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike = 0.5,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Predict quantiles of the predictive distribution, in units of y.

        They are those of each output by itself. The axes of ``q`` come last.
        """
        return self.predict_distribution(X, measurement_std, exposure).ppf(q)

    def log_predictive_density(
        self,
        X: ArrayLike,
        y: ArrayLike,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Compute the log density of targets under their predictive distribution.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log density in nats, y in its own units; joint over the outputs.
        """
        return self.predict_distribution(X, measurement_std, exposure).joint_logpdf(y)
