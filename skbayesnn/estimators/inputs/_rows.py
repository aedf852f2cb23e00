"""Checks of given rows, their weights and known errors, and random numbers for them."""

from datetime import date
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from skbayesnn._typing import Array, RandomState
from skbayesnn.estimators.inputs._parameters import floats

FEW_REPETITIONS = 0.1  # sum of the weights over the number of rows: below it they hardly count


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
        raise ValueError("Input y contains NaN or infinity.")
    return y[:, None] if y.ndim == 1 else y


def validated(estimator, X, *y, **options):
    """Arrays of numbers from `validate_data`; messages name columns with strings or dates."""
    try:
        return validate_data(estimator, X, *y, dtype=np.float64, **options)
    except (TypeError, ValueError):
        if dates := _columns_of(date, X):
            raise ValueError(
                f"X holds dates in these columns: {', '.join(map(repr, dates))}. Replace them by "
                "numbers, such as days since the first date."
            ) from None
        words = _columns_of(str, X)
        if not words:
            raise
        names = ", ".join(map(repr, words))
        raise ValueError(
            f"X holds strings, such as {next(iter(words.values()))!r}, in these columns: {names}. "
            "Encode them as numbers in a pipeline before this estimator: by OneHotEncoder or, if "
            "there are many categories, TargetEncoder (sklearn.preprocessing), in a "
            "ColumnTransformer with remainder='passthrough', or by skrub's "
            "tabular_pipeline(estimator)."
        ) from None


def _columns_of(kind, X):
    """The first cell of this type that is not a number in every column with one, by name."""
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        return {}
    names = getattr(X, "columns", range(cells.shape[1]))
    found = {}
    for name, column in zip(names, cells.T, strict=True):
        odd = (cell for cell in column if isinstance(cell, kind) and not _is_number(cell))
        first = next(odd, None)
        if first is not None:
            found[name] = first
    return found


def _is_number(cell):
    """Return True if a cell can be converted to a number."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """How often each row counts, ``(n_rows,)``; ones for ``None``.

    Raises unless given numbers can mean that.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    sample_weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if sample_weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have shape ({n_rows},), one weight per row; "
            f"got {sample_weight.shape}."
        )
    if np.any(sample_weight < 0):
        raise ValueError("sample_weight must not be negative: a weight counts repetitions.")
    if not np.any(sample_weight > 0):
        raise ValueError("All sample weights are zero; at least one must be positive.")
    return sample_weight


def checked_errors(measurement_std, shape):
    """Known measurement errors of all targets, ``(n_samples, n_outputs)``, which is ``shape``."""
    errors = floats(measurement_std, "measurement_std")
    n, n_outputs = shape
    if errors.shape not in ((), (n,), (n, 1), (n, n_outputs)):
        raise ValueError(
            f"measurement_std must be one number, or have shape ({n},) or ({n}, {n_outputs}): a "
            f"standard deviation for every row; got {errors.shape}."
        )
    if not np.all(np.isfinite(errors)):
        raise ValueError(
            "measurement_std contains NaN or infinity. Leave out rows whose error is not known, or "
            "give them sample_weight 0."
        )
    if np.any(errors < 0):
        raise ValueError("measurement_std must not be negative: it holds standard deviations.")
    errors = errors[:, None] if errors.ndim == 1 else errors
    return np.broadcast_to(errors, shape)


def checked_exposure(exposure, n_rows):
    """Exposures of all rows, ``(n_rows, 1)``, 1 if ``None``; raise unless they are positive."""
    given = floats(1.0 if exposure is None else exposure, "exposure")
    if given.shape not in ((), (n_rows,), (n_rows, 1)):
        raise ValueError(
            f"exposure must be one number, or have shape ({n_rows},); got {given.shape}."
        )
    if not np.all(np.isfinite(given) & (given > 0)):
        raise ValueError(
            "exposure must be positive and finite. Leave out rows that were not observed."
        )
    return np.broadcast_to(given.reshape(-1, 1), (n_rows, 1))


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
    """Sides of limits ``(n, n_outputs)``: -1, 0 and 1; raise unless some targets were measured."""
    sides = np.asarray(censored)
    sides = sides[:, None] if sides.ndim == 1 else sides
    if sides.shape != shape or not np.all(np.isin(sides, (-1, 0, 1))):
        raise ValueError(
            f"censored must have shape {shape[:1] if shape[1] == 1 else shape} and hold -1 (the "
            "value lies below y), 0 (it was measured) and 1 (it lies above y)."
        )
    if np.any(np.all(sides != 0, axis=0)):
        raise ValueError("Every target is a limit; at least some must be measured.")
    return sides.astype(float)


def trouble_with_weights(sample_weight):
    """A warning, with its category, of weights that are no repetition counts, or ``None``.

    Weights that sum to 1, as those of boosting and of surveys, say that all rows together are one
    observation, from which a Bayesian fit learns nothing.
    """
    n_rows, total = np.count_nonzero(sample_weight), float(np.sum(sample_weight))
    normalised = n_rows > 1 and np.isclose(total, 1.0)
    if not normalised and total >= FEW_REPETITIONS * n_rows:
        return None
    return (
        f"sample_weight adds up to {total:.3g} for {n_rows} rows. A weight is the number of times "
        f"that a row was observed, so the fit learns as much as from {total:.3g} rows of weight 1. "
        f"If the weights only say how rows compare, multiply them by {n_rows / total:.4g}."
    ), UserWarning
