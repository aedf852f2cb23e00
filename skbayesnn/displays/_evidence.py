"""Occam hill: evidence and its terms against a parameter of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.utils.validation import check_consistent_length

from skbayesnn._typing import Axes, Estimator
from skbayesnn.displays._display import COLORS, MARKERS, Display
from skbayesnn.estimators.inputs._settings import SETTINGS

DOUBTS = ("doubtful", "chains have not converged")  # beginnings of verdicts
MISFIT = ("misfit", "noise_normaliser", "target_scale")  # terms; the others are the Occam factor


class Hill(NamedTuple):
    """Candidates that differ in one parameter only, in the order of its values ``(n,)``."""

    name: str  # values of other parameters; empty if there are none
    position: np.ndarray  # on the axis of the parameter
    log_evidence: np.ndarray  # nats; nan where not available
    log_evidence_std: np.ndarray
    misfit: np.ndarray  # log likelihood of the best minimum
    test_error: np.ndarray | None
    doubtful: np.ndarray  # True where the verdict of the fit is against its evidence


@dataclass(eq=False, repr=False)
class EvidenceDisplay(Display):
    """Evidence against a parameter of the model, its terms, and test error.

    The evidence is the best fit's likelihood times the Occam factor, the fraction of the prior's
    volume that the posterior of the weights occupies (MacKay 1992, chapter 2). Larger models fit
    better but have smaller Occam factors, so the evidence has a maximum. Create it with
    `from_estimator`.

    Parameters
    ----------
    hills : list of Hill
        Lines with ``name``, ``position``, ``log_evidence``, ``log_evidence_std``, ``misfit``,
        ``test_error`` and ``doubtful``.
    param_name : str
        Name of the axis.
    ticks : dict of float to str, optional
        Names of positions, if the parameter is not a number.
    log_scale : bool, default=False
        Whether the axis of the parameter is logarithmic.
    error_name : str, default="test error"
        Name of the test error.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Panels of the evidence; of its parts, if there are any; of the test error, if given.
    lines_ : list of matplotlib Line2D
        Evidence of every hill.
    term_lines_ : dict of str to matplotlib Line2D
        Misfit and Occam factor of the hill with the highest evidence, relative to its top.
    error_lines_ : list of matplotlib Line2D
        Test error of every hill.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import EvidenceDisplay
    >>> from skbayesnn.model_selection import EvidenceSearch
    >>> X = np.linspace(-2, 2, 30)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> model = EvidenceMLPRegressor(method="laplace", n_restarts=1, random_state=0)
    >>> search = EvidenceSearch(model, {"hidden_layer_sizes": [(1,), (2,), (3,)]}).fit(X, y)
    >>> display = EvidenceDisplay.from_estimator(search)
    >>> display.axes_[-1].get_xlabel()
    'hidden units'
    """

    hills: Any
    param_name: str
    _: KW_ONLY
    ticks: dict[float, str] | None = None
    log_scale: bool = False
    error_name: str = "test error"

    @classmethod
    def from_estimator(
        cls,
        search: Estimator,
        param_name: str | None = None,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        error: Callable[..., Any] | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the evidences of a search.

        Parameters
        ----------
        search : EvidenceSearch
            Fitted search.
        param_name : str, optional
            Parameter against which to draw, as in the grid (``step__name`` in a pipeline); not
            needed if only one varies. If other parameters vary as well there is one line per
            combination of them.
        """
        if not hasattr(search, "results_") or not hasattr(search, "estimators_"):
            raise TypeError(
                "This display needs a fitted EvidenceSearch, with results_ and estimators_; got "
                f"{search!r}."
            )
        results = search.results_
        params = list(results["params"])
        param_name = _varied_parameter(params) if param_name is None else param_name
        chosen = np.array([i for i, p in enumerate(params) if param_name in p])
        if not len(chosen):
            known = ", ".join(sorted({name for p in params for name in p}))
            raise ValueError(f"No candidate has the parameter {param_name!r}; there are: {known}.")
        errors, error_name = None, "test error"
        if X_test is not None or y_test is not None:
            errors, error_name = _test_errors(search.estimators_, X_test, y_test, error)
        position, axis = _positions([params[i][param_name] for i in chosen], param_name)
        if np.isnan(np.asarray(results["log_evidence"], dtype=float)[chosen]).all():
            raise ValueError("No candidate has a log evidence; see results_['verdict'].")
        others = [name for name in _varying([params[i] for i in chosen]) if name != param_name]
        names = [_candidate_label(params[i], others) for i in chosen]
        hills = []
        for name in dict.fromkeys(names):
            places = [place for place, own in enumerate(names) if own == name]
            places.sort(key=lambda place: position[place])
            hills.append(_hill(name, position[places], chosen[places], results, errors))
        return cls(hills, **axis, error_name=error_name).plot(ax, **plot_options)

    def plot(self, ax: Axes = None, *, terms: bool = True) -> Self:
        """Draw the panels.

        Parameters
        ----------
        terms : bool, default=True
            Draw misfit and Occam factor, relative to their values at the highest evidence.
        """
        best = max(self.hills, key=lambda hill: np.nanmax(hill.log_evidence, initial=-np.inf))
        terms = terms and not np.isnan(best.misfit).all()
        with_error = self.hills[0].test_error is not None
        n = 1 + terms + with_error
        with self._panels(ax, (n, 1), (3.5, 0.9 + 1.5 * n), sharex=True) as axes:
            self._draw_evidence(axes[0])
            self.term_lines_, self.error_lines_ = {}, []
            if terms and len(axes) == n:
                self._draw_terms(axes[1], best)
            if with_error and len(axes) == n:
                self.error_lines_ = self._draw(axes[-1], "test_error")
                axes[-1].set_ylabel(self.error_name)
            self._label(axes[-1])
        return self

    def _draw(self, axes, quantity):
        lines = []
        for i, hill in enumerate(self.hills):
            style = {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}
            style |= {"ms": 4, "lw": 1.2, "label": hill.name or "log evidence"}
            lines += axes.plot(hill.position, getattr(hill, quantity), **style)
        return lines

    def _draw_evidence(self, axes):
        """Draw lines with error bars; open markers where the verdict of the fit is doubtful."""
        self.lines_ = self._draw(axes, "log_evidence")
        for hill, line in zip(self.hills, self.lines_, strict=True):
            x, y, std = hill.position, hill.log_evidence, hill.log_evidence_std
            style = {"color": line.get_color(), "ls": "", "ms": 4}
            if np.any(std > 0):
                axes.errorbar(x, y, std, fmt="none", ecolor=line.get_color())
            some, absent, foot = hill.doubtful, np.isnan(y), axes.get_xaxis_transform()
            axes.plot(x[some], y[some], line.get_marker(), mfc="white", **style)
            axes.plot(x[absent], np.full(absent.sum(), 0.04), "x", transform=foot, **style)
        axes.set_ylabel("log evidence (nats)")
        keys = [
            axes.plot([], [], color="gray", ls="", ms=4, label=label, **look)[0]
            for label, look, wanted in (
                ("doubtful", {"marker": "o", "mfc": "white"}, self._all("doubtful").any()),
                ("not available", {"marker": "x"}, np.isnan(self._all("log_evidence")).any()),
            )
            if wanted
        ]
        if len(self.hills) > 1 or keys:
            self._legend(axes, [*self.lines_, *keys])

    def _draw_terms(self, axes, hill):
        evidence, top = hill.log_evidence, np.nanargmax(hill.log_evidence)
        for name, values, color, marker in (
            ("log evidence", evidence, "black", MARKERS[0]),
            ("misfit to the data", hill.misfit, COLORS[0], MARKERS[1]),
            ("Occam factor", evidence - hill.misfit, COLORS[1], MARKERS[2]),
        ):
            style = {"color": color, "marker": marker, "ms": 3, "lw": 1.0, "label": name}
            (self.term_lines_[name],) = axes.plot(hill.position, values - values[top], **style)
        axes.set_ylabel("change from\nthe top (nats)")
        title = f"terms at {hill.name}" if hill.name else None
        lines = list(self.term_lines_.values())
        self._legend(axes, lines, title=title, title_fontsize="small", alignment="left")

    def _all(self, name):
        return np.concatenate([getattr(hill, name) for hill in self.hills])

    def _label(self, axes):
        axes.set_xlabel(self.param_name)
        if self.log_scale:
            axes.set_xscale("log")
        elif np.all(self._all("position") % 1 == 0):
            axes.xaxis.get_major_locator().set_params(integer=True)
        if self.ticks:
            axes.set_xticks(list(self.ticks), list(self.ticks.values()))
            if sum(map(len, self.ticks.values())) > 40:
                axes.tick_params(axis="x", labelrotation=45)


