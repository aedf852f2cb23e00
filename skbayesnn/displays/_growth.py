"""Display of the automatic choice of the network size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skbayesnn._typing import Array, Axes, Estimator, LayerSizes
from skbayesnn.displays._display import COLORS, MARKERS, Display
from skbayesnn.displays._inputs import fitted_network

EVIDENCE = "log evidence (nats)"
HELD_OUT = "held-out log density (nats per row)"


@dataclass(eq=False, repr=False)
class GrowthDisplay(Display):
    """Evidence against the size of the networks tried, with a line per depth.

    With ``hidden_layer_sizes="auto"`` networks are widened while their evidence rises; with many
    rows the held-out log density decides. Create it with `from_estimator`.

    Parameters
    ----------
    hidden_layer_sizes : list of tuple of int
        Hidden layer sizes of the networks, in the order in which they were tried.
    values : ndarray of shape (n,)
        Values by which networks are compared; ``nan`` where not available.
    chosen : tuple of int, optional
        Hidden layer sizes of the network that was chosen.
    value_name : str, default="log evidence (nats)"
        Name of the axis.

    Attributes
    ----------
    lines_ : dict of int to matplotlib Line2D
        Lines by number of hidden layers.
    chosen_ : matplotlib Line2D or None
        Ring around the network that was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import GrowthDisplay
    >>> X = np.random.default_rng(0).uniform(-2, 2, (30, 1))
    >>> y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(30)
    >>> model = EvidenceMLPRegressor(n_restarts=1, measure_evidence=False, random_state=0)
    >>> display = GrowthDisplay.from_estimator(model.fit(X, y))
    >>> len(display.values) == len(model.candidates_)
    True
    """

    hidden_layer_sizes: Sequence[tuple[int, ...]]
    values: Array
    chosen: LayerSizes | None = None
    value_name: str = EVIDENCE

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes = None, **plot_options: Any) -> Self:
        """Draw the networks that a fit has tried.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            Estimator of this package that was fitted with ``hidden_layer_sizes="auto"``.
        """
        network = fitted_network(estimator)
        if not getattr(network, "candidates_", ()):
            raise ValueError(
                "This network has not grown: fit with hidden_layer_sizes='auto', got "
                f"{network.hidden_layer_sizes!r}."
            )
        tried = network.candidates_
        held_out = any(not np.isnan(c.held_out_log_density) for c in tried)
        values = [candidate.value for candidate in tried]
        sizes = [c.hidden_layer_sizes for c in tried]
        name = HELD_OUT if held_out else EVIDENCE
        display = cls(sizes, np.array(values, dtype=float), network.hidden_layer_sizes_, name)
        return display.plot(ax, **plot_options)

    def plot(self, ax: Axes = None, *, line_kw: dict[Any, Any] | None = None) -> Self:
        """Draw the lines."""
        depths = np.array([len(sizes) for sizes in self.hidden_layer_sizes])
        widths = np.array([max(sizes, default=0) for sizes in self.hidden_layer_sizes])
        with self._panels(ax, (1, 1), (3.5, 2.6)) as (axes,):
            self.lines_ = {}
            for depth in sorted(set(depths.tolist())):
                rows = np.flatnonzero(depths == depth)
                rows = rows[np.argsort(widths[rows], kind="stable")]
                style = {"color": COLORS[depth % len(COLORS)], "marker": MARKERS[depth % 7]}
                style |= {"ms": 4, "lw": 1.2, "label": _depth_name(depth)} | (line_kw or {})
                (self.lines_[depth],) = axes.plot(widths[rows], self.values[rows], **style)
            self.chosen_ = None
            if self.chosen in self.hidden_layer_sizes:
                i = self.hidden_layer_sizes.index(self.chosen)
                ring = {"ls": "", "mfc": "none", "mec": "black", "ms": 9, "label": "chosen"}
                (self.chosen_,) = axes.plot(widths[i], self.values[i], "o", **ring)
            axes.set_xscale("symlog", base=2, linthresh=1)
            ticks = sorted(set(widths.tolist()))
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.margins(x=0.08)
            axes.set(xlabel="hidden units per layer", ylabel=self.value_name)
            self._legend(4)
        return self


def _depth_name(depth):
    return {0: "linear", 1: "1 hidden layer"}.get(depth, f"{depth} hidden layers")
