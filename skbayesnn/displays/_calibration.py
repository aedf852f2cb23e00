"""Calibration of regressors: coverage of predictive intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom
from sklearn.base import is_regressor
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbayesnn._typing import Array, Axes, Estimator
from skbayesnn.displays._display import COLORS, NETWORKS, SKY, Display
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.predictions._distribution import CountDistribution, Distribution
from skbayesnn.metrics._scorers import distribution, sides_of

DIAGONAL = "calibrated"
LEVELS = np.linspace(0.0, 1.0, 41)
CONFIDENCE = 0.95
TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
N_BINS = 10


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """Coverage of predictive intervals of every probability.

    Beside it is the histogram of the probability integral transform (PIT), flat if calibrated
    (Dawid 1984). U-shaped: error bars too small; a hump: too large. For probabilities of classes
    there is `sklearn.calibration.CalibrationDisplay`. Create it with `from_estimator` or
    `from_pit`.

    Parameters
    ----------
    pit : ndarray of shape (n_samples, n_curves)
        Predictive probabilities of values up to the true targets.
    names : list of str
        Names of the curves.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Curves and histogram.
    lines_ : list of matplotlib Line2D
        Lines, one per curve.
    histograms_ : list of matplotlib Artist
        Histograms, one per curve.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import CalibrationDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMLPRegressor((), noise="constant").fit(X[:200], y[:200])
    >>> CalibrationDisplay.from_estimator(model, X[200:], y[200:]).pit.shape
    (242, 1)
    >>> CalibrationDisplay.from_estimator(model).pit.shape  # training rows, each left out
    (200, 1)
    """

    pit: Array
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        censored: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes = None,
    ) -> Self:
        """Predict test data, or each training row from the others, and draw the curves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Inputs that were not used in training. Without ``X`` and ``y``, a regressor of this
            package predicts its distinct training rows, each from the others, without refits
            (leave-one-out PIT).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of ``X``.
        exposure : array-like of shape (n_samples,), optional
            Exposures of counts.
        censored : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of which only a limit is known, as in `EvidenceMLPRegressor.score`. Each has a
            random value among the probabilities of what it allows (randomised PIT).
        name : str, optional
            Name of the estimator in the legend.
        """
        if (X is None) != (y is None):
            raise ValueError("Pass X and y together, or neither, for the training rows left out.")
        check_consistent_length(X, y)
        model, rows = predictor(estimator, X)
        if X is None:  # a transformation of the targets keeps probabilities
            model = getattr(model, "regressor_", model)
        if not is_regressor(model):
            raise TypeError(
                "This display needs a regressor. For class c call sklearn.calibration."
                "CalibrationDisplay.from_predictions(y == c, p) with its probabilities p. Got "
                f"{estimator!r}."
            )
        if X is None:
            if hasattr(model, "fit"):  # averages have none
                check_is_fitted(model)
            if getattr(model, "_has_limits", True) or not hasattr(model, "_left_out"):
                raise TypeError("Pass X and y: leave-one-out predictions are not available.")
            pit = model._left_out.cdf
        else:
            at = distribution(model, rows, exposure)
            pit = probability_integral(at, y, sides_of(at, censored)).reshape(len(y), -1)
        names = None
        if pit.shape[1] > 1:
            names = [f"{name}, y{i}" if name else f"y{i}" for i in range(pit.shape[1])]
        elif name or not isinstance(model, NETWORKS):
            names = [name or type(model).__name__]
        return cls.from_pit(pit, names=names, ax=ax)

    @classmethod
    def from_pit(
        cls, pit: ArrayLike, *, names: Sequence[str] | None = None, ax: Axes = None
    ) -> Self:
        """Draw the calibration of a regressor.

        Parameters
        ----------
        pit : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Predictive probabilities of values up to the true targets, as
            ``predict_distribution(X).cdf(y)``.
        names : list of str, optional
            Names of the outputs.
        """
        pit = np.asarray(pit, dtype=float)
        pit = pit[:, None] if pit.ndim == 1 else pit
        if pit.ndim != 2 or not pit.size or not np.all((pit >= 0) & (pit <= 1)):
            raise ValueError("pit must hold probabilities, between 0 and 1, of at least one row.")
        if names is None:
            names = ["intervals"] if pit.shape[1] == 1 else [f"y{i}" for i in range(pit.shape[1])]
        if len(names) != pit.shape[1]:
            raise ValueError(f"{len(names)} names for {pit.shape[1]} outputs.")
        return cls(pit, names).plot(ax)

    def plot(self, ax: Axes = None) -> Self:
        """Draw the curves.

        In Axes that already hold a calibration, further colours are used.
        """
        with self._panels(ax, (1, 2), (5.0, 2.5)) as axes:
            drawn = axes[0].get_legend_handles_labels()[1]
            n_before = sum(not label.startswith(DIAGONAL) for label in drawn)
            if DIAGONAL not in drawn:
                self._draw_expected(axes)
            self.lines_, self.histograms_ = [], []
            for i, (name, pit) in enumerate(zip(self.names, self.pit.T, strict=True), n_before):
                style = {"color": COLORS[i % len(COLORS)], "lw": 1.2}
                # a target is inside the central interval if |2 u - 1| <= coverage
                inside = np.sort(np.abs(2.0 * pit - 1.0))
                observed = np.searchsorted(inside, LEVELS, side="right") / len(pit)
                self.lines_ += axes[0].plot(LEVELS, observed, label=name, **style)
                if len(axes) == 2:
                    bars = axes[1].hist(pit, N_BINS, range=(0, 1), histtype="step", **style)[2]
                    self.histograms_.append(bars)
            limits = {"xlim": (-0.04, 1.04), "ylim": (-0.04, 1.04), "aspect": "equal"}
            labels = "coverage of central interval", "fraction of targets inside"
            axes[0].set(xlabel=labels[0], ylabel=labels[1], **limits)
            for histogram in axes[1:]:
                xlabel = "predictive cdf at the target (PIT)"
                histogram.set(xlim=(0, 1), xlabel=xlabel, ylabel="number of rows")
                histogram.yaxis.get_major_locator().set_params(integer=True)
            self._legend(self.figure_)
        return self

    def _draw_expected(self, axes):
        """Draw the diagonal, and ranges of calibrated predictions of as many rows."""
        n = len(self.pit)
        axes[0].plot([0, 1], [0, 1], color="gray", lw=0.8, label=DIAGONAL)
        band = {"color": SKY, "alpha": 0.35, "lw": 0}
        low, high = (binom.ppf(tail, n, LEVELS) / n for tail in TAILS)
        label = f"{DIAGONAL}, {CONFIDENCE:.0%} range ({n} rows)"
        axes[0].fill_between(LEVELS, low, high, label=label, **band)
        for histogram in axes[1:]:
            histogram.axhline(n / N_BINS, color="gray", lw=0.8)
            histogram.axhspan(*binom.ppf(TAILS, n, 1.0 / N_BINS), zorder=0, **band)


def probability_integral(at, y, sides=0.0):
    """Distribution function at the targets; of counts less half of their probability.

    At limits, whose ``sides`` are not 0, it is drawn uniformly over the values that they allow.
    """
    below = at.cdf(y if isinstance(at, Distribution) else np.reshape(y, at.mean().shape))
    below = below - 0.5 * at.pmf(y) if isinstance(at, CountDistribution) else below
    drawn = np.random.default_rng(0).uniform(size=below.shape)
    least, most = np.where(sides > 0.0, below, 0.0), np.where(sides < 0.0, below, 1.0)
    return np.where(sides == 0.0, below, least + drawn * (most - least))
