"""Models whose networks are drawn from the posterior: their choice and their shares.

Under sampling the evidence hardly depends on the number of hidden units, and predictions do not get
worse with more of them (Neal 1996, section 1.2.4). So nothing is chosen: one network of a generous
size and the linear model, each under the noise models that residuals speak for, are sampled and
predict together, weighted by their measured evidences.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference._population import sample_after, scout
from skbayesnn.inference._problem import Posed, Problem
from skbayesnn.inference._sampling_starts import positions_of_minima
from skbayesnn.posterior import JointPosterior

MOST_MINIMA = 8  # near whose precisions the first particles begin
MOST_NETWORKS = 512  # that are kept of all models together
FEWEST_NETWORKS = 32  # of a model
HOPELESS = 25.0  # nats behind the best at which a small population ends the trial of a model
UNITS = {True: (16, 8), False: (8,)}  # regression, classes: the first that is affordable
SECONDS = {True: 1.3e-4, False: 8e-5}  # per row and weight: regression, classes


class Model(NamedTuple):
    """A model and its minima, which tell where its populations begin.

    Attributes
    ----------
    problem : Problem
    noise : str
        One of `NOISE_MODELS`.
    posed : Posed
    minima : list of Minimum
        Best evidence first.
    """

    problem: Problem
    noise: str
    posed: Posed
    minima: list

    @property
    def hidden_layer_sizes(self):
        """Hidden layers of its network."""
        return self.posed.posterior.network.hidden_layer_sizes


class Drawn(NamedTuple):
    """Networks drawn from the posterior of a model.

    Attributes
    ----------
    model : Model
    joint : JointPosterior
    log_evidence, log_evidence_std : float
        Measured, in nats, for targets in standardised units.
    share : float
        Posterior probability of the model among those that were sampled.
    position : ndarray of shape (m, d + n_conditions)
        Draws of equal weight.
    theta : ndarray of shape (m, k)
        Their weights.
    beta : ndarray of shape (m, n_levels)
        Their noise precisions.
    noise : ndarray of shape (m, ...)
        See `JointPosterior.noise_state`.
    """

    model: Model
    joint: JointPosterior
    log_evidence: float
    log_evidence_std: float
    share: float
    position: np.ndarray
    theta: np.ndarray
    beta: np.ndarray
    noise: np.ndarray


def seconds_of_population(posterior):
    """Processor seconds that drawing networks takes, right to a factor of three.

    Measured on sets of 50 to 700 rows, see tests/benchmarks/small_sets.py.
    """
    return (
        SECONDS[posterior.likelihood.n_levels > 0]
        * len(posterior.X)
        * posterior.network.n_weights
        * max(1, posterior.network.n_outputs if posterior.likelihood.n_levels else 1)
    )


def affordable_sizes(problem):
    """Hidden layers of the network that is sampled, or ``None`` where this takes too long."""
    for n_units in UNITS[problem.likelihood.n_levels > 0]:
        posterior = problem.posed((n_units,)).posterior
        if is_affordable(posterior, problem.limits):
            return (n_units,)
    return None


def is_affordable(posterior, limits):
    """Compare the time of drawing networks with its limit."""
    return posterior.groups.centred and seconds_of_population(posterior) <= limits.sampled_seconds


def draw_models(models, entropy, deadline, log_scale=0.0, told=lambda line: None):
    """Sample models, and weigh them by their evidences.

    Small populations tell which models are hopeless; the others are sampled with larger ones.

    Parameters
    ----------
    models : list of Model
    entropy : int
        Of all random numbers.
    deadline : Deadline
    log_scale : float
        What turns log evidences into those that are told.
    told : callable
        Called with a line for each model that was sampled.

    Returns
    -------
    list of Drawn
        Highest evidence first; empty if there was no time.
    """
    seeds = np.random.SeedSequence([entropy, 1]).spawn(3 * len(models))
    rngs = [np.random.default_rng(seed) for seed in seeds]
    scouted = [_scouted(model, rng, deadline) for model, rng in zip(models, rngs, strict=False)]
    known = [i for i, found in enumerate(scouted) if found is not None]
    best = max((scouted[i].log_evidence for i in known), default=0.0)
    sampled = {}
    for i in known:
        if scouted[i].log_evidence < best - HOPELESS:
            continue
        found = sample_after(scouted[i], rngs[len(models) + i], deadline)
        if found is not None:
            sampled[i] = found
            told(
                f"hidden layers {models[i].hidden_layer_sizes}, {models[i].noise} noise: "
                f"log evidence {found.log_evidence + log_scale:.2f} +- {found.log_evidence_std:.2f}"
            )
    if not sampled:
        return []
    total = logsumexp([found.log_evidence for found in sampled.values()])
    shares = {i: float(np.exp(found.log_evidence - total)) for i, found in sampled.items()}
    drawn = [
        _drawn(models[i], found, shares[i], rngs[2 * len(models) + i])
        for i, found in sampled.items()
    ]
    return sorted(drawn, key=lambda some: -some.log_evidence)


def _scouted(model, rng, deadline):
    joint, starts = positions_of_minima(model, model.minima[:MOST_MINIMA])
    return scout(joint, starts, rng, deadline)


def _drawn(model, found, share, rng):
    """The networks that are kept of a model."""
    size = int(np.clip(round(share * MOST_NETWORKS), FEWEST_NETWORKS, MOST_NETWORKS))
    position, joint = found.chosen(size, rng), found.joint
    return Drawn(
        model,
        joint,
        found.log_evidence,
        found.log_evidence_std,
        share,
        position,
        joint.complete_weights(position, [rng] * len(position)),
        joint.place(position).hyper.beta,
        joint.noise_state(position),
    )
