"""Candidates of a search: their fits and the table of results."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.ma import MaskedArray
from sklearn.exceptions import FitFailedWarning

from skbayesnn.estimators._pipeline import final_step
from skbayesnn.model_selection._comparison import describe, posterior_probabilities


class Fit(NamedTuple):
    """Outcome of a candidate: the model, or the error of its fit."""

    model: Any = None
    seconds: float = 0.0
    error: Exception | None = None

    def __str__(self):
        """Format the progress line."""
        outcome = f"failed: {self.error}"
        if self.model is not None:
            row = describe(self.model)
            outcome = f"log evidence {row['log_evidence']:.2f}, {row['verdict']}"
        return f"{outcome} ({self.seconds:.1f} s)"


def fit_candidate(model, X, y, fit_params):
    """Fit one candidate."""
    start, error = time.perf_counter(), None
    try:
        model.fit(X, y, **fit_params)
    except Exception as failure:
        model, error = None, failure
    return Fit(model, time.perf_counter() - start, error)


def report_failures(fits):
    """Raise if every fit failed, warn if some did."""
    errors = [fit.error for fit in fits if fit.error is not None]
    if errors and all(fit.model is None for fit in fits):
        errors[0].add_note(f"All {len(fits)} candidates failed; this is the first one's error.")
        raise errors[0]
    if errors:
        texts = sorted({f"{type(error).__name__}: {error}" for error in errors})
        warnings.warn(
            f"{len(errors)} of {len(fits)} candidates failed and have no evidence: "
            + "; ".join(texts),
            FitFailedWarning,
            stacklevel=3,
        )


def results_table(params, fits):
    """Make the columns of ``results_``."""
    n = len(params)
    table = {"params": params}
    for name in sorted({name for p in params for name in p}):
        column = MaskedArray(np.empty(n, dtype=object), mask=True)
        for i, p in enumerate(params):
            if name in p:
                column[i] = p[name]
        table[f"param_{name}"] = column
    rows = [_row(fit) for fit in fits]
    for name in dict.fromkeys(name for row in rows for name in row):
        table[name] = np.array([row.get(name, np.nan) for row in rows])
    evidences = table["log_evidence"]
    table["posterior_probability"] = posterior_probabilities(evidences)
    ranks = np.empty(n, dtype=int)
    ranks[np.argsort(-evidences, kind="stable")] = np.arange(1, n + 1)
    table["rank_log_evidence"] = ranks
    return table


def _row(fit):
    if fit.model is None:
        verdict = f"failed: {type(fit.error).__name__}: {fit.error}"
        return {"fit_time": fit.seconds, "verdict": verdict}
    row = {"fit_time": fit.seconds, **describe(fit.model)}
    report = getattr(final_step(fit.model), "evidence_report_", None)
    terms = {} if report is None else vars(report.minima[0].terms)
    return row | {f"term_{name}": value for name, value in terms.items()}