def _varied_parameter(params):
    """Return the single parameter that varies in a search."""
    names = _varying(params) or sorted(set().union(*params))
    if len(names) != 1:
        raise ValueError(
            f"param_name must say against which parameter to draw, one of: {', '.join(names)}."
        )
    return names[0]


def _hill(name, position, rows, results, errors):
    unknown = np.full(len(results["params"]), np.nan)  # terms of samplers
    return Hill(
        name,
        position,
        results["log_evidence"][rows],
        results["log_evidence_std"][rows],
        sum(results.get(f"term_{term}", unknown)[rows] for term in MISFIT),
        None if errors is None else errors[rows],
        np.array([str(verdict).startswith(DOUBTS) for verdict in results["verdict"][rows]]),
    )


def _short_name(name):
    """Name of a parameter without the pipeline steps before it, such as ``prior.kind``."""
    *before, last = name.split("__")
    return ".".join([*(part for part in before[-1:] if part in SETTINGS), last])


def _short_value(value):
    """Format the value of a parameter in a few letters."""
    if isinstance(value, tuple | list):
        return "-".join(map(str, value)) if len(value) else "linear"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    if hasattr(value, "fit"):
        return type(value).__name__
    return str(value)


def _varying(params):
    names = sorted({name for p in params for name in p})
    return [name for name in names if len({_short_value(p.get(name, "")) for p in params}) > 1]


