"""Interpretation of users' input for displays: estimators, features, slices, searches."""

from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbayesnn.estimators import AveragedClassifier, AveragedRegressor, BayesianMLP
from skbayesnn.estimators._pipeline import ask, final_step
from skbayesnn.estimators.inputs._settings import SETTINGS

DOUBTS = ("doubtful", "chains have not converged")
NETWORKS: Any = (BayesianMLP, AveragedRegressor, AveragedClassifier)


def fitted_network(estimator):
    """Return the network of an estimator, a pipeline or a search, or raise ``TypeError``."""
    estimator = getattr(estimator, "predictor_", estimator)
    network = final_step(estimator)
    if not isinstance(network, NETWORKS):
        raise TypeError(
            "This display needs a network of skbayesnn, or a Pipeline whose last step is one; got "
            f"{network!r}."
        )
    if isinstance(network, BayesianMLP):
        check_is_fitted(network)  # averages hold fitted models
    return network


def class_probabilities(estimator, X):
    """Class probabilities ``(n, n_classes)`` by method, or by the name of another classifier."""
    estimator = getattr(estimator, "predictor_", estimator)
    last = final_step(getattr(estimator, "best_estimator_", estimator))
    check_is_fitted(last)
    if not isinstance(last, NETWORKS):
        return {type(last).__name__: estimator.predict_proba(X)}
    return {
        name: ask(estimator, "predict_proba", X, moderated=moderated)
        for name, moderated in (("moderated", True), ("most probable", False))
    }


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
    """Make rows like those of X in which one feature varies, with the others at typical values.

    ``fixed`` holds values of other features, by number or name, in place of the typical ones.
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


def check_search(search):
    """Raise unless an object is a fitted search."""
    if not hasattr(search, "results_") or not hasattr(search, "estimators_"):
        raise TypeError(
            f"This display needs a fitted EvidenceSearch, with results_ and estimators_; got "
            f"{search!r}."
        )


def is_doubtful(verdict):
    """Return True if the verdict of a fit is against its evidence."""
    return str(verdict).startswith(DOUBTS)


def short(name):
    """Name of a parameter without the pipeline steps before it, such as ``prior.kind``."""
    *before, last = name.split("__")
    return ".".join([*(part for part in before[-1:] if part in SETTINGS), last])


def readable(value):
    """Format the value of a parameter in a few letters."""
    if isinstance(value, tuple | list):
        return "-".join(map(str, value)) if len(value) else "linear"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if hasattr(value, "fit"):
        return type(value).__name__
    return str(value)


def varying(params):
    """Names of the parameters that differ between candidates."""
    names = sorted({name for p in params for name in p})
    return [name for name in names if len({readable(p.get(name, "")) for p in params}) > 1]


def describe_params(params, names):
    """Format the named parameters of one candidate as ``name=value, ...``."""
    return ", ".join(f"{short(name)}={readable(params[name])}" for name in names if name in params)


def positions(values, param_name):
    """Positions ``(n,)`` of the values of a parameter on its axis, and the options of that axis.

    Positions are numbers, hidden units of a single layer, or ranks in the order of first
    appearance. The options are arguments of `EvidenceDisplay`.
    """
    name = short(param_name)
    label = name.replace("_", " ").replace(".", " ")
    if all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values):
        numbers = np.array(values, dtype=float)
        wide = numbers.min() > 0 and numbers.max() >= 50 * numbers.min()
        return numbers, {"param_name": label, "log_scale": bool(wide)}
    if name == "hidden_layer_sizes":
        if all(np.ndim(value) == 1 and len(value) <= 1 for value in values):
            return np.array([float(sum(value)) for value in values]), {"param_name": "hidden units"}
        label = "units of the hidden layers"
    labels = list(dict.fromkeys(readable(value) for value in values))
    ticks = {float(i): label for i, label in enumerate(labels)}
    position = np.array([labels.index(readable(value)) for value in values], dtype=float)
    return position, {"param_name": label, "ticks": ticks}


def default_error(estimator, X, y):
    """Log loss of classifiers; root mean squared error of regressors, in units of y."""
    if is_classifier(estimator):
        return log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)
    predicted = estimator.predict(X)
    return float(np.sqrt(np.mean((np.reshape(y, predicted.shape) - predicted) ** 2)))


def measure_errors(estimators, X_test, y_test, error):
    """Measure the test error of every estimator, ``nan`` for ``None``, and name it."""
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together: give both or none.")
    check_consistent_length(X_test, y_test)
    fitted = [estimator for estimator in estimators if estimator is not None]
    if error is None:
        error = default_error
        name = "test log loss (nats)" if fitted and is_classifier(fitted[0]) else "test RMSE"
    else:
        name = "test " + getattr(error, "__name__", "error").replace("_", " ")
    errors = [np.nan if e is None else error(e, X_test, y_test) for e in estimators]
    return np.array(errors, dtype=float), name
