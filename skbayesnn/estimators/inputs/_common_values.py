"""Values that many targets share: zeros, detection limits, ceilings, 0/1 classes, codes."""

from typing import NamedTuple

import numpy as np

from skbayesnn._data import COMPARED, Scaling, of_nearest

MIN_ROWS = 30  # in which a value can count as common
MIN_SHARE = 0.1  # of all rows, for a common value
MIN_SHARED_OUTLIERS = 2  # that can have a common value
# shares from which a value that occurs at any inputs hides what depends on them: beside many other
# values, and beside one, of which a regressor then sees few
MOST, MAX_OF_TWO = 0.5, 0.87
SEPARATED = 0.5  # agreement of neighbours, from 0 to 1, above which inputs tell rows apart
TIMES_THE_NEXT = 3.0  # least ratio to the next most common value, unless there are only two values
TIMES_THE_THIRD = 10.0  # least ratio of two common values to any other one


class CommonValue(NamedTuple):
    """Value that many rows or gross outliers have.

    ``place``: "lowest", "highest" or "most common" of all values. ``two_values``: there is only one
    other value. ``is_outlier``: gross outliers have the value. ``hides_structure``: most rows have
    it, whatever their inputs; networks and heavy tails would take all other targets for outliers.
    """

    value: float
    share: float
    place: str
    two_values: bool
    is_outlier: bool
    hides_structure: bool

    @classmethod
    def of(cls, X, y, weight, outliers):
        """Find the common value of one output ``(n,)`` with a mask of its outliers, or ``None``."""
        same = most_common(y, weight)
        if same is None and outliers.any():
            same = _shared(y, weight, outliers)
        if same is None:
            return None
        value, others = y[same][0], y[~same]
        place = "highest" if value > others.max() else "most common"
        share = float(np.average(same, weights=weight))
        two_values = bool(others.min() == others.max())
        is_most = share >= (MAX_OF_TWO if two_values else MOST)
        return cls(
            float(value),
            share,
            "lowest" if value < others.min() else place,
            two_values,
            is_outlier=bool(np.all(outliers[same])),
            hides_structure=is_most and not inputs_tell(X, same),
        )

    @property
    def words(self):
        """Description of the value, and what to do about it."""
        if self.two_values:
            return (
                "y has only two values. Use a classifier, such as EvidenceMLPClassifier: a normal "
                "distribution about the mean is a poor description of two values."
            )
        percent = f"{100 * self.share:.0f}" if self.share > 0.01 else f"{100 * self.share:.1g}"
        share = f"{percent} % of the targets equal {self.value:g}"
        if self.is_outlier:
            return (
                f"{share}, far from all others at any inputs: perhaps a code for missing values, "
                "or a fault. Leave these rows out. Otherwise they are taken for outliers where "
                "noise is 'auto' or 'student_t'."
            )
        return (
            f"{share}, the {self.place} value. No continuous distribution describes this. If it is "
            "a limit, pass censored to fit. Otherwise learn with a classifier which rows have "
            f"y = {self.value:g}, and fit a regressor to the others."
        )


def most_common(y, weight):
    """Mask of the rows with the most common value, or ``None`` if no value is common.

    Rounded targets have common values, too, but their neighbours are as common. Two values may both
    be limits if they are far more common than many others, with which they are then compared.
    """
    index = np.unique(y, return_inverse=True)[1]
    counts = np.bincount(index, weights=weight)
    total, possible = counts.sum(), np.count_nonzero(counts)
    if total < MIN_ROWS or possible < 2:
        return None
    second, largest = np.argsort(counts, kind="stable")[-2:]
    rest, least = np.delete(counts, [largest, second]), MIN_SHARE * total
    alone = counts[largest] >= TIMES_THE_NEXT * counts[second]
    both = counts[second] >= TIMES_THE_THIRD * rest.max(initial=0) and rest.sum() >= least
    common = counts[largest] >= least and (alone or both)
    return index == largest if common or possible == 2 else None


def inputs_tell(X, same):
    """Return True if nearest neighbours of marked rows are marked, too, more often than by chance.

    Their agreement is Cohen's kappa, which is 0 by chance.
    """
    some = np.linspace(0, len(X) - 1, min(len(X), COMPARED)).astype(int)
    weight = np.ones(len(X))
    Z = Scaling.standard(X, weight).without_far_rows(X, weight).transform(X)
    own, of_neighbours = same[some], of_nearest(Z, same, some)
    p, q = own.mean(), of_neighbours.mean()
    by_chance = p * q + (1.0 - p) * (1.0 - q)
    kappa = (np.mean(own == of_neighbours) - by_chance) / max(1.0 - by_chance, 1e-12)
    return bool(kappa >= SEPARATED)


def _shared(y, weight, outliers):
    """Mask of the rows with the value of at least half of the outliers, or ``None``."""
    values, index = np.unique(y[outliers], return_inverse=True)
    counts = np.bincount(index, weights=weight[outliers])
    most = np.argmax(counts)
    shared = counts[most] >= max(MIN_SHARED_OUTLIERS, 0.5 * counts.sum())
    return y == values[most] if shared else None
