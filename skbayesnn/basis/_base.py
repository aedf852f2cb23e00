"""Base classes of all basis transformers: the scikit-learn contract."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayesnn._docs import LinkToSite, documented
from skbayesnn._typing import Array

COLUMNS = """Transformers.

Attributes
----------
n_features_in_ : int
feature_names_in_ : ndarray of str
"""


@documented()
class BasisFeatures(LinkToSite, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer from inputs to values of basis functions.

    A subclass provides ``_check_parameters()``, ``_learn(X)``, ``_values(X)`` of shape
    (n_samples, n_features_out) and ``_names(input_names)``.
    """

    def __init_subclass__(cls):
        documented(COLUMNS)(cls)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Place the basis functions over the training inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs. Neither the order of the rows nor repetitions matter.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._check_parameters()
        self._learn(validate_data(self, X, dtype=np.float64))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Evaluate the basis functions.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Values, one column per basis function.
        """
        check_is_fitted(self)
        return self._values(validate_data(self, X, dtype=np.float64, reset=False))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the basis functions.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the inputs; by default those seen in `fit`, or ``x0, x1, ...``.

        Returns
        -------
        ndarray of str objects
            Names, one per column of `transform`.
        """
        inputs = super().get_feature_names_out(input_features)  # as checked by scikit-learn
        return np.array(self._names(inputs), dtype=object)


class ColumnFeatures(BasisFeatures):
    """Basis functions of one input, applied to every input, side by side.

    A linear model on them is additive in the inputs. A subclass provides ``_functions(X)`` of shape
    (n_samples, n_features, n_functions) and ``_labels()`` of the functions.
    """

    def _values(self, X):
        return self._functions(X).reshape(len(X), -1)

    def _names(self, inputs):
        return [f"{name}_{label}" for name in inputs for label in self._labels()]


def middle_and_reach(X):
    """Middle of every column's range and half its width, 1 for constant columns."""
    low, high = X.min(axis=0), X.max(axis=0)
    reach = 0.5 * high - 0.5 * low
    return 0.5 * low + 0.5 * high, np.where(reach > 0, reach, 1.0)
