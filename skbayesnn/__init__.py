"""Bayesian neural networks as scikit-learn estimators.

The estimators are here. The modules ``model_selection``, ``active_learning``, ``compose``,
``metrics``, ``displays``, ``basis`` and ``estimators`` have what goes around them: searches by
evidence, suggestions where to measure, transformed targets, scores, figures, fixed basis functions,
and averages and distributions of fitted estimators.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

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
_MODULES = (
    *("active_learning", "basis", "compose", "displays", "estimators"),
    *("metrics", "model_selection"),
)


def __getattr__(name: str) -> _Any:
    """Import a module on first use, as in ``skbayesnn.metrics``."""
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what users need, for completion."""
    return sorted([*__all__, *_MODULES])
