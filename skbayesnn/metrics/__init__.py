"""Quality of predictive distributions: scoring rules, calibration, and scorers.

Scoring rules work on arrays and give one value per target; averages are left to `numpy.average`,
with ``weights=sample_weight`` if rows count differently. Measures of calibration summarise all
rows. Scorers are called as ``scorer(estimator, X, y, sample_weight=None)``; higher is better. They
can be given as ``scoring`` to `cross_validate`, `GridSearchCV` and similar tools.
Sensitivity indices measure how much each input of a fitted function matters.
"""

from skbayesnn.metrics._scorers import (
    crps_gaussian,
    interval_coverage,
    log_density_scorer,
    neg_calibration_error_scorer,
    neg_crps_scorer,
    quantile_calibration_error,
)
from skbayesnn.metrics._sensitivity import derivative_indices, sobol_indices

__all__ = [
    "crps_gaussian",
    "derivative_indices",
    "interval_coverage",
    "log_density_scorer",
    "neg_calibration_error_scorer",
    "neg_crps_scorer",
    "quantile_calibration_error",
    "sobol_indices",
]
