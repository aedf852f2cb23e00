"""Figures of fitted networks in the style of scikit-learn's displays; they need matplotlib.

The method ``from_estimator`` computes the numbers of a display and draws them. The display keeps
the numbers as attributes, so that ``plot`` can draw them again without the estimator.
Figures that a display opens are as wide as a column of a paper, with a font size of 8 points;
give ``ax`` to draw elsewhere, in any style.
"""

from skbayesnn.displays._calibration import CalibrationDisplay
from skbayesnn.displays._evidence import EvidenceDisplay
from skbayesnn.displays._predictive import PredictiveDisplay
from skbayesnn.displays._sensitivity import SensitivityDisplay

__all__ = [
    "CalibrationDisplay",
    "EvidenceDisplay",
    "PredictiveDisplay",
    "SensitivityDisplay",
]
