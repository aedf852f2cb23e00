"""Candidates of a search: their fits and the table of results."""

import time
import warnings
from contextlib import contextmanager

import numpy as np
from numpy.ma import MaskedArray
from sklearn.exceptions import FitFailedWarning

from skbayesnn.estimators import EvidenceMLPClassifier, EvidenceMLPRegressor, final_step
from skbayesnn.model_selection._comparison import describe, posterior_probabilities

EVIDENCE = (EvidenceMLPClassifier, EvidenceMLPRegressor)
NO_TIME = object()  # marks an estimator without max_time
FIRST_LOOK = {"noise": "constant"}  # cheap values in place of "auto"
COULD_WIN = 10.0  # nats below the best first look within which candidates are fitted in full
SHORTEST = 1e-3  # seconds: max_time must be positive


class TooLate(Exception):
    """Error of a candidate that was not fitted because the time of the search had passed."""


@contextmanager
def _no_longer_than(model, deadline):
    """Limit ``max_time`` of a model, if it has one, to the time left."""
    last = final_step(model)
    own = getattr(last, "max_time", NO_TIME)
    if own is NO_TIME or np.isinf(deadline.at):
        yield
        return
    left = max(deadline.left, SHORTEST)
    last.max_time = left if own is None else min(own, left)
    try:
        yield
    finally:
        last.max_time = own


@contextmanager
def _holding(model, values):
    """Hold ``"auto"`` parameters of the last step at given values during a fit."""
    last = final_step(model)
    held = {name: value for name, value in values.items() if _is_auto(last, name)}
    vars(last).update(held)
    try:
        yield
    finally:
        vars(last).update(dict.fromkeys(held, "auto"))


def _is_auto(last, name):
    value = getattr(last, name, None)
    return isinstance(last, EVIDENCE) and isinstance(value, str) and value == "auto"


def asks_for_more(model, noise):
    """Return True if the full fit of a model would differ from its first look."""
    return _is_auto(final_step(model), "noise") and noise != FIRST_LOOK["noise"]


def promising(fits):
    """Select candidates that could win after their `FIRST_LOOK`, the best one first."""
    models = [None if model is None else final_step(model) for model, *_ in fits]
    able = [m.log_evidence_ if isinstance(m, EVIDENCE) else np.nan for m in models]
    near = np.flatnonzero(able >= np.fmax.reduce(able) - COULD_WIN)
    return sorted(map(int, near), key=lambda i: -able[i])


def instead(first, second):
    """Replace an earlier fit of a candidate by a later one, unless the later one failed."""
    model, _, error = first if second[0] is None else second
    return model, first[1] + second[1], error


def fit_candidate(model, X, y, fit_params, deadline, is_first, held=None):
    """Fit one candidate; return the model or ``None``, the seconds, and the error or ``None``.

    Candidates other than the first are not begun after the deadline. During the fit, parameters
    that are ``"auto"`` have the values ``held``.
    """
    start, error = time.perf_counter(), None
    if deadline.passed and not is_first:
        model, error = None, TooLate("max_time had passed before this candidate was begun")
    else:
        try:
            with _no_longer_than(model, deadline), _holding(model, held or {}):
                model.fit(X, y, **fit_params)
        except Exception as failure:
            model, error = None, failure
    return model, time.perf_counter() - start, error


def told(model, seconds, error):
    """Format the progress line of a candidate."""
    if error is None:
        row = describe(model)
        found = f"log evidence {row['log_evidence']:.2f}, {row['verdict']}"
    else:
        found = "not tried" if isinstance(error, TooLate) else f"failed: {error}"
    return f"{found} ({seconds:.1f} s)"


def report_failures(fits):
    """Raise if every fit failed, warn if some did."""
    missed = [error for _, _, error in fits if error is not None]
    errors = [error for error in missed if not isinstance(error, TooLate)]
    if errors and len(missed) == len(fits):
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
    rows = [_row(*fit) for fit in fits]
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        table[name] = np.array([row.get(name, np.nan) for row in rows])
    evidences = table["log_evidence"]
    table["posterior_probability"] = posterior_probabilities(evidences)
    ranks = np.empty(n, dtype=int)
    ranks[np.argsort(-evidences, kind="stable")] = np.arange(1, n + 1)
    table["rank_log_evidence"] = ranks
    return table


def simplest_of_best(table):
    """Index of the candidate of highest evidence; of those within its error, the smallest.

    Two log evidences agree if they differ by less than one standard error of their difference.
    """
    evidences, errors = table["log_evidence"], np.nan_to_num(table["log_evidence_std"])
    best = int(np.nanargmax(evidences))
    agree = evidences >= evidences[best] - np.hypot(errors, errors[best])
    sizes = np.where(agree, np.nan_to_num(table["n_weights"], nan=np.inf), np.inf)
    smallest = np.flatnonzero(agree & (sizes == sizes.min()))
    return int(smallest[np.argmax(evidences[smallest])])


def _row(model, seconds, error):
    """Make the row of ``results_`` of one candidate."""
    if model is None:
        verdict = f"failed: {type(error).__name__}: {error}"
        if isinstance(error, TooLate):
            verdict = f"not tried: {error}"
        return {"fit_time": seconds, "verdict": verdict}
    row = {"fit_time": seconds, **describe(model)}
    report = getattr(final_step(model), "evidence_report_", None)
    if report is not None:
        terms = vars(report.minima[0].terms)
        row.update({f"term_{name}": value for name, value in terms.items()})
    return row
