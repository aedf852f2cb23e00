"""Log evidence as a score for scikit-learn's searches, and a table that compares fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.model_selection import KFold
from sklearn.utils.validation import _num_samples, check_is_fitted

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator
from skbayesnn.estimators._pipeline import final_step
from skbayesnn.estimators.inputs._rows import checked_weights
from skbayesnn.estimators.reports._minimum import least_difference
from skbayesnn.estimators.reports._printed import aligned


def evidence_score(estimator: Estimator, X: Any = None, y: Any = None) -> float:
    """Return the log evidence of a fitted model, as a scorer.

    ``GridSearchCV(model, grid, scoring=evidence_score, cv=AllData())`` chooses by evidence, with
    one fit per candidate and one more of the best (MacKay 1992, section 2.2). Pass the
    function itself: scikit-learn accepts only the names of its own scorers.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted model; it, or its last step, has ``log_evidence_``. Evidences of models of
        differently transformed targets can be compared if
        `skbayesnn.compose.TransformedTargetRegressor` transforms them.
    X, y : ignored
        The evidence of the fit does not depend on them.

    Returns
    -------
    float
        Log evidence in nats; ``nan`` if the evidence is not available.

    Raises
    ------
    TypeError
        If the model has no evidence.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.model_selection import AllData, evidence_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(), noise="constant")
    >>> grid = {"prior": ["layer", "ard"]}
    >>> search = GridSearchCV(model, grid, scoring=evidence_score, cv=AllData()).fit(X, y)
    >>> search.best_params_
    {'prior': 'layer'}
    """
    check_is_fitted(estimator)
    last = final_step(estimator)
    if not hasattr(last, "log_evidence_"):
        raise TypeError(
            f"{type(last).__name__} has no log_evidence_. Use an estimator of this package (for "
            "transformed targets skbayesnn.compose.TransformedTargetRegressor), or another scoring."
        )
    return float(last.log_evidence_)


class AllData:
    """Cross-validation splitter with one split, whose training and test rows are all rows.

    The evidence needs no rows set aside. Scores of predictions on such a split are training scores.

    Examples
    --------
    >>> from skbayesnn.model_selection import AllData
    >>> [(train.tolist(), test.tolist()) for train, test in AllData().split([[1], [2], [3]])]
    [([0, 1, 2], [0, 1, 2])]
    """

    @documented(KFold.split.__doc__ or "")
    def split(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Any:
        """Yield all rows, for training and for testing.

        Yields
        ------
        train, test : ndarray of shape (n_samples,)
            Indices of all rows, twice.
        """
        rows = np.arange(_num_samples(X))
        yield rows, rows.copy()

    @documented(KFold.get_n_splits.__doc__ or "")
    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, which is 1."""
        return 1

    def __repr__(self):
        return "AllData()"


class ComparisonTable(dict):
    """Table of columns of equal length, accepted by ``pandas.DataFrame``, with a printed form.

    Examples
    --------
    >>> from skbayesnn.model_selection import ComparisonTable
    >>> ComparisonTable(model=["a", "b"], log_evidence=[-1.5, -2.0])
    model  log_evidence
    a              -1.5
    b                -2
    """

    def __repr__(self):
        columns = [
            [name, *(value if isinstance(value, str) else f"{value:.6g}" for value in values)]
            for name, values in self.items()
        ]
        words = [i for i, v in enumerate(self.values()) if any(isinstance(x, str) for x in v)]
        lines, errors = (
            aligned(list(zip(*columns, strict=True)), words),
            self.get("log_evidence_std", [])[:2],
        )
        if len(errors) == 2 and np.isfinite(errors).all():
            gap, least = -np.diff(self["log_evidence"][:2])[0], least_difference(*errors)
            lines.append(f"The first two differ by {gap:.1f} nats; above {least:.1f} counts.")
        return "\n".join(lines)


def posterior_probabilities(log_evidences):
    """Posterior probabilities of models with equal priors; 0 where the evidence is ``nan``."""
    log_evidences = np.where(np.isnan(log_evidences), -np.inf, log_evidences)
    if np.all(np.isneginf(log_evidences)):
        return np.full(len(log_evidences), np.nan)
    return softmax(log_evidences)  # MacKay (1992), section 2.2


def predicting_minimum(report):
    """Report on the best minimum, or ``None`` if no minimum predicts."""
    return None if report is None or report.of_draws else report.minima[0]


