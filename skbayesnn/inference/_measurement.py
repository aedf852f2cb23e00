"""Measuring the evidence of a fit, and its error, by annealing from the minima that were found."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._noise_models import NOISE_MODELS
from skbayesnn.inference._sampled_evidence import anneal_both_ways
from skbayesnn.inference._sampling_starts import positions_of_minima

MOST_MINIMA = 8  # from which annealing begins
MOST_NETWORKS = 256  # that are kept


class Measurement(NamedTuple):
    """What annealing says of a fit.

    Attributes
    ----------
    log_evidence, log_evidence_std : float
        In nats, for targets in standardised units.
    theta : ndarray of shape (m, k)
        Weights of networks drawn from the posterior, of equal weight.
    beta : ndarray of shape (m, n_levels)
        Their noise precisions.
    """

    log_evidence: float
    log_evidence_std: float
    theta: np.ndarray
    beta: np.ndarray


def is_measured(fit, wanted="auto"):
    """Whether `measure` measures the evidence of a fit."""
    posterior, settings = fit.posed
    limits, work = settings.limits, len(posterior.X) * posterior.network.n_weights
    cheap = posterior.network.n_weights <= limits.measured and work <= limits.measured_work
    wanted = cheap if wanted == "auto" else wanted
    possible = NOISE_MODELS[fit.noise].measurable and posterior.groups.centred
    possible = possible and not fit.problem.prunes  # annealing knows nothing of removed weights
    return bool(wanted) and not posterior.is_quadratic and possible


def measure(fit, entropy, wanted="auto"):
    """Measure the evidence of a fit by annealing.

    Parameters
    ----------
    fit : EvidenceFit
    entropy : int
        Of all random numbers.
    wanted : bool or "auto"
        ``"auto"``: where `Limits` say that it is cheap.

    Returns
    -------
    Measurement or None
        ``None`` if it is not wanted or not needed, as Laplace's approximation is exact, or if there
        is no time for it or no way from the minima to the posterior; annealing needs a prior
        centred at zero.
    """
    if not is_measured(fit, wanted):
        return None
    joint, starts = positions_of_minima(fit, fit.minima[:MOST_MINIMA])
    seed, choice = np.random.SeedSequence([entropy, 1]).spawn(2)
    found = anneal_both_ways(joint, starts, seed, deadline=fit.problem.deadline)
    if found is None:
        return None
    rng = np.random.default_rng(choice)
    chosen = rng.choice(len(found.position), MOST_NETWORKS, p=found.weights)
    position = found.position[chosen]
    return Measurement(
        found.log_evidence,
        found.log_evidence_std,
        joint.complete_weights(position, [rng] * len(position)),
        joint.place(position).hyper.beta,
    )
