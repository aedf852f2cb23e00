"""Pipelines and transformed targets with the methods of the estimators.

Drop-in replacements for the classes of the same names of scikit-learn. Error bars, intervals,
densities and evidences come through them, in units of the targets that they are fitted to::

    from skbayesnn.compose import TransformedTargetRegressor, make_pipeline
"""

from skbayesnn.compose._pipeline import Pipeline, make_pipeline
from skbayesnn.compose._target import TransformedTargetRegressor

__all__ = ["Pipeline", "TransformedTargetRegressor", "make_pipeline"]
