"""How much of the prior's uncertainty the data have left at a row."""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.base import is_classifier

from skbayesnn._typing import Array
from skbayesnn.estimators._rows import generator
from skbayesnn.network import row_blocks
from skbayesnn.predictive import class_probabilities

PRIOR_DRAWS = 1000  # standard error of a variance about 5 %


class Novelty:
    """Mixin of the novelty of rows, for all estimators."""

    @overload
    def novelty(self, X: ArrayLike, return_distance: Literal[False] = False) -> Array: ...

    @overload
    def novelty(self, X: ArrayLike, return_distance: Literal[True]) -> tuple[Array, Array]: ...

    def novelty(self, X: ArrayLike, return_distance: bool = False) -> Any:
        """Share of the prior variance of the function that the data have not removed.

        It is the posterior variance of the function, without noise, over its variance under the
        prior at the inferred precisions, both summed over standardised outputs or, for classifiers,
        over the class probabilities, and at most 1. The prior variance is that of 1000 drawn
        functions, and has an error of about 5 %.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_distance : bool, default=False
            Also return the distance from the training rows.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Between 0 (known) and 1 (nothing but the prior).
        distance : ndarray of shape (n_samples,)
            Distance from the nearest training row: the root mean square over the inputs, in
            standard deviations of each input; only with ``return_distance``. After ``partial_fit``
            the rows of the last batch count.

        Notes
        -----
        Bounded activations such as ``"tanh"`` saturate far outside the data, where the function is
        constant. Novelty then tends to that of this constant, which may be well below 1. Use
        the distance as well.
        """
        X, classes = self._check_X(X), is_classifier(self)
        if classes:
            posterior = np.sum(self._ensemble.probability_std(X) ** 2, axis=1)
        else:
            posterior = np.trace(self._ensemble.moments(X, "epistemic")[1], axis1=1, axis2=2)
        prior = np.empty(len(X))
        for rows in row_blocks(len(X), PRIOR_DRAWS * self.n_outputs_):
            draws = self._draw_prior(X[rows], PRIOR_DRAWS, generator(0))
            draws = class_probabilities(draws) if classes else draws
            prior[rows] = np.sum(np.var(draws, axis=0), axis=1)
        novelty = np.clip(posterior / np.maximum(prior, np.finfo(float).tiny), 0.0, 1.0)
        if not return_distance:
            return novelty
        distance = cKDTree(self._result.problem.X).query(X)[0]
        return novelty, distance / np.sqrt(X.shape[1])
