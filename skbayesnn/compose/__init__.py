"""Regression of transformed targets with the methods of the estimators.

`TransformedTargetRegressor` replaces scikit-learn's class of that name. It provides error bars,
intervals, densities and evidences, in units of the targets that it is fitted to::

    from skbayesnn.compose import TransformedTargetRegressor
"""

from skbayesnn.compose._target import TransformedTargetRegressor

__all__ = ["TransformedTargetRegressor"]
