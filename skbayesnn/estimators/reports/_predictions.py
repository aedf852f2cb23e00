"""Leave-one-out predictions of the training rows, compared with the simplest model."""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc
from sklearn.exceptions import ConvergenceWarning

from skbayesnn._data import COMPARED, of_nearest

COVERAGE = 0.95
FAR = 2.2  # interquartile ranges that are three standard deviations of normal targets
TOO_FEW = 5.0  # rows that say nothing about other rows
FEW_DECIDE = 0.2  # standard error of R2 above which no percentage is given
NEARLY_ALL = 0.995  # share that would be rounded to 100 %
DIFFERENT = 0.05  # from it, the weighted R2 is shown, too
FEWEST = 20  # rows from which a fit without predictive power is worth a warning
BY_CHANCE = 0.001  # probability of a coverage as small under which it is too small
MUCH = 0.02  # share of rows by which the coverage must also be too small
ALIKE = 0.5  # correlation of errors of neighbours above which a fit misses structure
UNIFORM = 1.0 / 12.0  # variance of probabilities of targets under their own distribution
FAR_OFF = -1.0  # R2 below which no number is given: predictions lie far beyond all targets
MAX_ERROR = 1e70  # larger errors count as this, so that fourth powers stay finite
LITTLE = 0.001, 0.02  # bounds of the standard error used as threshold of the share

OVERDISPERSED = (
    "Counts vary more than Poisson noise allows. Pass their exposure, if they have any, or try "
    "noise='negative_binomial'."
)
OTHER_NOISE = (
    "error bars are too small. Try another noise model, more noise if you gave it, or fewer inputs "
    "or hidden units."
)
TOO_NARROW = {  # what to try, by noise model
    "poisson": f"error bars are too small. {OVERDISPERSED}",
    "student_t": "the others are outliers, which even Student-t noise does not describe. "
    "Intervals describe the rows inside.",
}


class LeftOutScores(NamedTuple):
    """Predictions of left-out rows, compared with those of the simplest model.

    The simplest model predicts the mean of all targets (regressors), or the frequencies of the
    classes (classifiers). The fit removes a ``share`` of its loss, with a standard ``error`` over
    rows: R2 of left-out rows, or one less the ratio of the log losses. The share is ``nan`` if all
    targets are equal, and for too few rows.

    R2 weighs the squared error of every target by its inverse predicted variance, as weighted least
    squares does. Under noise of constant level it is nearly the usual, ``unweighted`` R2; otherwise
    few rows of large noise, or far from all others, would decide it.

    ``coverage`` is the share of left-out targets inside their central 95 % interval, ``nan`` for
    classes; ``n_rows`` the sum of the row weights; ``loss`` and ``simplest`` are the mean log loss
    of classifiers and of the class frequencies, in nats, ``nan`` for regressors. ``similarity`` is
    `similarity_of_neighbours`, ``nan`` for classes.
    """

    share: float
    error: float
    coverage: float
    n_rows: float
    loss: float = np.nan
    simplest: float = np.nan
    unweighted: float = np.nan
    similarity: float = np.nan

    @classmethod
    def of(cls, left_out, X, y, weight, classes, outliers=None, heavy_tails=False):
        """Compare the predictions `LeftOut` with the simplest model.

        Inputs ``(n, p)`` and targets ``(n, n_outputs)`` are standardised, classes one-hot (one
        column of 0 and 1 for two classes). Outliers ``(n,)`` count neither for R2, which they would
        dominate, nor for the coverage, as the noise describes the other rows. With ``heavy_tails``
        of the noise, R2 leaves out those rows, too, that both the median and the predictions miss
        by far.
        """
        total = float(np.sum(weight))
        counted = weight if outliers is None else weight * ~outliers
        if classes:
            y = np.concatenate([1.0 - y, y], axis=1) if y.shape[1] == 1 else y
            frequency = weight @ y / total
            baseline, fitted = -np.log(y @ frequency), -left_out.log_density
            losses = float(weight @ fitted / total), float(weight @ baseline / total)
            coverage = plain = similarity = np.nan
        else:
            baseline, fitted = _squared_errors(left_out, y, counted, np.ones_like(y))
            plain = float(1.0 - counted @ fitted / (counted @ baseline))
            precision = 1.0 / np.maximum(left_out.std, np.finfo(float).tiny ** 0.25) ** 2
            inside, losses = np.abs(left_out.cdf - 0.5) <= 0.5 * COVERAGE, (np.nan, np.nan)
            similarity = similarity_of_neighbours(X, left_out.cdf - 0.5)
            coverage = float(counted @ inside.mean(axis=1) / np.sum(counted))
            if heavy_tails:
                counted = counted * _near(left_out, y, counted)
            baseline, fitted = _squared_errors(left_out, y, counted, precision)
        gain, most = baseline - fitted, counted @ baseline
        if total <= TOO_FEW or not (classes or np.all(np.ptp(y, axis=0) > 0)):
            return cls(np.nan, np.nan, coverage, total, *losses)
        spread = gain - (counted @ gain / most) * baseline  # delta method for a ratio of sums
        error, share = float(np.sqrt(counted @ spread**2) / most), float(counted @ gain / most)
        return cls(share, error, coverage, total, *losses, plain, similarity)

    @property
    def explains_nothing(self):
        """True if the simplest model predicts as well, within the standard error."""
        return bool(not self.far_off and self.share <= np.clip(self.error, *LITTLE))

    @property
    def far_off(self):
        """True if means of left-out rows, perhaps few, are off by far more than targets vary."""
        off = self.share < FAR_OFF or self.unweighted < FAR_OFF
        return bool(off and np.isnan(self.loss))

    @property
    def too_narrow(self):
        """True if intervals hold too few rows, by a binomial test, and not only a little."""
        inside = self.coverage * self.n_rows
        chance = betainc(self.n_rows - inside, inside + 1.0, 1.0 - COVERAGE)
        return bool(self.coverage < COVERAGE - MUCH and chance < BY_CHANCE)

    @property
    def misses_structure(self):
        """True if errors of left-out neighbours are alike, as about a function that is too flat."""
        return bool(self.similarity > ALIKE)

    @property
    def doubt(self):
        """Message about poor predictions, or ``None``."""
        like = f"errors of neighbouring rows correlate by {self.similarity:.2f}"
        doubts = (
            (self.far_off, f"predicts some left-out rows far beyond all targets: {self._value}"),
            (self.explains_nothing, f"explains nothing: {self._value}"),
            (self.too_narrow, self._held),
            (self.misses_structure, f"misses structure: {like}"),
        )
        return next((words for applies, words in doubts if applies), None)

    def warning(self, noise="constant", drawn=False):
        """Warning of poor predictions, or ``None``; too small data sets cause none.

        The ``noise`` model says what to try. ``drawn`` networks may miss a function that training
        finds, such as one of many periods.
        """
        found, advice = f"fit {self.doubt}.", None
        if self.too_narrow:
            found = f"{self._held}:" if self.doubt == self._held else f"{found} Its {self._held}:"
            advice = TOO_NARROW.get(noise, OTHER_NOISE)
        elif self.far_off:
            sampling = "" if drawn else ", or method='chains' (sampling)"
            fewer = f"Try fewer hidden units or inputs{sampling}."
            advice = OVERDISPERSED if noise == "poisson" else fewer
        elif self.explains_nothing:
            instead = "method='laplace' (training instead of sampling), " if drawn else ""
            advice = (
                "Either y does not depend on X, or the fit has not found how: try more hidden "
                f"units, fewer layers, {instead}another random_state or other inputs."
            )
        few = self.n_rows < FEWEST or advice is None
        return None if few else ConvergenceWarning(f"The {found} {advice}")

    @property
    def _held(self):
        return f"95 % intervals hold {100 * self.coverage:.0f} % of left-out rows"

    @property
    def _value(self):
        if not np.isnan(self.loss):
            of_classes = f"of class frequencies {self.simplest:.3f}"
            return f"log loss of left-out rows {self.loss:.3f}, {of_classes}"
        if self.far_off:
            return f"R2 of left-out rows below {FAR_OFF:g}"
        return f"R2 of left-out rows {self.share:z.2f} +- {self.error:.2f}"

    def __str__(self):
        if self.n_rows <= TOO_FEW:
            return "not compared: too few rows"
        if np.isnan(self.share):
            return "not compared: all targets are equal"
        if self.explains_nothing:
            return f"explain nothing; {self._value}"
        if not np.isnan(self.loss):
            return self._value
        held = f"95 % intervals hold {100 * self.coverage:.0f} % of them"
        if self.misses_structure:
            held += "; errors of neighbouring rows are alike"
        if self.far_off or self.error > FEW_DECIDE:
            return f"{self._value}, decided by few rows; {held}"
        plain = self.share if np.isnan(self.unweighted) else self.unweighted
        weighted = ""
        if abs(plain - self.share) > DIFFERENT:
            weighted = f" ({_percent(self.share)} if rows are weighted by predicted variance)"
        shown = f"explain {_percent(plain)} of the variance" if plain >= 0.0 else f"R2 {plain:.2f}"
        return f"{shown} of left-out rows{weighted}; {held}"


