"""Tests of figures open no window, leave no figure open, and find what covers anything."""

from itertools import pairwise

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def beyond_limits(axes):
    """Labels of ticks that lie beyond the limits of an axes and are not drawn."""
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        low, high = sorted(limits)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


def written(figure):
    """Everything that can be read in a figure, with its box."""
    hidden = [label for axes in figure.axes for label in beyond_limits(axes)]
    for text in figure.findobj(mpl.text.Text):
        if text.get_visible() and text.get_text().strip() and text not in hidden:
            yield text.get_text(), text.get_window_extent()


def assert_readable(display):
    """All letters lie inside the figure, no two labels of an axis and no legend over a panel."""
    figure = display.figure_
    figure.canvas.draw()
    edge = figure.bbox.padded(1)
    for text, box in written(figure):
        inside = edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1
        assert inside, text
    for axes in display.axes_:
        panel = axes.get_window_extent().padded(-1)
        for legend in figure.findobj(mpl.legend.Legend):
            assert not panel.overlaps(legend.get_window_extent())
        hidden = list(beyond_limits(axes))
        for axis in (axes.xaxis, axes.yaxis):
            labels = [tick.label1 for tick in axis.get_major_ticks()]
            boxes = [
                label.get_window_extent()
                for label in labels
                if label.get_visible() and label.get_text() and label not in hidden
            ]
            assert not any(a.overlaps(b) for a, b in pairwise(boxes))
        assert axes.get_xlabel() or axes.get_ylabel() or axes.get_title()


@pytest.fixture
def readable():
    return assert_readable
