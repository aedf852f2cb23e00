"""Logarithms of sums of exponentials of small arrays."""

import numpy as np


def log_sum_exp(values, axis):
    """Logarithm ``ln sum exp(values)`` along an axis, without the checks of SciPy's `logsumexp`.

    The checks take longer than the sum of a small array.

    Parameters
    ----------
    values : ndarray
        Real values below plus infinity.
    axis : int
    """
    top = values.max(axis=axis, keepdims=True)
    top = np.maximum(top, np.finfo(float).min)  # all may be minus infinity
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
