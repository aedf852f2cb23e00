"""Leave-one-out predictions of the training rows, compared with the simplest model."""

from typing import NamedTuple

import numpy as np

COVERAGE = 0.95
FEWEST = 20  # rows from which a fit without predictive power is worth a warning
SURELY = 3.0  # standard errors by which the coverage must be too small
MUCH = 0.05  # share of rows by which the coverage must also be too small
ALARMING = 0.8  # coverage below which a fit warns
BROKEN = -10.0  # share of the loss below which the closed form has failed
LITTLE = 0.001, 0.02  # bounds of the standard error used as threshold of the share


class Predictions(NamedTuple):
    """Predictions of left-out rows, compared with those of the simplest model.

    The simplest model predicts the mean of all targets (regressors), or the frequencies of the
    classes (classifiers). The fit removes a ``share`` of its loss, with a standard ``error`` over
    rows: R2 of left-out rows, or one less the ratio of the log losses. The share is ``nan`` if all
    targets are equal, or where predictions of left-out rows in closed form fail.

    ``coverage`` is the share of left-out targets inside their central 95 % interval, ``nan`` for
    classes; ``n_rows`` the sum of the row weights; ``loss`` and ``simplest`` are the mean log loss
    of classifiers and of the class frequencies, in nats, ``nan`` for regressors.
    """

    share: float
    error: float
    coverage: float
    n_rows: float
    loss: float = np.nan
    simplest: float = np.nan

    @classmethod
    def of(cls, left_out, y, weight, classes, outliers=None):
        """Compare the predictions `LeftOut` with the simplest model.

        Targets ``(n, n_outputs)`` are standardised, classes one-hot (one column of 0 and 1 for two
        classes). Outliers ``(n,)`` are left out of R2, which they would dominate.
        """
        total, counted = float(np.sum(weight)), weight
        if outliers is not None:
            counted = weight * ~outliers
        if classes:
            y = np.concatenate([1.0 - y, y], axis=1) if y.shape[1] == 1 else y
            frequency = weight @ y / total
            theirs, mine = -np.log(y @ frequency), -left_out.log_density
            losses = float(weight @ mine / total), float(weight @ theirs / total)
            coverage = np.nan
        else:
            deviation = y - counted @ y / np.sum(counted)
            theirs = np.sum(deviation**2, axis=1)  # y is standardised by all rows
            mine, losses = np.sum((y - left_out.mean) ** 2, axis=1), (np.nan, np.nan)
            inside = np.abs(left_out.cdf - 0.5) <= 0.5 * COVERAGE
            coverage = float(weight @ inside.mean(axis=1) / total)
        gain, most = theirs - mine, counted @ theirs
        if total <= 1.0 or not (classes or np.all(np.ptp(y, axis=0) > 0)):
            return cls(np.nan, np.nan, coverage, total, *losses)
        spread = gain - (counted @ gain / most) * theirs  # delta method for a ratio of sums
        error, share = float(np.sqrt(counted @ spread**2) / most), float(counted @ gain / most)
        if share < BROKEN:
            return cls(np.nan, np.nan, np.nan, total)
        return cls(share, error, coverage, total, *losses)

    @property
    def explains_nothing(self):
        """True if the simplest model predicts as well, within the standard error."""
        return bool(self.share <= np.clip(self.error, *LITTLE))

    @property
    def intervals_fail(self):
        """True if the coverage of 95 % intervals of left-out targets is clearly too small."""
        error = np.sqrt(COVERAGE * (1.0 - COVERAGE) / self.n_rows)
        return bool(self.coverage < COVERAGE - max(MUCH, SURELY * error))

    @property
    def doubt(self):
        """Message about poor predictions, or ``None``."""
        if self.explains_nothing:
            return f"explains nothing: {self._value}"
        if self.intervals_fail:
            return f"95 % intervals hold {100 * self.coverage:.0f} % of left-out rows"
        return None

    @property
    def trouble(self):
        """Warning for `doubt`, or ``None``; too small data sets cause none."""
        if self.doubt is None or self.n_rows < FEWEST:
            return None
        if self.explains_nothing:
            return (
                f"The fit {self.doubt}. Either y does not depend on X, or the search has missed "
                "how: try another random_state or other inputs."
            )
        if self.coverage >= ALARMING:
            return None
        return (
            f"The {self.doubt}: error bars are too small. Try another noise model (for counts "
            "'negative_binomial'), or fewer inputs or hidden units."
        )

    @property
    def _value(self):
        if np.isnan(self.loss):
            return f"R2 of left-out rows {self.share:.2f} +- {self.error:.2f}"
        return (
            f"log loss of left-out rows {self.loss:.3f}, of class frequencies {self.simplest:.3f}"
        )

    def __str__(self):
        if np.isnan(self.share):
            return "not compared: targets are equal, or predictions of left-out rows fail"
        if self.explains_nothing:
            return f"explain nothing; {self._value}"
        if np.isnan(self.loss):
            held = f"95 % intervals hold {100 * self.coverage:.0f} % of them"
            return f"explain {100 * self.share:.0f} % of the variance of left-out rows; {held}"
        return self._value
