"""Pipelines and transformed targets with the methods of the estimators.

The classes replace scikit-learn's classes of equal names. They provide error bars, intervals,
densities and evidences, in units of the targets that they are fitted to::

    from skbayesnn.compose import TransformedTargetRegressor, make_pipeline
"""

from skbayesnn.compose._pipeline import Pipeline, make_pipeline
from skbayesnn.compose._target import TransformedTargetRegressor

__all__ = ["Pipeline", "TransformedTargetRegressor", "make_pipeline"]
