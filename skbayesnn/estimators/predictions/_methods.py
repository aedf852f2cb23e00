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

    def predict_expectation(
        self,
        X: ArrayLike,
        function: Callable[..., Any],
        return_std: bool = False,
        exposure: float | ArrayLike | None = None,
    ) -> Any:
        """Predict the mean of a function of the target, such as a cost or a change of units.

        The mean is computed by Gauss-Hermite quadrature with 40 nodes for each Gaussian of the
        predictive distribution: exact for polynomials of degree 79. Networks with Student-t noise,
        under which such means need not exist, are left out if all others have at least a fifth of
        the weight.

        Parameters
        ----------
        function : callable
            Function from targets in units of y, of shape (m,) or (m, n_outputs), to an array of
            that shape; it treats every target by itself, and is smooth.
        return_std : bool, default=False
            Also return the standard deviation of the function.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean, in units of the function.
        std : ndarray of the same shape
            Standard deviation; only with ``return_std``.

        Raises
        ------
        ValueError
            If most networks have Student-t noise; or if ``function`` does not return finite numbers
            of the shape that it was given.
        """
        mean, std = self.predict_distribution(X, exposure=exposure).expect(function)
        return (mean, std) if return_std else mean

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

    def predictive_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Compute the predictive probability of a target no larger than ``y``.

        At the true targets of a calibrated model these values, the probability integral transform,
        are uniform (Dawid 1984).
        """
        return self.predict_distribution(X, measurement_std, exposure).cdf(y)
