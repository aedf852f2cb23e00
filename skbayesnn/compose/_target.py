"""Regression of transformed targets, with predictions, densities and evidence of the targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skbayesnn._docs import FITTED, LinkToSite, documented
from skbayesnn._typing import Estimator
from skbayesnn.compose._distribution import MonotoneMap, TransformedDistribution
from skbayesnn.estimators import EvidenceMLPRegressor
from skbayesnn.estimators._pipeline import (
    final_step,
    path_to_final_step,
    predictive_distribution,
    predictor,
)
from skbayesnn.estimators.inputs._parameters import check
from skbayesnn.estimators.inputs._rows import checked_sides, checked_weights
from skbayesnn.estimators.predictions._limits import r2_with_limits
from skbayesnn.estimators.tasks._regression import Predictions, Regression


def passed(fit_params, name):
    """Value of an argument of ``fit`` of the last step among ``step__name``, or ``None``."""
    return next((v for key, v in fit_params.items() if key.split("__")[-1] == name), None)


def passed_weights(fit_params, n_rows):
    """Row weights among the parameters of ``fit``; ones if there are none."""
    return checked_weights(passed(fit_params, "sample_weight"), n_rows)


def _functions(method):
    """Delegate a method that draws functions to the regressor, and transform them back."""

    @wraps(method)
    def draw(self, X, n_samples=1, random_state=0):
        check_is_fitted(self)
        model, rows = predictor(self.regressor_, X)
        t = getattr(model, method.__name__)(rows, n_samples, random_state)
        return self._map.back(t, axis=1)

    return draw


@documented(FITTED)
@dataclass(eq=False, repr=False)
class TransformedTargetRegressor(
    LinkToSite, Predictions, MetaEstimatorMixin, RegressorMixin, BaseEstimator
):
    """Regression of transformed targets, with predictions in units of the original targets.

    The regressor is fitted to ``t = func(y)``. If the transformation of each output is monotone,
    the predictions of ``t`` give the predictive distribution of ``y``: quantiles and intervals of
    ``t`` are transformed back, and densities are multiplied by the slope ``|dt/dy|``. The evidence
    is multiplied by the slopes at all training targets. It is then a density over ``y`` in its own
    units, by which models of different transformations, or of none, can be compared (Box & Cox 1964
    compare likelihoods in this way).

    Parameters
    ----------
    regressor : estimator, optional
        Regressor of this package, or a pipeline or `EvidenceSearch` that ends in one; by default
        `EvidenceMLPRegressor`.
    transformer : object, optional
        Transformer of targets with ``inverse_transform``, such as
        `sklearn.preprocessing.PowerTransformer`; not together with ``func``. Parameters fitted to
        the training targets count as given: the evidence has no Occam factor for them.
    func, inverse_func : callable, optional
        Transformation of arrays of targets and its inverse, such as `numpy.log` and `numpy.exp`; by
        default the identity.
    prediction : {"median", "mean"}, default="median"
        Prediction that `predict` returns. The median is ``inverse_func`` of the median of ``t``,
        and always exists. The mean, by quadrature, has the least squared error. It and standard
        deviations are ``nan`` where they do not exist, as behind a Box-Cox transformation of
        negative power, see `TransformedDistribution`.

    Attributes
    ----------
    regressor_ : estimator
        Regressor, fitted to the transformed targets.
    transformer_ : object
        Fitted transformer of the targets.
    log_evidence_ : float
        Log evidence in nats, a density over y in its own units: ``regressor_.log_evidence_`` plus
        ``sum_n s_n ln |dt_n/dy_n|``, with ``s_n`` the weight of a row; ``nan`` if there is none.
    log_evidence_std_ : float
        Standard error of ``log_evidence_``.
    log_slopes_ : ndarray of shape (n_samples,)
        Log slope ``ln |dt_n/dy_n|`` of every training row, summed over the measured outputs;
        ``nan`` where the transformation has no finite slope, for which there is no evidence.
    leave_one_out_log_density_ : ndarray of shape (n_samples,)
        Attribute of `EvidenceMLPRegressor`, as a density over y in its own units.
    evidence_report_ : EvidenceReport
        Report as of `EvidenceMLPRegressor`; the logarithms of the slopes are part of
        ``target_scale``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.compose.TransformedTargetRegressor : For any regressor, without distributions.

    Notes
    -----
    Where the transformation takes values in an interval only, predictions of ``t`` beyond it count
    as its end: with ``np.sqrt`` negative values predict the target 0. Drawn functions of ``t`` are
    transformed back: they are medians of the targets, given the weights.

    References
    ----------
    G. E. P. Box & D. R. Cox (1964), "An analysis of transformations", Journal of the Royal
    Statistical Society B 26.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.compose import TransformedTargetRegressor
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> y = np.exp(2 * X[:, 0] + 0.3 * np.random.default_rng(0).standard_normal(60))
    >>> plain = EvidenceMLPRegressor((), noise="constant")
    >>> model = TransformedTargetRegressor(plain, func=np.log, inverse_func=np.exp).fit(X, y)
    >>> bool(model.log_evidence_ > plain.fit(X, y).log_evidence_ + 50)
    True
    >>> bool(np.all(model.predict_interval(X) > 0))
    True
    """

    regressor: Estimator = None
    _: KW_ONLY
    transformer: Any = None
    func: Callable[..., Any] | None = None
    inverse_func: Callable[..., Any] | None = None
    prediction: str = "median"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        censored: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Transform the targets, and fit the regressor to them.

        Parameters
        ----------
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row. A transformer whose ``fit`` has no ``sample_weight`` is
            fitted to the rows of positive weight.
        censored : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of which only a limit is known: -1 if the value lies below ``y``, 1 if it lies
            above, 0 where it was measured.
        **fit_params : dict
            Further arguments of ``fit`` of the regressor.

        Raises
        ------
        ValueError
            If parameters or data are invalid, or if the inverse of the transformation does not
            lead back to ``y``.
        TypeError
            If the regressor gives no predictive distribution.
        """
        regressor = self._checked_regressor()
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        one_dimensional, y = y.ndim == 1, y[:, None] if y.ndim == 1 else y
        path = path_to_final_step(regressor)
        if sample_weight is not None:
            fit_params = {**fit_params, "__".join([*path, "sample_weight"]): sample_weight}
        weight = passed_weights(fit_params, len(y))
        censored = passed(fit_params, "censored") if censored is None else censored
        sides = checked_sides(0 if censored is None else censored, y.shape)
        transformer = self._fitted_transformer(y, weight)
        mapping = MonotoneMap(transformer, y[weight > 0], one_dimensional)
        t = mapping.forward(y)
        if censored is not None:
            fit_params = {**fit_params, "__".join([*path, "censored"]): mapping.sides(sides)}
        regressor.fit(X, mapping.shaped(t), **fit_params)
        self.regressor_, self.transformer_ = regressor, transformer
        self._map = mapping
        self._keep(mapping.log_slope(t, sides).sum(axis=1), weight)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the median or mean of the targets, see ``prediction``.

        Parameters
        ----------
        return_std : bool, default=False
            Also return the total standard deviation, see `predict_std`.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions, in units of y.
        y_std : ndarray of the same shape
            Standard deviation; only with ``return_std``.
        """
        distribution = self.predict_distribution(X)
        centre = distribution.ppf(0.5) if self.prediction == "median" else distribution.mean()
        return (centre, distribution.std()) if return_std else centre

    def predict_distribution(
        self, X: ArrayLike, measurement_std: None = None, exposure: None = None
    ) -> TransformedDistribution:
        """Predict the distribution of the targets, from which all other predictions follow.

        Parameters
        ----------
        measurement_std, exposure : None
            Not supported for transformed targets.

        Returns
        -------
        TransformedDistribution
            Density, quantiles, moments and more, by the names of SciPy's distributions.
        """
        if measurement_std is not None or exposure is not None:
            raise ValueError(
                "measurement_std and exposure are not supported for transformed targets. Leave "
                "them out, or fit the targets as they are."
            )
        check_is_fitted(self)
        return TransformedDistribution(predictive_distribution(self.regressor_, X), self._map)

    @documented(Regression.score.__doc__ or "")
    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        censored: ArrayLike | None = None,
    ) -> float:
        """Compute R2 of `predict`, with limits as `EvidenceMLPRegressor.score` does."""
        predicted, at = self.predict(X), self.predict_distribution(X)
        sides = at._sides(censored, (len(at), len(self._map.spread)))
        return r2_with_limits(y, predicted, sample_weight, sides)

    sample_y = _functions(EvidenceMLPRegressor.sample_y)
    sample_prior = _functions(EvidenceMLPRegressor.sample_prior)

    def _checked_regressor(self):
        """Check the parameters, and return the regressor to fit."""
        check(self, prediction=("median", "mean"))
        functions = self.func, self.inverse_func
        if self.transformer is not None and functions != (None, None):
            raise ValueError("Give either transformer or func with inverse_func, not both.")
        if (self.func is None) != (self.inverse_func is None):
            raise ValueError("func and inverse_func must be given together.")
        if not hasattr(final_step(self._wrapped), "predict_quantiles"):
            raise TypeError(
                "regressor must be a regressor of this package, or a pipeline or EvidenceSearch "
                f"that ends in one; got {self.regressor!r}. For others there is "
                "sklearn.compose.TransformedTargetRegressor."
            )
        return clone(self._wrapped)

    @property
    def _wrapped(self):
        return EvidenceMLPRegressor() if self.regressor is None else self.regressor

    def _fitted_transformer(self, y, weight):
        if self.transformer is None:
            functions = self.func, self.inverse_func
            return FunctionTransformer(*functions, check_inverse=False).fit(y)
        transformer = clone(self.transformer)
        if hasattr(transformer, "set_output"):
            transformer.set_output(transform="default")
        if has_fit_parameter(transformer, "sample_weight"):
            return transformer.fit(y, sample_weight=weight)
        return transformer.fit(y[weight > 0])

    @property
    def log_evidence_(self):
        """Log evidence in nats, see the class."""
        check_is_fitted(self, "_total_log_slope")
        return getattr(final_step(self.regressor_), "log_evidence_", np.nan) + self._total_log_slope

    def _keep(self, log_slopes, weight):
        inner, counts = final_step(self.regressor_), weight > 0
        self.log_slopes_ = log_slopes
        total = float(weight[counts] @ log_slopes[counts])
        self.log_evidence_std_ = getattr(inner, "log_evidence_std_", np.nan)
        if np.isnan(total):
            warnings.warn(
                "log_evidence_ is nan: the transformation has no finite slope at some training "
                "targets. Predictions remain usable. Use a smooth transformation.",
                UserWarning,
                stacklevel=3,
            )
        self._total_log_slope = total
        for name in ("n_features_in_", "feature_names_in_", "leave_one_out_log_density_"):
            vars(self).pop(name, None)  # of an earlier fit
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.regressor_, name):
                setattr(self, name, getattr(self.regressor_, name))
        if hasattr(inner, "leave_one_out_log_density_"):
            self.leave_one_out_log_density_ = inner.leave_one_out_log_density_ + log_slopes

    @property
    def evidence_report_(self):
        """Report on the evidence of the regressor, as a density of ``y``."""
        return self._report()

    def _report(self, log_slopes=0.0):
        check_is_fitted(self)
        model = final_step(self.regressor_)
        model = final_step(getattr(model, "best_estimator_", model))  # of a search
        return model._report(log_slopes + self._total_log_slope)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._wrapped)
        for name in ("input_tags", "regressor_tags", "target_tags", "non_deterministic"):
            setattr(tags, name, getattr(inner, name))
        return tags
