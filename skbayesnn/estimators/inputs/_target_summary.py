"""Summary of the targets of regressors: what is unusual about them, before anything is fitted."""

from typing import NamedTuple

import numpy as np

from skbayesnn._data import Scaling
from skbayesnn.estimators.inputs._common_values import MIN_ROWS, CommonValue
from skbayesnn.estimators.inputs._outliers import gross_outliers

MANY_DECADES = 3.0  # for a warning
MAX_TARGETS = (0.05, 0.95)  # quantiles of positive targets between which decades are counted
HEAVY = 6.0  # kurtosis above which few targets decide a fit; normal noise has 3, exponential 9
MIN_NOISE = 0.02  # of outputs with a common value, in standard deviations of the targets
ROWS_PER_VALUE = 5.0  # least mean number of rows with the same target, for rounded targets
IF_COUNTS = "If y holds counts, fit them with noise='poisson' or 'negative_binomial'."


class TargetSummary(NamedTuple):
    """Gross outliers, common values and constant outputs of the targets of canonical rows."""

    outliers: np.ndarray  # mask (n, n_outputs)
    common: list  # `CommonValue` of every output, or ``None``
    # (n_outputs,), True where all targets are equal, and have no known errors
    constant: np.ndarray
    rounding: np.ndarray  # (n_outputs,), see `rounding_error`
    decades: np.ndarray  # (n_outputs,), see `decades`
    counts: np.ndarray  # (n_outputs,), see `are_counts`

    @classmethod
    def of(cls, rows, may_repeat=False):
        """Summarise targets; nothing is unusual if they ``may_repeat``, as counts and limits."""
        if may_repeat:
            none = np.zeros(rows.y.shape[1])
            outliers, common = np.zeros(rows.y.shape, dtype=bool), [None] * len(none)
            return cls(outliers, common, none > 0, none, none, none > 0)
        columns, weight = rows.y.T, rows.weight
        outliers = [gross_outliers(rows.X, y, weight) for y in columns]
        pairs = list(zip(columns, outliers, strict=True))
        return cls(
            np.stack(outliers, axis=1),
            [CommonValue.of(rows.X, y, weight, far) for y, far in pairs],
            (len(rows.y) > 1 and rows.known is None) & (np.ptp(rows.y, axis=0) == 0),
            np.array([rounding_error(y, weight) for y in columns]),
            np.array([decades(y, weight * ~far) for y, far in pairs]),
            ~np.any(outliers, axis=1) & [are_counts(y, weight) for y in columns],
        )

    @property
    def hides_structure(self):
        """True if nothing but a constant or a linear function can be learnt of any output."""
        hidden = [one is not None and one.hides_structure for one in self.common]
        return bool(np.all(self.constant | hidden))

    @property
    def laws(self):
        """Noise models that may be tried; ``None`` for all."""
        return ("constant",) if self.hides_structure else None

    def noise_bounds(self, y, scale):
        """Least and largest noise of every output in units of its ``scale``, ``(2, n_outputs)``.

        The density of common values would be unbounded if the noise could vanish at some inputs.
        Rounding has errors, although networks can meet most of few possible values. No values
        within the range of the targets have a standard deviation above half of it (Popoviciu 1935).
        Noise that depends on the inputs would exceed it where values are common, and where few
        large targets decide.
        """
        common = np.array([one is not None and not one.is_outlier for one in self.common])
        bounded = common | (self.decades >= MANY_DECADES)
        least = np.maximum(self.rounding / scale, MIN_NOISE * common)
        return np.array([least, np.where(bounded, 0.5 * np.ptp(y, axis=0) / scale, np.inf)])

    def warning(self, y):
        """Warning of what is unusual about targets ``y``, or ``None``."""
        for output, values in enumerate(y.T):
            finding = self._finding(output, values)
            if finding is not None:
                of = f"Output {output} of y: " if y.shape[1] > 1 else ""
                return UserWarning(of + finding)
        return None

    def _finding(self, output, y):
        """Describe what was found in one output ``y`` ``(n,)``, or return ``None``."""
        common = self.common[output]
        if self.constant[output]:
            return (
                f"All targets equal {y[0]:g}, so how y depends on X cannot be learnt from these "
                "rows."
            )
        if common is not None:
            zeros = (common.value, common.place) == (0.0, "lowest") and not common.two_values
            counts = zeros and np.all(y == np.floor(y))
            return f"{common.words} {IF_COUNTS}" if counts else common.words
        if self.counts[output]:
            return f"y has whole numbers, of which the few largest decide the fit. {IF_COUNTS}"
        if self.decades[output] >= MANY_DECADES:
            return (
                f"Most targets span {self.decades[output]:.1f} decades, so the few largest decide "
                "the fit. If relative errors matter, fit logarithms: TransformedTargetRegressor("
                "model, func=np.log, inverse_func=np.exp) of skbayesnn.compose."
            )
        return None


def kurtosis(y, weight):
    """Kurtosis of targets ``(n,)``, 3 for normal ones."""
    z = Scaling.standard(y[:, None], weight).transform(y[:, None])[:, 0]
    return float(np.average(z**4, weights=weight))


def are_counts(y, weight):
    """Return True if targets ``(n,)`` are whole numbers from 0 or 1, and few large ones decide."""
    whole = y.min() in (0.0, 1.0) and np.all(y == np.floor(y))
    return bool(whole and weight.sum() >= MIN_ROWS and kurtosis(y, weight) > HEAVY)


def decades(y, weight):
    """Decades that most targets ``(n,)`` span, 0 unless few positive ones decide a fit."""
    if weight.sum() < MIN_ROWS or y.min() <= 0.0 or kurtosis(y, weight) <= HEAVY:
        return 0.0
    ends = np.quantile(np.log10(y), MAX_TARGETS, weights=weight, method="inverted_cdf")
    return float(np.ptp(ends))


def rounding_error(y, weight):
    """Standard deviation by which rounding changes targets ``(n,)``, 0 unless it is coarse.

    Where few values are possible, networks can meet most of them exactly. Rounding to multiples of
    ``h`` has errors of variance ``h^2 / 12``.
    """
    values = np.unique(y)
    if len(values) < 3 or weight.sum() < max(MIN_ROWS, ROWS_PER_VALUE * len(values)):
        return 0.0
    return float(np.min(np.diff(values)) / np.sqrt(12.0))
