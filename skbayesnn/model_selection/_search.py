"""Grid search by evidence, without held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import delayed
from numpy.ma import MaskedArray
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skbayesnn._docs import FITTED, LinkToSite, documented
from skbayesnn._typing import Estimator
from skbayesnn.compose._target import passed_weights
from skbayesnn.estimators import (
    AveragedClassifier,
    AveragedRegressor,
    BayesianMLP,
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
)
from skbayesnn.estimators._evidence import EvidenceMLP
from skbayesnn.estimators._pipeline import final_step, predictor
from skbayesnn.estimators.inputs._parameters import check
from skbayesnn.estimators.reports._minimum import least_difference
from skbayesnn.inference import Progress, in_order
from skbayesnn.model_selection._comparison import (
    describe,
    posterior_probabilities,
    predicting_minimum,
)
from skbayesnn.predictive import combination_weights

AVERAGING = ("best", "evidence", "equal", "stacking", "tempered")
BY_DENSITIES = ("stacking", "tempered")  # need leave-one-out densities, which samplers do not have


def delegated(method: Any, of_inputs: bool = False) -> Any:
    """Delegate a method of a search to its `predictor`, available if that has it."""

    def has_it(search):
        # derivatives ``of_inputs`` are those of the model, which a pipeline does not pass on
        if of_inputs and isinstance(search._asked, Pipeline):
            raise AttributeError(
                "Derivatives exist by the inputs of the last step of a pipeline: "
                f"pipeline[-1].{method.__name__}(pipeline[:-1].transform(X))."
            )
        return hasattr(final_step(search._asked), method.__name__)

    @wraps(method)
    def call(self, X, *args, **kwargs):
        check_is_fitted(self)
        model, X = predictor(self, X)
        return getattr(model, method.__name__)(X, *args, **kwargs)

    return available_if(has_it)(call)


@documented(FITTED)
@dataclass(eq=False, repr=False)
class EvidenceSearch(LinkToSite, MetaEstimatorMixin, BaseEstimator):
    """Search over parameter values by evidence, with all rows in every fit.

    The evidence of a model is the probability of the training targets under it (MacKay 1992,
    section 2.2). The search therefore holds out no rows.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Estimator to search over. It, or its last step, must have ``log_evidence_`` after ``fit``.
    param_grid : dict or list of dict
        Parameter names (``step__name`` in a pipeline) with lists of values to try, or a list of
        such grids.
    combine : {"best", "evidence", "equal", "stacking", "tempered"}, default="best"
        Way to combine predictions. An average of pipelines has no derivatives; use
        ``best_estimator_`` for these.

        * ``"best"``: the candidate of highest evidence.
        * ``"evidence"``, ``"equal"``, ``"stacking"`` and ``"tempered"``: all candidates that have
          an evidence, weighted as minima are by ``combine`` of `EvidenceMLPRegressor`. The last two
          are for evidence estimators.
    n_jobs : int, optional
        Number of candidates that are fitted in parallel (joblib).
    verbose : int, default=0
        If positive, print a line per candidate: its log evidence, the verdict, its time, the time
        so far, and about how much is left.

    Attributes
    ----------
    results_ : dict of arrays
        Columns for a ``pandas.DataFrame``, with candidates in the order of the grid:
        ``params`` and ``param_...`` for every parameter; ``log_evidence`` (nats, ``y`` in its own
        units), ``log_evidence_std`` (standard error; ``nan`` where it was not measured),
        ``evidence_from`` as in `compare`, ``posterior_probability`` (if all candidates were equally
        probable before the data),
        ``rank_log_evidence``, ``weight`` (share in the predictions), ``fit_time`` (s),
        ``n_weights``, ``n_effective_weights``, ``effective_fraction``, ``bic``, ``gpe`` and
        ``leave_one_out`` as in `compare`, ``verdict``, and ``term_...`` for every term of the
        evidence of the best minimum, if minima predict. Failed candidates have ``nan`` and the
        error as verdict.
    estimators_ : list
        Fitted candidates; ``None`` for failed ones.
    best_index_ : int
        Position of the candidate of highest evidence.
    best_params_ : dict
    best_score_ : float
        Log evidence of this candidate.
    best_estimator_ : estimator
    evidence_report_ : EvidenceReport
        Report of the best candidate.
    weights_ : ndarray of shape (n_candidates,)
        Share of every candidate in the predictions.
    log_evidence_ : float
        Log evidence of the whole family: the logarithm of the mean evidence, if all candidates were
        equally probable before the data. Over a log-uniform grid of a continuous parameter this
        includes the Occam factor of that parameter (MacKay 1992, section 2.6). Candidates without
        evidence count as zero.
    classes_ : ndarray of shape (n_classes,)
        Class labels; classifiers only.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.model_selection.GridSearchCV : With ``scoring=evidence_score, cv=AllData()`` it chooses
        by evidence, too.

    References
    ----------
    D. J. C. MacKay (1992), "Bayesian interpolation", Neural Computation 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.model_selection import EvidenceSearch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor(n_restarts=2, random_state=0)
    >>> search = EvidenceSearch(model, {"hidden_layer_sizes": [(), (3,)]}).fit(X, y)
    >>> search.best_params_
    {'hidden_layer_sizes': (3,)}
    >>> mean, std = search.predict([[0.5]], return_std=True)
    """

    estimator: Estimator
    param_grid: dict[str, Any] | Sequence[dict[str, Any]]
    _: KW_ONLY
    combine: str = "best"
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit every candidate to all rows, and compare their evidences.

        Parameters
        ----------
        **fit_params : dict
            Further arguments of ``fit`` of the estimator, such as ``sample_weight``.

        Raises
        ------
        ValueError
            If parameters are invalid, or if no candidate has an evidence. If the fits of all
            candidates fail, the first one's error is raised.
        """
        params = list(ParameterGrid(self.param_grid))
        candidates = [clone(self.estimator).set_params(**clone(p, safe=False)) for p in params]
        self._check_averaging(candidates)
        labels = [", ".join(f"{k}={v}" for k, v in p.items()) for p in params]
        fits = self._fitted(candidates, labels, X, y, fit_params)
        report_failures(fits)
        self.estimators_ = [fit.model for fit in fits]
        self.results_ = results_table(params, fits)
        self._choose(fit_params)
        return self

    def _fitted(self, candidates, labels, X, y, fit_params):
        progress, fits = Progress(self.verbose), []
        calls = [delayed(fit_candidate)(model, X, y, fit_params) for model in candidates]
        with progress.stage("candidates", np.ones(len(calls))) as step:
            for label, fit in zip(labels, in_order(self.n_jobs, calls), strict=True):
                fits.append(fit)
                number = f"[{len(fits)}/{len(calls)}] {label}"
                step(f"{number}: {fit}" if progress.listens else None)
        return fits

    def _check_averaging(self, candidates):
        check(self, combine=AVERAGING)
        kind, name = BayesianMLP, "estimators"
        if self.combine in BY_DENSITIES:
            kind, name = EvidenceMLP, "evidence estimators"
        for model in map(final_step, candidates):
            if self.combine != "best" and not isinstance(model, kind):
                raise TypeError(
                    f"combine={self.combine!r} needs {name} of this package (or pipelines that end "
                    f"in one); got {type(model).__name__}."
                )

    def _choose(self, fit_params):
        """Set the attributes that depend on the evidences."""
        evidences = self.results_["log_evidence"]
        known = np.flatnonzero(~np.isnan(evidences))
        if len(known) == 0:
            reasons = "; ".join(sorted(set(self.results_["verdict"])))
            raise ValueError(
                f"No candidate has an evidence ({reasons}). Try other parameters, more restarts, "
                "or a search by cross-validation."
            )
        self.best_index_ = int(np.nanargmax(evidences))
        doubt = self._doubt(evidences)
        if doubt is not None:
            message = f"{doubt} Compare the first few candidates on held-out rows, too."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        self.best_estimator_ = self.estimators_[self.best_index_]
        self.best_params_ = self.results_["params"][self.best_index_]
        self.best_score_ = float(evidences[self.best_index_])
        self.log_evidence_ = float(logsumexp(evidences[known]) - np.log(len(evidences)))
        self.weights_ = self._shares(known, fit_params)
        self.results_["weight"] = self.weights_
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            vars(self).pop(name, None)  # attributes of an earlier fit
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def _doubt(self, evidences):
        """Reason against the choice of the best candidate, or ``None``."""
        origins = list(self.results_["evidence_from"])
        n_measured, n_laplace = origins.count("sampling"), origins.count("Laplace")
        if n_measured and n_laplace:
            return (
                f"{n_measured} evidences are measured, {n_laplace} others are Laplace's "
                "approximation, which can be wrong by many nats: do not compare them. Pass "
                "method='population' or method='laplace' for all candidates."
            )
        verdict = str(self.results_["verdict"][self.best_index_])
        if verdict.startswith("doubtful"):
            return "The evidence of the best candidate is doubtful: see its evidence_report_."
        if not verdict.startswith("measured to") or np.sum(~np.isnan(evidences)) < 2:
            return None
        first, second = np.argsort(-evidences)[:2]  # nan last
        gap = evidences[first] - evidences[second]
        least = least_difference(*np.nan_to_num(self.results_["log_evidence_std"][[first, second]]))
        if gap >= least:
            return None
        return f"The best candidate leads by {gap:.1f} nats; above {least:.1f} would count."

    def _shares(self, known, fit_params):
        weights, evidences = np.zeros(len(self.estimators_)), self.results_["log_evidence"]
        if self.combine == "best":
            weights[self.best_index_] = 1.0
            return weights
        densities, counts = None, None
        if self.combine in BY_DENSITIES:
            models = [final_step(self.estimators_[i]) for i in known]
            densities = np.stack([model.leave_one_out_log_density_ for model in models])
            counts = passed_weights(fit_params, densities.shape[1])
            densities, counts = densities[:, counts > 0], counts[counts > 0]
        classes = is_classifier(self.best_estimator_)
        weights[known] = combination_weights(
            self.combine, evidences[known], counts, lambda: densities, classes
        )
        return weights

    @property
    def _asked(self):
        """Predictor, or before the fit the estimator that will be fitted."""
        return self.predictor_ if hasattr(self, "results_") else self.estimator

    @property
    def predictor_(self):
        """Predictor: ``best_estimator_``, or the average of several candidates."""
        check_is_fitted(self)
        if self.combine == "best":
            return self.best_estimator_
        used = np.flatnonzero(self.weights_)
        average = AveragedClassifier if is_classifier(self.best_estimator_) else AveragedRegressor
        return average([self.estimators_[i] for i in used], self.weights_[used])

    @property
    def evidence_report_(self):
        """Report of the best candidate."""
        return final_step(self.best_estimator_).evidence_report_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "weights_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags

    predict = delegated(EvidenceMLPRegressor.predict)
    predict_proba = delegated(EvidenceMLPClassifier.predict_proba)
    predict_log_proba = delegated(EvidenceMLPClassifier.predict_log_proba)
    decision_function = delegated(EvidenceMLPClassifier.decision_function)
    score = delegated(EvidenceMLPRegressor.score)
    predict_distribution = delegated(EvidenceMLPRegressor.predict_distribution)
    predict_std = delegated(EvidenceMLPRegressor.predict_std)
    predict_output_cov = delegated(EvidenceMLPRegressor.predict_output_cov)
    predict_interval = delegated(EvidenceMLPRegressor.predict_interval)
    predict_quantiles = delegated(EvidenceMLPRegressor.predict_quantiles)
    log_predictive_density = delegated(EvidenceMLPRegressor.log_predictive_density)
    predict_gradient = delegated(EvidenceMLPRegressor.predict_gradient, of_inputs=True)
    sample_gradient = delegated(EvidenceMLPRegressor.sample_gradient, of_inputs=True)
    novelty = delegated(EvidenceMLPRegressor.novelty)
    sample_y = delegated(EvidenceMLPRegressor.sample_y)
    sample_prior = delegated(EvidenceMLPRegressor.sample_prior)


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
        return {"fit_time": fit.seconds, "evidence_from": "", "verdict": verdict}
    row = {"fit_time": fit.seconds, **describe(fit.model)}
    report = getattr(final_step(fit.model), "evidence_report_", None)
    best = predicting_minimum(report)
    terms = {} if best is None else vars(best.terms)
    return row | {f"term_{name}": value for name, value in terms.items()}
