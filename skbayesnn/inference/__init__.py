"""Finding minima, the Gaussian approximation around them, and their evidence."""

from skbayesnn.inference._evidence import EvidenceTerms, well_determined
from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian
from skbayesnn.inference._minima import Minimum, distinct, find_minima
from skbayesnn.inference._sampled_evidence import estimate_evidence
from skbayesnn.inference._sampling import SamplingSettings, run_chains, start_sampling
from skbayesnn.inference._training import FreeHyperparameters, Settings

__all__ = [
    "DenseGaussian",
    "DualGaussian",
    "EvidenceTerms",
    "FreeHyperparameters",
    "Minimum",
    "SamplingSettings",
    "Settings",
    "distinct",
    "estimate_evidence",
    "find_minima",
    "run_chains",
    "start_sampling",
    "well_determined",
]
