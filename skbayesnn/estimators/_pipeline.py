"""Access to estimators of this package at the end of a pipeline."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from skbayesnn._typing import Estimator


def final_step(model: Estimator) -> Estimator:
    """Return the estimator itself, or the last step of a pipeline, which may be nested."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def path_to_final_step(model: Estimator) -> Any:
    """Names of the last steps of a pipeline and of the pipelines nested in them."""
    if not isinstance(model, Pipeline):
        return []
    name, last = model.steps[-1]
    return [name, *path_to_final_step(last)]


def predictor(model: Estimator, X: ArrayLike) -> Any:
    """Return the model that predicts inside pipelines and searches, and its rows, if any."""
    if isinstance(model, Pipeline):
        inputs = X if X is None or len(model) == 1 else model[:-1].transform(X)
        return predictor(model.steps[-1][1], inputs)
    for inner in ("predictor_", "best_estimator_"):  # of searches; perhaps an average
        if hasattr(model, inner):
            return predictor(getattr(model, inner), X)
    return model, X


def predictive_distribution(estimator: Estimator, X: ArrayLike, **kwargs: Any) -> Any:
    """Predict the distribution of the targets by the last step of a pipeline, or by a search.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted model of this package, also its `TransformedTargetRegressor`, or a pipeline or search
        that ends in one.
    X : array-like of shape (n_samples, n_features)
        Inputs of the whole pipeline.
    **kwargs
        Further arguments of ``predict_distribution``.

    Returns
    -------
    PredictiveDistribution, TransformedDistribution or CategoricalDistribution
        Distribution of the targets of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.estimators import predictive_distribution
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> model = make_pipeline(StandardScaler(), EvidenceMLPRegressor(())).fit(X, 2 * X[:, 0])
    >>> predictive_distribution(model, X).ppf([0.1, 0.9]).shape
    (20, 2)
    """
    model, X = predictor(estimator, X)
    if not hasattr(model, "predict_distribution"):
        raise TypeError(
            f"{type(model).__name__} has no predictive distribution. Give an estimator or pipeline "
            "of this package; transform targets by skbayesnn.compose.TransformedTargetRegressor."
        )
    return model.predict_distribution(X, **kwargs)
