"""Mixin of classifiers: classes as targets, and predictions from class probabilities."""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn._data import Scaling
from skbayesnn._docs import documented
from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.estimators.inputs._rows import (
    StandardTargets,
    checked_weights,
    generator,
    validated,
)
from skbayesnn.estimators.predictions._categorical import TINY, CategoricalDistribution
from skbayesnn.posterior import Bernoulli, Categorical
from skbayesnn.predictive import class_probabilities

SUM_TOLERANCE = 1e-6  # by which class probabilities of a row may miss 1
# number of labels up to which numbers are taken for classes, fraction of the rows above which
# scikit-learn warns of all labels, and share of amounts that occur once
FEW_LABELS, MAX_LABELS, MAX_SINGLE = 20, 0.5, 0.25
WANTED = (
    "y with several columns must hold class probabilities, which are not negative and sum to 1 in "
    "every row. For several labels of a row use sklearn.multioutput.MultiOutputClassifier."
)
OF_CLASSES = """Predictions of classes.

Returns
-------
ndarray of shape (n_samples, n_classes)
    In the order of ``classes_``.
"""


def has_columns(y):
    """Return True if targets are a table of more than one column, not labels."""
    try:
        shape = np.asarray(y).shape
    except ValueError:  # sequences of different lengths
        return False
    return len(shape) == 2 and shape[1] > 1


def class_shares(y):
    """Classes, sorted, and their probabilities in every row, ``(n, n_classes)``."""
    names = getattr(y, "columns", None)
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"y has several columns of the same name: {list(names)}.")
    try:
        shares = check_array(y, dtype=np.float64, input_name="y")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{WANTED} {error}") from error
    if np.any(shares < 0) or np.any(np.abs(shares.sum(axis=1) - 1.0) > SUM_TOLERANCE):
        raise ValueError(WANTED)
    classes = np.arange(shares.shape[1]) if names is None else np.asarray(names)
    order = np.argsort(classes, kind="stable")
    return classes[order], shares[:, order]


