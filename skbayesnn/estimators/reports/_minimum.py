"""Reports on single minima of the energy, and verdicts on log evidences."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skbayesnn.estimators.reports._printed import Table
from skbayesnn.inference import NOISE_MODELS, Trouble

UNDETERMINED = 8.0  # error bar of ln alpha: the sd of the log-uniform prior, 12 ln 10 / 12^(1/2)
ROWS_PER_WEIGHT = 3.0  # ratio below which the Gaussian approximation tends to be poor
MAX_ERROR = 0.5  # nats, rounded as printed: error of an evidence trusted to within a nat
SINGULAR = 0.1  # smallest eigenvalue of the Hessian over the smallest prior precision
SIGNIFICANT_GAP = 2.0  # standard errors of a difference of two evidences that counts

ANOTHER_SEARCH = (
    "Try another random_state, more n_restarts, a larger solver.max_iter, or fewer hidden units."
)
FEWER = "Use fewer hidden units, or compare models on held-out rows."
REMEDIES = {
    Trouble.ROTATION: "Use another activation, or hidden_layer_sizes=(): a linear model.",
    Trouble.INDEFINITE: ANOTHER_SEARCH,
    Trouble.NOT_REACHED: ANOTHER_SEARCH,
    Trouble.SINGULAR: "Remove inputs that repeat others, or use fewer hidden units.",
    Trouble.STRUCTURED: FEWER,
    Trouble.EARLY: "Use predictions and error bars. Compare models on held-out rows.",
    Trouble.NOISE_NETWORK: "Try another random_state, or smaller noise.hidden_layer_sizes.",
}


@dataclass(frozen=True)
class MinimumReport:
    """Report on one distinct minimum of the energy.

    Attributes
    ----------
    log_evidence : float
        Log evidence in nats, for targets in their own units; ``nan`` if not available.
    terms : EvidenceTerms
        Terms of the log evidence.
    weight : float
        Share of this minimum in the predictions.
    gamma : dict
        Effective number of parameters (well-determined weights) of every group.
    weight_precisions : dict
        Precision ``alpha`` of every group (standardised units).
    noise_std : ndarray of shape (n_outputs,) or None
        Noise standard deviation, in units of y.
    degrees_of_freedom : float
        Degrees of freedom of the noise: infinite unless it is Student-t.
    noise_correlation : ndarray of shape (n_outputs, n_outputs) or None
        Correlation matrix of correlated noise.
    log_precision_std : dict
        Error bars ``(2 / gamma_c)^(1/2)`` of every ``ln alpha`` (MacKay 1992, section 2.5), without
        the contribution of Gamma hyperpriors.
    log_noise_precision_std : ndarray of shape (n_outputs,) or None
        Error bars ``(2 / (N - gamma))^(1/2)`` of every ``ln beta`` (MacKay 1992, section 2.5), as
        of the precisions; half of them are the relative error bars of ``noise_std``. 0 where the
        level was given, ``None`` unless the noise is constant and Gaussian.
    gradient_norm, smallest_eigenvalue : float
        Gradient norm and smallest eigenvalue of the Hessian of the energy at the minimum.
    hidden_layer_sizes : tuple of int
        Hidden units after pruning.
    pruned : tuple of Pruned
        Deleted hidden units with the reason.
    n_iter : int
    converged : bool
    bic : float
        Schwarz's approximation ``log P(D | w_MP) - k/2 log N`` of the log evidence (Bishop
        2006, equation 4.139).
    gpe : float
        Moody's generalised prediction error, the squared error of new targets expected from
        the training error and the effective number of parameters, mean over the outputs in units of
        ``y`` squared: ``(chi2 + 2 gamma) / (N beta)`` (MacKay 1992, section 3.5); ``nan`` for
        classifiers and where the noise is not constant and Gaussian.
    verdict : str
        ``"trusted"`` if the Gaussian approximation is exact, the reasons to doubt it, or
        ``"not measured"``.
    advice : str
        Advice that follows from the verdict.
    noise_network : MinimumReport or None
        Report on the network of input-dependent noise; its ``log_evidence`` is ``nan``, because
        only both networks together have an evidence.
    """

    log_evidence: float
    terms: object
    weight: float
    gamma: dict
    weight_precisions: dict
    noise_std: object
    degrees_of_freedom: float
    noise_correlation: object
    log_precision_std: dict
    log_noise_precision_std: object
    gradient_norm: float
    smallest_eigenvalue: float
    hidden_layer_sizes: tuple
    pruned: tuple
    n_iter: int
    converged: bool
    bic: float
    gpe: float
    verdict: str
    advice: str
    noise_network: object = None

    @classmethod
    def of(cls, fit, minimum, weight, noise_std):
        """Report on a minimum of a fit that has a share ``weight`` in the predictions.

        Terms of the minimum are in the user's units, as is ``noise_std``, an array or ``None``.
        """
        names = minimum.groups.names
        with np.errstate(divide="ignore", invalid="ignore"):
            log_std = np.sqrt(2.0 / minimum.gamma)
        verdict, noise = verdict_of_minimum(fit, minimum), minimum.noise
        if noise is not None:
            noise = replace(cls.of(fit, noise, weight, None), log_evidence=np.nan)
        return cls(
            log_evidence=minimum.log_evidence,
            terms=minimum.terms,
            weight=float(weight),
            gamma=dict(zip(names, minimum.gamma.tolist(), strict=True)),
            weight_precisions=dict(zip(names, minimum.hyper.alpha.tolist(), strict=True)),
            noise_std=noise_std,
            degrees_of_freedom=getattr(minimum.likelihood, "degrees_of_freedom", np.inf),
            noise_correlation=getattr(minimum.likelihood, "correlation", None),
            log_precision_std=dict(zip(names, log_std.tolist(), strict=True)),
            log_noise_precision_std=_log_noise_precision_std(fit, minimum),
            gradient_norm=minimum.gradient_norm,
            smallest_eigenvalue=minimum.smallest_eigenvalue,
            hidden_layer_sizes=minimum.network.hidden_layer_sizes,
            pruned=minimum.pruned,
            n_iter=minimum.n_iter,
            converged=minimum.converged,
            bic=_bic(minimum, n_targets_of(fit)),
            gpe=_gpe(minimum, noise_std),
            verdict=verdict.text,
            advice=verdict.advice,
            noise_network=noise,
        )

    def tables(self):
        """Tables of the terms, the weight groups and the noise."""
        terms = [(name, f"{value:.2f}") for name, value in self.terms.items()]
        terms.append(("total", f"{self.log_evidence:.2f}"))
        tables = [Table("Terms of the best minimum (nats)", terms), self._groups("Weight groups")]
        network, errors = self.noise_network, self.log_noise_precision_std
        if network is not None:
            title = f"Weight groups of the noise network, hidden units {network.hidden_layer_sizes}"
            tables.append(network._groups(title))
        if errors is not None:
            levels = [np.nan] * len(errors) if self.noise_std is None else self.noise_std
            rows = [
                (f"output {i}", "" if np.isnan(level) else f"{level:.4g}", error_bar(error))
                for i, (level, error) in enumerate(zip(levels, errors, strict=True))
            ]
            header = "output", "sd", "error bar of ln beta"
            tables.append(Table("Noise levels", rows, header, left=(0, 2)))
        return tables

    def _groups(self, title):
        rows = [
            (name, f"{self.gamma[name]:.2f}", f"{alpha**-0.5:.4g}", error_bar(error))
            for (name, alpha), error in zip(
                self.weight_precisions.items(), self.log_precision_std.values(), strict=True
            )
        ]
        header = "group", "gamma", "prior sd", "error bar of ln alpha"
        return Table(title, rows, header, left=(0, 3))


def n_targets_of(fit):
    """Rows, counted with their weights, times outputs."""
    posterior = fit.posed.posterior
    return posterior.n_rows * max(1, int(np.sum(posterior.likelihood.level_sizes())))


def _log_noise_precision_std(fit, minimum):
    """Error bars of ``ln beta`` of every output, or ``None``, as `MinimumReport` says."""
    likelihood, (inferred, _) = minimum.likelihood, fit.problem.noise_precision or (True, None)
    if minimum.noise is not None or not likelihood.n_levels or not likelihood.linear:
        return None
    degrees = np.where(inferred, minimum.noise_counts - minimum.noise_gamma, np.inf)
    with np.errstate(divide="ignore"):
        error = np.sqrt(2.0 / np.maximum(degrees, 0.0))  # MacKay 1992, section 2.5
    return error[likelihood.levels]


def error_bar(error):
    """Format the error bar of the logarithm of a precision, 0 if that was given."""
    if error == 0.0:
        return "given"
    return f"+- {error:.2f}" if error < UNDETERMINED else "not determined"


def _bic(minimum, n_targets):
    """Log likelihood of the most probable weights, in units of y, with Schwarz's penalty."""
    terms = minimum.terms
    log_likelihood = terms.misfit + terms.noise_normaliser + terms.target_scale
    networks = [minimum.network, *([] if minimum.noise is None else [minimum.noise.network])]
    n_weights = sum(network.n_weights for network in networks)
    return log_likelihood - 0.5 * n_weights * np.log(n_targets)  # Bishop 4.139


