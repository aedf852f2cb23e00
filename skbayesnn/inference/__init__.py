"""Finding minima, the Gaussian approximation around them, and their evidence."""

from skbayesnn.inference._degrees_of_freedom import DEGREES_OF_FREEDOM, FIRST
from skbayesnn.inference._evidence import EvidenceTerms, well_determined
from skbayesnn.inference._gauss_newton import gauss_newton_forms
from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian, KroneckerGaussian
from skbayesnn.inference._memory import machine_memory, readable, requirements
from skbayesnn.inference._minima import (
    NOISE_MINIMA,
    distinct,
    find_minima,
    is_repeated,
    own_posterior,
)
from skbayesnn.inference._minimum import Minimum
from skbayesnn.inference._noise_network import NoisePlan
from skbayesnn.inference._residual_tests import heavy_tails, noise_trend
from skbayesnn.inference._sampled_evidence import estimate_evidence
from skbayesnn.inference._sampling import SamplingSettings, run_chains
from skbayesnn.inference._sampling_starts import start_sampling
from skbayesnn.inference._training import FreeHyperparameters, Settings

__all__ = [
    "DEGREES_OF_FREEDOM",
    "FIRST",
    "NOISE_MINIMA",
    "DenseGaussian",
    "DualGaussian",
    "EvidenceTerms",
    "FreeHyperparameters",
    "KroneckerGaussian",
    "Minimum",
    "NoisePlan",
    "SamplingSettings",
    "Settings",
    "distinct",
    "estimate_evidence",
    "find_minima",
    "gauss_newton_forms",
    "heavy_tails",
    "is_repeated",
    "machine_memory",
    "noise_trend",
    "own_posterior",
    "readable",
    "requirements",
    "run_chains",
    "start_sampling",
    "well_determined",
]
