"""Known errors of measurements and of inputs, as users give them."""

import numpy as np


def as_errors(given, name, shape):
    """Standard deviations of the targets of all rows.

    Parameters
    ----------
    given : float or array-like of shape (n_samples,) or (n_samples, n_outputs)
    name : str
        Of the parameter, for messages.
    shape : tuple of int
        ``(n_samples, n_outputs)``.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)

    Raises
    ------
    TypeError
        If they are no numbers.
    ValueError
        If they are negative or not finite, or of another number of rows.

    Examples
    --------
    >>> from skbayesnn.estimators._measurements import as_errors
    >>> as_errors([0.1, 0.2], "measurement_std", (2, 3))
    array([[0.1, 0.1, 0.1],
           [0.2, 0.2, 0.2]])
    """
    errors = _as_numbers(given, name)
    n, n_outputs = shape
    if errors.shape not in ((), (n,), (n, 1), (n, n_outputs)):
        raise ValueError(
            f"{name} must be one number, or have shape ({n},) or ({n}, {n_outputs}): a standard "
            f"deviation for every row; got {errors.shape}."
        )
    if not np.all(np.isfinite(errors)):
        raise ValueError(
            f"{name} contains NaN or infinity. Leave out rows whose error is not known, or give "
            "them sample_weight 0."
        )
    if np.any(errors < 0):
        raise ValueError(f"{name} must not be negative: it holds standard deviations.")
    errors = errors[:, None] if errors.ndim == 1 else errors
    return np.broadcast_to(errors, shape)


def as_input_errors(given, n_features):
    """Standard deviations of the noise of every column of X; ``None`` if there is none.

    Parameters
    ----------
    given : float, array-like of shape (n_features,) or None
    n_features : int

    Returns
    -------
    ndarray of shape (n_features,) or None

    Raises
    ------
    TypeError
        If they are no numbers.
    ValueError
        If they are negative or not finite, or of another number of columns.

    Examples
    --------
    >>> from skbayesnn.estimators._measurements import as_input_errors
    >>> as_input_errors(0.1, 2)
    array([0.1, 0.1])
    """
    if given is None:
        return None
    errors = _as_numbers(given, "input_std")
    if errors.shape not in ((), (n_features,)):
        raise ValueError(
            f"input_std must be one number, or have shape ({n_features},): a standard deviation "
            f"for every column of X; got {errors.shape}."
        )
    if not np.all(np.isfinite(errors)) or np.any(errors < 0):
        raise ValueError(
            f"input_std must hold finite standard deviations, none of them negative; got {given!r}."
            " Give 0 for columns that are known exactly."
        )
    return np.broadcast_to(errors, (n_features,)) if np.any(errors > 0) else None


def _as_numbers(given, name):
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers, got {given!r}.") from error
