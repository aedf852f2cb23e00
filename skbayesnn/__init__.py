"""Bayesian neural networks as scikit-learn estimators."""

from skbayesnn._versions import show_versions
from skbayesnn.estimators import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
    Solver,
)

__version__ = "0.1.0"

__all__ = [
    "EvidenceMLPClassifier",
    "EvidenceMLPRegressor",
    "HMCMLPClassifier",
    "HMCMLPRegressor",
    "Noise",
    "Prior",
    "Sampler",
    "Solver",
    "__version__",
    "show_versions",
]
