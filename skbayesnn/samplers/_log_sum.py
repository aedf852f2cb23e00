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

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.samplers import log_sum_exp
    >>> log_sum_exp(np.log([[1.0, 2.0], [3.0, 1.0]]), axis=1).round(3)
    array([1.099, 1.386])
    >>> log_sum_exp(np.array([-1000.0, -np.inf]), axis=0)
    np.float64(-1000.0)
    """
    top = values.max(axis=axis, keepdims=True)
    top = np.maximum(top, np.finfo(float).min)  # all may be minus infinity
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)
