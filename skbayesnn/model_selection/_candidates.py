"""Candidates of a search: fitted one by one, then put into a table."""

import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from numpy.ma import MaskedArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from skbayesnn.estimators import final_step
from skbayesnn.inference import is_measured
from skbayesnn.model_selection._comparison import describe, posterior_probabilities

NEAR = 10.0  # nats below the best within which an evidence is worth measuring


def fit_candidates(candidates, X, y, fit_params, labels, n_jobs=None):
    """Fit all candidates; measure the evidence, where that is automatic, of those near the best.

    Measuring takes most of the time of a small fit. So all are fitted without it first. Then those
    are fitted again with it whose log evidence is within `NEAR` of the highest, until all such are
    measured.

    Returns
    -------
    list of tuple
        As from `fit_candidate`.
    """
    automatic = [_measures(model) == "auto" for model in candidates]

    def fitted(which, measured):
        tasks = [clone(candidates[i]) for i in which]
        for model, i in zip(tasks, which, strict=True):
            if automatic[i] and not measured:
                final_step(model).set_params(measure_evidence=False)
        given = zip(tasks, (labels[i] for i in which), strict=True)
        return Parallel(n_jobs=n_jobs)(
            delayed(fit_candidate)(model, X, y, fit_params, label) for model, label in given
        )

    fits = fitted(range(len(candidates)), measured=False)
    waiting = {i for i, (model, *_) in enumerate(fits) if automatic[i] and _is_measurable(model)}
    for i in np.flatnonzero(automatic):
        if fits[i][0] is not None:
            final_step(fits[i][0]).set_params(measure_evidence="auto")
    while True:
        found = np.array([getattr(final_step(m), "log_evidence_", np.nan) for m, *_ in fits])
        highest = -np.inf if np.isnan(found).all() else np.nanmax(found)
        near = sorted(i for i in waiting if not found[i] < highest - NEAR)
        if not near:
            return fits
        waiting -= set(near)
        for i, (model, seconds, error) in zip(near, fitted(near, measured=True), strict=True):
            fits[i] = model, seconds + fits[i][1], error


def _measures(model):
    return getattr(final_step(model), "measure_evidence", None)


def _is_measurable(model):
    return model is not None and is_measured(final_step(model)._result)


def fit_candidate(model, X, y, fit_params, label):
    """Fit one candidate: the model or ``None``, the seconds it took, the error or ``None``."""
    start, error = time.perf_counter(), None
    try:
        model.fit(X, y, **fit_params)
    except Exception as failure:
        model, error = None, failure
    seconds = time.perf_counter() - start
    if label is not None:
        found = f"failed: {error}" if model is None else _line(describe(model))
        print(f"{label}: {found} ({seconds:.1f} s)", flush=True)
    return model, seconds, error


def _line(row):
    return f"log evidence {row['log_evidence']:.2f}, {row['verdict']}"


def report_failures(fits):
    """Raise if every fit failed, warn if some did."""
    errors = [error for _, _, error in fits if error is not None]
    if errors and len(errors) == len(fits):
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
    """Columns of ``results_``."""
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
    """One candidate's part of ``results_``."""
    if model is None:
        return {"fit_time": seconds, "verdict": f"failed: {type(error).__name__}: {error}"}
    row = {"fit_time": seconds, **describe(model)}
    report = getattr(final_step(model), "evidence_report_", None)
    if report is not None:
        terms = vars(report.minima[0].terms)
        row.update({f"term_{name}": value for name, value in terms.items()})
    return row
