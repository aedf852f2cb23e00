"""Predictive distributions of the classes of given rows, with the methods of SciPy's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import generator

TINY = np.finfo(float).tiny
CLASSES = """Distributions of classes, at rows.

Parameters
----------
y : label or array-like of shape (n_samples,)
    One label for all rows, or one for each.

Returns
-------
ndarray of shape (n_samples,)
    One value or label for each row.
"""


@documented(CLASSES)
@dataclass(frozen=True, repr=False, eq=False)
class CategoricalDistribution:
    """Predictive distribution of the classes of given rows.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Moderated probabilities.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.estimators import CategoricalDistribution
    >>> at = CategoricalDistribution(np.array([[0.1, 0.9]]), np.array(["no", "yes"]))
    >>> at.mode(), at.pmf(["no"])
    (array(['yes'], dtype='<U3'), array([0.1]))
    >>> at.entropy().round(3)
    array([0.325])
    """

    probabilities: Array
    classes: Array

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by a slice, an index array or a mask."""
        return replace(self, probabilities=self.probabilities[rows])

    def __len__(self):
        return len(self.probabilities)

    def __repr__(self):
        classes = ", ".join(map(repr, self.classes.tolist()))
        return f"<{type(self).__name__}: {len(self)} rows, classes {classes}>"

    def mean(self) -> Array:
        """Return the mean of one-hot classes.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.
        """
        return self.probabilities

    def mode(self) -> Array:
        """Return the most probable class."""
        return self.classes[np.argmax(self.probabilities, axis=1)]

    def pmf(self, y: ArrayLike) -> Array:
        """Return the probability of classes."""
        n = len(self.probabilities)
        y = column_or_1d(np.full(n, y) if np.ndim(y) == 0 else y)
        check_consistent_length(self.probabilities, y)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise ValueError(f"y holds classes that were not in the training data: {unknown}.")
        return self.probabilities[np.arange(n), np.searchsorted(self.classes, y)]

    def logpmf(self, y: ArrayLike) -> Array:
        """Return the log probability of classes in nats, with the smallest number in place of 0."""
        return np.log(np.maximum(self.pmf(y), TINY))

    def entropy(self) -> Array:
        """Compute the entropy ``-sum_c p_c ln p_c``, in nats."""
        return np.sum(entr(self.probabilities), axis=1)

    def rvs(self, size: int | None = None, random_state: RandomState = 0) -> Array:
        """Draw classes, each row by itself.

        Parameters
        ----------
        size : int, optional
            Number of draws.

        Returns
        -------
        ndarray of shape (n_samples,) or (size, n_samples)
            Labels.
        """
        rng, number = generator(random_state), 1 if size is None else count(size, "size")
        below = np.cumsum(self.probabilities, axis=1)[:, :-1]
        drawn = np.sum(rng.uniform(size=(number, len(below), 1)) > below, axis=-1)
        return self.classes[drawn[0] if size is None else drawn]
