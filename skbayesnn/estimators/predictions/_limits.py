"""R2 of predictions of targets of which some are limits."""

import numpy as np
from sklearn.metrics import r2_score

from skbayesnn.estimators.inputs._rows import checked_weights, numeric

HALVINGS = 60  # of the range of the targets, in which the best constant lies


def r2_with_limits(y, predicted, sample_weight, sides):
    """R2, mean over outputs, of predictions of targets with limits on given sides.

    ``sides`` ``(n, n_outputs)`` are -1 where the value lies below ``y``, 1 where it lies above, 0
    where it was measured. The error of a limit is how far a prediction lies on its wrong side. R2
    is one less the ratio of the squared errors of the predictions and of the best constant, which
    is the mean of the targets if all were measured.
    """
    if not np.any(sides):
        return r2_score(y, predicted, sample_weight=sample_weight)
    y, weight = numeric(y), checked_weights(sample_weight, len(sides))
    low, high = np.min(y, axis=0), np.max(y, axis=0)
    for _ in range(HALVINGS):
        constant = 0.5 * (low + high)
        too_high = weight @ _errors(constant, y, sides) > 0.0  # the slope of its squared errors
        low, high = np.where(too_high, low, constant), np.where(too_high, constant, high)
    of_constant = weight @ _errors(constant, y, sides) ** 2
    fitted = weight @ _errors(np.reshape(predicted, y.shape), y, sides) ** 2
    undefined = np.where(fitted > 0.0, 1.0, 0.0)  # as in `r2_score`
    ratio = np.divide(fitted, of_constant, out=undefined, where=of_constant > 0.0)
    return float(np.mean(1.0 - ratio))


def _errors(predicted, y, sides):
    """Predictions less targets, 0 where they lie among the values that a limit allows."""
    error = predicted - y
    return np.where(sides * error > 0.0, 0.0, error)
