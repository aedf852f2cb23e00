"""Gross outliers: targets far from all others whatever their inputs.

They would dominate the standard deviation by which targets are standardised.
"""

import numpy as np
from scipy.stats import norm

from skbayesnn._data import Scaling
from skbayesnn.estimators.inputs._spikes import FEWEST_ROWS, SEPARATED, agreement, most_common

FAR = 10.0  # spreads from the median; in 12 real data sets one row (of 16,599) is as far
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median give the spreads
MOST_TARGETS = (0.05, 0.95)  # quantiles of positive targets between which decades are counted
# decades of the others from which far values may continue them; folded normal ones have 1.5
FEWEST_DECADES = 2.0
GAP = 0.5  # least gap, in spreads of the logarithms, between positive targets and outliers
MOST_OUTLIERS = 0.4  # largest share of the rows; more would shift the quantiles
FEWEST_WITH_OUTLIERS = 15  # least number of rows in which some can count as outliers
TIMES_THE_REST = 2.0  # least ratio of the standard deviations with and without outliers
TIMES_FEW = 5.0  # this ratio for less than `FEWEST_ROWS`, whose quantiles vary


def gross_outliers(X, y, weight):
    """Mask of the outliers of one output ``(n,)``; empty unless they cause most of its variance.

    Far values that share a region of the inputs may belong to the function. Therefore rows next to
    outliers must not be outliers more often than others.
    """
    total, none = weight.sum(), np.zeros(len(y), dtype=bool)
    if total < FEWEST_WITH_OUTLIERS:
        return none
    far = _far(y, weight)
    far &= ~_continues(y, weight, far)
    if not far.any() or weight[far].sum() > MOST_OUTLIERS * total:
        return none
    spreads = [Scaling.standard(y[:, None], w).scale[0] for w in (weight, weight * ~far)]
    least = TIMES_THE_REST if total >= FEWEST_ROWS else TIMES_FEW
    if spreads[0] < least * spreads[1] or most_common(y[~far], weight[~far]) is not None:
        return none
    return none if agreement(X, far) >= SEPARATED else far


def _continues(y, weight, far):
    """Mask of the ``far`` positive values that continue the others on the logarithmic scale.

    Targets over several decades have far values, but no `GAP` between these and the rest.
    """
    if not far.any() or y.min() <= 0.0:
        return np.zeros(len(y), dtype=bool)
    near, q = np.log10(y[~far]), (*MOST_TARGETS, 0.5, UPPER)
    first, last, middle, high = np.quantile(near, q, weights=weight[~far], method="inverted_cdf")
    above = far & (np.log10(y) > middle)
    gap = np.min(np.log10(y[above]), initial=np.inf) - near.max()
    continuous = gap < GAP * (high - middle) / norm.ppf(UPPER)
    return above & (last - first >= FEWEST_DECADES) & continuous


def _far(y, weight):
    """Mask of values far from the median of the others, in spreads of the others on that side.

    The spread on a side is the standard deviation of a normal distribution with that quantile, or
    with the next value if the quantile equals the median, as it may for rounded targets. Skewed
    targets have different spreads. Each removal of far values reduces the spreads of the others, so
    the search is repeated.
    """
    far = np.zeros(len(y), dtype=bool)
    while True:
        near = y[~far]
        low, middle, high = np.quantile(
            near, (LOWER, 0.5, UPPER), weights=weight[~far], method="inverted_cdf"
        )
        above = np.min(near[near > middle], initial=np.inf) - middle
        below = middle - np.max(near[near < middle], initial=-np.inf)
        spread = np.where(y > middle, max(high - middle, above), max(middle - low, below))
        more = far | (np.abs(y - middle) > FAR * spread / norm.ppf(UPPER))
        if np.array_equal(more, far):
            return far
        far = more
