"""Degrees of freedom of Student-t noise, chosen by the evidence on a grid."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.evidence._evidence import EvidenceTerms
from skbayesnn.inference.minima._minimum import OF_SIZE

DEGREES_OF_FREEDOM = (2.5, 5.0, 10.0, 20.0, 40.0)  # of equal prior probability
FIRST = 5.0  # value used in training
FOR_OUTLIERS = 1.0  # value used in training where gross outliers were found
OUT_OF_REACH = 6.0  # nats below the best evidence at which the search in a direction ends


@dataclass(frozen=True, repr=False)
class StudentTTerms(EvidenceTerms):
    """Terms of the log evidence with Student-t noise, in addition to those of `EvidenceTerms`.

    Attributes
    ----------
    degrees_of_freedom_occam : float
        Log of the evidence averaged over the grid of degrees of freedom, less the log evidence of
        the best value. Never positive.
    """

    degrees_of_freedom_occam: float = 0.0


def grid_with(first):
    """Grid of values of equal prior probability, including the one used in training."""
    return tuple(sorted({first, *DEGREES_OF_FREEDOM}))


def best_degrees_of_freedom(minimum, first, minimum_at):
    """Follow a minimum along the grid of degrees of freedom.

    Starts with the minimum at the value ``first``. ``minimum_at`` takes degrees of freedom and the
    minimum at a neighbouring value. Returns the minimum of highest evidence, whose
    ``degrees_of_freedom_occam`` averages over the grid.
    """
    grid = grid_with(first)
    n, start = len(grid), grid.index(first)
    found = {start: minimum}
    for direction, end in ((1, n), (-1, -1)):
        for place in range(start + direction, end, direction):
            neighbour = found[place - direction]
            found[place] = minimum_at(grid[place], neighbour)
            best = max(_evidence(m) for m in found.values())
            if _evidence(found[place]) < best - OUT_OF_REACH:
                break
    evidences = {place: _evidence(m) for place, m in found.items()}
    best = max(evidences, key=evidences.get)
    if np.isinf(evidences[best]):
        return minimum
    occam = logsumexp(list(evidences.values())) - np.log(n) - evidences[best]
    terms = vars(found[best].terms) | {"degrees_of_freedom_occam": float(min(occam, 0.0))}
    return replace(found[best], terms=StudentTTerms(**terms))


def _evidence(minimum):
    """Log evidence of a minimum, or its log likelihood where the evidence is not available."""
    value = minimum.log_evidence
    if minimum.trouble in OF_SIZE:  # with many rows the likelihood dominates
        value = minimum.terms.misfit + minimum.terms.noise_normaliser
    return -np.inf if np.isnan(value) else value
