"""Data of displays from a search over models: values of parameters, test errors."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.utils.validation import check_consistent_length

from skbayesnn.estimators.inputs._settings import SETTINGS

DOUBTS = ("doubtful", "chains have not converged")


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
    """Positions of the values of a parameter on its axis, and the options of that axis.

    Parameters
    ----------
    values : list
        Values of all candidates.
    param_name : str

    Returns
    -------
    positions : ndarray of shape (len(values),)
        Numbers, hidden units of a single layer, or ranks in the order of first appearance.
    axis : dict
        Arguments ``param_name``, ``ticks`` and ``log_scale`` of `EvidenceDisplay`, as far as
        needed.
    """
    name = short(param_name)
    label = name.replace("_", " ").replace(".", " ")
    if all(_is_number(value) for value in values):
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


def _is_number(value):
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def default_error(estimator, X, y):
    """Log loss of classifiers; root mean squared error of regressors, in units of y."""
    if is_classifier(estimator):
        return log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)
    predicted = estimator.predict(X)
    return float(np.sqrt(np.mean((np.reshape(y, predicted.shape) - predicted) ** 2)))


def measure_errors(estimators, X_test, y_test, error):
    """Measure the test error of every fitted estimator, and name it.

    Parameters
    ----------
    estimators : list of fitted estimators or None
    X_test, y_test : array-like
    error : callable or None
        Function from ``(estimator, X, y)`` to a number; `default_error` by default.

    Returns
    -------
    errors : ndarray of shape (len(estimators),)
        Test errors, ``nan`` for ``None``.
    name : str
    """
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
