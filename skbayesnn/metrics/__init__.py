"""Quality of predictive distributions: calibration, and scorers.

The coverage summarises arrays of all rows. Scorers are called as ``scorer(estimator, X, y,
sample_weight=None)``; higher is better. They can be given as ``scoring`` to `cross_validate`,
`GridSearchCV` and similar tools.
Sensitivity indices measure how much each input of a fitted function matters.
"""

from skbayesnn.metrics._scorers import interval_coverage, log_density_scorer, neg_crps_scorer
from skbayesnn.metrics._sensitivity import SobolIndices, derivative_indices, sobol_indices

__all__ = [
    "SobolIndices",
    "derivative_indices",
    "interval_coverage",
    "log_density_scorer",
    "neg_crps_scorer",
    "sobol_indices",
]
