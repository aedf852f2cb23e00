"""Shares of minima and of models in predictions, from their evidences and densities."""

import numpy as np
from scipy.special import logsumexp

NEGLIGIBLE_WEIGHT = 1e-6  # share of a minimum below which it is left out of predictions
STACKING_STEPS, LEAST_GAIN = 2000, 1e-10  # most steps; relative gain below which they end
TEMPERATURE = 0.05  # difference of log densities, in nats per row, that divides a weight by e
LEAST_SHARE = 0.01  # of the largest weight; smaller tempered weights are zero


def combination_weights(combine, log_evidences, sample_weight, densities, classes):
    """Weights ``(m,)`` of members in predictions, in the ways that estimators document.

    ``densities()`` are leave-one-out log predictive densities ``(m, n)``. Densities of classes
    are far too high with many weights, and used for stacking only.
    """
    if combine == "stacking":
        weights = stacking_weights(densities(), sample_weight)
    elif combine == "equal" or np.isnan(log_evidences).any():
        weights = np.full(len(log_evidences), 1.0 / len(log_evidences))
    elif combine == "evidence":
        weights = evidence_weights(log_evidences)
    else:
        logs = None if classes else densities()
        weights = tempered_weights(log_evidences, sample_weight, logs)
    weights[weights < NEGLIGIBLE_WEIGHT] = 0.0
    return weights / weights.sum()


def stacking_weights(log_densities, sample_weight, pseudo_count=0.0):
    """Maximise the mean log of mixed leave-one-out densities over the weights of members.

    The concave problem is solved by expectation maximisation (Yao et al. 2018 use the same
    criterion). ``log_densities`` ``(m, n)`` are leave-one-out log predictive densities of every
    member for every row. ``pseudo_count`` is a number of rows that is added to those of every
    member, as by a Dirichlet prior; it keeps members whose wide tails no training row needs.
    Returns weights ``(m,)`` that sum to 1.
    """
    n_members, total = len(log_densities), sample_weight.sum()
    weights = np.full(n_members, 1.0 / n_members)
    density = np.exp(log_densities - log_densities.max(axis=0))
    value = -np.inf
    for _ in range(STACKING_STEPS):
        mixed = weights @ density
        previous, value = value, sample_weight @ np.log(mixed)
        if pseudo_count:
            value += pseudo_count * np.log(weights).sum()
        if value - previous < LEAST_GAIN * max(1.0, abs(value)):
            break
        counts = weights * (density @ (sample_weight / mixed)) + pseudo_count
        weights = counts / (total + n_members * pseudo_count)
    return weights / weights.sum()


def tempered_weights(log_evidences, sample_weight, log_densities=None):
    """Weights that fall slowly with the expected log predictive density per row.

    The evidence is a product of predictive densities, of every row given those before it. So the
    log evidence per row estimates how well a row is predicted, and so does the mean leave-one-out
    density. A weight is proportional to ``exp(s / 0.05)``, with the mean ``s`` of both estimates.
    Leave-one-out densities are too high for networks of many weights, so none counts for more than
    that of the member of highest evidence. The posterior probabilities of `evidence_weights` differ
    far more between members than the accuracy of Laplace's approximation justifies.

    The arguments are log evidences ``(m,)`` and leave-one-out log predictive densities ``(m, n)``
    of every member for every row; without these ``s`` is the log evidence per row. Returns weights
    ``(m,)`` that sum to 1; those below 1 % of the largest are zero.
    """
    score = log_evidences / sample_weight.sum()
    if log_densities is not None:
        means = log_densities @ sample_weight / sample_weight.sum()
        score = 0.5 * (score + np.minimum(means, means[np.argmax(score)]))
    weights = np.exp((score - score.max()) / TEMPERATURE)
    weights[weights < LEAST_SHARE] = 0.0
    return weights / weights.sum()


def evidence_weights(log_evidences):
    """Posterior ``P(H_i | D)`` of equally probable models (MacKay 1992, section 2.2)."""
    return np.exp(log_evidences - logsumexp(log_evidences))
