"""Predictions of all regressors, from mixtures of Gaussians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._memory import check_memory
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import (
    checked_errors,
    checked_exposure,
    checked_weights,
    generator,
)
from skbayesnn.estimators.inputs._settings import COUNTS
from skbayesnn.estimators.predictions._distribution import (
    PARTS,
    CountDistribution,
    Distribution,
    PredictiveDistribution,
)
from skbayesnn.estimators.predictions._limits import r2_with_limits
from skbayesnn.inference import NOISE_MODELS
from skbayesnn.predictive import CountEnsemble

NO_NOISE = 0.99e16  # precision (standardised units) that represents zero noise
FUNCTIONS = """Drawn functions.

Parameters
----------
X : array-like of shape (n_samples_X, n_features)
    Inputs.

Returns
-------
ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
    Function values, in units of y.
"""
COPIES = 3  # covariance matrices of rows in memory while one is computed


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

    @documented(Distribution.interval.__doc__ or "")
    def predict_interval(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.95,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Predict a central interval for a new target, noise included."""
        return self.predict_distribution(X, measurement_std, exposure).interval(coverage)

    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike = 0.5,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> Array:
        """Predict quantiles of the predictive distribution, in units of y.

        Several outputs have separate quantiles. The axes of ``q`` come last.
        """
        return self.predict_distribution(X, measurement_std, exposure).ppf(q)

    @documented(PredictiveDistribution.joint_logpdf.__doc__ or "")
    def log_predictive_density(
        self,
        X: ArrayLike,
        y: ArrayLike,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
        censored: ArrayLike | None = None,
    ) -> Array:
        """Compute the log density of targets, joint over the outputs."""
        return self.predict_distribution(X, measurement_std, exposure).joint_logpdf(y, censored)


