"""Estimators of this package at the end of a pipeline."""

from sklearn.pipeline import Pipeline


def final_step(model):
    """The estimator itself, or the last one of a pipeline, which may be nested.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted or not.

    Returns
    -------
    estimator
        The one that predicts.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.estimators import final_step
    >>> final_step(make_pipeline(StandardScaler(), EvidenceMLPRegressor()))
    EvidenceMLPRegressor()
    """
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def before_final_step(model, X):
    """Inputs as the last step of a pipeline gets them.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Inputs of the whole pipeline.

    Returns
    -------
    array-like
        Inputs of `final_step`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.estimators import before_final_step
    >>> X = np.array([[0.0], [2.0], [4.0], [6.0]])
    >>> model = make_pipeline(StandardScaler(with_std=False), EvidenceMLPRegressor(()))
    >>> before_final_step(model.fit(X, X[:, 0] ** 2), X).T
    array([[-3., -1.,  1.,  3.]])
    """
    while isinstance(model, Pipeline):
        if len(model) > 1:
            X = model[:-1].transform(X)
        model = model.steps[-1][1]
    return X
