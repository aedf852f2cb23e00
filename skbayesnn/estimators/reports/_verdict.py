"""Verdict on the accuracy of a log evidence, with advice."""

from typing import NamedTuple

from skbayesnn.inference import Trouble

ROWS_PER_WEIGHT = 3.0  # ratio below which the Gaussian approximation tends to be poor
LARGEST_ERROR = 0.5  # nats: standard error of a log evidence that is trusted to within a nat
SINGULAR = 0.1  # smallest eigenvalue of the Hessian over the smallest prior precision

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


class Verdict(NamedTuple):
    """Verdict on a log evidence, with advice."""

    text: str
    advice: str


TRUSTED = Verdict("trusted", "Compare with evidences of other models of these targets.")
NOT_MEASURED = Verdict("not measured", "If a few nats matter, set measure_evidence=True.")
BEYOND_MEASURING = Verdict("not measured", "Ignore differences of a few nats.")
CHOSEN = "not measured: Laplace's approximation has chosen size or noise"


def overall(verdict, predictions, chosen):
    """Combine the verdicts on the evidence of the best minimum and on the predictions.

    ``chosen``: size or noise were chosen among several, by evidences that were not measured.
    """
    if predictions.doubt is not None:
        return predictions.doubt
    return CHOSEN if chosen and verdict == TRUSTED.text else verdict


def verdict_of_measurement(error):
    """Judge a measured log evidence by its standard error in nats."""
    if error <= LARGEST_ERROR:
        return TRUSTED
    return Verdict(
        f"doubtful: standard error of {error:.1f} nats",
        "Ignore differences of evidence of a few nats.",
    )


def verdict_of_minimum(minimum, n_targets, exact, measurable=True):
    """Judge the Gaussian approximation at a minimum.

    ``exact``: the posterior is Gaussian at given precisions. ``measurable``: sampling could measure
    the evidence.
    """
    if minimum.trouble is not None:
        return Verdict(f"no evidence: {minimum.trouble.value}", REMEDIES[minimum.trouble])
    doubts = _doubts(minimum, n_targets / minimum.network.n_weights)
    if doubts:
        advice = dict.fromkeys(doubt.advice for doubt in doubts)  # each once
        return Verdict("doubtful: " + "; ".join(doubt.text for doubt in doubts), " ".join(advice))
    if exact:
        return TRUSTED
    return NOT_MEASURED if measurable else BEYOND_MEASURING


def _doubts(minimum, targets_per_weight):
    few = minimum.network.hidden_layer_sizes and targets_per_weight < ROWS_PER_WEIGHT
    singular = minimum.smallest_eigenvalue < SINGULAR * minimum.groups.least(minimum.hyper.alpha)
    found = [
        (
            not minimum.exact,
            "Gauss-Newton Hessian: the evidence is approximate",
            "Use the error bars, but ignore small differences of evidence.",
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
    return [Verdict(text, advice) for applies, text, advice in found if applies]