def _gpe(minimum, noise_std):
    """Expected squared error of a new target, mean over outputs; ``nan`` without noise."""
    if noise_std is None or minimum.noise is not None or not minimum.likelihood.linear:
        return np.nan
    chi2 = 2.0 * minimum.hyper.beta * minimum.data_errors
    relative = (chi2 + 2.0 * minimum.noise_gamma) / minimum.noise_counts  # MacKay 3.5
    return float(np.mean(relative * noise_std**2))


class Verdict(NamedTuple):
    """Verdict on a log evidence, with advice."""

    text: str
    advice: str


TRUSTED = Verdict("trusted", "It is exact: compare it with evidences of other models.")
NOT_COMPUTED = Verdict(
    "not measured", "Compare models by left-out rows, or fit them with method='laplace'."
)


def least_difference(*errors):
    """Least difference in nats that counts between evidences of given standard errors."""
    return SIGNIFICANT_GAP * float(np.hypot(*errors))


def verdict_of_measurement(fit):
    """Judge the log evidence of drawn networks by its standard error; ``None`` for minima."""
    error = fit.log_evidence_std
    if np.isnan(error):
        return NOT_COMPUTED if fit.drawn else None
    trusted = round(error, 1) <= MAX_ERROR
    least = least_difference(error, error)
    return Verdict(
        "trusted" if trusted else f"measured to +- {error:.1f} nats",
        f"Differences above {least:.1f} nats count, between models measured as accurately.",
    )


