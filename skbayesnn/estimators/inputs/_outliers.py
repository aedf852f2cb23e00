"""Detection of gross outliers: targets far from all others, whatever their inputs.

Gross outliers would dominate the standard deviation by which targets are standardised.
"""

import numpy as np
from scipy.stats import norm

from skbayesnn._data import Scaling
from skbayesnn.estimators.inputs._spikes import FEWEST_ROWS, SEPARATED, Spike, agreement

FAR = 10.0  # spreads from the median; in 12 real data sets one row (of 16,599) is as far
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median give the spreads
MOST_ROWS = 0.4  # largest share of outliers; more would shift the quantiles
TIMES_THE_REST = 2.0  # least ratio of the standard deviations with and without outliers


def outliers_of(rows):
    """Mask of the canonical rows any of whose targets is an outlier, ``(n,)``."""
    return np.any([_outliers(rows.X, column, rows.weight) for column in rows.y.T], axis=0)


def _outliers(X, y, weight):
    """Mask of the outliers of one output ``(n,)``; empty unless they cause most of its variance.

    Far values that share a region of the inputs may belong to the function. Therefore rows next to
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
    """Mask of values far from the median of the others, in spreads of the others on that side.

    The spread on a side is the standard deviation of a normal distribution with that quantile.
    Skewed targets have different spreads. Each removal of far values reduces the spreads of the
    others, so the search is repeated.
    """
    far = np.zeros(len(y), dtype=bool)
    while True:
        low, middle, high = _quantiles(y[~far], weight[~far], (LOWER, 0.5, UPPER))
        spread = np.where(y > middle, high - middle, middle - low) / norm.ppf(UPPER)
        if low == middle or middle == high:  # too many equal values for a spread
            return np.zeros_like(far)
        more = far | (np.abs(y - middle) > FAR * spread)
        if np.array_equal(more, far):
            return far
        far = more


def _quantiles(y, weight, probabilities):
    """Smallest values that at least these shares of the rows do not exceed."""
    order = np.argsort(y, kind="stable")
    shares = np.cumsum(weight[order])
    return y[order][np.searchsorted(shares, np.multiply(probabilities, shares[-1]))]