def _percent(share):
    """Format a share without decimals, but 99.99 % rather than 100 %."""
    return f"{np.floor(1e4 * share) / 100:.2f} %" if share >= NEARLY_ALL else f"{100 * share:.0f} %"


def similarity_of_neighbours(X, errors):
    """Largest correlation over outputs of errors ``(n, n_outputs)`` and those of nearest rows.

    The errors are differences of probabilities from 1/2. It is about zero or negative where a
    function is fitted well, and near one where the rows are dense, but the function varies faster
    than the fit (Moran 1950, "Notes on continuous stochastic phenomena", Biometrika 37).
    """
    some = np.unique(np.linspace(0, len(X) - 1, COMPARED).astype(int))
    if len(some) < FEWEST:
        return np.nan
    X, errors = X[some], errors[some]
    alike = np.mean(errors * of_nearest(X, errors, np.arange(len(X))), axis=0)
    # errors far smaller than predicted, as of rows without noise, are no sign of missed structure
    return float(np.max(alike / np.maximum(np.mean(errors**2, axis=0), UNIFORM)))


def _squared_errors(left_out, y, weight, precision):
    """Squared errors of the mean of all targets, and of left-out predictions, ``(n,)`` each.

    They are weighted by the precisions ``(n, n_outputs)`` and summed over outputs. The weighted
    mean of the targets is the simplest prediction.
    """
    precision = precision / np.average(precision, axis=0, weights=weight)  # outputs count alike
    mean = np.average(y, axis=0, weights=weight[:, None] * precision)
    baseline = np.sum(precision * (y - mean) ** 2, axis=1)  # y is standardised by all rows
    errors = np.clip(y - left_out.mean, -MAX_ERROR, MAX_ERROR)
    return baseline, np.sum(precision * errors**2, axis=1)


def _near(left_out, y, weight):
    """Mask of the rows with targets near the median or the prediction, as `FAR` says."""
    low, middle, high = np.quantile(
        y, (0.25, 0.5, 0.75), axis=0, weights=weight, method="inverted_cdf"
    )
    far = np.where(high > low, FAR * (high - low), np.inf)
    least = np.minimum(np.abs(y - middle), np.abs(y - left_out.mean))
    return np.all(least <= far, axis=1)
