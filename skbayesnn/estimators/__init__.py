"""The scikit-learn estimators."""

from skbayesnn.estimators._average import AveragedClassifier, AveragedRegressor
from skbayesnn.estimators._base import BayesianMLP
from skbayesnn.estimators._evidence_classifier import EvidenceMLPClassifier
from skbayesnn.estimators._evidence_regressor import EvidenceMLPRegressor
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators._hmc_classifier import HMCMLPClassifier
from skbayesnn.estimators._hmc_regressor import HMCMLPRegressor
from skbayesnn.estimators._pipeline import before_final_step, final_step

__all__ = [
    "HMCMLP",
    "AveragedClassifier",
    "AveragedRegressor",
    "BayesianMLP",
    "EvidenceMLPClassifier",
    "EvidenceMLPRegressor",
    "HMCMLPClassifier",
    "HMCMLPRegressor",
    "before_final_step",
    "final_step",
]
