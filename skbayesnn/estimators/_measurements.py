"""Known errors of measurements, as users give them."""

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
    try:
        errors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers, got {given!r}.") from error
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
