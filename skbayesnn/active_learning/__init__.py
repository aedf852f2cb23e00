"""Active data selection: next measurements, thinning of training sets.

The objective functions follow MacKay (1992, chapters 4 and 5): expected information gains,
for regression and classification, from the error bars of fitted estimators, and about which of
several models is right. `suggest` looks for the
best value of a function instead (Bayesian optimisation).
"""

from skbayesnn.active_learning._discrimination import discrimination_gain
from skbayesnn.active_learning._gain import information_gain, select, thin_training_set
from skbayesnn.active_learning._suggest import (
    Straddle,
    log_expected_improvement,
    suggest,
    upper_confidence_bound,
)

__all__ = [
    "Straddle",
    "discrimination_gain",
    "information_gain",
    "log_expected_improvement",
    "select",
    "suggest",
    "thin_training_set",
    "upper_confidence_bound",
]
