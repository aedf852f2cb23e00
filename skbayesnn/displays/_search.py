"""What displays take from a search over models: values of parameters, errors on test data."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

DOUBTS = ("doubtful", "chains do not agree")


def check_search(search):
    """Raise unless it is a fitted search."""
    if not hasattr(search, "results_") or not hasattr(search, "estimators_"):
        raise TypeError(
            f"This display needs a fitted EvidenceSearch, with results_ and estimators_; got "
            f"{search!r}."
        )


def is_doubtful(verdict):
    """Whether a fit itself speaks against its evidence."""
    return str(verdict).startswith(DOUBTS)


def short(name):
    """A parameter's name without the steps of the pipeline before it."""
    return name.rsplit("__", 1)[-1]


def readable(value):
    """A parameter's value in a few letters."""
    if isinstance(value, tuple | list):
        return "-".join(map(str, value)) if len(value) else "linear"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if hasattr(value, "get_params"):
        return type(value).__name__
    return str(value)


def varying(params):
    """Names of the parameters that are not the same for all candidates."""
    names = sorted({name for p in params for name in p})
    return [name for name in names if len({readable(p.get(name, "")) for p in params}) > 1]


def describe_params(params, names):
    """``name=value, ...`` of the named parameters of one candidate."""
    return ", ".join(f"{short(name)}={readable(params[name])}" for name in names if name in params)


def default_error(estimator, X, y):
    """Log loss of classifiers; root mean squared error of regressors, in units of y."""
    if is_classifier(estimator):
        return log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)
    predicted = estimator.predict(X)
    return float(np.sqrt(np.mean((np.reshape(y, predicted.shape) - predicted) ** 2)))


def measure_errors(estimators, X_test, y_test, error):
    """Test error of every fitted estimator, and what to call it.

    Parameters
    ----------
    estimators : list of fitted estimators or None
    X_test, y_test : array-like
    error : callable or None
        From ``(estimator, X, y)`` to a number; `default_error` by default.

    Returns
    -------
    errors : ndarray of shape (len(estimators),)
        ``nan`` for ``None``.
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


def last_step(estimator):
    """What was fitted last in a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator
