"""Class probabilities over two inputs, most probable and moderated."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn._typing import Array, Axes, Estimator
from skbayesnn.displays._display import BLUE, COLORS, MARKERS, Display, rgb
from skbayesnn.displays._inputs import (
    class_index,
    class_name,
    column,
    extent,
    feature_index,
    feature_names,
    slice_of_inputs,
    table,
)
from skbayesnn.displays._predictors import predictor

TITLES = ("most probable", "moderated")
SATURATION = 0.75  # of the colour of a class of probability one


class ModeratedBoundaryDisplay(Display):
    """Class probabilities: most probable outputs beside moderated ones.

    Contours of the probability of one class, or the regions of all classes, whose colours fade
    where the probability of the most probable class is small.

    Moderated outputs average over the posterior. They lie nearer to 1/2, the more so the farther
    the inputs are from the data, while the contour of 1/2 itself stays where it is for two classes
    and one minimum (MacKay 1992, section 5.2). Create it with `from_estimator`.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n1, n0)
        Grid of the two inputs.
    most_probable : ndarray of shape (n1, n0) or (n1, n0, n_classes), or None
        Probability of the class, or of all classes; ``None`` for estimators that have but one kind
        of probabilities.
    moderated : ndarray of the same shape
        Averages over the posterior; of other estimators what they predict.
    points : ndarray of shape (n_data, 2), optional
        Data points.
    in_class : ndarray of shape (n_data,), optional
        Which of them belong to the class (bool); of all classes the number of each one's (int).
    feature_names : tuple of str, default=("x0", "x1")
        Names of the two inputs.
    class_name : str or tuple of str, default="class 1"
        Name of the class, or of all classes.
    titles : tuple of str, default=("most probable", "moderated")
        Of the panels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
        Two, or one with both sets of contours.
    figure_ : matplotlib Figure
    contours_ : list of matplotlib QuadContourSet
        Most probable, moderated; of all classes one of each class, where it becomes the most
        probable one.
    data_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPClassifier
    >>> from skbayesnn.displays import ModeratedBoundaryDisplay
    >>> X = np.random.default_rng(0).standard_normal((40, 2))
    >>> y = X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(40) > 0
    >>> model = EvidenceMLPClassifier((), random_state=0).fit(X, y)
    >>> display = ModeratedBoundaryDisplay.from_estimator(model, X, y)
    >>> bool(display.moderated.max() < display.most_probable.max())
    True
    """

    def __init__(
        self,
        xx0: Array,
        xx1: Array,
        most_probable: Array | None,
        moderated: Array,
        *,
        points: Array | None = None,
        in_class: Array | None = None,
        feature_names: tuple[str, ...] = ("x0", "x1"),
        class_name: str | tuple[str, ...] = "class 1",
        titles: tuple[str, ...] = TITLES,
    ) -> None:
        self.xx0 = xx0
        self.xx1 = xx1
        self.most_probable = most_probable
        self.moderated = moderated
        self.points = points
        self.in_class = in_class
        self.feature_names = feature_names
        self.class_name = class_name
        self.titles = titles

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] = (0, 1),
        class_of_interest: int | bool | str | None = None,
        fixed: dict[Any, Any] | None = None,
        margin: float = 0.2,
        grid_resolution: int = 80,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Predict on a grid of two inputs and draw.

        Parameters
        ----------
        estimator : fitted classifier, or Pipeline that ends in one
            Any of this package; or any other with ``predict_proba``, drawn in one panel.
        X : array-like of shape (n_samples, n_features)
            Rows that define the range of the two inputs and the values of any others (medians;
            most frequent ones of categories).
        y : array-like of shape (n_samples,), optional
            Classes of these rows, drawn as points.
        features : tuple of two int or str, default=(0, 1)
            The inputs that vary.
        class_of_interest : int, bool or str, optional
            The class whose probability is shown; by default the second of two classes, and of more
            classes the regions of all.
        fixed : dict, optional
            Values of other inputs, by number or name.
        margin : float, default=0.2
            Margin beyond the rows, as a fraction of their range.
        grid_resolution : int, default=80
            Number of values of each input.
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure with two panels. In one Axes the two sets of
            contours lie over each other.
        **plot_options
            Options of `plot`.

        Returns
        -------
        ModeratedBoundaryDisplay
            Drawn.
        """
        model = predictor(estimator, "classifier")
        X = table(X)
        names = feature_names(estimator, X)
        chosen = [feature_index(feature, names) for feature in features]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"features must be two different ones, got {features!r}.")
        every = class_of_interest is None and len(model.classes) > 2
        index = slice(None) if every else class_index(class_of_interest, model.classes)
        x0, x1 = (
            np.linspace(*extent(column(X, i), names[i], margin), grid_resolution) for i in chosen
        )
        xx0, xx1 = np.meshgrid(x0, x1)
        varied = dict(zip(chosen, (xx0.ravel(), xx1.ravel()), strict=True))
        sets = model.probabilities(slice_of_inputs(X, varied, fixed, names))
        shown = {n: p.reshape(*xx0.shape, -1)[..., index] for n, p in sets.items()}
        points, in_class = None, None
        if y is not None:
            check_consistent_length(X, y)
            points = np.column_stack([column(X, i) for i in chosen]).astype(float)
            in_class = _labels(column_or_1d(y), model.classes, index)
        texts = tuple(class_name(label) for label in model.classes)
        display = cls(
            xx0,
            xx1,
            shown.get("most probable"),
            next(iter(shown.values())),
            points=points,
            in_class=in_class,
            feature_names=tuple(names[i] for i in chosen),
            class_name=texts if every else texts[index],
            titles=TITLES if len(shown) > 1 else tuple(shown),
        )
        return display.plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes = None,
        *,
        levels: ArrayLike = (0.1, 0.3, 0.5, 0.7, 0.9),
        cmap: Any = "PuOr",
        data_kw: dict[Any, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure with two panels. In one Axes the two sets of
            contours lie over each other.
        levels : array-like, default=(0.1, 0.3, 0.5, 0.7, 0.9)
            Increasing probabilities of the contours of one class.
        cmap : str or matplotlib Colormap, default="PuOr"
            Colours of the probabilities of one class in two panels.
        data_kw : dict, optional
            Style of the points (``Axes.plot``).

        Returns
        -------
        ModeratedBoundaryDisplay
            Itself.
        """
        n = len(self._shown())
        with self._panels(ax, (1, n), (1.1 + 1.95 * n, 2.6), sharex=True, sharey=True) as axes:
            self.contours_ = []
            if isinstance(self.class_name, tuple):
                self._regions(axes)
            elif len(axes) == 1 and n > 1:
                self._overlay(axes[0], levels)
            else:
                self._side_by_side(axes, levels, cmap)
            self.data_ = []
            for panel in axes:
                panel.set_xlabel(self.feature_names[0])
                if self.points is not None:
                    self.data_ += self._draw_points(panel, data_kw or {})
            axes[0].set_ylabel(self.feature_names[1])
            if axes[0].get_legend_handles_labels()[1]:
                self._legend(4)
        return self

    def _shown(self):
        """Probabilities by the titles of their panels."""
        sets = (self.most_probable, self.moderated)
        return dict(zip(self.titles, [p for p in sets if p is not None], strict=True))

    def _regions(self, axes):
        """The colour of the most probable class, and the borders between classes."""
        panels = list(self._shown().items())[-len(axes) :]  # in one Axes the moderated ones
        for panel, (title, values) in zip(axes, panels, strict=True):
            colors = np.array([rgb(COLORS[k % len(COLORS)]) for k in range(values.shape[2])])
            mixed = 1.0 - SATURATION * (1.0 - values @ colors)  # linear in the probabilities
            panel.pcolormesh(self.xx0, self.xx1, mixed, shading="nearest", rasterized=True)
            for k in range(values.shape[2]):
                lead = values[..., k] - np.delete(values, k, axis=2).max(axis=2)
                self.contours_.append(self._contour(panel, lead, [0.0], "black", linewidths=0.7))
            panel.set_title(title)

    def _contour(self, axes, values, levels, color, **style):
        """Contour lines; none, without a warning, where the probability reaches no level."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No contour levels were found", UserWarning)
            return axes.contour(self.xx0, self.xx1, values, levels, colors=color, **style)

    def _overlay(self, axes, levels):
        styles = zip(self.titles, ("black", BLUE), ("--", "-"), strict=True)
        for values, (title, color, line) in zip(
            (self.most_probable, self.moderated), styles, strict=True
        ):
            drawn = self._contour(axes, values, levels, color, linestyles=line, linewidths=0.9)
            axes.plot([], [], color=color, ls=line, lw=0.9, label=title)
            self.contours_.append(drawn)
        _label_levels(axes, self.contours_[1])

    def _side_by_side(self, axes, levels, cmap):
        for panel, (title, values) in zip(axes, self._shown().items(), strict=True):
            shades = panel.contourf(
                self.xx0, self.xx1, values, np.linspace(0.0, 1.0, 21), cmap=cmap, alpha=0.7
            )
            drawn = self._contour(panel, values, levels, "black", linewidths=0.7)
            _label_levels(panel, drawn)
            panel.set_title(title)
            self.contours_.append(drawn)
        bar = self.figure_.colorbar(shades, ax=list(axes), ticks=np.linspace(0.0, 1.0, 6))
        bar.set_label(f"probability of {self.class_name}")

    def _draw_points(self, panel, style):
        """Black squares in the class, white circles of any other; or the colours of all classes."""
        if isinstance(self.class_name, tuple):
            looks = [
                (self.in_class == k, MARKERS[k % len(MARKERS)], COLORS[k % len(COLORS)], name)
                for k, name in enumerate(self.class_name)
            ]
        else:
            rest = f"not {self.class_name}"
            looks = [
                (self.in_class, "s", "black", self.class_name),
                (~self.in_class, "o", "white", rest),
            ]
        lines = []
        for rows, marker, color, name in looks:
            look = {"ms": 3, "mfc": color, "mec": "black", "mew": 0.5, "ls": "", "label": name}
            lines += panel.plot(*self.points[rows].T, marker, **(look | style))
        return lines


def _labels(y, classes, index):
    """Whether rows belong to the class at `index`; or the number of the class of each row."""
    if not isinstance(index, slice):
        return y == classes[index]
    unknown = set(np.unique(y).tolist()) - set(classes.tolist())
    if unknown:
        raise ValueError(f"y has classes that the estimator does not know: {sorted(unknown)}.")
    return np.searchsorted(classes, y)


def _label_levels(axes, contours):
    """Write the levels on contour lines, legible over points."""
    for text in axes.clabel(contours, fontsize="small", zorder=4):
        text.set_bbox({"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.3})
