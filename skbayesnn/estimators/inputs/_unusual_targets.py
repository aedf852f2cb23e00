"""Detection of unusual targets: values that many share, and gross outliers.

Shared values are zeros, detection limits, ceilings or 0/1 classes. Their density is unbounded if
the noise level may shrink at some inputs, so only noise of constant level is tried.

Gross outliers, targets far from all others whatever their inputs, would dominate the standard
deviation by which targets are standardised.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.stats import norm

from skbayesnn._data import Scaling

FEWEST_ROWS = 30  # least number of rows in which a value can count as common
LEAST_SHARE = 0.1  # of all rows, for a common value
TIMES_THE_NEXT = 3.0  # least ratio to the next most common value, unless there are only two values
MOST_ROWS = 0.5  # share of the value above which the other rows can be interpolated
SEPARATED = 0.5  # agreement of neighbours, from 0 to 1, above which inputs separate the rows
LEAST_NOISE = 0.9  # least share of the unexplained standard deviation
COMPARED = 2000  # most rows whose neighbours are looked up

FAR = 10.0  # spreads from the median; in 12 real data sets one row (of 16,599) is as far
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median give the spreads
MOST_OUTLIERS = 0.4  # largest share of the rows; more would shift the quantiles
TIMES_THE_REST = 2.0  # least ratio of the standard deviations with and without outliers


class Spike(NamedTuple):
    """Value that a share of the rows have as target, and whether it is the lowest or highest one.

    ``two_values``: there is only one other value. ``agreement``: of nearest neighbours in having
    the value, from 0 by chance to 1.
    """

    value: float
    share: float
    lowest: bool
    highest: bool
    two_values: bool
    agreement: float

    @classmethod
    def of(cls, X, y, weight):
        """Find the spike in one output ``(n,)``, or ``None``.

        Rounded targets have common values, too, but their neighbours are as common.
        """
        values, index = np.unique(y, return_inverse=True)
        counts = np.bincount(index, weights=weight)
        total = counts.sum()
        if total < FEWEST_ROWS or len(values) < 2:
            return None
        largest = int(np.argmax(counts))
        following = np.max(np.delete(counts, largest))
        two_values = len(values) == 2
        share = float(counts[largest] / total)
        common = share >= LEAST_SHARE and counts[largest] >= TIMES_THE_NEXT * following
        if not (common or two_values):
            return None
        ends = largest == 0, largest == len(values) - 1
        alike = agreement(X, index == largest)
        return cls(float(values[largest]), share, *ends, two_values, alike)

    @property
    def least_noise(self):
        """Smallest noise level in standard deviations of the targets.

        A network could interpolate the other rows one by one and meet the rows with the value
        exactly, where the density would then be huge.
        """
        common = self.two_values or self.share >= MOST_ROWS
        if not common or self.agreement >= SEPARATED:
            return 0.0
        return LEAST_NOISE * np.sqrt(1.0 - max(self.agreement, 0.0))

    @property
    def hides_structure(self):
        """True if most rows have the value anywhere; networks would fit the others as outliers."""
        return not self.two_values and self.least_noise > 0.0

    def __str__(self):
        if self.two_values:
            return (
                "y has only two values. Use a classifier, such as EvidenceMLPClassifier: a normal "
                "distribution about the mean is a poor description of two values."
            )
        place = "lowest" if self.lowest else "highest" if self.highest else "most common"
        tried = (
            "constant noise and linear models are" if self.hides_structure else "constant noise is"
        )
        return (
            f"{100 * self.share:.0f} % of the targets equal {self.value:g}, the {place} value. No "
            f"continuous distribution describes this, so only {tried} tried. If it is a "
            "limit, pass censored to fit. Otherwise learn with a classifier which rows have "
            f"y = {self.value:g}, and fit a regressor to the others."
        )


def spikes_of(rows):
    """Find the spikes in all outputs of canonical rows; ``None`` for outputs without one."""
    return [Spike.of(rows.X, column, rows.weight) for column in rows.y.T]


def agreement(X, same):
    """Cohen's kappa between the membership of rows and of their nearest neighbours."""
    spread = np.std(X, axis=0)
    Z = (X - np.mean(X, axis=0)) / np.where(spread > 0, spread, 1.0)
    some = np.linspace(0, len(X) - 1, min(len(X), COMPARED)).astype(int)
    nearest = KDTree(Z).query(Z[some], k=2)[1][:, 1]
    mine, theirs = same[some], same[nearest]
    by_chance = mine.mean() * theirs.mean() + (1 - mine.mean()) * (1 - theirs.mean())
    return float((np.mean(mine == theirs) - by_chance) / max(1.0 - by_chance, 1e-12))


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
    if not far.any() or weight[far].sum() > MOST_OUTLIERS * total:
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
        low, middle, high = np.quantile(
            y[~far], (LOWER, 0.5, UPPER), weights=weight[~far], method="inverted_cdf"
        )
        spread = np.where(y > middle, high - middle, middle - low) / norm.ppf(UPPER)
        if low == middle or middle == high:  # too many equal values for a spread
            return np.zeros_like(far)
        more = far | (np.abs(y - middle) > FAR * spread)
        if np.array_equal(more, far):
            return far
        far = more
