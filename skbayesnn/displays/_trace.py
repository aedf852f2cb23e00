"""Traces of the chains of a sampler."""

from dataclasses import dataclass
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from skbayesnn._typing import Axes, Estimator
from skbayesnn.displays._display import COLORS, Display
from skbayesnn.displays._inputs import class_name, fitted_network, output_index
from skbayesnn.estimators import HMCMLP
from skbayesnn.estimators._diagnostics import LEAST_DRAWS, spread_rows
from skbayesnn.predictive import class_probabilities
from skbayesnn.samplers import r_hat

WIDE = 20.0  # ratio of largest to smallest value beyond which an axis is logarithmic
LETTERS = 40  # in a line of a title


@dataclass(frozen=True)
class Trace:
    """One quantity along the chains.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n_chains, n_draws)
    r_hat : float
        ``nan`` for fewer than 8 draws.
    positive : bool
        Drawn on a logarithmic axis if it varies much.
    """

    name: str
    values: np.ndarray
    r_hat: float
    positive: bool = False


class TraceDisplay(Display):
    """Energy, prior and noise standard deviations, and outputs along the chains, with R-hat.

    Chains that have converged cover the same range and look alike. R-hat is that of
    Vehtari et al. (2021). Create it with `from_estimator`.

    Parameters
    ----------
    traces : list of Trace
        With ``name``, ``values``, ``r_hat`` and ``positive``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
        One per trace.
    figure_ : matplotlib Figure
    lines_ : list of list of matplotlib Line2D
        For every trace one line per chain.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import HMCMLPRegressor
    >>> from skbayesnn.displays import TraceDisplay
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> y = X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(20)
    >>> sampler = HMCMLPRegressor((), n_chains=2, n_warmup=100, n_draws=200, evidence=False)
    >>> model = sampler.set_params(random_state=0).fit(X, y)
    >>> display = TraceDisplay.from_estimator(model)
    >>> display.traces[0].values.shape
    (2, 200)
    """

    def __init__(self, traces: Any) -> None:
        self.traces = traces

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike | None = None,
        *,
        output: int | None = None,
        n_precisions: int = 3,
        n_rows: int = 2,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Gather the traces of a fit and draw.

        Parameters
        ----------
        estimator : fitted sampler, or Pipeline that ends in one
            `HMCMLPRegressor` or `HMCMLPClassifier`.
        X : array-like of shape (n_samples, n_features), optional
            Rows at which outputs are followed, one panel each. By default training rows: that of
            largest R-hat, that of median R-hat, and others between.
        output : int, default=None
            Which output (class probability for classifiers) is followed; by default the first
            output, the last class.
        n_precisions : int, default=3
            How many prior standard deviations are followed, those of largest R-hat.
        n_rows : int, default=2
            How many training rows.
        ax : array-like of matplotlib Axes, optional
            Where to draw, one per trace (or one alone, for the energy); by default in a new
            figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        TraceDisplay
            Drawn.
        """
        network, transform = fitted_network(estimator)
        if not isinstance(network, HMCMLP):
            raise TypeError(f"Only samplers have chains; got {network!r}.")
        energy = network.diagnostics_.energy
        traces = [Trace("energy (nats)", energy, _r_hat(energy))]
        traces += _noise(network) + _prior(network)[:n_precisions]
        if X is None:
            traces += _training_rows(network, output, n_rows)
        else:
            values = _functions(network, network._check_X(transform(X)), output)
            name = _output_name(network, output)
            traces += [
                Trace(f"{name}, row {i}", row, _r_hat(row))
                for i, row in enumerate(np.moveaxis(values, -1, 0))
            ]
        return cls(traces).plot(ax, **plot_options)

    def plot(self, ax: Axes = None, *, line_kw: dict[Any, Any] | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, optional
            Where to draw, one per trace (or one alone, for the first); by default in a new figure.
        line_kw : dict, optional
            Style of the traces (``Axes.plot``).

        Returns
        -------
        TraceDisplay
            Itself.
        """
        n = len(self.traces)
        grid = (n, 1) if n <= 2 else (-(-n // 2), 2)
        size = (3.5 if n <= 2 else 5.0, 0.6 + 1.05 * grid[0])
        with self._panels(ax, grid, size, n, sharex=True) as axes:
            self.lines_ = []
            for panel, trace in zip(axes, self.traces, strict=False):
                self.lines_.append(_draw(panel, trace, line_kw or {}))
            columns = 1 if ax is not None else grid[1]
            for panel in axes[-columns:]:
                panel.set_xlabel("draw")
                panel.tick_params(labelbottom=True)
            self._legend(4)
        return self


def _draw(axes, trace, line_kw):
    """One line per chain, under a title."""
    lines = []
    for chain, values in enumerate(trace.values):
        style = {"color": COLORS[chain % len(COLORS)], "lw": 0.6, "alpha": 0.8} | line_kw
        lines += axes.plot(
            np.arange(1, len(values) + 1), values, label=f"chain {chain + 1}", **style
        )
    if trace.positive and trace.values.max() > WIDE * trace.values.min():
        axes.set_yscale("log")
        axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
    axes.set_title(fill(f"{trace.name}: R-hat\N{NO-BREAK SPACE}{trace.r_hat:.2f}", LETTERS))
    return lines


def _r_hat(values):
    """R-hat of one quantity ``(n_chains, n_draws)``, or of several."""
    if values.shape[1] < LEAST_DRAWS:
        return np.full(values.shape[2:], np.nan)[()]
    return r_hat(values)


def _noise(network):
    """Noise standard deviations in units of y, where they were inferred."""
    if is_classifier(network):
        return []
    shape = network.diagnostics_.energy.shape
    variances = network._ensemble.typical_noise_variances
    sds = np.sqrt(variances).reshape(*shape, -1) * network._y_scaling.scale
    several = sds.shape[-1] > 1
    return [
        Trace(f"noise sd of y{i}" if several else "noise sd", sd, _r_hat(np.log(sd)), True)
        for i, sd in enumerate(np.moveaxis(sds, -1, 0))
        if np.ptp(sd) > 0
    ]


def _prior(network):
    """Prior standard deviations of the weight groups that were inferred, largest R-hat first."""
    alpha = network._result.draws.alpha
    found = network.diagnostics_.hyper_r_hat
    traces = [
        Trace(f"prior sd, {name}", alpha[..., group] ** -0.5, found[name], True)
        for group, name in enumerate(network.weight_group_names_)
        if name in found
    ]
    return sorted(traces, key=lambda trace: -trace.r_hat)


def _functions(network, X, output):
    """An output in units of y, or a class probability, ``(n_chains, n_draws, n)``."""
    f = network._ensemble.outputs(X)
    if is_classifier(network):
        values = class_probabilities(f)
        output = values.shape[-1] - 1 if output is None else output
    else:
        values = network._y_scaling.inverse(f)
    values = values[..., output_index(0 if output is None else output, values.shape[-1])]
    return values.reshape(*network.diagnostics_.energy.shape, -1)


def _output_name(network, output):
    if is_classifier(network):
        return f"P({class_name(network.classes_[-1 if output is None else output])})"
    return "f" if network.n_outputs_ == 1 else f"f{output or 0}"


def _training_rows(network, output, n_rows):
    """Outputs at training rows, from that of largest R-hat to that of median R-hat."""
    X = network._result.posed.posterior.X
    X = X[spread_rows(len(X))]
    values = _functions(network, X, output)
    found = _r_hat(values)
    order = np.argsort(-found, kind="stable")
    inputs = network._X_scaling.inverse(X)
    name = _output_name(network, output)
    traces = []
    for place in np.unique(np.linspace(0, len(X) // 2, n_rows).astype(int)):
        i = order[place]
        where = "worst row" if place == 0 else f"row ranked {place + 1} of {len(X)}"
        if X.shape[1] == 1:
            where = f"x = {inputs[i, 0]:.3g}"
        traces.append(Trace(f"{name}, {where}", values[..., i], float(found[i])))
    return traces
