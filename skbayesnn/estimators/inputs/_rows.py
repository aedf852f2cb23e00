"""Checks of given rows: their weights and known errors, and unusual targets.

Unusual targets are values that many rows share, and gross outliers. Shared values are zeros,
detection limits, ceilings or 0/1 classes. Their density is unbounded if the noise level may shrink
at some inputs, so only noise of constant level is tried. Gross outliers, targets far from all
others whatever their inputs, would dominate the standard deviation by which targets are
standardised. A shared value may be an outlier, such as a code for missing values.
"""

import sys
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from scipy.stats import norm
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, validate_data

from skbayesnn._data import Scaling
from skbayesnn._typing import Array, Estimator, RandomState
from skbayesnn.estimators.inputs._parameters import floats

# sum of the weights over the number of rows: below the first they hardly count, above the second
# the rows count as far more observations than there are
FEW_REPETITIONS, MANY_REPETITIONS = 0.1, 10.0
MOST_DIFFERENT = 0.5  # different targets, of all rows, if these are groups of equal observations
FEWEST_ROWS = 30  # least number of rows in which a value can count as common
LEAST_SHARE = 0.1  # of all rows, for a common value
FEWEST_SHARED = 2  # least number of outliers that can have a common value
TIMES_THE_NEXT = 3.0  # least ratio to the next most common value, unless there are only two values
MOST_ROWS = 0.5  # share of the value above which the other rows can be interpolated
SEPARATED = 0.5  # agreement of neighbours, from 0 to 1, above which inputs separate the rows
LEAST_NOISE = 0.9  # least share of the unexplained standard deviation
LINEAR_ANYWHERE, LINEAR_IF_SEPARATED = 0.5, 0.25  # shares of linear models, see `ablation.md`
HEAVY = 6.0  # kurtosis above which few targets decide a fit; normal noise has 3, exponential 9
MOST_TARGETS = (0.05, 0.95)  # quantiles of positive targets between which decades are counted
MANY_DECADES = 3.0  # for a warning
ROWS_PER_VALUE = 5.0  # least mean number of rows with the same target, for rounded targets
COMPARED = 2000  # most rows whose neighbours are looked up

FAR = 10.0  # spreads from the median; in 12 real data sets one row (of 16,599) is as far
LOWER, UPPER = 0.35, 0.65  # quantiles whose distances from the median give the spreads
# decades of the others from which far values may continue them; folded normal ones have 1.5
FEWEST_DECADES = 2.0
GAP = 0.5  # least gap, in spreads of the logarithms, between positive targets and outliers
MOST_OUTLIERS = 0.4  # largest share of the rows; more would shift the quantiles
FEWEST_WITH_OUTLIERS = 15  # least number of rows in which some can count as outliers
TIMES_THE_REST = 2.0  # least ratio of the standard deviations with and without outliers
TIMES_FEW = 5.0  # this ratio for less than `FEWEST_ROWS`, whose quantiles vary
LEAVE_OUT = "Leave out the rows without a finite target."


