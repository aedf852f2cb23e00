"""Values that many targets share: zeros, detection limits, ceilings, 0/1 classes; gross outliers.

The density of shared values is unbounded if the noise level may shrink at some inputs, so only
noise of constant level is tried. A shared value may be an outlier, such as a code for missing
values. Gross outliers, far from all others whatever their inputs, would dominate the standard
deviation by which targets are standardised.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from skbayesnn._data import COMPARED, Scaling, of_nearest

FEWEST_ROWS = 30  # least number of rows in which a value can count as common
LEAST_SHARE = 0.1  # of all rows, for a common value
FEWEST_SHARED = 2  # least number of outliers that can have a common value
TIMES_THE_NEXT = 3.0  # least ratio to the next most common value, unless there are only two values
TIMES_THE_THIRD = 10.0  # least ratio of two spikes, and of all other rows, to any other value
MOST_ROWS = 0.5  # share of the value above which the other rows can be interpolated
SEPARATED = 0.5  # agreement of neighbours, from 0 to 1, above which inputs separate the rows
LEAST_NOISE = 0.9  # least share of the unexplained standard deviation
OF_NEIGHBOURS = 0.35  # least noise of other rows over the median difference of neighbours
LINEAR_ANYWHERE, LINEAR_IF_SEPARATED = 0.5, 0.35  # shares of linear models, see `ablation.md`
HEAVY = 6.0  # kurtosis above which few targets decide a fit; normal noise has 3, exponential 9

# of gross outliers
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


class Spike(NamedTuple):
    """Value that many rows or gross outliers have.

    ``place``: "lowest", "highest" or "most common" of all values. ``two_values``: there is only one
    other value. ``agreement``: how well inputs tell the rows with the value from the others, from 0
    by chance to 1, see `agreement`. ``is_outlier``: `gross_outliers` have the value. ``scatter``:
    standard deviation at given inputs over the one of all targets, if the value occurs anywhere.
    ``kurtosis``: kurtosis of the targets. ``opposite``, ``opposite_share``: the highest value and
    its share if the value is the lowest one, otherwise those of the lowest. ``error``: root mean
    square error of left-out rows after a first fit, in standard deviations of the targets, as is
    ``noise_of_others``, the least noise of other rows.
    """

    value: float
    share: float
    place: str
    two_values: bool
    agreement: float
    is_outlier: bool
    scatter: float
    kurtosis: float
    opposite: float
    opposite_share: float
    noise_of_others: float = 0.0
    error: float = np.inf

    @classmethod
    def of(cls, X, y, weight, outliers):
        """Find the spike in one output ``(n,)`` with a mask of its outliers, or ``None``."""
        same = most_common(y, weight)
        if same is None and outliers.any():
            same = _shared(y, weight, outliers)
        if same is None:
            return None
        value, others = y[same][0], y[~same]
        place = "highest" if value > others.max() else "most common"
        share = np.average(same, weights=weight)
        opposite = others.max() if value < others.min() else others.min()
        z = Scaling.standard(y[:, None], weight).transform(y[:, None])[:, 0]
        distances = np.average((z - z[same][0]) ** 2, weights=weight * ~same)
        return cls(
            float(value),
            float(share),
            "lowest" if value < others.min() else place,
            bool(others.min() == others.max()),
            agreement(X, same),
            bool(np.all(outliers[same])),
            float(np.sqrt(share * (1.0 - share) * distances)),
            kurtosis(y, weight),
            float(opposite),
            float(np.average(y == opposite, weights=weight)),
            noise_of_others(X, z, same) if len(others) > 1 else 0.0,
        )

    @property
    def least_noise(self):
        """Smallest noise level in standard deviations of the targets.

        A network could interpolate the other rows one by one and meet the rows with the value
        exactly, where the density would then be huge. If the value occurs with probability ``p``
        whatever the inputs, and the others are ``f``, the variance of a target at given inputs is
        at least ``p (1 - p) E (f - value)^2``. Where inputs separate the rows, the other targets
        alone have noise. Two values have it where classes overlap. If the ``error`` is smaller, the
        inputs tell more than neighbours and linear functions show.
        """
        if self.is_outlier:
            return 0.0
        common = self.two_values or self.share >= MOST_ROWS
        least = LEAST_NOISE if common else self.scatter
        least *= np.sqrt(1.0 - max(self.agreement, 0.0))
        if self.agreement >= SEPARATED and not self.two_values:
            least = min(least, self.noise_of_others)
        return least if self.two_values or self.error >= least else LEAST_NOISE * self.error

    def least_level(self, varying=False):
        """Smallest noise level, in standard deviations of the targets.

        It is `least_noise`, or a larger one for noise that varies or has heavy tails (``varying``).
        That would shrink on the rows with the value where inputs separate them, too, and predict
        them at rows of other values near the border. `least_noise` takes neighbours that disagree
        for chance. Most are on different sides of the border, so that less of it is scatter
        (`ablation.md`).
        """
        if self.is_outlier or not varying:
            return self.least_noise
        return max(self.least_noise, self.scatter * (1.0 - max(self.agreement, 0.0)))

    @property
    def hides_structure(self):
        """True if most rows have the value anywhere; networks would fit the others as outliers.

        Of two values, networks would follow one that few rows have.
        """
        anywhere = not self.is_outlier and self.agreement < SEPARATED
        others_are_far = self.kurtosis > HEAVY or not self.two_values
        return anywhere and others_are_far and self.share >= MOST_ROWS

    @property
    def linear_share(self):
        """Share of linear models in predictions, 0 if there is no reason for one.

        Networks may chase few large targets, which their densities do not show.
        """
        if self.two_values or self.is_outlier or self.kurtosis <= HEAVY:
            return 0.0
        return LINEAR_IF_SEPARATED if self.agreement >= SEPARATED else LINEAR_ANYWHERE

    @property
    def laws(self):
        """Noise models that may be tried; heavy tails if the inputs tell the rows of the value."""
        tails = self.linear_share > 0.0 and self.agreement >= SEPARATED
        return ("constant", "student_t") if tails else ("constant",)

    def words(self, noise_is_chosen=True, only_linear=False):
        """Describe the value, and what is tried where the fit chooses noise or size."""
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
        place = f"{self.place} value"
        if self.place != "most common" and self.opposite_share >= LEAST_SHARE:
            end = "highest" if self.place == "lowest" else "lowest"
            place += f", and {100 * self.opposite_share:.0f} % equal {self.opposite:g}, the {end}"
        laws = " and ".join(self.laws).replace("student_t", "Student-t")
        tried = [f"{laws} noise"] * noise_is_chosen + ["linear models"] * only_linear
        verb = "are" if only_linear else "is"
        so = f", so only {' and '.join(tried)} {verb} tried" if tried else ""
        return (
            f"{share}, the {place}. No continuous distribution describes this{so}. If it "
            "is a limit, pass censored to fit. Otherwise learn with a classifier which rows have "
            f"y = {self.value:g}, and fit a regressor to the others."
        )


def most_common(y, weight):
    """Mask of the rows with the most common value, or ``None`` if there is no spike.

    Rounded targets have common values, too, but their neighbours are as common. The lowest and the
    highest value may both be limits, as may two values far more common than many others (limits of
    two instruments), so that they are compared with the others only.
    """
    index = np.unique(y, return_inverse=True)[1]
    counts = np.bincount(index, weights=weight)
    total, possible = counts.sum(), np.count_nonzero(counts)
    if total < FEWEST_ROWS or possible < 2:
        return None
    second, largest = np.argsort(counts, kind="stable")[-2:]
    rest = np.delete(counts, [largest, second])
    third = np.max(rest, initial=0)
    at_both_ends = {second, largest} == {0, len(counts) - 1}
    least = max(LEAST_SHARE * total, TIMES_THE_THIRD * third)
    stands_out = min(counts[second], rest.sum()) >= least
    following = third if at_both_ends or stands_out else counts[second]
    common = counts[largest] >= max(LEAST_SHARE * total, TIMES_THE_NEXT * following)
    return index == largest if common or possible == 2 else None


def _shared(y, weight, outliers):
    """Mask of the rows with the value of at least half of the outliers, or ``None``."""
    values, index = np.unique(y[outliers], return_inverse=True)
    counts = np.bincount(index, weights=weight[outliers])
    most = np.argmax(counts)
    shared = counts[most] >= max(FEWEST_SHARED, 0.5 * counts.sum())
    return y == values[most] if shared else None


def kurtosis(y, weight):
    """Kurtosis of targets ``(n,)``, 3 for normal ones."""
    z = Scaling.standard(y[:, None], weight).transform(y[:, None])[:, 0]
    return float(np.average(z**4, weights=weight))


def agreement(X, same):
    """Cohen's kappa between the membership of rows and of their nearest neighbours; 0 by chance.

    Where there are many inputs, or some do not matter, no neighbour in the inputs is near. Limits
    of nearly linear functions still show among neighbours in a linear predictor of the membership
    from other rows. The larger kappa counts.
    """
    some = np.linspace(0, len(X) - 1, min(len(X), COMPARED)).astype(int)
    weight = np.ones(len(X))
    Z = Scaling.standard(X, weight).without_far_rows(X, weight).transform(X)
    kappas = [_kappa(same[some], of_nearest(Z, same, some))]
    if len(some) >= FEWEST_ROWS:
        halves, of_neighbours = (some[::2], some[1::2]), []
        for own, others in (halves, halves[::-1]):
            # ridge regression of the membership in the other half; the penalty is the number of
            # inputs, as for weights that explain as much as the noise
            kernel = Z[others] @ Z[others].T + Z.shape[1] * np.eye(len(others))
            dual = np.linalg.solve(kernel, same[others] - same[others].mean())
            scores = Z[own] @ Z[others].T @ dual[:, None]
            of_neighbours.append(of_nearest(scores, same[own], np.arange(len(own))))
        kappas.append(_kappa(same[np.concatenate(halves)], np.concatenate(of_neighbours)))
    return max(kappas)


def noise_of_others(X, z, same):
    """Least noise of the other rows by differences of neighbours (Rice 1984, Ann. Stat. 12)."""
    X, z = X[~same], z[~same]
    some = np.unique(np.linspace(0, len(z) - 1, COMPARED).astype(int))
    Z = Scaling.standard(X, np.ones(len(z))).transform(X)
    return float(OF_NEIGHBOURS * np.median(np.abs(z[some] - of_nearest(Z, z, some))))


def _kappa(same, of_neighbours):
    """Cohen's kappa between two memberships of rows."""
    by_chance = same.mean() * of_neighbours.mean() + (1 - same.mean()) * (1 - of_neighbours.mean())
    return float((np.mean(same == of_neighbours) - by_chance) / max(1.0 - by_chance, 1e-12))


def gross_outliers(X, y, weight):
    """Mask of the outliers of one output ``(n,)``; empty unless they cause most of its variance.

    Far values that share a region of the inputs may belong to the function. Therefore rows next to
    outliers must not be outliers more often than others.
    """
    total, none = weight.sum(), np.zeros(len(y), dtype=bool)
    if total < FEWEST_WITH_OUTLIERS:
        return none
    far = _far(y, weight)
    if far.any() and y.min() > 0.0:
        far &= ~_continues(y, weight, far)
    if not far.any() or weight[far].sum() > MOST_OUTLIERS * total:
        return none
    spreads = [Scaling.standard(y[:, None], w).scale[0] for w in (weight, weight * ~far)]
    least = TIMES_THE_REST if total >= FEWEST_ROWS else TIMES_FEW
    if spreads[0] < least * spreads[1] or most_common(y[~far], weight[~far]) is not None:
        return none
    return none if agreement(X, far) >= SEPARATED else far


def _continues(y, weight, far):
    """Mask of the ``far`` values that continue the others, all positive, on the logarithmic scale.

    Targets over several decades have far values, but no `GAP` between these and the rest.
    """
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
