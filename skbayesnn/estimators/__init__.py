"""Estimators with the interface of scikit-learn."""

from skbayesnn.estimators._average import AveragedClassifier, AveragedRegressor
from skbayesnn.estimators._base import BayesianMLP
from skbayesnn.estimators._conformal import conformal_interval
from skbayesnn.estimators._estimators import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
)
from skbayesnn.estimators._pipeline import predictive_distribution
from skbayesnn.estimators._weights import FittedNetwork, GaussianPosterior
from skbayesnn.estimators.inputs._settings import Noise, Prior, Sampler, Solver
from skbayesnn.estimators.predictions._categorical import CategoricalDistribution
from skbayesnn.estimators.predictions._distribution import CountDistribution, PredictiveDistribution

__all__ = [
    "AveragedClassifier",
    "AveragedRegressor",
    "BayesianMLP",
    "CategoricalDistribution",
    "CountDistribution",
    "EvidenceMLPClassifier",
    "EvidenceMLPRegressor",
    "FittedNetwork",
    "GaussianPosterior",
    "HMCMLPClassifier",
    "HMCMLPRegressor",
    "Noise",
    "PredictiveDistribution",
    "Prior",
    "Sampler",
    "Solver",
    "conformal_interval",
    "predictive_distribution",
]
