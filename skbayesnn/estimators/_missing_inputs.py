"""Rows with missing inputs: imputed for the fit, averaged over in predictions."""

import numpy as np

from skbayesnn._data import canonical_rows
from skbayesnn._threads import one_blas_thread
from skbayesnn.estimators._rows import generator
from skbayesnn.predictive import FillingEnsemble, InputGaussian

MISSING = (
    "Input X contains NaN. Use missing='impute', which averages over what is missing, or put an "
    "imputer in front, such as sklearn.impute.SimpleImputer(add_indicator=True)."
)
IMPUTATIONS = 6  # of a training row with missing inputs, in pairs symmetric about the mean


class MissingInputs:
    """Part of `BayesianMLP`: the parameter ``missing``."""

    def __sklearn_tags__(self):
        """Whether missing inputs are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    def _check_gaps(self, X, sample_weight):
        """Raise if inputs are missing and cannot be filled."""
        gaps = np.isnan(X)
        if not gaps.any():
            return
        if self.missing == "error":
            raise ValueError(MISSING)
        empty = np.flatnonzero(gaps[sample_weight > 0].all(axis=0))
        if len(empty):
            raise ValueError(
                f"Columns {empty.tolist()} of X hold NaN in all rows of positive weight, so "
                "they give no information. Leave them out."
            )

    def _filled(self, rows):
        """Rows in which nothing is missing, and the distribution of the inputs or ``None``.

        A row with missing inputs becomes `IMPUTATIONS` rows, which share its weight.
        """
        if self.missing == "error":
            return rows, None
        with one_blas_thread():
            return self._imputed(rows)

    def _imputed(self, rows):
        """`_filled` where inputs may be missing."""
        n_features = rows.X.shape[1]
        table = np.hstack([rows.X, self._known(rows)])
        joint = InputGaussian.fitted(table, rows.weight)
        inputs, gaps = joint.marginal(n_features), np.isnan(rows.X).any(axis=1)
        if not gaps.any():
            return rows, inputs
        half = generator(self.random_state).standard_normal((IMPUTATIONS // 2, *table.shape))
        filled = [joint.filled(table, z)[:, :n_features] for z in (*half, *-half)]
        shares = np.where(gaps[:, None], 1.0 / IMPUTATIONS, np.eye(IMPUTATIONS)[0])
        X = np.stack(filled, axis=1).reshape(-1, n_features)
        y = np.repeat(rows.y, IMPUTATIONS, axis=0)
        errors = None if rows.errors is None else np.repeat(rows.errors, IMPUTATIONS, axis=0)
        weight = (rows.weight[:, None] * shares).ravel()
        return canonical_rows(X, y, weight, errors)._replace(shares=shares, before=rows), inputs

    def _average_over_missing(self, inputs):
        """Let predictions average over missing inputs, if they may be missing."""
        if inputs is None:
            return
        inputs = inputs.scaled(self._X_scaling)
        self._ensemble, self._gaussians = (
            FillingEnsemble(some.parts, some.weights, inputs)
            for some in (self._ensemble, self._gaussians)
        )

    def _check_gaps_to_predict(self, X, allowed):
        """Raise if inputs are missing that the fit, or this prediction, cannot do without."""
        if not np.isnan(X).any():
            return
        if not isinstance(self._ensemble, FillingEnsemble):
            raise ValueError(MISSING)
        if not allowed:
            raise ValueError("Input X contains NaN, but this method needs complete rows.")
