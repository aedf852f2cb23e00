"""Base class of all displays: lazy import of matplotlib, axes, colours, legends."""

from contextlib import contextmanager, nullcontext
from math import prod
from textwrap import fill
from typing import Any
from weakref import WeakSet

import numpy as np

from skbayesnn._docs import documented
from skbayesnn.estimators import AveragedClassifier, AveragedRegressor, BayesianMLP

NETWORKS: Any = (BayesianMLP, AveragedRegressor, AveragedClassifier)

# Okabe and Ito (2008): colours that colour-blind readers can distinguish
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "black")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PAPER = {"font.size": 8, "legend.fontsize": 7, "axes.titlesize": 7, "axes.linewidth": 0.6}
OWN_FIGURES = WeakSet()  # opened by displays, in their style
LEGEND = {"frameon": False, "handlelength": 1.8, "columnspacing": 1.2}
LETTERS, KEY = {True: 18, False: 10}, 6  # letters per inch of own figures and others; of a key

PLOT = """Displays and their methods.

Parameters
----------
estimator : fitted regressor, or Pipeline that ends in one
    Estimator of this package, or any other with ``predict(X, return_std=True)``, whose predictions
    are taken as Gaussian.
ax : matplotlib Axes, or one per panel, optional
    Axes to draw in; by default in a new figure. In one Axes only the first panel is drawn.
X_test : array-like of shape (n_samples, n_features)
    Inputs that were not used in training.
y_test : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Targets of ``X_test``.
error : callable, optional
    Function from ``(estimator, X_test, y_test)`` to the test error. By default the root mean
    squared error of regressors, the log loss of classifiers.
**plot_options
    Options of `plot`.

Returns
-------
display : object
    The display, drawn.

Attributes
----------
ax_ : matplotlib Axes
axes_ : ndarray of matplotlib Axes
figure_ : matplotlib Figure
"""


class Display:
    """Base class of all displays; ``plot`` sets ``ax_``, ``axes_`` and ``figure_``."""

    def __init_subclass__(cls):
        documented(PLOT)(cls)

    @contextmanager
    def _panels(self, ax, grid, size, **options):
        """Provide the Axes of a grid ``(rows, columns)`` of panels, in a context of their style.

        ``ax`` holds the user's Axes, of which one means the first panel alone; ``None`` opens a
        figure of ``size`` ``(width, height)`` in inches by ``pyplot.subplots`` with the options.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("Displays need matplotlib: pip install skbayesnn[plot].") from error
        n = prod(grid)
        if ax is not None:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) not in {1, n} or not all(hasattr(item, "get_figure") for item in axes):
                several = f" or {n} of them" if n > 1 else ""
                raise ValueError(f"ax must be a matplotlib Axes{several}; got {ax!r}.")
        own = ax is None or axes[0].get_figure() in OWN_FIGURES
        with plt.rc_context(PAPER) if own else nullcontext():
            if ax is None:
                _, axes = plt.subplots(
                    *grid, figsize=size, layout="constrained", squeeze=False, **options
                )
                axes = axes.ravel()
                for panel in axes:  # ticks made later would have another font size
                    panel.tick_params(labelsize=PAPER["font.size"])
                    panel.spines[["top", "right"]].set_visible(False)
            self.axes_, self.ax_, self.figure_ = axes, axes[0], axes[0].get_figure()
            self._own_figure = own
            if own:
                OWN_FIGURES.add(self.figure_)
            yield axes

    def _legend(self, owner, handles=None, **options):
        """Add a legend above a figure or a panel; in figures of users inside the panel.

        By default it has the entries of the first panel. Long labels are broken.
        """
        handles = handles or self.ax_.get_legend_handles_labels()[0]
        room = int(self.figure_.bbox.width / self.figure_.dpi * LETTERS[self._own_figure])
        labels = [fill(handle.get_label(), max(room - KEY, 12)) for handle in handles]
        columns = room // (max(map(len, labels)) + KEY)
        options |= LEGEND | {"ncols": max(min(columns, len(labels)), 1)}
        if not self._own_figure:
            owner = self.ax_ if owner is self.figure_ else owner
            owner.legend(handles, labels, **options)
        elif owner is self.figure_:
            for legend in owner.legends:  # legend of an earlier display in this figure
                legend.remove()
            owner.legend(handles, labels, loc="outside upper center", **options)
        else:
            place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
            owner.legend(handles, labels, **place, **options)


def feature_names(estimator, X):
    """Names of the columns of X, from X or from the fit; otherwise ``x0``, ``x1`` and so on."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    names = getattr(estimator, "feature_names_in_", None)
    n_features = np.shape(X)[1]
    if names is not None and len(names) == n_features:
        return [str(name) for name in names]
    return [f"x{i}" for i in range(n_features)]


def output_index(output, n_outputs):
    """Index of an output; raise unless it is valid."""
    if isinstance(output, int | np.integer) and 0 <= output < n_outputs:
        return int(output)
    raise ValueError(f"There is no output {output!r}; the model has {n_outputs}, counted from 0.")
