"""Checks of given rows, their weights and known errors."""

import sys
import warnings
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, validate_data

from skbayesnn._data import Scaling
from skbayesnn._typing import Array, Estimator, RandomState
from skbayesnn.estimators.inputs._parameters import floats
from skbayesnn.posterior import Likelihood

# sum of the weights over the number of rows: below the first they hardly count, above the second
# the rows count as far more observations than there are; number of rows over that of different ones
FEW_REPETITIONS, MANY_REPETITIONS, MANY_COPIES = 0.1, 10.0, 3.0
MAX_DIFFERENT = 0.5  # different targets, of all rows, if these are groups of equal observations
LEAVE_OUT = "Leave out the rows without a finite target."


class StandardTargets(NamedTuple):
    """Targets in standardised units, their likelihood, and what is known of their noise.

    The fields from ``known`` on are those of a `Problem`.
    """

    y: np.ndarray
    scaling: Scaling
    likelihood: Likelihood
    outliers: np.ndarray | None = None  # mask of the rows (n,) that the scaling leaves out
    known: np.ndarray | None = None
    noise_precision: tuple | None = None
    noise_hyperprior: tuple | None = None
    laws: tuple | None = None
    log_scale: float = 0.0


def generator(random_state: RandomState) -> np.random.Generator:
    """Make a NumPy generator from anything that scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def numeric(y):
    """Convert targets to finite numbers of shape (n, n_outputs)."""
    try:
        y = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold numbers; for class labels use a classifier, such as EvidenceMLPClassifier."
        ) from error
    if not np.all(np.isfinite(y)):
        raise ValueError(f"Input y contains NaN or infinity. {LEAVE_OUT}")
    return y[:, None] if y.ndim == 1 else y


def targets_of_rows(y, n_rows, n_outputs):
    """Convert targets of rows, or one number for all, to numbers ``(n_rows, n_outputs)``."""
    y = numeric(y)
    if y.ndim == 0:
        y = np.full((n_rows, n_outputs), y)
    check_consistent_length(range(n_rows), y)
    if y.shape[1] != n_outputs:
        raise ValueError(f"y has {y.shape[1]} outputs, the model was fitted with {n_outputs}.")
    return y


NO_NUMBERS = (
    "X holds values that are no numbers, such as {first!r}, in these columns: {names}. Encode "
    "categories in a pipeline before this estimator: by OneHotEncoder or, if there are many, "
    "TargetEncoder (sklearn.preprocessing), in a ColumnTransformer with "
    "remainder='passthrough', or by skrub's tabular_pipeline(estimator). Replace dates by "
    "numbers, such as days since the first date."
)
MISSING = (
    "Input X contains NaN in these columns: {names}. Impute values in a pipeline before this "
    "estimator, for example by SimpleImputer(add_indicator=True) (sklearn.impute), or leave these "
    "rows out."
)


def _lacks_number(cell):
    """Return True for a missing value, a date, and a string that is not a number."""
    try:
        return bool(np.isnan(complex(cell)))
    except (TypeError, ValueError):
        return isinstance(cell, str | date) or str(cell) in ("None", "<NA>")


def validated(estimator, X, *y, **options):
    """Arrays of numbers from `validate_data`; messages name columns with anything else."""
    try:
        return validate_data(estimator, X, *y, dtype=np.float64, **options)
    except (TypeError, ValueError) as error:
        message = str(error)
        if message.startswith(("Input y contains", "Input contains NaN")):  # objects have no name
            message = message.replace("Input contains", "Input y contains")
            raise ValueError(f"{message.rstrip('.')}. {LEAVE_OUT}") from None
        missing, cells = "Input X contains NaN" in message, np.asarray(X, dtype=object)
        if cells.ndim != 2 or not (missing or "float" in message.lower()):
            raise
        names = getattr(X, "columns", range(cells.shape[1]))
        columns = [list(filter(_lacks_number, column)) for column in cells.T]
        wrong = {repr(name): own for name, own in zip(names, columns, strict=True) if own}
        if not wrong:
            raise
        words, first = MISSING if missing else NO_NUMBERS, next(iter(wrong.values()))[0]
        raise ValueError(words.format(names=", ".join(wrong), first=first)) from None


def named(model: Estimator, X: Array) -> Any:
    """Give rows ``(n, n_features)`` the column names with which a model was fitted, if any.

    The result is a data frame if the model has names for as many columns, and pandas is in use.
    """
    names, pandas = getattr(model, "feature_names_in_", None), sys.modules.get("pandas")
    if names is None or pandas is None or len(names) != X.shape[1]:
        return X
    return pandas.DataFrame(X, columns=names)


def checked_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Number of repetitions of each row, ``(n_rows,)``; ones for ``None``.

    Raises unless the given numbers can be repetitions.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    sample_weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name=name)
    if sample_weight.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), one weight per row; got {sample_weight.shape}."
        )
    if np.any(sample_weight < 0) or not np.any(sample_weight > 0):
        raise ValueError(
            f"{name} must not be negative, nor zero for all rows: a weight counts repetitions."
        )
    return sample_weight


def checked_errors(measurement_std, shape):
    """Known measurement errors of all targets, ``(n_samples, n_outputs)``, which is ``shape``."""
    errors = _of_rows(measurement_std, "measurement_std", shape)
    if not np.all(np.isfinite(errors)):
        raise ValueError(
            "measurement_std contains NaN or infinity. Leave out rows whose error is not known, or "
            "give them sample_weight 0."
        )
    if np.any(errors < 0):
        raise ValueError("measurement_std must not be negative: it holds standard deviations.")
    return errors


def _of_rows(given, name, shape):
    """Expand one number, one per row or one per target to ``shape``, ``(n, n_outputs)``."""
    values, (n, n_outputs) = floats(given, name), shape
    if values.shape not in ((), (n,), (n, 1), shape):
        several = f" or ({n}, {n_outputs})" if n_outputs > 1 else ""
        raise ValueError(
            f"{name} must be one number, or have shape ({n},){several}; got {values.shape}."
        )
    return np.broadcast_to(values[:, None] if values.ndim == 1 else values, shape)


def checked_exposure(exposure, n_rows):
    """Exposures of all rows, ``(n_rows, 1)``, 1 if ``None``; raise unless they are positive."""
    given = _of_rows(1.0 if exposure is None else exposure, "exposure", (n_rows, 1))
    if not np.all(np.isfinite(given) & (given > 0)):
        raise ValueError(
            "exposure must be positive and finite. Leave out rows that were not observed."
        )
    return given


def check_counts(y):
    """Raise ``ValueError`` unless targets ``(n, n_outputs)`` are counts of a single kind."""
    if y.shape[1] > 1:
        raise ValueError(
            f"Counts are supported for one output; y has {y.shape[1]}. Fit one model for each."
        )
    wrong = np.sum((y < 0) | (y != np.floor(y)))
    if wrong:
        raise ValueError(
            f"y must hold counts, whole numbers from 0 on; {wrong} of {len(y)} values are not. "
            "Rates are counts with their exposure: give y=counts and exposure."
        )


def checked_sides(censored, shape):
    """Sides of limits, an array of the ``shape`` ``(n, n_outputs)`` of -1, 0 and 1."""
    sides = np.asarray(censored)
    sides = np.broadcast_to(sides, shape) if sides.ndim == 0 else sides
    sides = sides[:, None] if sides.ndim == 1 else sides
    is_mask = sides.dtype.kind == "b"  # it does not say on which side the values lie
    if is_mask or sides.shape != shape or not np.all(np.isin(sides, (-1, 0, 1))):
        raise ValueError(
            f"censored must have shape {shape[:1] if shape[1] == 1 else shape} and hold -1 (the "
            "value lies below y), 0 (it was measured) and 1 (it lies above y): "
            "np.where(is_below, -1, 0)."
        )
    return sides.astype(float)


def scored_sides(censored, shape, has_limits):
    """Sides of targets to be scored; warn if a model that knows limits is not told which are."""
    if censored is None and has_limits:
        warnings.warn(
            "The model was fitted with limits, but every target is taken here as measured. Pass "
            "censored (0 if there are no limits); in cross-validation by metadata routing: "
            "set_fit_request(censored=True).set_score_request(censored=True).",
            stacklevel=4,
        )
    return checked_sides(0 if censored is None else censored, shape)


def warning_of_weights(sample_weight, y, n_different):
    """Warning of weights that are no repetition counts, or of copies of rows, or ``None``.

    Weights that sum to 1, as those of boosting and of surveys, say that all rows together are one
    observation, from which a Bayesian fit learns nothing. Large ones, and copies (``n_different``
    rows remain), say that every target was observed many times, always with the same value, so that
    a fit follows its noise. If groups have equal targets ``y`` ``(n, n_outputs)``, copies and whole
    numbers that differ are taken to be grouped observations; means of groups differ.
    """
    n_rows, total = np.count_nonzero(sample_weight), float(np.sum(sample_weight))
    n_targets = len(np.unique(y, axis=0))
    whole = np.ptp(sample_weight) > 0 and np.all(sample_weight == np.round(sample_weight))
    few = total < FEW_REPETITIONS * n_rows or (n_rows > 1 and np.isclose(total, 1.0))
    grouped = whole and n_targets <= MAX_DIFFERENT * len(y)
    many = total >= MANY_REPETITIONS * n_rows and not grouped
    copied = n_rows >= MANY_COPIES * n_different and n_targets > MAX_DIFFERENT * n_different
    if n_rows == 0 or not (few or many or copied):
        return None
    if copied and not (few or many):
        return UserWarning(
            f"Only {n_different} of {n_rows} rows are different. Every copy counts as an "
            "observation, so error bars are far too small unless each was measured. Remove the "
            "other copies."
        )
    consequence = " Error bars are then far too small." if many else ""
    return UserWarning(
        f"sample_weight adds up to {total:.3g} for {n_rows} rows. A weight is the number of times "
        f"that a row was observed, and their sum the number of all observations.{consequence} If "
        f"the weights only say how rows compare, multiply them by {n_rows / total:.4g}."
    )