def describe(model):
    """Columns of `compare` but the probability of a fitted model or pipeline; ``nan``: none."""
    last = final_step(model)
    network = last
    while hasattr(network, "regressor_"):  # transformed target
        network = final_step(network.regressor_)
    report = getattr(last, "evidence_report_", None)
    best = predicting_minimum(report)
    if report is not None:
        n_weights = report.n_weights
    else:
        weights = [*getattr(network, "coefs_", []), *getattr(network, "intercepts_", [])]
        n_weights = sum(w.size for w in weights) or np.nan
    gamma = np.nan if best is None else network.n_effective_weights_
    densities = getattr(last, "leave_one_out_log_density_", np.nan)
    verdict, diagnostics = "", getattr(network, "diagnostics_", None)
    if report is not None:
        verdict = report.verdict
    elif diagnostics is not None:
        verdict = f"chains have {'' if diagnostics.converged else 'not '}converged"
    log_evidence, error = evidence_score(model), getattr(last, "log_evidence_std_", np.nan)
    return {
        "log_evidence": log_evidence,
        "log_evidence_std": float(error),
        "evidence_from": _origin(log_evidence, error, best),
        "bic": np.nan if best is None else best.bic,
        "gpe": np.nan if best is None else best.gpe,
        "leave_one_out": float(np.nanmean(densities)) if report is not None else np.nan,
        "n_weights": n_weights,
        "n_effective_weights": gamma,
        "effective_fraction": gamma / n_weights,
        "verdict": verdict,
    }


def _origin(log_evidence, error, best):
    """Name what an evidence comes from; empty without one."""
    if np.isnan(log_evidence):
        return ""
    if np.isfinite(error):
        return "sampling"
    return "closed form" if best is not None and best.verdict == "trusted" else "Laplace"


def compare(
    models: Mapping[str, Estimator] | Sequence[Estimator],
    *,
    prior_probabilities: ArrayLike | None = None,
) -> ComparisonTable:
    """Compare fitted models of the same targets, the most probable first.

    Parameters
    ----------
    models : dict or sequence
        Fitted estimators, pipelines that end in one, or regressors of transformed targets
        (`skbayesnn.compose`); a dict gives them names.
    prior_probabilities : array-like of shape (n_models,), optional
        Probabilities of the models before the data, or numbers in proportion to them, in the order
        of ``models``. By default they are equal.

    Returns
    -------
    ComparisonTable
        Columns ``model`` (name); ``posterior_probability`` (MacKay 1992, equation 2.3);
        ``log_evidence`` and its standard error ``log_evidence_std`` (nats, ``y`` in its own units);
        ``evidence_from``: sampling, closed form (linear models with Gaussian noise), or Laplace's
        approximation, which can be wrong by many nats; ``bic`` (Bishop 4.139) and ``gpe``, the
        generalised prediction error in units of ``y`` squared (MacKay 1992, section 3.5), of the
        best minimum, if minima predict; ``leave_one_out``, the mean leave-one-out log predictive
        density; ``n_weights`` of the network that predicts, after pruning; with minima
        ``n_effective_weights`` (gamma) and ``effective_fraction`` (gamma/k); ``verdict``. ``nan``
        where a model does not have a value. The printed form also says whether the first two
        measured evidences differ by more than their errors.

    Raises
    ------
    TypeError
        If a model has no evidence.
    ValueError
        If there are no models, if they were fitted to different numbers of targets, or if there
        are classifiers and regressors.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.model_selection import compare
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMLPRegressor((), noise="constant")
    >>> fits = {p: clone(model).set_params(prior=p).fit(X, y) for p in ("layer", "ard")}
    >>> compare(fits)["model"]
    ['layer', 'ard']
    """
    named = models if isinstance(models, Mapping) else {str(i): m for i, m in enumerate(models)}
    if not named:
        raise ValueError("There are no models to compare.")
    for model in named.values():
        check_is_fitted(model)
    reports = [getattr(final_step(m), "evidence_report_", None) for m in named.values()]
    if len({is_classifier(model) for model in named.values()}) > 1:
        raise ValueError(
            "There are classifiers and regressors among the models. Evidences of classifiers are "
            "probabilities, those of regressors densities, so they cannot be compared."
        )
    sizes = {report.n_targets for report in reports if report is not None}
    if len(sizes) > 1:
        numbers = ", ".join(f"{size:g}" for size in sorted(sizes))
        raise ValueError(
            f"The models were fitted to different numbers of targets ({numbers}). Evidences can be "
            "compared only if all models were fitted to the same targets."
        )
    rows = [describe(model) for model in named.values()]
    evidences = np.array([row["log_evidence"] for row in rows])
    prior = checked_weights(prior_probabilities, len(rows), "prior_probabilities")
    with np.errstate(divide="ignore"):  # excluded models have probability zero
        joint = evidences + np.log(prior)  # log P(D, H), up to a constant
    order = np.argsort(-joint, kind="stable")  # nan last
    table = ComparisonTable(model=[str(list(named)[i]) for i in order])
    table["posterior_probability"] = posterior_probabilities(joint)[order].tolist()
    for name in rows[0]:
        table[name] = [rows[i][name] for i in order]
    return table
