"""Log evidence as a score for scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, check_is_fitted

from skbayesnn._typing import Estimator
from skbayesnn.estimators import final_step


def evidence_score(estimator: Estimator, X: Any = None, y: Any = None) -> float:
    """Return the log evidence of a fitted model, as a scorer.

    ``GridSearchCV(model, grid, scoring=evidence_score, cv=AllData())`` chooses by evidence, with
    one fit per candidate and one more of the best (MacKay 1992, section 2.2). Pass the
    function itself: scikit-learn accepts only the names of its own scorers.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted model; it, or its last step, has ``log_evidence_``. Evidences of models of
        differently transformed targets can be compared if
        `skbayesnn.compose.TransformedTargetRegressor` transforms them.
    X, y : ignored
        The evidence is that of the rows the model was fitted to.

    Returns
    -------
    float
        Log evidence in nats; ``nan`` if the evidence is not available.

    Raises
    ------
    TypeError
        If the model has no evidence.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.model_selection import AllData, evidence_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(), noise="constant")
    >>> grid = {"prior": ["layer", "ard"]}
    >>> search = GridSearchCV(model, grid, scoring=evidence_score, cv=AllData()).fit(X, y)
    >>> search.best_params_
    {'prior': 'layer'}
    """
    check_is_fitted(estimator)
    last = final_step(estimator)
    if not hasattr(last, "log_evidence_"):
        raise TypeError(
            f"{type(last).__name__} has no log_evidence_. Use an estimator of this package (for "
            "transformed targets skbayesnn.compose.TransformedTargetRegressor), or another scoring."
        )
    return float(last.log_evidence_)


class AllData:
    """Cross-validation splitter with one split, whose training and test rows are all rows.

    The evidence needs no rows set aside. Scores of predictions on such a split are training scores.

    Examples
    --------
    >>> from skbayesnn.model_selection import AllData
    >>> [(train.tolist(), test.tolist()) for train, test in AllData().split([[1], [2], [3]])]
    [([0, 1, 2], [0, 1, 2])]
    """

    def split(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Any:
        """Yield all rows, for training and for testing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to split.
        y, groups : ignored
            Present for compatibility with scikit-learn.

        Yields
        ------
        train, test : ndarray of shape (n_samples,)
            Indices of all rows, twice.
        """
        rows = np.arange(_num_samples(X))
        yield rows, rows.copy()

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : ignored
            Present for compatibility with scikit-learn.

        Returns
        -------
        int
            Always 1.
        """
        return 1

    def __repr__(self):
        return "AllData()"
