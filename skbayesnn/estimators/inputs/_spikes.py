"""Detection of values that many targets share: zeros, detection limits, ceilings, 0/1 classes.

The density of such values is unbounded if the noise level may shrink at some inputs, so only noise
of constant level is tried.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

FEWEST_ROWS = 30  # least number of rows in which a value can count as common
LEAST_SHARE = 0.1  # of all rows, for a common value
TIMES_THE_NEXT = 3.0  # least ratio to the next most common value, unless there are only two values
MOST_ROWS = 0.5  # share of the value above which the other rows can be interpolated
SEPARATED = 0.5  # agreement of neighbours, from 0 to 1, above which inputs separate the rows
LEAST_NOISE = 0.9  # least share of the unexplained standard deviation
COMPARED = 2000  # most rows whose neighbours are looked up


class Spike(NamedTuple):
    """Value that many targets share.

    Attributes
    ----------
    value, share : float
        The value, and the share of the rows that have it.
    lowest, highest : bool
        True if no target is below, or above, the value.
    two_values : bool
        True if there is only one other value.
    agreement : float
        Agreement of nearest neighbours in having the value, from 0 by chance to 1.
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

    def __str__(self):
        if self.two_values:
            return (
                "y has only two values. Use a classifier, such as EvidenceMLPClassifier: a normal "
                "distribution about the mean is a poor description of two values."
            )
        place = "lowest" if self.lowest else "highest" if self.highest else "most common"
        return (
            f"{100 * self.share:.0f} % of the targets equal {self.value:g}, the {place} value. No "
            "continuous distribution describes this, so only constant noise is tried. If it is a "
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
