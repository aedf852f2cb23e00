"""Active data selection: next measurements, thinning of training sets, model discrimination.

The objective functions are those of MacKay (1992, chapters 4 and 5): expected information gains,
for regression and classification, from the error bars of fitted estimators.
"""

from skbayesnn.active_learning._discrimination import model_discrimination
from skbayesnn.active_learning._gain import information_gain
from skbayesnn.active_learning._selection import select, thin_training_set

__all__ = ["information_gain", "model_discrimination", "select", "thin_training_set"]
