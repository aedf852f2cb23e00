"""Reports on evidence fits."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from skbayesnn.estimators.reports._minimum import (
    NOT_COMPUTED,
    Verdict,
    table_of_groups,
    table_of_noise,
)
from skbayesnn.estimators.reports._predictions import LeftOutScores
from skbayesnn.estimators.reports._printed import Printed, Table
from skbayesnn.inference import SIGNIFICANT
from skbayesnn.posterior import squared_scales

SUSPICIONS = {"input_dependent": "larger at some inputs", "student_t": "heavy tails"}


@dataclass(frozen=True, repr=False)
class EvidenceReport(Printed):
    """Evidence of a fitted model with its terms, and a verdict.

    The printed form shows the quality of leave-one-out predictions, the accuracy of the evidence,
    and the most important numbers; ``print(full())`` prints everything.

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
        ``"trusted"``: predictions are better than with the simplest model, and the log evidence is
        accurate to within a nat, because it was measured or Laplace's approximation is exact; so
        are the evidences that chose size and noise. ``"explains nothing: ..."``: predictions are no
        better. ``"95 % intervals hold ..."``: too few rows. ``"predicts some left-out rows far
        beyond all targets: ..."``: it explodes there. ``"misses structure: ..."``: errors of
        neighbouring rows are alike. ``"doubtful: ..."``: the evidence may be wrong, for this
        reason. ``"not measured"``: its error is unknown.
    minima : tuple of MinimumReport
        Minima of this network, best evidence first; then those of other networks that predict
        together with it.
    n_targets : float
        Rows (counted with their weights) times outputs.
    hidden_layer_sizes : tuple of int
        Hidden layers of the drawn networks, or of the best minimum.
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
        Headings and lines about the networks, their prior and the noise. If the prior has a mean or
        a precision matrix, the evidence is the density of the present rows, given this prior.
    """

    log_evidence_std: float
    verdict: str
    n_targets: float
    hidden_layer_sizes: tuple
    n_weights: int
    noise_p_values: dict
    noise_log_evidences: dict
    predictions: LeftOutScores
    model: tuple
    of_evidence: Verdict = field(repr=False)  # without the predictions
    measured: float = field(repr=False)  # log evidence; ``nan`` if it was not measured
    # function without arguments that returns ``minima`` and ``laplace_log_evidence``
    search: Callable = field(repr=False)

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
    def terms(self):
        """Terms that add up to the log evidence of the best minimum (Laplace's approximation)."""
        return self.minima[0].terms

    @property
    def advice(self):
        """Advice about the evidence."""
        return self.of_evidence.advice

    def __getattr__(self, name):
        if not name.startswith("_") and "search" in self.__dict__:
            terms = self.minima[0].terms
            if any(each.name == name for each in fields(terms)):
                return getattr(terms, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _summary(self):
        return [
            ("Predictions", str(self.predictions)),
            ("Evidence", self._accuracy()),
            ("Log evidence", self._log_evidence_line()),
            *self.model,
            *self._noise_lines(),
            ("All terms", "print(evidence_report_.full())"),
        ]

    def _accuracy(self):
        """Format the accuracy of the log evidence."""
        kind, _, reason = self.of_evidence.text.partition(": ")
        words = {
            "trusted": "exact for this model",
            "not measured": "accuracy not checked",
            "doubtful": f"may be off by several nats: {reason}",
            "no evidence": f"none: {reason}",
        }[kind]
        if np.isfinite(self.log_evidence_std):
            only = "" if kind == "trusted" else "only "
            words = f"accurate {only}to +- {self.log_evidence_std:.1f} nats (measured)"
        return f"{words}. {self.advice}"

    def _log_evidence_line(self):
        if np.isfinite(self.log_evidence_std):
            error = f"+- {self.log_evidence_std:.2f} nats, measured by sampling"
            return f"{self.measured:.2f} {error}"
        if "_laplace" not in self.__dict__ and self.of_evidence is NOT_COMPUTED:
            return "log_evidence_ gives Laplace's approximation, which takes a search for minima"
        method = "" if self.of_evidence.text == "trusted" else " by Laplace's approximation"
        return f"{self.log_evidence:.2f} nats{method}"

    def _noise_lines(self):
        """Format the tests that suggest other noise models, and the evidences of these."""
        compared, lines = self.noise_log_evidences, []
        suspected = {n: p for n, p in self.noise_p_values.items() if p < SIGNIFICANT}
        if suspected:
            found = ", ".join(
                f"{SUSPICIONS[noise]} (p = {p:.0e})" for noise, p in suspected.items()
            )
            names = " or ".join(f'"{noise}"' for noise in suspected)
            advice = "" if compared else f"; try noise={names}"
            lines.append(("Residuals", found + advice))
        if len(compared) > 1:
            each = ", ".join(f"{noise} {value:.2f}" for noise, value in compared.items())
            lines.append(("Noise models", f"{each} nats"))
        return lines

    def _tables(self):
        best = self.minima[0]
        terms = [(name, f"{value:.2f}") for name, value in best.terms.items()]
        terms.append(("total", f"{best.log_evidence:.2f}"))
        tables = [
            Table("Terms of the best minimum (nats)", terms),
            table_of_groups("Weight groups", best),
        ]
        if best.noise_network is not None:
            sizes = best.noise_network.hidden_layer_sizes
            tables.append(
                table_of_groups(
                    f"Weight groups of the noise network, hidden units {sizes}", best.noise_network
                )
            )
        if best.log_noise_precision_std is not None:
            tables.append(table_of_noise(best))
        minima = [
            (f"{m.log_evidence:.2f}", f"{m.weight:.3f}", str(m.hidden_layer_sizes), m.verdict)
            for m in self.minima
        ]
        header = "log evidence", "share", "hidden units", "verdict"
        return [*tables, Table("Minima", minima, header, left=(2, 3))]


def lines_on_model(model, network, minima, n_targets, noise_std):
    """Headings and lines about the network, the prior and the noise of an evidence estimator.

    ``noise_std`` ``(n_outputs,)`` is left out if it is ``None``. ``minima`` are the reports on the
    minima that predict, none if drawn networks do.
    """
    n_drawn = 0
    if model._predicts_by_draws:
        n_drawn = len(model._ensemble.member_weights)
        weights = f"{network.n_weights} of each network, for {n_targets:g} targets"
    else:
        gamma = sum(minima[0].gamma.values())
        weights = f"{network.n_weights}; the {n_targets:g} targets determine {gamma:.1f} of them"
    line = _network_line(model, network.hidden_layer_sizes, minima, n_drawn)
    lines = [("Network", line), ("Weights", weights)]
    error = model.monte_carlo_error_
    if np.isfinite(error):
        line = f"another random_state would move predictions by {error:.2f} of their sd"
        lines.append(("Monte Carlo error", line))
    if not model._result.posed.posterior.groups.centred:
        lines.append(("Prior", "informative: given, or learnt from earlier data"))
    if noise_std is not None:
        nu = getattr(model, "degrees_of_freedom_", np.inf)
        lines.append(("Noise", _noise_line(noise_std, nu, model.noise_model_)))
    if hasattr(model, "dispersion_"):
        lines.append(("Noise", f"dispersion {model.dispersion_:.3g}"))
    correlation = minima[0].noise_correlation if minima else None
    if correlation is not None:
        pairs = correlation[np.tril_indices(len(correlation), -1)]
        lines.append(("Correlations of the noise", ", ".join(f"{r:.3f}" for r in pairs)))
    return tuple(lines)


def _network_line(model, hidden, minima, n_drawn):
    """Format the sizes of the networks that predict, or were tried, and the noise model."""
    if hidden:
        line = f"hidden units {hidden}"
    elif any(m.hidden_layer_sizes for m in minima):
        line = "No hidden layer was needed: linear model"
    else:
        line = "linear"
    sizes = dict.fromkeys(candidate.hidden_layer_sizes for candidate in model._result.growth)
    tried = ", ".join(map(str, sizes))
    if n_drawn:
        best, of = (" (highest evidence)", f" of sizes {tried}") if tried else ("", "")
        line = f"{line}{best}; {n_drawn} networks{of} drawn from the posterior predict"
    elif hidden:
        pruned = " after pruning" if minima[0].pruned else ""
        best = f"; best of {len(minima)} distinct minima" if len(minima) > 1 else ""
        line = f"{line}{pruned}{best}"
    noise = getattr(model, "noise_model_", None)
    if noise is not None:
        line = f"{line}; {noise} noise"
    return f"{line}; tried: {tried}" if tried and not n_drawn else line


def _noise_line(noise_std, nu, kind):
    """Format noise levels and, for Student-t noise, the scale and degrees of freedom."""
    line = f"sd {_listed(noise_std)} (units of y)"
    if np.isfinite(nu):
        scales = _listed(noise_std / squared_scales(nu) ** 0.5)
        sd = line if nu > 2.0 else "no finite sd (units of y)"
        line = f"Student-t, scale {scales}, {sd}, {nu:.3g} degrees of freedom"
    return f"{line}, depends on the inputs" if kind.startswith("input_dependent") else line


def _listed(values):
    return ", ".join(f"{value:.4g}" for value in values)
