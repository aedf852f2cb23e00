"""Figures of fitted networks, in the manner of scikit-learn's displays; they need matplotlib.

A display is made by ``from_estimator``, which computes its numbers and draws them. It keeps the
numbers as attributes, so that they can be used or drawn again by ``plot`` without the estimator.
Figures that a display opens itself are as wide as a column of a paper, with letters of 8 points;
give ``ax`` to draw elsewhere, in any style.
"""

from skbayesnn.displays._calibration import CalibrationDisplay
from skbayesnn.displays._evidence import EvidenceDisplay
from skbayesnn.displays._growth import GrowthDisplay
from skbayesnn.displays._predictive import PredictiveDisplay
from skbayesnn.displays._relevance import RelevanceDisplay
from skbayesnn.displays._terms import EvidenceTermsDisplay
from skbayesnn.displays._warning_bell import EvidenceVersusTestDisplay

__all__ = [
    "CalibrationDisplay",
    "EvidenceDisplay",
    "EvidenceTermsDisplay",
    "EvidenceVersusTestDisplay",
    "GrowthDisplay",
    "PredictiveDisplay",
    "RelevanceDisplay",
]
