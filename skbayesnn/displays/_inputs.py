"""Interpretation of users' input for displays: networks in pipelines, features, slices."""

from collections import Counter
from functools import partial

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators import (
    AveragedClassifier,
    AveragedRegressor,
    BayesianMLP,
    before_final_step,
    final_step,
)

NETWORKS = BayesianMLP, AveragedRegressor, AveragedClassifier


def fitted_network(estimator):
    """Return the network of an estimator, and the transformation of inputs before it.

    Parameters
    ----------
    estimator : estimator of this package, or Pipeline that ends in one, or EvidenceSearch

    Returns
    -------
    network : BayesianMLP or an average of several
    transform : callable
        Map from the user's X to the network's.

    Raises
    ------
    TypeError
        If it is another object.
    NotFittedError
    """
    estimator = getattr(estimator, "predictor_", estimator)
    network = final_step(estimator)
    if not isinstance(network, NETWORKS):
        raise TypeError(
            "This display needs a network of skbayesnn, or a Pipeline whose last step is one; got "
            f"{network!r}."
        )
    if isinstance(network, BayesianMLP):
        check_is_fitted(network)  # averages hold fitted models
    return network, partial(before_final_step, estimator)


def feature_names(estimator, X):
    """Names of the columns of X, from X or from the fit; otherwise ``x0``, ``x1`` and so on."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    names = getattr(estimator, "feature_names_in_", None)
    n_features = np.shape(X)[1]
    if names is not None and len(names) == n_features:
        return [str(name) for name in names]
    return [f"x{i}" for i in range(n_features)]


def feature_index(feature, names):
    """Position of a feature given by number or name."""
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise ValueError(
        f"There is no feature {feature!r}; X has {len(names)} features: {', '.join(names)}."
    )


def output_index(output, n_outputs):
    """Index of an output; raise unless it is valid."""
    if isinstance(output, int | np.integer) and 0 <= output < n_outputs:
        return int(output)
    raise ValueError(f"There is no output {output!r}; the model has {n_outputs}, counted from 0.")


def class_index(class_of_interest, classes):
    """Position of a class; the second of two classes by default."""
    if class_of_interest is None and len(classes) == 2:
        return 1
    found = np.flatnonzero(classes == class_of_interest)
    if len(found) != 1:
        raise ValueError(
            f"class_of_interest must be one of {', '.join(map(str, classes))}; "
            f"got {class_of_interest!r}."
        )
    return int(found[0])


def class_name(label):
    """Name of a class for labels."""
    return label if isinstance(label, str) else f"class {label}"


def table(X):
    """Return X unchanged if it has named columns, else as a two-dimensional array of numbers."""
    return X if hasattr(X, "columns") else check_array(X, ensure_all_finite="allow-nan")


def column(X, index):
    """Values of one feature."""
    return np.asarray(X[X.columns[index]] if hasattr(X, "columns") else X[:, index])


def extent(values, name, margin):
    """Range of a feature, widened by a fraction of it on either side."""
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Feature {name} is not numeric; only numbers can be varied.") from error
    low, high = np.nanmin(values), np.nanmax(values)
    if not low < high:
        raise ValueError(f"Feature {name} has the same value in all rows of X: nothing to vary.")
    return low - margin * (high - low), high + margin * (high - low)


def typical(values):
    """Typical value: the median of numbers, the most frequent value of anything else."""
    if np.issubdtype(values.dtype, np.number):
        return np.nanmedian(values)
    return Counter(values).most_common(1)[0][0]  # missing values and names cannot be sorted


def slice_of_inputs(X, index, values, fixed, names):
    """Make rows in which one feature varies while the others stay at typical values.

    Parameters
    ----------
    X : table
    index : int
        Index of the feature that varies.
    values : ndarray
        Values of this feature.
    fixed : dict or None
        Values of other features, by number or name, in place of the typical ones.
    names : list of str

    Returns
    -------
    ndarray or data frame like X
    """
    fixed = {feature_index(key, names): value for key, value in (fixed or {}).items()}
    if index in fixed:
        raise ValueError(f"Feature {names[index]} cannot be fixed: it varies in this display.")
    columns = [
        values if i == index else np.repeat(fixed.get(i, typical(column(X, i))), len(values))
        for i in range(len(names))
    ]
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, columns, strict=True)))
    return np.column_stack(columns)
