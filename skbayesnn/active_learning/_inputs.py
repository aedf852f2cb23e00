"""Validation of users' input: estimators, inputs, and the quantities of interest."""

from typing import NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators import BayesianMLP
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.inputs._parameters import one_of
from skbayesnn.estimators.inputs._rows import checked_weights

QUANTITIES = ("total", "marginal", "joint", "mean_marginal", "predicted_target", "q_optimal")
REGRESSION_ONLY = ("joint", "q_optimal")
METHODS = ("approximation", "exact")
DRAWS_PER_TARGET = 10  # least number of draws per output of a joint gain
QUESTION = """Active learning.

Parameters
----------
estimator : estimator or Pipeline
    Fitted estimator of this package, or a pipeline or search that ends with one.
X_candidates : array-like of shape (n_candidates, n_features)
    Inputs at which a measurement is possible.
X_interest : array-like of shape (n_points, n_features), optional
    Inputs at which predictions are wanted. Every kind except ``"total"`` needs them.
interest_weight : array-like of shape (n_points,), optional
    Relative importance ``P_u`` of the points of interest; by default equal.
method : {"approximation", "exact"}, default="approximation"
    Method of `information_gain`.
price : float, optional
    Price of a measurement, in the units of the gain. The selection stops when the gain of the best
    candidate is lower (MacKay 1992, section 4.7).
return_gains : bool, default=False
    Also return the gains.

Raises
------
TypeError
    If an estimator is not one of this package, or has not what is asked for.
ValueError
    If inputs have other features than in `fit`, or arguments do not fit the estimator.
sklearn.exceptions.NotFittedError
    If an estimator is not fitted.
"""


class Question(NamedTuple):
    """Quantities that measurements are to determine, about standardised points of interest."""

    kind: str
    method: str
    y_scale: np.ndarray  # units of y per standardised unit, (n_outputs,)
    X_interest: np.ndarray | None = None  # (n_points, n_features)
    weight: np.ndarray | None = None  # importance P_u of the points, summing to 1: (n_points,)


def resolve(estimator, kind=BayesianMLP, name="estimator of this package"):
    """Return the fitted estimator of this package, and the map from user's to standardised rows."""
    model, _ = predictor(estimator, None)
    if not isinstance(model, kind):
        raise TypeError(
            f"The estimator must be a fitted {name}, a pipeline or search of one; got {model!r}. "
            "Of an averaging search pass best_estimator_, of a transformed target regressor_."
        )
    check_is_fitted(model)
    return model, lambda X: model._check_X(predictor(estimator, X)[1])


def pose(model, prepare, X_interest, interest_weight, kind, method):
    """Check the requested kind of gain and its arguments, and return the `Question`."""
    if kind is None:
        kind = "total" if X_interest is None else "mean_marginal"
    one_of(kind, "kind", QUANTITIES)
    one_of(method, "method", METHODS)
    if X_interest is None and interest_weight is not None:
        raise ValueError("interest_weight can be used only with X_interest.")
    if is_classifier(model) and kind in REGRESSION_ONLY:
        raise ValueError(
            f"kind={kind!r} exists for regression only; for a classifier choose 'total', "
            "'marginal' or 'mean_marginal'."
        )
    if kind == "total":
        return Question(kind, method, model._y_scaling.scale)
    if X_interest is None:
        raise ValueError(
            f"kind={kind!r} needs X_interest, the points at which predictions are wanted."
        )
    X_interest = prepare(X_interest)
    weight = checked_weights(interest_weight, len(X_interest), "interest_weight")
    if kind == "joint" and isinstance(model, HMCMLP):
        n_draws, wanted = len(model.networks_), X_interest.shape[0] * model.n_outputs_
        if n_draws < DRAWS_PER_TARGET * wanted:
            raise ValueError(
                f"The joint gain about {wanted} outputs cannot be estimated from {n_draws} draws. "
                f"Use at least {DRAWS_PER_TARGET * wanted} draws, fewer points of interest, or "
                "kind='mean_marginal'."
            )
    return Question(kind, method, model._y_scaling.scale, X_interest, weight / weight.sum())
