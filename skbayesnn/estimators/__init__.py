"""The scikit-learn estimators."""

from skbayesnn.estimators._classifier import EvidenceMLPClassifier
from skbayesnn.estimators._regressor import EvidenceMLPRegressor

__all__ = ["EvidenceMLPClassifier", "EvidenceMLPRegressor"]