def verdict_of_minimum(fit, minimum):
    """Judge the Gaussian approximation at a minimum of a fit."""
    if minimum.trouble is not None:
        return Verdict(f"no evidence: {minimum.trouble.value}", REMEDIES[minimum.trouble])
    doubts = _doubts(minimum, n_targets_of(fit) / minimum.network.n_weights)
    if doubts:
        advice = dict.fromkeys(doubt.advice for doubt in doubts)  # each once
        return Verdict("doubtful: " + "; ".join(doubt.text for doubt in doubts), " ".join(advice))
    if fit.posed.posterior.is_quadratic and minimum.noise is None:
        return TRUSTED
    return Verdict("not measured", _advice_for_unmeasured(fit))


def _advice_for_unmeasured(fit):
    """Advice on an evidence by Laplace's approximation: how to measure it, if that is possible."""
    posterior, unmeasured = fit.posed.posterior, getattr(fit, "unmeasured", "")
    if unmeasured or not (posterior.groups.centred and NOISE_MODELS[fit.noise].sampled):
        return f"{unmeasured} Its error is unknown.".strip()
    hidden = posterior.network.hidden_layer_sizes
    return f"Its error is unknown: measure it by method='population', hidden_layer_sizes={hidden}."


def _doubts(minimum, targets_per_weight):
    few = minimum.network.hidden_layer_sizes and targets_per_weight < ROWS_PER_WEIGHT
    singular = minimum.smallest_eigenvalue < SINGULAR * minimum.groups.least(minimum.hyper.alpha)
    doubts = [
        (
            not minimum.exact,
            "Gauss-Newton Hessian: the evidence is approximate",
            "Use the error bars, and compare models on held-out rows.",
        ),
        (not minimum.converged, "the hyperparameters did not converge", ANOTHER_SEARCH),
        (
            minimum.fits_everything,
            "the targets are fitted exactly, so the noise level is undetermined",
            "Use fewer hidden units, or give noise.std.",
        ),
        (
            singular,
            "the Hessian is nearly singular",
            "Try another random_state, or fewer hidden units.",
        ),
        (
            few,
            f"{targets_per_weight:.1f} targets per weight ({ROWS_PER_WEIGHT:g} wanted)",
            "Use fewer hidden units, or sample (HMCMLP...).",
        ),
    ]
    return [Verdict(text, advice) for applies, text, advice in doubts if applies]
