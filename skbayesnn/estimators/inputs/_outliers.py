"""Gross outliers: targets far from all others, whatever their inputs.

They would dominate the standard deviation by which targets are standardised.
"""

import numpy as np
from scipy.stats import norm

from skbayesnn._data import Scaling
from skbayesnn.estimators.inputs._common_values import MIN_ROWS, inputs_tell, most_common

FAR = 10.0  # spreads from the median; in 12 real data sets one row (of 16,599) is as far
FAR_LOGS = 5.0  # the same for logarithms of positive targets, which may span decades
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median give the spreads
MAX_SHARE = 0.4  # of the rows; more would shift the quantiles
MIN_ROWS_WITH_OUTLIERS = 15  # least number of rows in which some can count as outliers
MIN_RATIO = 2.0  # of the standard deviations with and without outliers
MIN_RATIO_OF_FEW = 5.0  # the same for less than `MIN_ROWS`, whose quantiles vary


def gross_outliers(X, y, weight):
    """Mask of the outliers of one output ``(n,)``; empty unless they cause most of its variance.

    Far values that share a region of the inputs may belong to the function. Therefore rows next to
    outliers must not be outliers more often than others.
    """
    total, none = weight.sum(), np.zeros(len(y), dtype=bool)
    if total < MIN_ROWS_WITH_OUTLIERS:
        return none
    far = _far(y, weight, FAR)
    if far.any() and y.min() > 0.0:
        far &= _far(np.log(y), weight, FAR_LOGS)
    if not far.any() or weight[far].sum() > MAX_SHARE * total:
        return none
    spreads = [Scaling.standard(y[:, None], w).scale[0] for w in (weight, weight * ~far)]
    least = MIN_RATIO if total >= MIN_ROWS else MIN_RATIO_OF_FEW
    if spreads[0] < least * spreads[1] or most_common(y[~far], weight[~far]) is not None:
        return none
    return none if inputs_tell(X, far) else far


def _far(y, weight, reach):
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
        more = far | (np.abs(y - middle) > reach * spread / norm.ppf(UPPER))
        if np.array_equal(more, far):
            return far
        far = more
