"""Inference: modes, the Laplace approximation and its evidence, and posterior sampling."""

from skbayesnn._progress import Deadline, Progress
from skbayesnn.inference._chains_fit import FLEXIBLE
from skbayesnn.inference._fit import METHODS, fit_evidence
from skbayesnn.inference._population_fit import sampled_sizes
from skbayesnn.inference._sampled_fit import Recipe, fit_by_sampling
from skbayesnn.inference._sequential import learnt
from skbayesnn.inference.curvature._method import Method, memory_of_search
from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.curvature._precision_dual import DualPrecision
from skbayesnn.inference.evidence._evidence import well_determined
from skbayesnn.inference.minima._minimum import OF_SIZE, Trouble, gaussian_around
from skbayesnn.inference.minima._search import Workers, fits, in_order, own_posterior
from skbayesnn.inference.noise._noise_models import NOISE_MODELS
from skbayesnn.inference.noise._residual_tests import SIGNIFICANT
from skbayesnn.inference.noise._student_t_noise import FOR_OUTLIERS
from skbayesnn.inference.task._problem import Limits, Problem
