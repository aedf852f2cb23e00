"""Reports on evidence fits."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

import numpy as np

from skbayesnn.estimators.reports._minimum import (
    NOT_COMPUTED,
    TRUSTED,
    MinimumReport,
    Verdict,
    error_bar,
    n_targets_of,
    verdict_of_measurement,
    verdict_of_minimum,
)
from skbayesnn.estimators.reports._predictions import LeftOutScores
from skbayesnn.estimators.reports._printed import Printed, Table
from skbayesnn.inference import SIGNIFICANT
from skbayesnn.posterior import squared_scales

SUSPICIONS = {"input_dependent": "larger at some inputs", "student_t": "heavy tails"}
DRAWN = {
    "population": "{} networks drawn from the posterior by sequential Monte Carlo",
    "chains": "{} networks drawn from the posterior by independent chains",
}
EXACT = "the posterior of the weights is Gaussian, and known exactly"


@dataclass(frozen=True, repr=False)
class EvidenceReport(Printed):
    """Predictions, noise, method, network and evidence of a fitted model, with a verdict.

    The printed form shows the most important numbers, that of the predictions of left-out rows
    first; ``print(full())`` prints everything. All of it describes the networks that predict.

    The terms of the best minimum are also attributes of the report: ``misfit``,
    ``noise_normaliser``, ``weight_prior``, ``log_det``, ``symmetry``, ``weight_precision_occam``,
    ``noise_occam``, ``target_scale``; with Student-t noise ``degrees_of_freedom_occam``; with a
    noise network ``noise_weight_prior``, ``noise_log_det``, ``noise_symmetry``,
    ``noise_weight_precision_occam``.

    Attributes
    ----------
    log_evidence : float
        Log evidence in nats, for targets in their own units: measured by sampling, or
        ``laplace_log_evidence`` if nothing was measured or Laplace's approximation is exact.
    log_evidence_std : float
        Standard error of ``log_evidence``; ``nan`` if it was not measured.
    laplace_log_evidence : float
        ``logsumexp`` over the distinct minima of this network whose evidence is available. If
        networks were drawn, the first access to this or to ``minima`` searches for the minima.
    verdict : str
        A doubt about the predictions, if there is one: ``"explains nothing: ..."``, ``"predicts
        some left-out rows far beyond all targets: ..."``, ``"95 % intervals hold ..."`` or
        ``"misses structure: ..."``. Else how accurate the log evidence is: ``"trusted"`` (within a
        nat: measured, or Laplace's approximation is exact), ``"measured to +- ..."``,
        ``"doubtful: ..."`` or ``"not measured"``.
    advice : str
        Advice about the evidence: which differences count, or what to compare instead.
    minima : tuple of MinimumReport
        Minima of this network, best evidence first; then those of other networks that predict
        together with it. They predict only if no networks were drawn.
    n_targets : float
        Rows (counted with their weights) times outputs.
    hidden_layer_sizes : tuple of int
        Hidden layers of the drawn networks (of highest evidence), or of the best minimum.
    n_weights : int
        Weights of such a network.
    noise_p_values : dict
        P-values of tests under constant noise: for residuals that are larger at
        some inputs than at others (``"input_dependent"``; `noise_trend`), and for tails heavier
        than a Gaussian's (``"student_t"``; `heavy_tails`). Empty for classifiers, and where one
        of these noise models, or their level, is given.
    noise_log_evidences : dict
        Attribute ``noise_log_evidences_`` of the estimator; empty unless ``noise="auto"``.
    predictions : LeftOutScores
        Predictions of left-out rows, compared with the simplest model.
    model : tuple of tuple of str
        Headings and lines about the noise, the method, the networks and their prior. If the prior
        has a mean or a precision matrix, the evidence is the density of the present rows, given
        this prior.
    """

    predictions: LeftOutScores
    log_evidence_std: float
    n_targets: float
    hidden_layer_sizes: tuple
    n_weights: int
    noise_p_values: dict
    noise_log_evidences: dict
    model: tuple
    of_evidence: Verdict = field(repr=False)  # without the predictions
    measured: float = field(repr=False)  # log evidence; ``nan`` if it was not measured
    of_draws: tuple = field(repr=False)  # tables of drawn networks
    # function without arguments that returns ``minima`` and ``laplace_log_evidence``
    search: Callable = field(repr=False)

    @classmethod
    def of(cls, model, log_slopes=None):
        """Report on a fitted evidence estimator.

        ``log_slopes`` is the sum over the rows, if targets were transformed. Evidences are then
        densities of the original targets. Noise levels and ``gpe``, which would be in units of the
        transformed ones, are left out.
        """
        result, by_draws = model._result, model._predicts_by_draws
        shift = 0.0 if log_slopes is None else log_slopes
        network = result.posed.posterior.network if by_draws else model._best.network
        judged = verdict_of_measurement(result)
        return cls(
            predictions=model._predictions,
            log_evidence_std=result.log_evidence_std,
            n_targets=n_targets_of(result),
            hidden_layer_sizes=network.hidden_layer_sizes,
            n_weights=network.n_weights,
            noise_p_values=result.noise_p_values,
            noise_log_evidences={k: v + shift for k, v in result.noise_log_evidences.items()},
            model=_lines_on(model, network, in_units_of_y=log_slopes is None),
            of_evidence=judged or verdict_of_minimum(model._laplace.fit, model._best),
            measured=result.log_evidence + shift,
            of_draws=_tables_of_draws(model, shift) if by_draws else (),
            search=partial(_reports_on_minima, model, log_slopes),
        )

    @cached_property
    def _laplace(self):
        return self.search()

    @property
    def minima(self):
        return self._laplace[0]

    @property
    def laplace_log_evidence(self):
        return self._laplace[1]

    @property
    def log_evidence(self):
        known = np.isfinite(self.measured)
        return self.measured if known else self.laplace_log_evidence

    @property
    def verdict(self):
        return self.predictions.doubt or self.of_evidence.text

    @property
    def advice(self):
        return self.of_evidence.advice

    @property
    def terms(self):
        """Terms that add up to the log evidence of the best minimum (Laplace's approximation)."""
        return self.minima[0].terms

    def __getattr__(self, name):
        if not name.startswith("_") and "search" in self.__dict__:
            terms = self.minima[0].terms
            if any(each.name == name for each in fields(terms)):
                return getattr(terms, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _summary(self):
        return [
            ("Predictions", str(self.predictions)),
            *self.model,
            ("Log evidence", self._evidence_line()),
            *self._residuals_line(),
            ("All details", "print(evidence_report_.full())"),
        ]

    def _evidence_line(self):
        if np.isfinite(self.log_evidence_std):
            return f"{self.measured:.2f} +- {self.log_evidence_std:.2f} nats, measured by sampling"
        if self.of_evidence is NOT_COMPUTED:
            return "not measured by chains; log_evidence_ gives Laplace's approximation"
        kind, _, reason = self.of_evidence.text.partition(": ")
        if kind == "no evidence":
            return f"none: {reason}"
        if self.of_evidence is TRUSTED:
            return f"{self.log_evidence:.2f} nats, exact for this model"
        value = f"{self.log_evidence:.2f} nats by Laplace's approximation"
        return f"{value}, which is doubtful: {reason}" if reason else f"{value}, not measured"

    def _residuals_line(self):
        """Format tests that suggest another noise model than that which was given."""
        compared, p_values = self.noise_log_evidences, self.noise_p_values.items()
        suspected = {} if compared else {noise: p for noise, p in p_values if p < SIGNIFICANT}
        found = ", ".join(f"{SUSPICIONS[noise]} (p = {p:.0e})" for noise, p in suspected.items())
        names = " or ".join(f'"{noise}"' for noise in suspected)
        return [("Residuals", f"{found}; try noise={names}")] if suspected else []

    def _tables(self):
        tables = [Table("To compare models by their evidence", [(self.advice,)])]
        if self.of_draws:
            return [*tables, *self.of_draws]
        minima = [
            (f"{m.log_evidence:.2f}", f"{m.weight:.3f}", str(m.hidden_layer_sizes), m.verdict)
            for m in self.minima
        ]
        header = "log evidence", "share", "hidden units", "verdict"
        table = Table("Minima", minima, header, left=(2, 3))
        return [*tables, *self.minima[0].tables(), table]


def _reports_on_minima(model, log_slopes):
    """Reports on all minima of an estimator, and Laplace's log evidence."""
    laplace, shift = model._laplace, 0.0 if log_slopes is None else log_slopes
    scale, reports = model._result.problem.log_scale + shift, []
    for minimum, share in zip(laplace.minima, laplace.shares, strict=True):
        noise_std = model._noise_std_of(minimum) if log_slopes is None else None
        shifted = replace(minimum, terms=replace(minimum.terms, target_scale=scale))
        reports.append(MinimumReport.of(laplace.fit, shifted, share, noise_std))
    return tuple(reports), laplace.fit.log_evidence + shift


def _tables_of_draws(model, shift):
    """Tables of the models that predict by drawn networks, and of the precisions of the first."""
    rows = [
        (f"{share:.3f}", f"{sizes}", noise, f"{n_weights}", f"{evidence + shift:.2f}")
        for sizes, noise, n_weights, share, evidence, _ in model._candidates
    ]
    header = "share", "hidden units", "noise", "weights", "log evidence"
    models = Table("Models", rows, header, left=(1, 2))
    names = model.weight_group_names_
    logs = np.log(model._result.drawn[0].alpha[:, : len(names)])
    moments = zip(names, logs.mean(axis=0), logs.std(axis=0), strict=True)
    rows = [(name, f"{np.exp(-0.5 * mean):.4g}", error_bar(sd)) for name, mean, sd in moments]
    header = "group", "prior sd", "error bar of ln alpha"
    title = "Weight groups" if len(model._candidates) == 1 else "Weight groups of the first model"
    return models, Table(title, rows, header, left=(0, 2))


def _lines_on(model, network, in_units_of_y):
    """Headings and lines about the noise, the method, the networks and their prior."""
    lines = []
    if hasattr(model, "noise_model_") and in_units_of_y:
        lines.append(("Noise", _noise_line(model)))
    lines += [("Method", _method_line(model)), ("Network", _network_line(model, network))]
    if not model._result.posed.posterior.groups.centred:
        lines.append(("Prior", "informative: given, or learnt from earlier data"))
    return tuple(lines)


def _method_line(model):
    """Say in plain words what predicts."""
    if model._predicts_by_draws:
        line = DRAWN[model.method_].format(len(model._ensemble.member_weights))
        error = model.monte_carlo_error_
        if np.isnan(error):
            return line
        return f"{line}; another random_state would move predictions by {error:.2f} of their sd"
    n = int(np.count_nonzero(model._laplace.shares))
    if n == 1 and verdict_of_minimum(model._laplace.fit, model._best) is TRUSTED:
        return EXACT
    if model.method_ == "early_stopping":
        return f"training until held-out rows are predicted best, of {n} network{'s' * (n > 1)}"
    each = f"each of {n} minima" if n > 1 else "the minimum"
    return f"Laplace's approximation, a Gaussian around {each}"


def _network_line(model, network):
    """Format the sizes of the networks that predict, and numbers of weights and targets."""
    targets = f"{n_targets_of(model._result):g} targets"
    if not model._predicts_by_draws:
        pruned = " after pruning" if model._best.pruned else ""
        gamma = f"of which {targets} determine {model.n_effective_weights_:.1f}"
        return f"{_units(network.hidden_layer_sizes)}{pruned}, {network.n_weights} weights, {gamma}"
    shares = Counter()
    for candidate in model._candidates:
        shares[candidate.hidden_layer_sizes, candidate.n_weights] += candidate.share
    parts = [(f"{_units(sizes)}, {k} weights", share) for (sizes, k), share in shares.items()]
    if len(parts) == 1:
        return f"{parts[0][0]}, for {targets}"
    shown = "; ".join(f"{words} (share {share:.2f})" for words, share in parts)
    return f"{shown}; for {targets}"


def _units(hidden_layer_sizes):
    return f"hidden units {hidden_layer_sizes}" if hidden_layer_sizes else "linear"


def _noise_line(model):
    """Format the noise model with its level, and what else describes it."""
    kind = model.noise_model_
    if hasattr(model, "dispersion_"):
        return f"{kind}, dispersion {model.dispersion_:.3g}"
    if not hasattr(model, "noise_std_"):
        return kind
    typical = "typical " if kind.startswith("input_dependent") else ""
    std, nu = np.atleast_1d(model.noise_std_), getattr(model, "degrees_of_freedom_", np.inf)
    parts = [kind, f"{typical}sd {_listed(std)} (units of y)"]
    if np.isfinite(nu):
        parts[1] = parts[1] if nu > 2.0 else "no finite sd"
        parts.append(
            f"scale {_listed(std / squared_scales(nu) ** 0.5)}, {nu:.3g} degrees of freedom"
        )
    return ", ".join(parts)


def _listed(values):
    return ", ".join(f"{value:.4g}" for value in values)
