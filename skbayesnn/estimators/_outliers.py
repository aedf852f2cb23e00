"""Targets that are grossly wrong: far from all others, wherever their inputs are.

They would make the standard deviation of the targets, and with it the units in which fits begin.
"""

import numpy as np
from scipy.stats import norm

from skbayesnn._data import Scaling
from skbayesnn.estimators._spikes import FEWEST_ROWS, SEPARATED, Spike, agreement

FAR = 10.0  # spreads from the median; of 12 real sets one row of 16,599 in one set is as far
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median tell the spread on each side
MOST_ROWS = 0.4  # that can be outliers: of more, the quantiles would be theirs
TIMES_THE_REST = 2.0  # the standard deviation of all targets over that of the others, at least


def outliers_of(rows):
    """Rows any of whose targets is an outlier, ``(n,)`` of bool.

    Parameters
    ----------
    rows : Rows
        Canonical ones.
    """
    return np.any([_outliers(rows.X, column, rows.weight) for column in rows.y.T], axis=0)


def _outliers(X, y, weight):
    """Outliers of one output ``(n,)``; none unless they make most of its variance.

    Where values are far in a region of the inputs they may belong to the function: so rows next to
    outliers must not be outliers more often than others.
    """
    total, none = weight.sum(), np.zeros(len(y), dtype=bool)
    if total < FEWEST_ROWS:
        return none
    far = _far(y, weight)
    if not far.any() or weight[far].sum() > MOST_ROWS * total:
        return none
    spreads = [Scaling.standard(y[:, None], w).scale[0] for w in (weight, weight * ~far)]
    if spreads[0] < TIMES_THE_REST * spreads[1] or Spike.of(X, y, weight) is not None:
        return none
    return none if agreement(X, far) >= SEPARATED else far


def _far(y, weight):
    """Values far from the median of the others, in spreads of the others on their side.

    The spread on a side is the standard deviation of a normal distribution with that quantile.
    Skewed targets have different ones. Values found make those of the others smaller, so that
    further ones may be found.
    """
    far = np.zeros(len(y), dtype=bool)
    while True:
        low, middle, high = _quantiles(y[~far], weight[~far], (LOWER, 0.5, UPPER))
        spread = np.where(y > middle, high - middle, middle - low) / norm.ppf(UPPER)
        if low == middle or middle == high:  # many equal values tell no spread
            return np.zeros_like(far)
        more = far | (np.abs(y - middle) > FAR * spread)
        if np.array_equal(more, far):
            return far
        far = more


def _quantiles(y, weight, probabilities):
    """The smallest values that at least these shares of the rows do not exceed."""
    order = np.argsort(y, kind="stable")
    shares = np.cumsum(weight[order])
    return y[order][np.searchsorted(shares, np.multiply(probabilities, shares[-1]))]
