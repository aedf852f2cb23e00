"""Finding minima, the Gaussian approximation around them, and their evidence."""

from skbayesnn.inference._evidence import EvidenceTerms, well_determined
from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian
from skbayesnn.inference._minima import Minimum, find_minima
from skbayesnn.inference._training import FreeHyperparameters, Settings

__all__ = [
    "DenseGaussian",
    "DualGaussian",
    "EvidenceTerms",
    "FreeHyperparameters",
    "Minimum",
    "Settings",
    "find_minima",
    "well_determined",
]