def _candidate_label(params, names):
    """Format the named parameters of one candidate as ``name=value, ...``."""
    known = [name for name in names if name in params]
    return ", ".join(f"{_short_name(name)}={_short_value(params[name])}" for name in known)


def _positions(values, param_name):
    """Positions ``(n,)`` of the values of a parameter on its axis, and the options of that axis.

    Positions are numbers, hidden units of a single layer, or ranks in the order of first
    appearance. The options are arguments of `EvidenceDisplay`.
    """
    name = _short_name(param_name)
    label = name.replace("_", " ").replace(".", " ")
    if all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in values):
        numbers = np.array(values, dtype=float)
        wide = numbers.min() > 0 and numbers.max() >= 50 * numbers.min()
        return numbers, {"param_name": label, "log_scale": bool(wide)}
    if name == "hidden_layer_sizes":
        if all(np.ndim(value) == 1 and len(value) <= 1 for value in values):
            return np.array([float(sum(value)) for value in values]), {"param_name": "hidden units"}
        label = "units of the hidden layers"
    labels = list(dict.fromkeys(_short_value(value) for value in values))
    ticks = {float(i): label for i, label in enumerate(labels)}
    position = np.array([labels.index(_short_value(value)) for value in values], dtype=float)
    return position, {"param_name": label, "ticks": ticks}


def _test_errors(estimators, X_test, y_test, error):
    """Test error of every estimator, ``nan`` for ``None``, and its name.

    By default it is the log loss of classifiers, the root mean squared error of regressors.
    """
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together: give both or none.")
    check_consistent_length(X_test, y_test)

    def default(estimator, X, y):
        if is_classifier(estimator):
            return log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)
        predicted = estimator.predict(X)
        return np.sqrt(np.mean((np.reshape(y, predicted.shape) - predicted) ** 2))

    if error is None:
        classes = any(is_classifier(e) for e in estimators if e is not None)
        error, name = default, "test log loss (nats)" if classes else "test RMSE"
    else:
        name = "test " + getattr(error, "__name__", "error").replace("_", " ")
    errors = [np.nan if e is None else error(e, X_test, y_test) for e in estimators]
    return np.array(errors, dtype=float), name
