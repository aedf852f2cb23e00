"""Class probabilities over two inputs, most probable and moderated."""

import warnings

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skbayesnn.displays._display import BLUE, Display
from skbayesnn.displays._inputs import (
    class_index,
    class_name,
    column,
    extent,
    feature_index,
    feature_names,
    fitted_network,
    slice_of_inputs,
    table,
)

TITLES = ("most probable", "moderated")


class ModeratedBoundaryDisplay(Display):
    """Contours of a class probability: most probable outputs beside moderated ones.

    Moderated outputs average over the posterior. They lie nearer to 1/2, the more so the farther
    the inputs are from the data, while the contour of 1/2 itself stays where it is for two classes
    and one minimum (MacKay 1992, section 5.2). Create it with `from_estimator`.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n1, n0)
        Grid of the two inputs.
    most_probable, moderated : ndarray of shape (n1, n0)
        Probability of the class.
    points : ndarray of shape (n_data, 2), optional
        Data points.
    in_class : ndarray of bool, shape (n_data,), optional
        Which of them belong to the class.
    feature_names : tuple of str, default=("x0", "x1")
        Names of the two inputs.
    class_name : str, default="class 1"
        Name of the class.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
        Two, or one with both sets of contours.
    figure_ : matplotlib Figure
    contours_ : list of matplotlib QuadContourSet
        Most probable, moderated.
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
        xx0,
        xx1,
        most_probable,
        moderated,
        *,
        points=None,
        in_class=None,
        feature_names=("x0", "x1"),
        class_name="class 1",
    ):
        self.xx0 = xx0
        self.xx1 = xx1
        self.most_probable = most_probable
        self.moderated = moderated
        self.points = points
        self.in_class = in_class
        self.feature_names = feature_names
        self.class_name = class_name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y=None,
        *,
        features=(0, 1),
        class_of_interest=None,
        fixed=None,
        margin=0.2,
        grid_resolution=80,
        ax=None,
        **plot_options,
    ):
        """Predict on a grid of two inputs and draw.

        Parameters
        ----------
        estimator : fitted classifier, or Pipeline that ends in one
            `EvidenceMLPClassifier` or `HMCMLPClassifier`.
        X : array-like of shape (n_samples, n_features)
            Rows that define the range of the two inputs and the values of any others (medians;
            most frequent ones of categories).
        y : array-like of shape (n_samples,), optional
            Classes of these rows, drawn as points.
        features : tuple of two int or str, default=(0, 1)
            The inputs that vary.
        class_of_interest : int, bool or str, optional
            The class whose probability is shown; of two classes the second by default.
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
        network, transform = fitted_network(estimator, "classifier")
        X = table(X)
        names = feature_names(estimator, X)
        chosen = [feature_index(feature, names) for feature in features]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"features must be two different ones, got {features!r}.")
        index = class_index(class_of_interest, network.classes_)
        x0, x1 = (
            np.linspace(*extent(column(X, i), names[i], margin), grid_resolution) for i in chosen
        )
        xx0, xx1 = np.meshgrid(x0, x1)
        varied = dict(zip(chosen, (xx0.ravel(), xx1.ravel()), strict=True))
        grid = transform(slice_of_inputs(X, varied, fixed, names))
        points, in_class = None, None
        if y is not None:
            check_consistent_length(X, y)
            points = np.column_stack([column(X, i) for i in chosen]).astype(float)
            in_class = column_or_1d(y) == network.classes_[index]
        display = cls(
            xx0,
            xx1,
            *(
                network.predict_proba(grid, moderated=m)[:, index].reshape(xx0.shape)
                for m in (False, True)
            ),
            points=points,
            in_class=in_class,
            feature_names=tuple(names[i] for i in chosen),
            class_name=class_name(network.classes_[index]),
        )
        return display.plot(ax, **plot_options)

    def plot(self, ax=None, *, levels=(0.1, 0.3, 0.5, 0.7, 0.9), cmap="PuOr", data_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, optional
            Where to draw; by default in a new figure with two panels. In one Axes the two sets of
            contours lie over each other.
        levels : array-like, default=(0.1, 0.3, 0.5, 0.7, 0.9)
            Increasing probabilities of the contours.
        cmap : str or matplotlib Colormap, default="PuOr"
            Colours of the probabilities in two panels.
        data_kw : dict, optional
            Style of the points (``Axes.plot``).

        Returns
        -------
        ModeratedBoundaryDisplay
            Itself.
        """
        with self._panels(ax, (1, 2), (5.0, 2.6), sharex=True, sharey=True) as axes:
            if len(axes) == 1:
                self._overlay(axes[0], levels)
            else:
                self._side_by_side(axes, levels, cmap)
            self.data_ = []
            for panel in axes:
                panel.set_xlabel(self.feature_names[0])
                if self.points is not None:
                    self.data_ += self._draw_points(panel, data_kw or {})
            axes[0].set_ylabel(self.feature_names[1])
            if len(axes) == 1 or self.points is not None:
                self._legend(4)
        return self

    def _contour(self, axes, values, levels, color, **style):
        """Contour lines; none, without a warning, where the probability reaches no level."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No contour levels were found", UserWarning)
            return axes.contour(self.xx0, self.xx1, values, levels, colors=color, **style)

    def _overlay(self, axes, levels):
        self.contours_ = []
        styles = zip(TITLES, ("black", BLUE), ("--", "-"), strict=True)
        for values, (title, color, line) in zip(
            (self.most_probable, self.moderated), styles, strict=True
        ):
            drawn = self._contour(axes, values, levels, color, linestyles=line, linewidths=0.9)
            axes.plot([], [], color=color, ls=line, lw=0.9, label=title)
            self.contours_.append(drawn)
        _label_levels(axes, self.contours_[1])

    def _side_by_side(self, axes, levels, cmap):
        self.contours_ = []
        for panel, values, title in zip(
            axes, (self.most_probable, self.moderated), TITLES, strict=True
        ):
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
        """Black squares in the class, white circles of any other."""
        lines = []
        looks = ((self.in_class, "s", "black", ""), (~self.in_class, "o", "white", "not "))
        for rows, marker, color, word in looks:
            look = {"ms": 3, "mfc": color, "mec": "black", "mew": 0.5, "ls": ""}
            look |= {"label": word + self.class_name} | style
            lines += panel.plot(*self.points[rows].T, marker, **look)
        return lines


def _label_levels(axes, contours):
    """Write the levels on contour lines, legible over points."""
    for text in axes.clabel(contours, fontsize="small", zorder=4):
        text.set_bbox({"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.3})
