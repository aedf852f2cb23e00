"""Calibration displays: coverage of intervals and reliability of class probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, binomtest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn._typing import Axes, Estimator
from skbayesnn.displays._display import COLORS, MARKERS, NETWORKS, SKY, Display
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.estimators.inputs._parameters import count
from skbayesnn.metrics._scorers import distribution, probability_integral

DIAGONAL = "calibrated"
LEVELS = np.linspace(0.0, 1.0, 41)
CONFIDENCE = 0.95
TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2


class Calibration(NamedTuple):
    """Calibration curve: observed frequencies at predicted probabilities, ``(n_points,)``."""

    name: str
    predicted: np.ndarray
    observed: np.ndarray
    interval: np.ndarray | None  # of 95 % confidence, (n_points, 2), if points have error bars
    values: np.ndarray  # of the histogram, (n_samples,)


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """Observed frequencies against predicted probabilities.

    Regressors: the coverage of central predictive intervals of every probability, and the
    histogram of the probability integral transform (PIT), flat if calibrated (Dawid 1984).
    U-shaped: error bars too small; a hump: too large. Classifiers: the frequency of the class
    among rows with similar predicted probability, for moderated and for most probable outputs
    (MacKay 1992, section 5.2), and the histogram of these probabilities. Create it with
    `from_estimator`, `from_pit` or `from_predictions`.

    Parameters
    ----------
    curves : list of Calibration
        Curves with ``name``, ``predicted``, ``observed``, ``interval`` and ``values``.
    kind : {"coverage", "reliability"}
        Kind of the curves: of regressors, or of classifiers.
    quantity : str, optional
        Name of the predicted quantity, for the axes.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Curves and histogram.
    line_ : matplotlib Line2D
        First curve.
    lines_ : list of matplotlib Line2D
        Lines, one per curve.
    histograms_ : list of matplotlib Artist
        Histograms, one per curve.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (90, 1))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(90)
    >>> model = EvidenceMLPRegressor((), random_state=0).fit(X[:40], y[:40])
    >>> display = CalibrationDisplay.from_estimator(model, X[40:], y[40:])
    >>> len(display.curves[0].values)
    50
    """

    curves: Any
    kind: str
    quantity: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        class_of_interest: int | bool | str | None = None,
        n_bins: Any = 10,
        strategy: Any = "uniform",
        exposure: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Predict test data and draw the curves.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            Estimator of this package, any classifier with ``predict_proba``, or any regressor with
            ``predict(X, return_std=True)``, whose predictions are taken as Gaussian.
        X : array-like of shape (n_samples, n_features)
            Inputs that were not used in training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets of ``X``.
        class_of_interest : int, bool or str, optional
            Classifiers: the class whose probability is tested. By default the second of two
            classes; of more classes always the most probable one of the row.
        n_bins, strategy : int and {"uniform", "quantile"}
            Classifiers: as in `from_predictions`.
        exposure : array-like of shape (n_samples,), optional
            Exposures of counts.
        name : str, optional
            Name of the estimator in the legend.
        """
        check_consistent_length(X, y)
        model, rows = predictor(estimator, X)
        others = None if isinstance(model, NETWORKS) else type(model).__name__
        if is_regressor(model):
            pit = probability_integral(distribution(model, rows, exposure), y).reshape(len(y), -1)
            names = [name or others or "intervals"]
            if pit.shape[1] > 1:
                names = [f"{name}, y{i}" if name else f"y{i}" for i in range(pit.shape[1])]
            return cls.from_pit(pit, names=names, ax=ax, **plot_options)
        if not (is_classifier(model) and hasattr(model, "predict_proba")):
            raise TypeError(
                "This display needs a regressor with predict(X, return_std=True), or a classifier "
                f"with predict_proba; got {estimator!r}."
            )
        y, classes, quantity = column_or_1d(y), model.classes_, "the predicted class"
        most = class_of_interest is None and len(classes) > 2
        if not most:
            label = classes[1] if class_of_interest is None else class_of_interest
            index = _position(label, classes, "class_of_interest")
            quantity = _class_name(classes[index])
        if others:
            sets = {name or others: model.predict_proba(rows)}
        else:
            sets = {
                f"{name}, {kind}" if name else kind: model.predict_proba(rows, moderated=moderated)
                for kind, moderated in (("moderated", True), ("most probable", False))
            }
        curves = []
        for title, p in sets.items():
            hits = y == classes[np.argmax(p, axis=1) if most else index]
            probability = p.max(axis=1) if most else p[:, index]
            curves.append(_reliability(title, hits, probability, n_bins, strategy))
        return cls(curves, "reliability", quantity).plot(ax, **plot_options)

    @classmethod
    def from_pit(
        cls,
        pit: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the calibration of a regressor.

        Parameters
        ----------
        pit : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Predictive probabilities of values up to the true targets, as by ``predictive_cdf``.
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
        curves = [_coverage(name, values) for name, values in zip(names, pit.T, strict=True)]
        return cls(curves, "coverage").plot(ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[str, ArrayLike],
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: int | bool | str | None = None,
        name: str | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the reliability of predicted class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes, of which there are two; or whether the row belongs to the class.
        y_prob : array-like of shape (n_samples,), or dict of str to such arrays
            Predicted probabilities of the class ``pos_label``; several by their names.
        n_bins : int, default=10
            Number of bins; empty ones are left out.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equal numbers of rows.
        pos_label : int, bool or str, optional
            Class whose probability is ``y_prob``; by default 1 (or ``True``).
        name : str, optional
            Name of the predictions in the legend, if there is one array of them.
        """
        y_true = column_or_1d(y_true)
        classes, label = np.unique(y_true), 1 if pos_label is None else pos_label
        if pos_label is not None:
            _position(pos_label, classes, "pos_label")
        elif not np.all(np.isin(classes, (0, 1))):
            raise ValueError(
                "y_true must hold booleans (or 0 and 1): is the row in the class? Else give "
                f"pos_label, one of {', '.join(map(str, classes))}."
            )
        if not isinstance(y_prob, Mapping):
            y_prob = {name or "predictions": y_prob}
        curves = [
            _reliability(name, y_true == label, column_or_1d(values), n_bins, strategy)
            for name, values in y_prob.items()
        ]
        quantity = "the class" if pos_label is None else _class_name(pos_label)
        return cls(curves, "reliability", quantity).plot(ax, **plot_options)

    @property
    def line_(self):
        """First curve."""
        return self.lines_[0]

    def plot(self, ax: Axes = None, *, line_kw: dict[Any, Any] | None = None) -> Self:
        """Draw the curves.

        In Axes that already hold a calibration, further colours are used.
        """
        with self._panels(ax, (1, 2), (5.0, 2.5)) as axes:
            self._draw_curves(axes[0], line_kw or {})
            self.histograms_ = []
            if len(axes) == 2:
                self._draw_histograms(axes[1])
            self._legend(4)
        return self

    def _draw_curves(self, axes, line_kw):
        drawn = axes.get_legend_handles_labels()[1]
        n = len(self.curves[0].values)
        self._is_first = DIAGONAL not in drawn
        if self._is_first:
            axes.plot([0, 1], [0, 1], color="gray", lw=0.8, label=DIAGONAL)
        self._n_before = sum(not label.startswith(DIAGONAL) for label in drawn)
        if self.kind == "coverage" and self._is_first:
            low, high = (binom.ppf(tail, n, LEVELS) / n for tail in TAILS)
            label = f"calibrated, {CONFIDENCE:.0%} range ({n} rows)"
            axes.fill_between(LEVELS, low, high, color=SKY, alpha=0.35, lw=0, label=label)
        self.lines_ = []
        for curve, color, marker in self._looks():
            style = {"color": color, "lw": 1.2, "label": curve.name}
            if curve.interval is None:
                self.lines_ += axes.plot(curve.predicted, curve.observed, **(style | line_kw))
                continue
            style |= {"marker": marker, "ms": 3.5, "lw": 0.7, "elinewidth": 0.8}
            lengths = np.abs(curve.interval.T - curve.observed)
            drawn = axes.errorbar(
                curve.predicted, curve.observed, yerr=lengths, **(style | line_kw)
            )
            self.lines_.append(drawn.lines[0])
        labels = ("coverage of central interval", "fraction of targets inside")
        if self.kind == "reliability":
            labels = (f"predicted probability of\n{self.quantity}", "observed frequency")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xlabel=labels[0], ylabel=labels[1])
        axes.set_aspect("equal")

    def _looks(self):
        """Pair every curve with a colour and a marker not yet used in the Axes."""
        for i, curve in enumerate(self.curves, self._n_before):
            yield curve, COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]

    def _draw_histograms(self, axes):
        n = len(self.curves[0].values)
        bins = np.linspace(0.0, 1.0, 11)
        for curve, color, _ in self._looks():
            _, _, drawn = axes.hist(curve.values, bins, histtype="step", color=color, lw=1.2)
            self.histograms_.append(drawn)
        axes.set(xlim=(0, 1), ylabel="number of rows")
        axes.yaxis.get_major_locator().set_params(integer=True)
        if self.kind == "reliability":
            axes.set_xlabel(f"predicted probability of\n{self.quantity}")
            return
        axes.set_xlabel("predictive cdf at the target (PIT)")
        if not self._is_first:
            return
        axes.axhline(n / 10, color="gray", lw=0.8)
        axes.axhspan(*binom.ppf(TAILS, n, 0.1), color=SKY, alpha=0.35, lw=0, zorder=0)


def _position(label, classes, name):
    """Index of a class; raise if there is no such class."""
    if label not in classes:
        known = ", ".join(map(str, classes))
        raise ValueError(f"{name} must be one of {known}; got {label!r}.")
    return int(np.flatnonzero(classes == label)[0])


def _class_name(label):
    return label if isinstance(label, str) else f"class {label}"


def _coverage(name, pit):
    """Fractions of targets inside central intervals: ``|2 u - 1| <= coverage``."""
    inside = np.sort(np.abs(2.0 * pit - 1.0))
    observed = np.searchsorted(inside, LEVELS, side="right") / len(pit)
    return Calibration(name, LEVELS, observed, None, pit)


def _reliability(name, hits, probabilities, n_bins, strategy):
    """Frequencies in bins of predicted probability, with intervals by Wilson (1927)."""
    check_consistent_length(hits, probabilities)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise ValueError(f"The probabilities {name!r} do not lie between 0 and 1.")
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}.")
    edges = np.linspace(0.0, 1.0, count(n_bins, "n_bins") + 1)
    if strategy == "quantile":
        edges = np.unique(np.quantile(probabilities, edges))
    bins = np.searchsorted(edges[1:-1], probabilities, side="right")
    _, bins, counts = np.unique(bins, return_inverse=True, return_counts=True)
    predicted, n_hits = np.bincount(bins, probabilities) / counts, np.bincount(bins, hits)
    interval = [
        binomtest(int(k), int(n)).proportion_ci(CONFIDENCE, "wilson")
        for k, n in zip(n_hits, counts, strict=True)
    ]
    return Calibration(name, predicted, n_hits / counts, np.array(interval), probabilities)
