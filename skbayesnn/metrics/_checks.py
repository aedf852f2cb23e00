"""Validation of the arrays that the metrics take."""

import numbers

import numpy as np
from sklearn.utils import check_array


def finite(values, name):
    """Convert to a finite array of doubles, of one axis or more."""
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must be an array with one entry per row, got {values!r}.")
    return check_array(values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name)


def as_targets(values, name, y):
    """Convert to a finite array of the shape of the targets, or to a single number for all."""
    if np.ndim(values) == 0:
        values = np.full(y.shape, values)
    array = finite(values, name)
    if array.shape != y.shape:
        raise ValueError(f"{name} must have the shape of y_true, {y.shape}; got {array.shape}.")
    return array


def with_last_axis(values, name, y, length=None):
    """Convert to a finite array of the shape of the targets with one more axis at the end."""
    array = finite(values, name)
    if (
        array.ndim != y.ndim + 1
        or array.shape[:-1] != y.shape
        or length not in (None, array.shape[-1])
    ):
        raise ValueError(
            f"{name} must have shape {(*y.shape, length or 'n_draws')} for y_true of shape "
            f"{y.shape}; got {array.shape}."
        )
    return array


def probability(value, name):
    """Raise unless a number lies strictly between 0 and 1."""
    if not (isinstance(value, numbers.Real) and 0 < value < 1):
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")


def row_weights(sample_weight, n_rows):
    """Row weights as shares that sum to 1."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    weight = finite(sample_weight, "sample_weight")
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have shape ({n_rows},), one weight per row; got {weight.shape}."
        )
    if np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight must not be negative, and at least one must be positive.")
    return weight / weight.sum()


def mean_over_rows(values, sample_weight):
    """Weighted mean over the rows, plain mean over further axes."""
    return float(np.mean(np.tensordot(row_weights(sample_weight, len(values)), values, 1)))
