"""Inference: modes, the Laplace approximation and its evidence, and posterior sampling."""

from skbayesnn.inference._ascent import (
    BOLD,
    WARY,
    Derivatives,
    ascend,
    evidence_derivatives,
    without_idle_groups,
)
from skbayesnn.inference._batches import BatchSteps, SampledReestimation
from skbayesnn.inference._constant_noise import Positions
from skbayesnn.inference._damped import Search
from skbayesnn.inference._deadline import Deadline, OutOfTime
from skbayesnn.inference._degrees_of_freedom import DEGREES_OF_FREEDOM, FOR_OUTLIERS
from skbayesnn.inference._engine import (
    SIGNIFICANT,
    EvidenceFit,
    fit_evidence,
    sampled_sizes,
    seeds_of,
    total_log_evidence,
    with_chosen_noise,
)
from skbayesnn.inference._evidence import (
    EvidenceTerms,
    alpha_occam,
    log_evidence_fixed,
    log_occam_gaussian,
    log_occam_profile,
    log_symmetry,
    noise_occam,
    well_determined,
)
from skbayesnn.inference._fixed_point import FixedPoint
from skbayesnn.inference._forecast import seconds_of_start
from skbayesnn.inference._gaussian import gaussian_around, noise_posterior
from skbayesnn.inference._growth import (
    BY_EVIDENCE,
    OF_MANY_ROWS,
    Candidate,
    Ladder,
    best_of,
    grow,
    grown,
    grown_with_many_rows,
)
from skbayesnn.inference._held_out import HeldOut
from skbayesnn.inference._layer_search import LayerSearch
from skbayesnn.inference._limits import Limits
from skbayesnn.inference._linear import linear_start
from skbayesnn.inference._memory import (
    check_memory,
    machine_memory,
    memory_of_search,
    readable,
)
from skbayesnn.inference._method import Curvature, Method, Point
from skbayesnn.inference._minimum import OF_SIZE, Minimum, Trouble, complete
from skbayesnn.inference._moves import Renewals
from skbayesnn.inference._noise_models import NOISE_MODELS
from skbayesnn.inference._noise_network import (
    NoisePlan,
    rounding_variance,
    squared_residuals,
    with_rows,
)
from skbayesnn.inference._population import PathFromPrior, sample_population, scout
from skbayesnn.inference._precision import DensePrecision, Precision
from skbayesnn.inference._precision_dual import DualPrecision, SpectralPrecision
from skbayesnn.inference._precision_kronecker import KroneckerPrecision
from skbayesnn.inference._precision_moves import PrecisionMoves
from skbayesnn.inference._problem import Posed, Problem
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._progress import (
    Lines,
    Progress,
    Stage,
    reporter,
)
from skbayesnn.inference._redundancy import align, layers_switched_off, prune, same_minimum
from skbayesnn.inference._reestimation import fair_moves, reestimate
from skbayesnn.inference._residual_tests import heavy_tails, noise_trend
from skbayesnn.inference._sampled_models import Drawn, Model
from skbayesnn.inference._sampling import SamplingSettings, run_chains
from skbayesnn.inference._sampling_engine import Recipe, SampledFit, fit_by_sampling
from skbayesnn.inference._sampling_starts import start_sampling
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.inference._search import (
    Workers,
    distinct,
    find_minima,
    fits,
    in_order,
    own_posterior,
)
from skbayesnn.inference._sequential import Learnt, learnt
from skbayesnn.inference._settings import FreeHyperparameters, Settings
from skbayesnn.inference._slice_moves import SliceMoves, serves_slices, shapes_at_modes
from skbayesnn.inference._steps import Descents, find_mode
from skbayesnn.inference._stochastic import CheckedCounts, total_determined
from skbayesnn.inference._symmetries import UnitSymmetry, symmetries
from skbayesnn.inference._tempered import NearPrecisions, Tempered
from skbayesnn.inference._training import Trained, random_starts, train
from skbayesnn.inference._unit_moves import UnitMoves
from skbayesnn.inference._widening import widened

__all__ = [
    "BOLD",
    "BY_EVIDENCE",
    "DEGREES_OF_FREEDOM",
    "FOR_OUTLIERS",
    "NOISE_MODELS",
    "OF_MANY_ROWS",
    "OF_SIZE",
    "SIGNIFICANT",
    "WARY",
    "BatchSteps",
    "Candidate",
    "CheckedCounts",
    "Curvature",
    "Deadline",
    "DensePrecision",
    "Derivatives",
    "Descents",
    "Drawn",
    "DualPrecision",
    "EvidenceFit",
    "EvidenceTerms",
    "FixedPoint",
    "FreeHyperparameters",
    "HeldOut",
    "KroneckerPrecision",
    "Ladder",
    "LayerSearch",
    "Learnt",
    "Limits",
    "Lines",
    "Method",
    "Minimum",
    "Model",
    "NearPrecisions",
    "NoisePlan",
    "OutOfTime",
    "PathFromPrior",
    "Point",
    "Posed",
    "Positions",
    "Precision",
    "PrecisionMoves",
    "Problem",
    "Progress",
    "Recipe",
    "Renewals",
    "SampledFit",
    "SampledReestimation",
    "SamplingSettings",
    "ScaleMoves",
    "Search",
    "Settings",
    "SliceMoves",
    "SpectralPrecision",
    "Stage",
    "Tempered",
    "Trained",
    "Trouble",
    "UnitMoves",
    "UnitSymmetry",
    "Workers",
    "align",
    "alpha_occam",
    "ascend",
    "best_of",
    "check_memory",
    "complete",
    "distinct",
    "evidence_derivatives",
    "fair_moves",
    "find_minima",
    "find_mode",
    "fit_by_sampling",
    "fit_evidence",
    "fits",
    "gaussian_around",
    "grow",
    "grown",
    "grown_with_many_rows",
    "heavy_tails",
    "in_order",
    "integrated",
    "layers_switched_off",
    "learnt",
    "linear_start",
    "log_evidence_fixed",
    "log_occam_gaussian",
    "log_occam_profile",
    "log_symmetry",
    "machine_memory",
    "memory_of_search",
    "noise_occam",
    "noise_posterior",
    "noise_trend",
    "own_posterior",
    "prune",
    "random_starts",
    "readable",
    "reestimate",
    "reporter",
    "rounding_variance",
    "run_chains",
    "same_minimum",
    "sample_population",
    "sampled_sizes",
    "scout",
    "seconds_of_start",
    "seeds_of",
    "serves_slices",
    "shapes_at_modes",
    "squared_residuals",
    "start_sampling",
    "symmetries",
    "total_determined",
    "total_log_evidence",
    "train",
    "well_determined",
    "widened",
    "with_chosen_noise",
    "with_rows",
    "without_idle_groups",
]
