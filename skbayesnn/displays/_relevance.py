"""Relevance of inputs by automatic relevance determination."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skbayesnn._typing import Array, Axes, Estimator
from skbayesnn.displays._display import BLUE, Display
from skbayesnn.displays._inputs import fitted_network
from skbayesnn.estimators import HMCMLP
from skbayesnn.estimators.inputs._prior import fixed_precisions

QUANTILES = (0.1587, 0.8413)  # of a Gaussian at one standard deviation on either side


class RelevanceDisplay(Display):
    """Prior standard deviations of the weights of every input, sorted.

    With ``prior="ard"`` each input has its own precision ``alpha``; its relevance is
    ``alpha^(-1/2)`` (MacKay 1994; Neal 1996), in units of standardised inputs.
    Create it with `from_estimator`.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        Relevances in any order.
    names : list of str
        Names of the inputs.
    interval : ndarray of shape (n_features, 2), optional
        Ends of the error bars; ``nan`` where there is none.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
        Bars, most relevant input first.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import RelevanceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> y = X[:, 1] + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor((), prior="ard", random_state=0).fit(X, y)
    >>> display = RelevanceDisplay.from_estimator(model, names=["a", "b", "c"])
    >>> display.ax_.get_yticklabels()[0].get_text()
    'b'
    """

    def __init__(
        self, relevance: Array, names: Sequence[str], interval: Array | None = None
    ) -> None:
        self.relevance = relevance
        self.names = names
        self.interval = interval

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        names: Sequence[str] | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the relevances of a fit.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            Estimator of this package, with ``prior="ard"``. Error bars are one standard deviation
            of ``ln alpha``, ``(2 / gamma)^(1/2)`` (MacKay 1992, section 2.5), where that Gaussian
            approximation holds (at least one well-determined weight); for the samplers the central
            68 % of the draws.
        names : list of str, optional
            Names of the inputs of the network; by default those seen in the fit.
        ax : matplotlib Axes, optional
            Axes to draw in; by default in a new figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        RelevanceDisplay
            Display, drawn.
        """
        network, _ = fitted_network(estimator)
        if not hasattr(network, "feature_relevance_"):
            raise ValueError(
                f"Relevances need a fit with prior='ard'; this one has "
                f"prior={network._prior.kind!r}."
            )
        relevance = network.feature_relevance_
        if names is None:
            names = _names(estimator, network)
        names = [str(name) for name in names]
        if len(names) != len(relevance):
            raise ValueError(f"{len(names)} names for {len(relevance)} inputs of the network.")
        return cls(relevance, names, _interval(network)).plot(ax, **plot_options)

    def plot(
        self, ax: Axes = None, *, n_largest: int = 20, bar_kw: dict[Any, Any] | None = None
    ) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; by default in a new figure.
        n_largest : int, default=20
            Largest number of inputs to show.
        bar_kw : dict, optional
            Style of the bars (``Axes.barh``).

        Returns
        -------
        RelevanceDisplay
            The display itself.
        """
        order = np.argsort(self.relevance, kind="stable")[::-1][:n_largest]
        relevance = self.relevance[order]
        position = np.arange(len(order))
        with self._panels(ax, (1, 1), (3.5, 0.6 + 0.17 * max(3, len(order)))) as (axes,):
            style = {"color": BLUE, "height": 0.7} | (bar_kw or {})
            self.bars_ = axes.barh(position, relevance, **style)
            if self.interval is not None:
                lengths = np.abs(self.interval[order] - relevance[:, None]).T
                axes.errorbar(
                    relevance, position, xerr=lengths, fmt="none", ecolor="black", elinewidth=0.9
                )
            axes.set_yticks(position, [self.names[i] for i in order])
            axes.set(xlim=(0.0, None), ylim=(len(order) - 0.4, -0.6))
            axes.set_xlabel("relevance (prior sd of weights)")
            axes.spines[["top", "right"]].set_visible(False)
        return self


def _names(estimator, network):
    """Names of the network's inputs, after any transformation."""
    names = getattr(network, "feature_names_in_", None)
    if names is None and estimator is not network and len(estimator) > 1:
        try:
            names = estimator[:-1].get_feature_names_out()
        except (AttributeError, ValueError):  # a step without feature names
            names = None
    return [f"x{i}" for i in range(network.n_features_in_)] if names is None else names


def _interval(network):
    """Ends of error bars of one standard deviation, ``(n_features, 2)``."""
    n = network.n_features_in_
    if isinstance(network, HMCMLP):
        alpha = network._result.draws.alpha[..., :n]
        return np.quantile(alpha**-0.5, QUANTILES, axis=(0, 1)).T
    std = np.array(list(network.evidence_report_.minima[0].log_precision_std.values()))[:n]
    groups = network.weight_group_names_
    free = fixed_precisions(network._prior.precision, groups)[0][:n]
    known = free & (std <= np.sqrt(2.0))  # gamma >= 1
    half = np.where(known, 0.5 * std, np.nan)  # of ln relevance
    return network.feature_relevance_[:, None] * np.exp(half[:, None] * [-1.0, 1.0])
