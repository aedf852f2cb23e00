"""What is given with rows: how often each counts, and random numbers for them."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from skbayesnn._typing import Array


def generator(random_state):
    """A NumPy generator from anything that scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """How often each row counts; raise unless given numbers can mean that.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,) or None
        As given by the user.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_rows,)
        Ones for ``None``.

    Examples
    --------
    >>> from skbayesnn.estimators import checked_weights
    >>> checked_weights([2, 0], 2)
    array([2., 0.])
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
