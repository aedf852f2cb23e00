"""Whether evidence predicts test error: the warning bell."""

import numpy as np
from scipy.stats import spearmanr
from sklearn.utils.validation import check_is_fitted

from skbayesnn.displays._display import COLORS, MARKERS, Display
from skbayesnn.displays._search import (
    check_search,
    is_doubtful,
    measure_errors,
    readable,
)
from skbayesnn.estimators import final_step


class EvidenceVersusTestDisplay(Display):
    """Test error against log evidence over many fits of the same training data.

    If the models are right, fits of higher evidence have smaller test error. Poor agreement is a
    warning bell: the prior or an approximation is wrong (MacKay 1992, section 7.1, figures 3.3,
    3.11 and 3.12). The legend holds Spearman's rank correlation of every group. Create it with
    `from_estimators` or `from_estimator`.

    Parameters
    ----------
    log_evidence : ndarray of shape (n,)
        In nats.
    test_error : ndarray of shape (n,)
        Of the same fits.
    labels : ndarray of str, shape (n,)
        Groups.
    doubtful : ndarray of bool, shape (n,), optional
        Where the fit itself speaks against its evidence: open markers.
    error_name : str, default="test error"
        Name of the test error.

    Attributes
    ----------
    correlations_ : dict of str to float
        Of every group with at least three fits; the groups are in the order of their first fit.
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to list of matplotlib Line2D
        Of every group: trusted fits, doubtful ones.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import EvidenceVersusTestDisplay
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(60)
    >>> fits = [
    ...     EvidenceMLPRegressor((width,), n_restarts=1, random_state=0).fit(X[:30], y[:30])
    ...     for width in (1, 2, 3)
    ... ]
    >>> display = EvidenceVersusTestDisplay.from_estimators(fits, X[30:], y[30:])
    >>> len(display.test_error)
    3
    """

    def __init__(self, log_evidence, test_error, labels, *, doubtful=None, error_name="test error"):
        self.log_evidence = log_evidence
        self.test_error = test_error
        self.labels = labels
        self.doubtful = doubtful
        self.error_name = error_name

    @classmethod
    def from_estimators(
        cls, estimators, X_test, y_test, *, labels=None, error=None, ax=None, **plot_options
    ):
        """Take the evidences of fitted estimators, measure their test errors, and draw.

        Parameters
        ----------
        estimators : list of fitted estimators, or of Pipelines that end in one
            All fitted to the same training data.
        X_test : array-like of shape (n_samples, n_features)
            Inputs that were not used in training.
        y_test : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        labels : list of str, optional
            The group of every estimator, such as its prior.
        error : callable, optional
            From ``(estimator, X_test, y_test)`` to the test error. By default the root mean
            squared error of regressors, the log loss of classifiers.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        EvidenceVersusTestDisplay
            Drawn.
        """
        estimators = list(estimators)
        labels = ["fits"] * len(estimators) if labels is None else [str(label) for label in labels]
        if len(labels) != len(estimators):
            raise ValueError(f"{len(labels)} labels for {len(estimators)} estimators.")
        for estimator in estimators:
            check_is_fitted(final_step(estimator))
            if not hasattr(final_step(estimator), "log_evidence_"):
                raise TypeError(f"{estimator!r} has no log_evidence_.")
        evidences = [final_step(estimator).log_evidence_ for estimator in estimators]
        verdicts = [_verdict(final_step(estimator)) for estimator in estimators]
        errors, name = measure_errors(estimators, X_test, y_test, error)
        return cls._of(evidences, errors, labels, verdicts, name).plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls, search, X_test, y_test, *, group_by=None, error=None, ax=None, **plot_options
    ):
        """Take the evidences of a search, measure test errors, and draw.

        Parameters
        ----------
        search : EvidenceSearch
            After ``fit``.
        X_test : array-like of shape (n_samples, n_features)
            Inputs that were not used in training.
        y_test : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        group_by : str, optional
            A parameter of the search whose values make the groups.
        error : callable, optional
            As in `from_estimators`.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        EvidenceVersusTestDisplay
            Drawn.
        """
        check_search(search)
        params = list(search.results_["params"])
        labels = ["fits"] * len(params)
        if group_by is not None:
            known = sorted({name for p in params for name in p})
            if group_by not in known:
                raise ValueError(
                    f"No candidate has the parameter {group_by!r}; there are: {', '.join(known)}."
                )
            labels = [readable(p[group_by]) if group_by in p else "other" for p in params]
        errors, name = measure_errors(search.estimators_, X_test, y_test, error)
        results = search.results_
        verdicts = results.get("verdict", [""] * len(params))
        display = cls._of(results["log_evidence"], errors, labels, verdicts, name)
        return display.plot(ax, **plot_options)

    @classmethod
    def _of(cls, evidences, errors, labels, verdicts, name):
        """A display of the fits that have an evidence and an error."""
        evidences = np.asarray(evidences, dtype=float)
        known = np.isfinite(evidences) & np.isfinite(errors)
        if not known.any():
            raise ValueError("No fit has both a log evidence and a test error.")
        doubtful = np.array([is_doubtful(verdict) for verdict in verdicts])
        return cls(
            evidences[known],
            errors[known],
            np.array(labels)[known],
            doubtful=doubtful[known],
            error_name=name,
        )

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

    def plot(self, ax=None, *, point_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        point_kw : dict, optional
            Style of the points (``Axes.plot``).

        Returns
        -------
        EvidenceVersusTestDisplay
            Itself.
        """
        doubtful = (
            np.zeros(len(self.labels), dtype=bool) if self.doubtful is None else self.doubtful
        )
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


def _verdict(model):
    """What a fit says about itself."""
    report = getattr(model, "evidence_report_", None)
    if report is not None:
        return report.minima[0].verdict
    diagnostics = getattr(model, "diagnostics_", None)
    return "" if diagnostics is None or diagnostics.converged else "chains have not converged"