@documented(OF_CLASSES)
class Classification(ClassifierMixin):
    """Predictions of classifiers, whatever the engine.

    The class probabilities are those of ``_ensemble``, which takes standardised rows.
    """

    def predict(self, X: ArrayLike) -> Array:
        """Most probable class, by the moderated probabilities.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        return self.predict_distribution(X).mode()

    def predict_distribution(self, X: ArrayLike) -> CategoricalDistribution:
        """Distribution of the classes, by the moderated probabilities.

        Returns
        -------
        CategoricalDistribution
            Probabilities, entropy and draws, by the names of SciPy's distributions.
        """
        return CategoricalDistribution(self.predict_proba(X), self.classes_)

    def predict_proba(self, X: ArrayLike, moderated: bool = True) -> Array:
        """Class probabilities.

        Parameters
        ----------
        moderated : bool, default=True
            ``True``: averaged over the posterior. Samplers: the mean over the drawn networks.
            Evidence estimators: over Gaussian activations (MacKay 1992, equation 5.7), by
            quadrature for two classes (exact to 1e-12) and by 1024 fixed quasi-random points for
            more (errors of the order of 0.001). ``False``: outputs of the most probable weights, or
            of the draw of highest density.
        """
        X = self._check_X(X)
        if moderated not in (True, False):
            raise ValueError(f"moderated must be True or False, got {moderated!r}.")
        ensemble = self._ensemble if moderated else self._gaussians
        probabilities = ensemble.probabilities(X, moderated)
        return np.minimum(probabilities, 1.0)  # averages may round to more

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of `predict_proba`, with the smallest normal number in place of 0."""
        return np.log(np.maximum(self.predict_proba(X), TINY))

    def decision_function(self, X: ArrayLike) -> Array:
        """Logit of the second class's probability; log probabilities for more classes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Large where the class is likely.
        """
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict_std(self, X: ArrayLike) -> Array:
        """Posterior standard deviation of each class probability."""
        X = self._check_X(X)
        return self._ensemble.probability_std(X)

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Log of the moderated probability of the true class.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Class labels, or class probabilities as in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats; for probabilities ``p`` the mean ``sum_c p_c ln P_c`` over the classes.
        """
        if has_columns(y):
            log_proba = self.predict_log_proba(X)
            check_consistent_length(log_proba, y)
            classes, shares = class_shares(y)
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"y has columns for the classes {classes}, but the model was fitted with "
                    f"{self.classes_}."
                )
            return np.sum(shares * log_proba, axis=1)
        return self.predict_distribution(X).logpmf(y)

    def sample_prior(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0
    ) -> Array:
        """Class probabilities of networks drawn from the prior at the inferred precisions.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of networks.

        Returns
        -------
        ndarray of shape (n_samples_X, n_classes, n_samples)
            Probabilities, summing to 1 over the classes.
        """
        X, n_samples = self._check_X(X), count(n_samples, "n_samples")
        activations = self._draw_prior(X, n_samples, generator(random_state))
        return np.moveaxis(class_probabilities(activations), 0, -1)

    def _output_names(self, n_outputs):
        return self.classes_[-n_outputs:]

    def _check_rows(self, X, y, sample_weight):
        self._classes_were_known = hasattr(self, "classes_")  # before these rows
        if not has_columns(y):
            return super()._check_rows(X, y, sample_weight)
        classes, shares = class_shares(y)
        X, shares = validated(self, X, shares, multi_output=True)
        self.classes_ = classes
        return X, shares, checked_weights(sample_weight, len(X))

    def _canonical(self, X, y, sample_weight, known=None):
        """A row with class probabilities becomes a row for each class, with them as weights."""
        shares = None
        if y.shape[1] > 1:
            shares, (n, n_classes) = y, y.shape
            X, y = np.repeat(X, n_classes, axis=0), np.tile(np.arange(n_classes), n)[:, None]
            sample_weight = (sample_weight[:, None] * shares).ravel()
        rows = super()._canonical(X, y.astype(float), sample_weight)
        return rows._replace(weight=rows.weight * self._class_factors(rows), shares=shares)

    def _class_factors(self, rows):
        """Factors of the weights of all rows by ``class_weight``."""
        given, codes = self.class_weight, rows.y[:, 0].astype(int)
        if given is None:
            return 1.0
        if isinstance(given, str) and given == "balanced":
            counts = np.bincount(codes, rows.weight, len(self.classes_))
            with np.errstate(divide="ignore"):
                return (np.sum(counts) / (np.count_nonzero(counts) * counts))[codes]
        if not isinstance(given, dict):
            raise ValueError(
                f"class_weight must be None, 'balanced' or a dict of weights, got {given!r}."
            )
        labels = self.classes_.tolist()
        unknown = set(given) - set(labels)
        if unknown:
            raise ValueError(
                f"class_weight has weights for {sorted(unknown, key=repr)}, which are no classes "
                f"of y: {labels}."
            )
        for label, weight in given.items():
            if not (isinstance(weight, numbers.Real) and np.isfinite(weight) and weight > 0):
                raise ValueError(
                    f"class_weight must be positive and finite, got {weight!r} for {label!r}. "
                    "To exclude a class, leave out its rows."
                )
        return np.array([given.get(label, 1.0) for label in labels])[codes]

    def _encode(self, y):
        y = column_or_1d(y, warn=True)
        try:
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError as error:  # types that cannot be sorted, such as strings and None
            raise ValueError(
                "Labels must be all strings or all numbers. Leave out rows without a label."
            ) from error
        check_classification_targets(y)
        if not hasattr(self, "classes_"):
            self.classes_ = classes
            return codes[:, None].astype(float)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y holds classes {unknown.tolist()} that are not among those of the first batch, "
                f"{self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, y)[:, None].astype(float)

    def _summary(self, rows):
        """Check the labels of the rows; return no summary, and a warning or ``None``."""
        present = np.unique(rows.y)
        if len(present) < 2 and not self._classes_were_known:
            only = self.classes_.tolist()[int(present[0])]
            raise ValueError(
                "This classifier needs samples of at least 2 classes in the data (with positive "
                f"sample_weight), but found only one class: {only!r}."
            )
        return None, None if rows.shares is not None else self._warning_of_labels(rows.y[:, 0])

    def _warning_of_labels(self, codes):
        """Warning of numbers that are amounts or counts rather than classes, or ``None``."""
        sizes = np.bincount(codes.astype(int))
        n_classes, n_single = np.count_nonzero(sizes), np.count_nonzero(sizes == 1)
        many = FEW_LABELS < n_classes <= MAX_LABELS * len(codes)
        if not (many and self.classes_.dtype.kind in "iuf" and n_single > MAX_SINGLE * n_classes):
            return None
        return UserWarning(
            f"y has {n_classes} different labels in {len(codes)} rows, {n_single} of them in one "
            "row only. Fit amounts by EvidenceMLPRegressor, and counts with noise='poisson'."
        )

    def _targets(self, rows, summary, scaling=None):
        codes, n_classes = rows.y[:, 0].astype(int), len(self.classes_)
        if n_classes == 2:
            return StandardTargets(rows.y, Scaling.none(1), Bernoulli())
        return StandardTargets(np.eye(n_classes)[codes], Scaling.none(n_classes), Categorical())

    def _log_scales(self, rows, scaling):
        """Log of the standardised over the given density of every row, here none."""
        return 0.0
