"""Display of test error against evidence: the warning bell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr
from sklearn.utils.validation import check_is_fitted

from skbayesnn._typing import Array, Axes, Estimator
from skbayesnn.displays._display import COLORS, MARKERS, Display
from skbayesnn.displays._inputs import check_search, is_doubtful, measure_errors, readable
from skbayesnn.estimators._pipeline import final_step


@dataclass(eq=False, repr=False)
class EvidenceVersusTestDisplay(Display):
    """Test error against log evidence over many fits of the same training data.

    If the models are right, fits of higher evidence have smaller test error. Poor agreement is a
    warning bell: the prior or an approximation is wrong (MacKay 1992, section 7.1, figures 3.3,
    3.11 and 3.12). The legend holds Spearman's rank correlation of every group. Create it with
    `from_estimator`.

    Parameters
    ----------
    log_evidence : ndarray of shape (n,)
        Log evidences in nats.
    test_error : ndarray of shape (n,)
        Test errors of the same fits.
    labels : ndarray of str, shape (n,)
        Names of the groups.
    doubtful : ndarray of bool, shape (n,), optional
        True where the verdict of the fit is against its evidence: open markers.
    error_name : str, default="test error"
        Name of the test error.

    Attributes
    ----------
    correlations_ : dict of str to float
        Rank correlation of every group with at least three fits; the groups are in the order of
        their first fit.
    points_ : dict of str to list of matplotlib Line2D
        Points of every group: trusted fits, doubtful fits.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import EvidenceVersusTestDisplay
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(60)
    >>> fits = [
    ...     EvidenceMLPRegressor((width,), measure_evidence=False, n_restarts=1).fit(X[:30], y[:30])
    ...     for width in (1, 2, 3)
    ... ]
    >>> display = EvidenceVersusTestDisplay.from_estimator(fits, X[30:], y[30:])
    >>> len(display.test_error)
    3
    """

    log_evidence: Array
    test_error: Array
    labels: Array
    _: KW_ONLY
    doubtful: Array | None = None
    error_name: str = "test error"

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X_test: ArrayLike,
        y_test: ArrayLike,
        *,
        group_by: str | Sequence[str] | None = None,
        error: Callable[..., Any] | None = None,
        ax: Axes = None,
        **plot_options: Any,
    ) -> Self:
        """Measure the test errors of fits, and draw them against the evidences.

        Parameters
        ----------
        estimator : EvidenceSearch, or list of estimators or Pipelines
            Fits to the same training data.
        group_by : str or list of str, optional
            Parameter whose values define the groups; or the group of every fit.
        """
        if isinstance(estimator, list | tuple):
            estimators = list(estimator)
            params = [model.get_params() for model in estimators]
            evidences = [_log_evidence(model) for model in estimators]
            verdicts = [_verdict(final_step(model)) for model in estimators]
        else:
            check_search(estimator)
            estimators, results = estimator.estimators_, estimator.results_
            params, evidences = list(results["params"]), results["log_evidence"]
            verdicts = results.get("verdict", [""] * len(params))
        labels = _groups(group_by, params)
        errors, name = measure_errors(estimators, X_test, y_test, error)
        evidence = np.asarray(evidences, dtype=float)
        known = np.isfinite(evidence) & np.isfinite(errors)
        if not known.any():
            raise ValueError("No fit has both a log evidence and a test error.")
        doubtful = np.array([is_doubtful(verdict) for verdict in verdicts])[known]
        labels = np.array(labels)[known]
        display = cls(evidence[known], errors[known], labels, doubtful=doubtful, error_name=name)
        return display.plot(ax, **plot_options)

    @property
    def correlations_(self):
        """Spearman's rank correlation of evidence and test error in every group."""
        found = {}
        for label in dict.fromkeys(self.labels):
            rows = self.labels == label
            distinct = [len(np.unique(v[rows])) > 1 for v in (self.log_evidence, self.test_error)]
            if rows.sum() >= 3 and all(distinct):
                found[str(label)] = float(
                    spearmanr(self.log_evidence[rows], self.test_error[rows]).statistic
                )
        return found

    def plot(self, ax: Axes = None, *, point_kw: dict[Any, Any] | None = None) -> Self:
        """Draw the points.

        Parameters
        ----------
        point_kw : dict, optional
            Style of the points (``Axes.plot``).
        """
        known = self.doubtful is not None
        doubtful = self.doubtful if known else np.zeros(len(self.labels), dtype=bool)
        correlations = self.correlations_
        with self._panels(ax, (1, 1), (3.5, 2.8)) as (axes,):
            self.points_ = {}
            for i, label in enumerate(dict.fromkeys(self.labels)):
                mine = self.labels == label
                color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
                style = {"color": color, "ls": "", "ms": 4.5} | (point_kw or {})
                text = f"{label} (n = {mine.sum()}"
                if label in correlations:
                    text += f", ρ = {correlations[label]:.2f}".replace("-", "−")
                self.points_[str(label)] = [
                    axes.plot(
                        self.log_evidence[rows], self.test_error[rows], marker, **look, **style
                    )[0]
                    for rows, look in (
                        (mine & ~doubtful, {"label": text + ")"}),
                        (mine & doubtful, {"mfc": "white"}),
                    )
                ]
            if doubtful.any():
                axes.plot([], [], "o", color="gray", mfc="white", ms=4.5, label="open: doubtful")
            axes.set(xlabel="log evidence (nats)", ylabel=self.error_name)
            self._legend(1)
        return self


def _log_evidence(model):
    """Log evidence of a fitted estimator."""
    last = final_step(model)
    check_is_fitted(last)
    if not hasattr(last, "log_evidence_"):
        raise TypeError(f"{model!r} has no log_evidence_.")
    return last.log_evidence_


def _groups(group_by, params):
    """Group of every fit."""
    if group_by is None:
        return ["fits"] * len(params)
    if not isinstance(group_by, str):
        if len(group_by) != len(params):
            raise ValueError(f"group_by has {len(group_by)} groups for {len(params)} estimators.")
        return [str(label) for label in group_by]
    known = sorted({name for p in params for name in p})
    if group_by not in known:
        raise ValueError(
            f"No candidate has the parameter {group_by!r}; there are: {', '.join(known)}."
        )
    return [readable(p[group_by]) if group_by in p else "other" for p in params]


def _verdict(model):
    """Verdict of the evidence report of a fit."""
    report = getattr(model, "evidence_report_", None)
    if report is not None:
        return report.minima[0].verdict
    diagnostics = getattr(model, "diagnostics_", None)
    return "" if diagnostics is None or diagnostics.converged else "chains have not converged"