def generator(random_state: RandomState) -> np.random.Generator:
    """Make a NumPy generator from anything that scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def numeric(y):
    """Convert targets to finite numbers of shape (n, n_outputs)."""
    try:
        y = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold numbers; for class labels use a classifier, such as EvidenceMLPClassifier."
        ) from error
    if not np.all(np.isfinite(y)):
        raise ValueError(f"Input y contains NaN or infinity. {LEAVE_OUT}")
    return y[:, None] if y.ndim == 1 else y


def targets_of_rows(y, n_rows, n_outputs):
    """Convert targets of rows, or one number for all, to numbers ``(n_rows, n_outputs)``."""
    y = numeric(y)
    if y.ndim == 0:
        y = np.full((n_rows, n_outputs), y)
    check_consistent_length(range(n_rows), y)
    if y.shape[1] != n_outputs:
        raise ValueError(f"y has {y.shape[1]} outputs, the model was fitted with {n_outputs}.")
    return y


def _is_no_number(cell):
    """Return True for a date, and for a string that is not a number."""
    try:
        return isinstance(cell, str | date) and float(cell) is None
    except (TypeError, ValueError):
        return True


# Cells that are no numbers: their test, a part of scikit-learn's message, and a better one
NO_NUMBERS = (
    (
        _is_no_number,
        "",
        "X holds values that are no numbers, such as {first!r}, in these columns: {names}. Encode "
        "categories in a pipeline before this estimator: by OneHotEncoder or, if there are many, "
        "TargetEncoder (sklearn.preprocessing), in a ColumnTransformer with "
        "remainder='passthrough', or by skrub's tabular_pipeline(estimator). Replace dates by "
        "numbers, such as days since the first date.",
    ),
    (
        lambda cell: str(cell) in ("None", "nan", "<NA>"),
        "Input X contains NaN",
        "Input X contains NaN in these columns: {names}. Impute values in a pipeline before this "
        "estimator, for example by SimpleImputer(add_indicator=True) (sklearn.impute), or leave "
        "these rows out.",
    ),
)


def validated(estimator, X, *y, **options):
    """Arrays of numbers from `validate_data`; messages name columns with anything else."""
    try:
        return validate_data(estimator, X, *y, dtype=np.float64, **options)
    except (TypeError, ValueError) as error:
        if str(error).startswith(
            ("Input y contains", "Input contains NaN")
        ):  # objects have no name
            message = str(error).replace("Input contains", "Input y contains")
            raise ValueError(f"{message.rstrip('.')}. {LEAVE_OUT}") from None
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise
        names = getattr(X, "columns", range(cells.shape[1]))
        for wanted, message, words in NO_NUMBERS:
            columns = [list(filter(wanted, column)) for column in cells.T]
            wrong = [repr(name) for name, own in zip(names, columns, strict=True) if own]
            if wrong and message in str(error):
                first = next(own[0] for own in columns if own)
                raise ValueError(words.format(names=", ".join(wrong), first=first)) from None
        raise


def named(model: Estimator, X: Array) -> Any:
    """Give rows ``(n, n_features)`` the column names with which a model was fitted, if any.

    The result is a data frame if the model has names for as many columns, and pandas is in use.
    """
    names, pandas = getattr(model, "feature_names_in_", None), sys.modules.get("pandas")
    if names is None or pandas is None or len(names) != X.shape[1]:
        return X
    return pandas.DataFrame(X, columns=names)


def checked_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Number of repetitions of each row, ``(n_rows,)``; ones for ``None``.

    Raises unless the given numbers can be repetitions.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    sample_weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name=name)
    if sample_weight.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), one weight per row; got {sample_weight.shape}."
        )
    if np.any(sample_weight < 0) or not np.any(sample_weight > 0):
        raise ValueError(
            f"{name} must not be negative, nor zero for all rows: a weight counts repetitions."
        )
    return sample_weight


def checked_errors(measurement_std, shape):
    """Known measurement errors of all targets, ``(n_samples, n_outputs)``, which is ``shape``."""
    errors = _of_rows(measurement_std, "measurement_std", shape)
    if not np.all(np.isfinite(errors)):
        raise ValueError(
            "measurement_std contains NaN or infinity. Leave out rows whose error is not known, or "
            "give them sample_weight 0."
        )
    if np.any(errors < 0):
        raise ValueError("measurement_std must not be negative: it holds standard deviations.")
    return errors


def _of_rows(given, name, shape):
    """Expand one number, one per row or one per target to ``shape``, ``(n, n_outputs)``."""
    values, (n, n_outputs) = floats(given, name), shape
    if values.shape not in ((), (n,), (n, 1), shape):
        several = f" or ({n}, {n_outputs})" if n_outputs > 1 else ""
        raise ValueError(
            f"{name} must be one number, or have shape ({n},){several}; got {values.shape}."
        )
    return np.broadcast_to(values[:, None] if values.ndim == 1 else values, shape)


def checked_exposure(exposure, n_rows):
    """Exposures of all rows, ``(n_rows, 1)``, 1 if ``None``; raise unless they are positive."""
    given = _of_rows(1.0 if exposure is None else exposure, "exposure", (n_rows, 1))
    if not np.all(np.isfinite(given) & (given > 0)):
        raise ValueError(
            "exposure must be positive and finite. Leave out rows that were not observed."
        )
    return given


def check_counts(y):
    """Raise ``ValueError`` unless targets ``(n, n_outputs)`` are counts of a single kind."""
    if y.shape[1] > 1:
        raise ValueError(
            f"Counts are supported for one output; y has {y.shape[1]}. Fit one model for each."
        )
    wrong = np.sum((y < 0) | (y != np.floor(y)))
    if wrong:
        raise ValueError(
            f"y must hold counts, whole numbers from 0 on; {wrong} of {len(y)} values are not. "
            "Rates are counts with their exposure: give y=counts and exposure."
        )


def checked_sides(censored, shape):
    """Sides of limits ``(n, n_outputs)``: -1, 0 and 1; raise unless some targets were measured."""
    sides = np.asarray(censored)
    sides = sides[:, None] if sides.ndim == 1 else sides
    if sides.shape != shape or not np.all(np.isin(sides, (-1, 0, 1))):
        raise ValueError(
            f"censored must have shape {shape[:1] if shape[1] == 1 else shape} and hold -1 (the "
            "value lies below y), 0 (it was measured) and 1 (it lies above y)."
        )
    if np.any(np.all(sides != 0, axis=0)):
        raise ValueError("Every target is a limit; at least some must be measured.")
    return sides.astype(float)


def trouble_with_weights(sample_weight, y):
    """A warning, with its category, of weights that are no repetition counts, or ``None``.

    Weights that sum to 1, as those of boosting and of surveys, say that all rows together are one
    observation, from which a Bayesian fit learns nothing. Large ones say that every target was
    observed many times, always with the same value, so that a fit follows its noise. Whole numbers
    that differ are taken to be counts of grouped observations if groups have equal targets ``y``
    ``(n, n_outputs)``; means of groups differ.
    """
    n_rows, total = np.count_nonzero(sample_weight), float(np.sum(sample_weight))
    grouped = MOST_DIFFERENT * len(y) >= len(np.unique(y, axis=0))
    whole = np.ptp(sample_weight) > 0 and np.all(sample_weight == np.round(sample_weight))
    few = total < FEW_REPETITIONS * n_rows or (n_rows > 1 and np.isclose(total, 1.0))
    many = total >= MANY_REPETITIONS * n_rows and not (whole and grouped)
    if n_rows == 0 or not (few or many):
        return None
    consequence = " Error bars are then far too small." if many else ""
    return (
        f"sample_weight adds up to {total:.3g} for {n_rows} rows. A weight is the number of times "
        f"that a row was observed, and their sum the number of all observations.{consequence} If "
        f"the weights only say how rows compare, multiply them by {n_rows / total:.4g}."
    ), UserWarning


class Spike(NamedTuple):
    """Value that many rows or gross outliers have.

    ``place``: "lowest", "highest" or "most common" of all values. ``two_values``: there is only one
    other value. ``agreement``: share of nearest neighbours that also have the value, from 0 by
    chance to 1. ``is_outlier``: `gross_outliers` have the value. ``scatter``: standard deviation at
    given inputs over the one of all targets, if the value occurs anywhere. ``kurtosis``: kurtosis
    of the targets. ``opposite``, ``opposite_share``: the highest value and its share if the value
    is the lowest one, otherwise those of the lowest. ``error``: root mean square error of left-out
    rows after a first fit, in standard deviations of the targets.
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
    error: float = np.inf

    @classmethod
    def of(cls, X, y, weight, outliers):
        """Find the spike in one output ``(n,)`` with a mask of its outliers, or ``None``."""
        same = _most_common(y, weight)
        if same is None:
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
        )

    @property
    def least_noise(self):
        """Smallest noise level in standard deviations of the targets.

        A network could interpolate the other rows one by one and meet the rows with the value
        exactly, where the density would then be huge. If the value occurs with probability ``p``
        whatever the inputs, and the others are ``f``, the variance of a target at given inputs is
        at least ``p (1 - p) E (f - value)^2``. Inputs may separate the rows, so that other targets
        have no noise. Two values have it where classes overlap. The inputs tell more than
        neighbours and linear functions show if the ``error`` is smaller than this.
        """
        if self.is_outlier or (self.agreement >= SEPARATED and not self.two_values):
            return 0.0
        common = self.two_values or self.share >= MOST_ROWS
        least = LEAST_NOISE if common else self.scatter
        least *= np.sqrt(1.0 - max(self.agreement, 0.0))
        return least if self.error >= least else LEAST_NOISE * self.error

    @property
    def least_varying_noise(self):
        """Smallest level of noise that varies or has heavy tails, in units of `least_noise`.

        It would shrink on the rows with the value where inputs separate them, too, and predict them
        at rows of other values near the border. `least_noise` takes neighbours that disagree for
        chance. Most are on different sides of the border, so that less of it is scatter
        (`ablation.md`).
        """
        if self.is_outlier:
            return 0.0
        return max(self.least_noise, self.scatter * (1.0 - max(self.agreement, 0.0)))

    @property
    def hides_structure(self):
        """True if most rows have the value anywhere; networks would fit the others as outliers."""
        return not self.two_values and self.share >= MOST_ROWS and self.least_noise > 0.0

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


