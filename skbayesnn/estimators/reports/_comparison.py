"""Comparison of an evidence fit with samples from the same posterior."""

from dataclasses import dataclass

import numpy as np

from skbayesnn.estimators.inputs._rows import named
from skbayesnn.estimators.reports._printed import aligned, wrapped

MAX_SHIFT = 0.25  # RMS difference of predictive means, in predictive standard deviations
MAX_RATIO = 1.25  # ratio of error bars, and of noise levels, in either direction
MAX_CHANGE = 0.02  # mean absolute difference of class probabilities
MAX_GAP = 1.0  # difference of log evidences, in nats
MARGIN = 0.1  # largest distance of rows outside the range of an input, in such ranges
STANDARD_ERRORS = 3.0  # number that a difference of log evidences must also exceed


@dataclass(frozen=True, repr=False)
class Comparison:
    """Evidence fit compared with samples from the same posterior.

    Predictions are compared at training rows. Their standard deviations (class probabilities) are
    also compared between rows, and in a margin around the range of the inputs.

    Attributes
    ----------
    quantities : dict
        Compared quantities: from name to (evidence fit, samples).
    shift : float
        Root mean squared difference of predictive means in units of the samples' predictive
        standard deviation; for classifiers the mean absolute difference of class probabilities.
    doubts : tuple of str
        Reasons against predictions and error bars of the evidence fit; empty if there are none.
    evidence_doubt : str or None
        Reason against its evidence, if both evidences are known.
    converged : bool
        Whether the chains have converged. If not, there is no verdict.
    log_evidence_std : tuple of float
        Standard errors of both log evidences; ``nan`` where none was measured.
    same_rows : bool
        Whether both were fitted to the same rows, targets and weights. If not, evidences are left
        out, and there is no verdict.
    """

    quantities: dict
    shift: float
    doubts: tuple
    evidence_doubt: str | None
    converged: bool
    log_evidence_std: tuple
    same_rows: bool = True

    @property
    def adequate(self):
        """True if predictions and error bars agree; ``None`` if there is no verdict."""
        return not self.doubts if self.converged and self.same_rows else None

    def __repr__(self):
        rows = [("", "evidence fit", "samples")]
        rows += [(name, f"{a:.4g}", f"{b:.4g}") for name, (a, b) in self.quantities.items()]
        if "log evidence" in self.quantities:
            errors = (f"{e:.2g}" if np.isfinite(e) else "unknown" for e in self.log_evidence_std)
            rows.append(("its standard error", *errors))
            rows.append(("they differ if further apart", f"{_gap(self.log_evidence_std):.2g}", ""))
        rows.append(("difference of predictions", f"{self.shift:.3g}", ""))
        return "\n".join([*aligned(rows, left=(0,)), *map(wrapped, self._verdict())])

    def _verdict(self):
        """Lines on what to use."""
        if not self.same_rows:
            return ["No verdict: the evidence fit is one of other rows, targets or weights."]
        if not self.converged:
            return ["No verdict: the chains have not converged, see diagnostics_."]
        lines = ["Predictions and error bars of the evidence fit: adequate here."]
        if self.doubts:
            lines = [f"Predict with the samples: {'; '.join(self.doubts)}."]
        if self.evidence_doubt:
            lines.append(f"Use the evidence of the samples: {self.evidence_doubt}.")
        return lines


def _gap(errors):
    """Largest difference in nats of log evidences that agree; unknown errors count as zero."""
    return max(MAX_GAP, STANDARD_ERRORS * np.hypot(*np.nan_to_num(errors)))


def compare_regressors(fitted, sampler, X, same_rows=True):
    """Compare predictive means, error bars, noise levels and evidences.

    ``X``, shape ``(n, d)``, are training inputs in lexicographic order; ``same_rows`` says whether
    they, the targets and the weights are those of both fits.
    """
    of_fit, sampled = (model.predict(named(model, X)) for model in (fitted, sampler))
    deviations = sampler.predict_std(named(sampler, X))
    shift = float(np.sqrt(np.mean(((of_fit - sampled) / deviations) ** 2)))
    quantities = {
        name: tuple(
            float(np.sqrt(np.mean(model.predict_std(named(model, where), kind=kind) ** 2)))
            for model in (fitted, sampler)
        )
        for name, where, kind in (
            ("typical error bar (weights)", X, "epistemic"),
            ("predictive sd between rows", _between(X), "total"),
            ("predictive sd in a margin", _in_margin(X), "total"),
        )
    }
    level = "dispersion_" if fitted.noise_model_ == "negative_binomial" else "noise_std_"
    if hasattr(fitted, level):
        name = level.strip("_").replace("_std", " sd")
        levels = (float(np.mean(getattr(model, level))) for model in (fitted, sampler))
        quantities[name] = tuple(levels)
    doubts = [f"predictive means differ by {shift:.2f} sd"] if shift > MAX_SHIFT else []
    for name, (a, b) in quantities.items():
        if a != b and not b / MAX_RATIO < a < b * MAX_RATIO:  # both may be infinite
            doubts.append(f"{name}: {a:.3g} instead of {b:.3g}")
    return _with_evidence(fitted, sampler, quantities, shift, doubts, same_rows)


def compare_classifiers(fitted, sampler, X, same_rows=True):
    """Compare class probabilities and evidences; arguments as for `compare_regressors`."""
    quantities, doubts, changes = {}, [], []
    for where, points in (
        ("probability", X),
        ("between rows", _between(X)),
        ("in a margin", _in_margin(X)),
    ):
        both = [model.predict_proba(named(model, points)) for model in (fitted, sampler)]
        quantities[f"mean highest {where}"] = tuple(float(p.max(1).mean()) for p in both)
        changes.append(float(np.mean(np.abs(both[0] - both[1]))))
        if changes[-1] > MAX_CHANGE:
            place = "" if where == "probability" else f" {where}"
            doubts.append(f"class probabilities{place} differ by {changes[-1]:.3f} on average")
    return _with_evidence(fitted, sampler, quantities, changes[0], doubts, same_rows)


def _between(X):
    """Midpoints ``(n, d)`` between rows and rows half the list away, which lie in gaps, too."""
    return 0.5 * (X + np.roll(X, len(X) // 2, axis=0))


def _in_margin(X):
    """Rows ``(m, d)`` moved from the centre of the ranges, as far as an input leaves its range.

    Correlated inputs stay correlated. Equal rows are returned as they are.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    moved = X + 2.0 * MARGIN * (X - 0.5 * (low + high))
    outside = np.any((moved < low) | (moved > high), axis=1)
    return moved[outside] if np.any(outside) else X


def _with_evidence(fitted, sampler, quantities, shift, doubts, same_rows):
    """Add the log evidences, if both are known and of one data set, and make the `Comparison`."""
    models = fitted, sampler
    errors, evidence_doubt = tuple(float(model.log_evidence_std_) for model in models), None
    evidences = tuple(model.log_evidence_ for model in models)
    if same_rows and not np.isnan(evidences).any():
        quantities["log evidence"] = evidences
        gap = abs(evidences[0] - evidences[1])
        if gap > _gap(errors):
            error = np.hypot(*np.nan_to_num(errors))
            evidence_doubt = f"log evidences differ by {gap:.1f} +- {error:.1f} nats"
    converged = sampler.diagnostics_.converged
    doubts = tuple(doubts)
    return Comparison(quantities, shift, doubts, evidence_doubt, converged, errors, same_rows)
