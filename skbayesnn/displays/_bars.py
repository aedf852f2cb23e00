"""Displays of bars: terms of an evidence, relevance of inputs, sensitivity to inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._typing import Array, Axes, Estimator
from skbayesnn.displays._display import (
    BLUE,
    ORANGE,
    VERMILION,
    Display,
    feature_names,
    fitted_network,
    output_index,
)
from skbayesnn.estimators import HMCMLP
from skbayesnn.estimators.inputs._prior import precision_factors
from skbayesnn.metrics import sobol_indices

QUANTILES = (0.1587, 0.8413)  # of a Gaussian at one standard deviation on either side


def _list_down(axes, names, **labels):
    """Name the bars at 0, 1, ... from the top."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set(ylim=(len(names) - 0.4, -0.6), **labels)


@dataclass(eq=False, repr=False)
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

    terms: dict[str, float]

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes = None, **plot_options: Any) -> Self:
        """Draw the terms of the best minimum of a fit.

        Parameters
        ----------
        estimator : fitted estimator, or Pipeline that ends in one
            `EvidenceMLPRegressor` or `EvidenceMLPClassifier`.
        """
        network = fitted_network(estimator)
        if not hasattr(network, "evidence_report_"):
            raise TypeError(f"Only evidence estimators have terms of an evidence; got {network!r}.")
        terms = dict(network.evidence_report_.terms.items())
        if not np.all(np.isfinite(list(terms.values()))):
            raise ValueError(
                f"This fit has no evidence: {network.evidence_report_.minima[0].verdict}."
            )
        return cls(terms).plot(ax, **plot_options)

    def plot(self, ax: Axes = None, *, bar_kw: dict[Any, Any] | None = None) -> Self:
        """Draw the bars."""
        values = np.array(list(self.terms.values()))
        ends = np.cumsum(values)
        widths, starts = np.append(values, ends[-1]), np.append(ends - values, 0.0)
        colors = [BLUE if width >= 0 else VERMILION for width in widths[:-1]] + ["gray"]
        names = [name.replace("_", " ") for name in self.terms] + ["log evidence"]
        position = np.arange(len(names))
        with self._panels(ax, (1, 1), (4.2, 0.6 + 0.2 * len(names))) as (axes,):
            style = {"color": colors, "height": 0.7} | (bar_kw or {})
            self.bars_ = axes.barh(position, widths, left=starts, **style)
            style = {"color": "gray", "lw": 0.5, "zorder": 0}  # lines between successive bars
            axes.vlines(ends, position[:-1] - 0.35, position[:-1] + 1.35, **style)
            axes.axvline(0.0, color="black", lw=0.6, zorder=0)
            labels = [f"{width:.1f}".replace("-", "−") for width in widths]
            axes.bar_label(self.bars_, labels, padding=2, fontsize=7)
            axes.use_sticky_edges = False
            axes.margins(x=0.15)
            _list_down(axes, names, xlabel="nats")
        return self


@dataclass(eq=False, repr=False)
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

    relevance: Array
    names: Sequence[str]
    interval: Array | None = None

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
        """
        network = fitted_network(estimator)
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
        """Draw the bars."""
        order = np.argsort(self.relevance, kind="stable")[::-1][:n_largest]
        relevance = self.relevance[order]
        position = np.arange(len(order))
        with self._panels(ax, (1, 1), (3.5, 0.6 + 0.17 * max(3, len(order)))) as (axes,):
            style = {"color": BLUE, "height": 0.7, "error_kw": {"elinewidth": 0.9}}
            if self.interval is not None:
                style["xerr"] = np.abs(self.interval[order] - relevance[:, None]).T
            self.bars_ = axes.barh(position, relevance, **(style | (bar_kw or {})))
            names = [self.names[i] for i in order]
            _list_down(axes, names, xlim=(0.0, None), xlabel="relevance (prior sd of weights)")
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
    free = precision_factors(network._prior.precision, (), groups)[0][:n]
    known = free & (std <= np.sqrt(2.0))  # gamma >= 1
    half = np.where(known, 0.5 * std, np.nan)  # of ln relevance
    return network.feature_relevance_[:, None] * np.exp(half[:, None] * [-1.0, 1.0])


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """Sobol indices of every input as bars, with posterior error bars of one standard deviation.

    Create it with `from_estimator`.

    Parameters
    ----------
    indices : tuple of ndarray of shape (n_features,)
        Result of `sobol_indices` for one output.
    names : list of str
        Names of the inputs.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        Bars of the first-order and of the total indices, most important input first.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import SensitivityDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> y = X[:, 1] + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    >>> display = SensitivityDisplay.from_estimator(model, X)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'x1'
    """

    indices: Sequence[Array]
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        *,
        output: int = 0,
        ax: Axes = None,
        **options: Any,
    ) -> Self:
        """Compute and draw the indices of a fit.

        Parameters
        ----------
        estimator : fitted regressor of this package, or Pipeline that ends in one
            Model of the function.
        X : array-like of shape (n_samples, n_features)
            Rows whose columns are the distributions of the inputs.
        output : int, default=0
            Output to show, counted from 0.
        **options
            Options of `sobol_indices`.
        """
        found = [np.atleast_2d(some) for some in sobol_indices(estimator, X, **options)]
        output = output_index(output, len(found[0]))
        indices = tuple(some[output] for some in found)
        return cls(indices, feature_names(estimator, X)).plot(ax)

    def plot(self, ax: Axes = None, *, n_largest: int = 20) -> Self:
        """Draw the bars."""
        order = np.argsort(-self.indices[2], kind="stable")[:n_largest]
        position, self.bars_ = np.arange(len(order)), []
        first, first_std, total, total_std = (some[order] for some in self.indices)
        kinds = [
            (-0.2, first, first_std, BLUE, "by itself"),
            (0.2, total, total_std, ORANGE, "with interactions"),
        ]
        with self._panels(ax, (1, 1), (3.5, 0.9 + 0.25 * max(3, len(order)))) as (axes,):
            error = {"elinewidth": 0.9}
            for offset, values, std, color, label in kinds:
                style = {"color": color, "height": 0.38, "label": label}
                bars = axes.barh(position + offset, values, xerr=std, error_kw=error, **style)
                self.bars_.append(bars)
            _list_down(axes, [self.names[i] for i in order], xlabel="share of the variance")
            self._legend(2)
        return self
