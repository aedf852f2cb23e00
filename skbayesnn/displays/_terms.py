"""Display of the terms of one log evidence as bars."""

from typing import Any, Self

import numpy as np

from skbayesnn._typing import Axes, Estimator
from skbayesnn.displays._display import BLUE, VERMILION, Display
from skbayesnn.displays._inputs import fitted_network


class EvidenceTermsDisplay(Display):
    """Terms of a log evidence: a bar per term, each starting where the last one ends.

    Terms that raise the evidence lie to the right of where they start, terms that lower it to the
    left; the last bar is the sum (MacKay 1992, chapter 2). Create it with `from_estimator`.

    Parameters
    ----------
    terms : dict of str to float
        Terms in nats.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
        Bars of the terms, from the top, and of their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import EvidenceTermsDisplay
    >>> X = np.random.default_rng(0).standard_normal((40, 1))
    >>> y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(40)
    >>> model = EvidenceMLPRegressor((), random_state=0).fit(X, y)
    >>> display = EvidenceTermsDisplay.from_estimator(model)
    >>> display.terms["misfit"] == model.evidence_report_.misfit
    True
    """

    def __init__(self, terms: dict[str, float]) -> None:
        self.terms = terms

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes = None, **plot_options: Any) -> Self:
        """Draw the terms of the best minimum of a fit.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            `EvidenceMLPRegressor` or `EvidenceMLPClassifier`.
        ax : matplotlib Axes, optional
            Axes to draw in; by default in a new figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        EvidenceTermsDisplay
            Display, drawn.
        """
        network, _ = fitted_network(estimator)
        if not hasattr(network, "evidence_report_"):
            raise TypeError(f"Only evidence estimators have terms of an evidence; got {network!r}.")
        terms = dict(network.evidence_report_.terms.items())
        if not np.all(np.isfinite(list(terms.values()))):
            raise ValueError(
                f"This fit has no evidence: {network.evidence_report_.minima[0].verdict}."
            )
        return cls(terms).plot(ax, **plot_options)

    def plot(self, ax: Axes = None, *, bar_kw: dict[Any, Any] | None = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; by default in a new figure.
        bar_kw : dict, optional
            Style of the bars (``Axes.barh``).

        Returns
        -------
        EvidenceTermsDisplay
            The display itself.
        """
        values = np.array(list(self.terms.values()))
        ends = np.cumsum(values)
        widths, starts = np.append(values, ends[-1]), np.append(ends - values, 0.0)
        colors = [BLUE if width >= 0 else VERMILION for width in widths[:-1]] + ["gray"]
        names = [name.replace("_", " ") for name in self.terms] + ["log evidence"]
        position = np.arange(len(names))
        with self._panels(ax, (1, 1), (4.2, 0.6 + 0.2 * len(names))) as (axes,):
            style = {"color": colors, "height": 0.7} | (bar_kw or {})
            self.bars_ = axes.barh(position, widths, left=starts, **style)
            for i, end in enumerate(ends):  # connect successive bars
                axes.plot([end, end], [i - 0.35, i + 1.35], color="gray", lw=0.5, zorder=0)
            axes.axvline(0.0, color="black", lw=0.6, zorder=0)
            axes.bar_label(
                self.bars_, [f"{v:.1f}".replace("-", "−") for v in widths], padding=2, fontsize=7
            )
            axes.use_sticky_edges = False
            axes.margins(x=0.15)
            axes.set_yticks(position, names)
            axes.set(ylim=(len(names) - 0.4, -0.6), xlabel="nats")
            axes.spines[["top", "right"]].set_visible(False)
        return self