def _most_common(y, weight):
    """Mask of the rows with the most common value, or ``None`` if there is no spike.

    Rounded targets have common values, too, but their neighbours are as common. The lowest and the
    highest value may both be limits, so that they are compared with the others only.
    """
    index = np.unique(y, return_inverse=True)[1]
    counts = np.bincount(index, weights=weight)
    total, possible = counts.sum(), np.count_nonzero(counts)
    if total < FEWEST_ROWS or possible < 2:
        return None
    second, largest = np.argsort(counts, kind="stable")[-2:]
    at_both_ends = {second, largest} == {0, len(counts) - 1}
    following = np.max(np.delete(counts, [largest, second] if at_both_ends else largest), initial=0)
    common = counts[largest] >= max(LEAST_SHARE * total, TIMES_THE_NEXT * following)
    return index == largest if common or possible == 2 else None


def _shared(y, weight, outliers):
    """Mask of the rows with the value of at least half of the outliers, or ``None``."""
    if not outliers.any():
        return None
    values, index = np.unique(y[outliers], return_inverse=True)
    counts = np.bincount(index, weights=weight[outliers])
    most = np.argmax(counts)
    shared = counts[most] >= max(FEWEST_SHARED, 0.5 * counts.sum())
    return y == values[most] if shared else None


