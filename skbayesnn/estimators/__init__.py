"""The scikit-learn estimators."""

from skbayesnn.estimators._evidence_classifier import EvidenceMLPClassifier
from skbayesnn.estimators._evidence_regressor import EvidenceMLPRegressor
from skbayesnn.estimators._hmc_classifier import HMCMLPClassifier
from skbayesnn.estimators._hmc_regressor import HMCMLPRegressor

__all__ = [
    "EvidenceMLPClassifier",
    "EvidenceMLPRegressor",
    "HMCMLPClassifier",
    "HMCMLPRegressor",
]