@documented(PARTS)
class Regression(Predictions, RegressorMixin):
    """Mixin of the prediction methods of regressors, independent of the engine.

    Predictions come from ``_ensemble``, a map from rows to targets in standardised units.
    """

    _has_exposures = False
    _has_limits = False

    def __sklearn_tags__(self):
        """Declare support for several outputs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        noise = getattr(self, "_noise", None)
        tags.target_tags.positive_only = noise is not None and noise._is_of_counts
        return tags

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        exposure: float | ArrayLike | None = None,
    ) -> Any:
        """Predict the mean, and optionally its standard deviation or covariance.

        Parameters
        ----------
        return_std : bool, default=False
            Also return the total standard deviation, of weights and noise (Bishop 2006, equations
            5.172-5.173).
        return_cov : bool, default=False
            Also return the covariance between rows, noise included on its diagonal.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean, in units of y.
        y_std : ndarray of the same shape
            Standard deviation, in units of y; only with ``return_std``.
        y_cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            Covariance; only with ``return_cov``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std and return_cov can be requested.")
        if not return_cov:
            distribution = self.predict_distribution(X, exposure=exposure)
            return distribution._mean_and_std() if return_std else distribution.mean()
        if self._counts:
            raise ValueError(
                "No return_cov for counts: use np.cov(predict_distribution(X).rvs(1000).T)."
            )
        X, scaling = self._check_X(X), self._y_scaling
        check_memory(
            COPIES * 8.0 * self.n_outputs_ * len(X) ** 2,
            f"The covariance of {len(X)} rows",
            "Ask for fewer rows at a time, or for return_std.",
        )
        mean, covariance = self._ensemble.joint_moments(X)
        covariance = covariance * scaling.scale**2
        mean = self._shaped(scaling.inverse(mean))
        return mean, (covariance[..., 0] if self._y_is_1d else covariance)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
        censored: ArrayLike | None = None,
    ) -> float:
        """Compute R2 of the predicted mean, or for counts the explained share of the deviance.

        For counts it is D2, the share of the Poisson deviance of one common rate that the predicted
        rates explain (``sklearn.metrics.d2_tweedie_score`` with ``power=1``). The error of a limit
        is how far the prediction lies on its wrong side, 0 on the right one. R2 is then the share
        of the squared errors of the best constant that the predictions remove.

        Returns
        -------
        float
            At most 1.
        """
        at = self.predict_distribution(X, exposure=exposure)
        sides = at._sides(censored, (len(at), self.n_outputs_))
        if not self._counts:
            return r2_with_limits(y, at.mean(), sample_weight, sides)
        exposure = checked_exposure(exposure, len(y))[:, 0]
        weight = exposure * checked_weights(sample_weight, len(y))
        rates, predicted = np.ravel(at._targets(y)) / exposure, np.ravel(at.mean()) / exposure
        return d2_tweedie_score(rates, predicted, sample_weight=weight, power=1)

    def predict_distribution(
        self,
        X: ArrayLike,
        measurement_std: float | ArrayLike | None = None,
        exposure: float | ArrayLike | None = None,
    ) -> PredictiveDistribution:
        """Predict the distribution of the targets, from which all other predictions follow.

        Returns
        -------
        PredictiveDistribution
            Mean, density, quantiles, draws and more, by the names of SciPy's distributions; of
            counts a `CountDistribution`.
        """
        X = self._check_X(X)
        if self._counts:
            if measurement_std is not None:
                raise ValueError("measurement_std is not for counts. Leave it out.")
            left_out = self._has_exposures and exposure is None
            exposure = checked_exposure(exposure, len(X)) * np.exp(self._y_scaling.shift)
            ensemble = CountEnsemble(self._ensemble.parts, self._ensemble.weights)
            scaling = Scaling.none(1)
            return CountDistribution(ensemble, X, scaling, self._y_is_1d, exposure, left_out)
        if exposure is not None:
            raise ValueError("exposure is for counts; leave it out for this model.")
        return PredictiveDistribution(
            self._ensemble,
            X,
            self._y_scaling,
            self._y_is_1d,
            self._variances(X, measurement_std),
            self._noise_is_measured,
            self._has_limits,
        )

    @documented(PredictiveDistribution.cov.__doc__ or "")
    def predict_output_cov(
        self,
        X: ArrayLike,
        kind: str = "total",
        measurement_std: float | ArrayLike | None = None,
    ) -> Array:
        """Predict the covariance between the outputs of each row (MacKay 1992, figure 3.1)."""
        return self.predict_distribution(X, measurement_std).cov(kind)

    @documented(FUNCTIONS)
    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0) -> Array:
        """Draw functions from the posterior, without noise.

        Evidence estimators return the networks sampled to measure the evidence, or functions
        linear in Gaussian weights. Samplers return sampled networks.
        """
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        return self._functions(self._ensemble.draw(X, generator(random_state), n_samples))

    @documented(FUNCTIONS)
    def sample_prior(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> Array:
        """Draw functions from the prior at the inferred precisions."""
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        return self._functions(self._draw_prior(X, n_samples, generator(random_state)))

    def _output_names(self, n_outputs):
        return range(n_outputs)

    def _variances(self, X, measurement_std):
        """Variances of known errors at rows to predict, in standardised units, or ``None``."""
        if measurement_std is None:
            return None
        if any(NOISE_MODELS[noise].heavy_tails for noise in self._noise_models if noise):
            raise ValueError(
                "measurement_std in predictions is for Gaussian noise; this model was fitted with "
                "Student-t noise."
            )
        errors = checked_errors(measurement_std, (len(X), self.n_outputs_))
        return (errors / self._y_scaling.scale) ** 2

    @property
    def _counts(self):
        return bool(self._noise_models & set(COUNTS))

    @property
    def _noise_models(self):
        return {getattr(self, "noise_model_", None)}

    @property
    def _noise_is_measured(self):
        """True if an output has no noise but known errors."""
        return bool(np.any(without_noise(self._result.problem)))

    def _functions(self, draws):
        """Convert ``(size, n, n_outputs)`` in standardised units to the shape of `sample_y`."""
        return self._shaped(np.moveaxis(self._y_scaling.inverse(draws), 0, -1))

    def _shaped(self, values):
        """Drop the axis of outputs if y had none."""
        return values[:, 0] if self._y_is_1d else values


def without_noise(problem):
    """Mask of the outputs without noise but known errors, ``(n_outputs,)``."""
    free, precision = problem.noise_precision
    return (~free & (precision >= NO_NOISE))[problem.likelihood.levels]
