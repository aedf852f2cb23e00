"""Bayesian neural networks as scikit-learn estimators.

The estimators are here. The modules ``model_selection``, ``active_learning``, ``compose``,
``metrics``, ``displays``, ``basis`` and ``estimators`` have what goes around them: searches by
evidence, suggestions where to measure, transformed targets, scores, figures, fixed basis functions,
and averages and distributions of fitted estimators.
"""

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
]
