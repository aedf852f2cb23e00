"""First look at the targets of regressors, before any noise model is tried."""

from typing import NamedTuple

import numpy as np

from skbayesnn.estimators.inputs._spikes import (
    FEWEST_ROWS,
    HEAVY,
    LEAST_NOISE,
    LINEAR_ANYWHERE,
    MOST_TARGETS,
    Spike,
    gross_outliers,
    kurtosis,
)

MANY_DECADES = 3.0  # for a warning
ROWS_PER_VALUE = 5.0  # least mean number of rows with the same target, for rounded targets
IF_COUNTS = "If y holds counts, fit them with noise='poisson' or 'negative_binomial'."


class FirstLook(NamedTuple):
    """Gross outliers, common values and constant outputs of the targets of canonical rows."""

    outliers: np.ndarray  # mask (n, n_outputs)
    spikes: list  # `Spike` of every output, or ``None``
    # (n_outputs,), True where all targets are equal, and have no known errors
    constant: np.ndarray
    rounding: np.ndarray  # (n_outputs,), see `rounding_error`
    decades: np.ndarray  # (n_outputs,), see `decades`
    counts: np.ndarray  # (n_outputs,), see `are_counts`

    @classmethod
    def of(cls, rows, may_repeat=False):
        """Look at the targets, unless they ``may_repeat``, as counts and limits do."""
        if may_repeat:
            none = np.zeros(rows.y.shape[1])
            outliers, spikes = np.zeros(rows.y.shape, dtype=bool), [None] * len(none)
            return cls(outliers, spikes, none > 0, none, none, none > 0)
        columns, weight = rows.y.T, rows.weight
        outliers = [gross_outliers(rows.X, y, weight) for y in columns]
        return cls(
            np.stack(outliers, axis=1),
            [Spike.of(rows.X, y, weight, far) for y, far in zip(columns, outliers, strict=True)],
            (len(rows.y) > 1 and rows.known is None) & (np.ptp(rows.y, axis=0) == 0),
            np.array([rounding_error(y, weight) for y in columns]),
            np.array([decades(y, weight * ~far) for y, far in zip(columns, outliers, strict=True)]),
            ~np.any(outliers, axis=1) & [are_counts(y, weight) for y in columns],
        )

    @property
    def hides_structure(self):
        """True if nothing but a constant or a linear function can be learnt of any output."""
        hidden = [spike is not None and spike.hides_structure for spike in self.spikes]
        return self.constant.all() or all(hidden)

    @property
    def linear_share(self):
        """Share of linear models; networks predict all outputs, some of which may need none."""
        pairs = zip(self.spikes, LINEAR_ANYWHERE * self.counts, strict=True)
        return min(share if spike is None else spike.linear_share for spike, share in pairs)

    def noise_bounds(self, y, scale, varying=False):
        """Least and largest noise of every output in units of its ``scale``, ``(2, n_outputs)``.

        ``varying``: noise that depends on the inputs, or has heavy tails, was asked for. No values
        within the range of the targets have a standard deviation above half of it (Popoviciu 1935).
        Noise that depends on the inputs would exceed it where values are common, and where few
        large targets decide.
        """
        of_spikes = [0.0 if spike is None else spike.least_level(varying) for spike in self.spikes]
        common = np.array([spike is not None and not spike.is_outlier for spike in self.spikes])
        least = np.maximum(self.rounding / scale, of_spikes)
        bounded = common | (self.decades >= MANY_DECADES)
        return np.array([least, np.where(bounded, 0.5 * np.ptp(y, axis=0) / scale, np.inf)])

    def with_errors(self, errors, scale):
        """Look at the targets again, with the ``errors`` of left-out rows in units of ``scale``.

        Both have shape (n_outputs,). Errors clearly below that of rounding show that targets were
        not rounded, but chosen on a grid, or that networks learn where they are rounded.
        """
        pairs = zip(self.spikes, errors, strict=True)
        spikes = [None if spike is None else spike._replace(error=error) for spike, error in pairs]
        least = LEAST_NOISE * errors * scale
        rounded = errors * scale >= LEAST_NOISE * self.rounding
        return self._replace(spikes=spikes, rounding=np.where(rounded, self.rounding, least))

    def warning(self, y, noise_is_chosen=True, only_linear=False):
        """Warning of what is unusual about targets ``y``, or ``None``.

        ``noise_is_chosen``: the fit chooses the noise model; ``only_linear``: it is linear because
        of what was found.
        """
        for output, values in enumerate(y.T):
            finding = self._finding(output, values, noise_is_chosen, only_linear)
            if finding is not None:
                of = f"Output {output} of y: " if y.shape[1] > 1 else ""
                return UserWarning(of + finding)
        return None

    def _finding(self, output, y, *chosen):
        """Describe what was found in one output ``y`` ``(n,)``, or return ``None``."""
        spike = self.spikes[output]
        if self.constant[output]:
            return (
                f"All targets equal {y[0]:g}, so how y depends on X cannot be learnt from these "
                "rows."
            )
        if spike is not None:
            zeros = (spike.value, spike.place) == (0.0, "lowest") and not spike.two_values
            counts = zeros and np.all(y == np.floor(y))
            words = spike.words(*chosen)
            return f"{words} {IF_COUNTS}" if counts else words
        if self.counts[output]:
            return f"y has whole numbers, of which the few largest decide the fit. {IF_COUNTS}"
        if self.decades[output] >= MANY_DECADES:
            return (
                f"Most targets span {self.decades[output]:.1f} decades, so the few largest decide "
                "the fit. If relative errors matter, fit logarithms: TransformedTargetRegressor("
                "model, func=np.log, inverse_func=np.exp) of skbayesnn.compose."
            )
        return None


def are_counts(y, weight):
    """Return True if targets ``(n,)`` are whole numbers from 0 or 1, and few large ones decide."""
    whole = y.min() in (0.0, 1.0) and np.all(y == np.floor(y))
    return bool(whole and weight.sum() >= FEWEST_ROWS and kurtosis(y, weight) > HEAVY)


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
