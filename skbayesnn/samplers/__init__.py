"""Markov chain Monte Carlo for densities given by their energy and its gradient.

The package is independent of networks: an energy maps positions ``(m, d)`` to values ``(m,)`` and
gradients ``(m, d)``, row by row, and all chains advance together as one batch. Positions may have
further entries, on which the energy is conditional: the dynamics keeps them fixed, and other moves
update them.
"""

from skbayesnn.samplers._chains import Chains, Plan, StepSize, advance, sample, warm_up
from skbayesnn.samplers._diagnostics import bulk_ess, effective_sample_size, r_hat, tail_ess
from skbayesnn.samplers._dynamics import (
    Info,
    Metric,
    Phase,
    RandomNumbers,
    leapfrog,
    random_walk,
    start,
    transition,
)
from skbayesnn.samplers._population import Population, Schedule, Stage, anneal, length_scales