def kurtosis(y, weight):
    """Kurtosis of targets ``(n,)``, 3 for normal ones."""
    z = Scaling.standard(y[:, None], weight).transform(y[:, None])[:, 0]
    return float(np.average(z**4, weights=weight))


def decades(y, weight):
    """Decades that most targets ``(n,)`` span, 0 unless few positive ones decide a fit."""
    if weight.sum() < FEWEST_ROWS or y.min() <= 0.0 or kurtosis(y, weight) <= HEAVY:
        return 0.0
    ends = np.quantile(np.log10(y), MOST_TARGETS, weights=weight, method="inverted_cdf")
    return float(np.ptp(ends))


def rounding_error(y, weight):
    """Standard deviation by which rounding changes targets ``(n,)``, 0 unless it is coarse.

    Where few values are possible, networks can meet most of them exactly. Rounding to multiples of
    ``h`` has errors of variance ``h^2 / 12``.
    """
    values = np.unique(y)
    if len(values) < 3 or weight.sum() < max(FEWEST_ROWS, ROWS_PER_VALUE * len(values)):
        return 0.0
    return float(np.min(np.diff(values)) / np.sqrt(12.0))


def agreement(X, same):
    """Share of the variance of a membership of rows that the inputs explain; about 0 by chance.

    It is Cohen's kappa between the membership of a row and of its nearest neighbour. Where there
    are many inputs, or some do not matter, no neighbour is near, but limits of nearly linear
    functions still show: neighbours by a linear predictor of the membership count as well.
    """
    some = np.linspace(0, len(X) - 1, min(len(X), COMPARED)).astype(int)
    weight = np.ones(len(X))
    Z = Scaling.standard(X, weight).without_far_rows(X, weight).transform(X)
    found = [_kappa(same[some], _of_nearest(Z, same, some))]
    if len(some) >= FEWEST_ROWS:
        halves, theirs = (some[::2], some[1::2]), []
        for own, others in (halves, halves[::-1]):
            scores = _linear_scores(Z[own], Z[others], same[others])
            theirs.append(_of_nearest(scores, same[own], np.arange(len(own))))
        found.append(_kappa(same[np.concatenate(halves)], np.concatenate(theirs)))
    return max(found)


def _of_nearest(Z, same, rows):
    """Membership of the nearest neighbours of some rows, other than these themselves."""
    first, second = KDTree(Z).query(Z[rows], k=2)[1].T  # equal rows may come in any order
    return same[np.where(first == rows, second, first)]


def _linear_scores(Z, others, same):
    """Predict the membership of rows ``Z`` by ridge regression on that of other rows.

    The penalty is the number of inputs, as for weights that explain as much as the noise.
    """
    kernel = others @ others.T + Z.shape[1] * np.eye(len(others))
    return Z @ others.T @ np.linalg.solve(kernel, same - same.mean())[:, None]


def _kappa(same, theirs):
    """Cohen's kappa between two memberships of rows."""
    by_chance = same.mean() * theirs.mean() + (1 - same.mean()) * (1 - theirs.mean())
    return float((np.mean(same == theirs) - by_chance) / max(1.0 - by_chance, 1e-12))


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
    if spreads[0] < least * spreads[1] or _most_common(y[~far], weight[~far]) is not None:
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
