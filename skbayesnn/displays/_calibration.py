"""Whether predicted probabilities come true: coverage of intervals, reliability of classes."""

from itertools import cycle

import numpy as np
from scipy.stats import binom
from sklearn.base import is_regressor
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn.displays._calibration_curves import CONFIDENCE, LEVELS, coverage, reliability
from skbayesnn.displays._display import COLORS, MARKERS, SKY, Display
from skbayesnn.displays._inputs import class_index, class_name, fitted_network


class CalibrationDisplay(Display):
    """Observed frequencies against predicted probabilities.

    Regressors: how many targets lie inside central predictive intervals of every coverage, and the
    histogram of the probability integral transform (PIT), flat if calibrated (Dawid 1984).
    U-shaped: error bars too small; a hump: too large. Classifiers: how often the class occurs
    among rows with similar predicted probability, for moderated and for most probable outputs
    (MacKay 1992, section 5.2), and the histogram of these probabilities. Create it with
    `from_estimator`, `from_pit` or `from_predictions`.

    Parameters
    ----------
    curves : list of Calibration
        With ``name``, ``predicted``, ``observed``, ``interval`` and ``values``.
    kind : {"coverage", "reliability"}
        Of regressors and of classifiers.
    quantity : str, optional
        What is predicted, for the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
        Curves and histogram.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per curve.
    histograms_ : list of matplotlib Artist
        One per curve.

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

    def __init__(self, curves, kind, quantity=""):
        self.curves = curves
        self.kind = kind
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        class_of_interest=None,
        n_bins=10,
        strategy="uniform",
        ax=None,
        **plot_options,
    ):
        """Predict test data and draw.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            Any of this package.
        X : array-like of shape (n_samples, n_features)
            Inputs that were not used in training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        class_of_interest : int, bool or str, optional
            Classifiers: whose probability is judged. By default the second of two classes; of
            more classes always the most probable one of the row.
        n_bins, strategy : int and {"uniform", "quantile"}
            Classifiers: as in `from_predictions`.
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure. With one Axes only the curves are drawn.
        **plot_options
            Options of `plot`.

        Returns
        -------
        CalibrationDisplay
            Drawn.
        """
        network, transform = fitted_network(estimator)
        check_consistent_length(X, y)
        X = transform(X)
        if is_regressor(network):
            pit = network.predictive_cdf(X, y)
            return cls.from_pit(pit, ax=ax, **plot_options)
        y = column_or_1d(y)
        sets = {
            name: network.predict_proba(X, moderated=moderated)
            for name, moderated in (("moderated", True), ("most probable", False))
        }
        if class_of_interest is None and len(network.classes_) > 2:
            hits = {n: network.classes_[np.argmax(p, axis=1)] == y for n, p in sets.items()}
            sets = {name: p.max(axis=1) for name, p in sets.items()}
            quantity = "the predicted class"
        else:
            index = class_index(class_of_interest, network.classes_)
            hits = dict.fromkeys(sets, y == network.classes_[index])
            sets = {name: p[:, index] for name, p in sets.items()}
            quantity = class_name(network.classes_[index])
        curves = [reliability(name, hits[name], sets[name], n_bins, strategy) for name in sets]
        return cls(curves, "reliability", quantity).plot(ax, **plot_options)

    @classmethod
    def from_pit(cls, pit, *, names=None, ax=None, **plot_options):
        """Draw the calibration of a regressor.

        Parameters
        ----------
        pit : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Predictive probabilities of values up to the true targets, as by ``predictive_cdf``.
        names : list of str, optional
            Of the outputs.
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure. In one Axes the curve alone.
        **plot_options
            Options of `plot`.

        Returns
        -------
        CalibrationDisplay
            Drawn.
        """
        pit = np.asarray(pit, dtype=float)
        pit = pit[:, None] if pit.ndim == 1 else pit
        if pit.ndim != 2 or not pit.size or not np.all((pit >= 0) & (pit <= 1)):
            raise ValueError("pit must hold probabilities, between 0 and 1, of at least one row.")
        if names is None:
            names = ["intervals"] if pit.shape[1] == 1 else [f"y{i}" for i in range(pit.shape[1])]
        if len(names) != pit.shape[1]:
            raise ValueError(f"{len(names)} names for {pit.shape[1]} outputs.")
        curves = [coverage(name, values) for name, values in zip(names, pit.T, strict=True)]
        return cls(curves, "coverage").plot(ax, **plot_options)

    @classmethod
    def from_predictions(
        cls, y_true, probabilities, *, n_bins=10, strategy="uniform", ax=None, **plot_options
    ):
        """Draw the reliability of predicted class probabilities.

        Parameters
        ----------
        y_true : array-like of bool, shape (n_samples,)
            Whether the row belongs to the class.
        probabilities : dict of str to array-like of shape (n_samples,)
            Predicted probabilities of the class, by name of the predictions.
        n_bins : int, default=10
            Number of bins; empty ones are left out.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equal numbers of rows.
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure. With one Axes only the curves are drawn.
        **plot_options
            Options of `plot`.

        Returns
        -------
        CalibrationDisplay
            Drawn.
        """
        hits = column_or_1d(y_true)
        if not np.all(np.isin(hits, (0, 1))):
            raise ValueError("y_true must hold booleans (or 0 and 1): is the row in the class?")
        curves = [
            reliability(name, hits.astype(bool), column_or_1d(values), n_bins, strategy)
            for name, values in probabilities.items()
        ]
        return cls(curves, "reliability", "the class").plot(ax, **plot_options)

    def plot(self, ax=None, *, line_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure. With one Axes only the curves are drawn.
        line_kw : dict, optional
            Style of the curves (``Axes.plot`` or ``Axes.errorbar``).

        Returns
        -------
        CalibrationDisplay
            Itself.
        """
        with self._panels(ax, (1, 2), (5.0, 2.5)) as axes:
            self._draw_curves(axes[0], line_kw or {})
            self.histograms_ = []
            if len(axes) == 2:
                self._draw_histograms(axes[1])
            self._legend(4)
        return self

    def _draw_curves(self, axes, line_kw):
        axes.plot([0, 1], [0, 1], color="gray", lw=0.8, label="calibrated")
        n = len(self.curves[0].values)
        if self.kind == "coverage":
            tails = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
            low, high = (binom.ppf(tail, n, LEVELS) / n for tail in tails)
            label = f"calibrated, {CONFIDENCE:.0%} range ({n} rows)"
            axes.fill_between(LEVELS, low, high, color=SKY, alpha=0.35, lw=0, label=label)
        self.lines_ = []
        for curve, color, marker in zip(self.curves, cycle(COLORS), cycle(MARKERS), strict=False):
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

    def _draw_histograms(self, axes):
        n = len(self.curves[0].values)
        bins = np.linspace(0.0, 1.0, 11)
        for curve, color in zip(self.curves, cycle(COLORS), strict=False):
            _, _, drawn = axes.hist(curve.values, bins, histtype="step", color=color, lw=1.2)
            self.histograms_.append(drawn)
        axes.set(xlim=(0, 1), ylabel="number of rows")
        axes.yaxis.get_major_locator().set_params(integer=True)
        if self.kind == "reliability":
            axes.set_xlabel(f"predicted probability of\n{self.quantity}")
            return
        axes.axhline(n / 10, color="gray", lw=0.8)
        low, high = binom.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], n, 0.1)
        axes.axhspan(low, high, color=SKY, alpha=0.35, lw=0, zorder=0)
        axes.set_xlabel("predictive cdf at the target (PIT)")
