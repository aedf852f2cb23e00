"""Likelihoods, priors, and the energy that sums them."""

from skbayesnn.posterior._compiled import instructions
from skbayesnn.posterior._correlated import CorrelatedGaussian
from skbayesnn.posterior._correlation import (
    correlation_coordinates,
    correlation_root,
)
from skbayesnn.posterior._correlation import log_prior as log_prior_of_correlations
from skbayesnn.posterior._gaussian_prior import GaussianPrior
from skbayesnn.posterior._hyperpriors import Gamma, Hyperprior, Hyperpriors, LogUniform
from skbayesnn.posterior._input_dependent import SquaredResiduals
from skbayesnn.posterior._joint import JointPosterior
from skbayesnn.posterior._joint_correlated import CorrelatedJoint
from skbayesnn.posterior._joint_input_dependent import InputDependentJoint
from skbayesnn.posterior._joint_measured import MeasuredJoint
from skbayesnn.posterior._joint_noisy_inputs import NoisyInputsJoint
from skbayesnn.posterior._joint_student_t import StudentTJoint
from skbayesnn.posterior._likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    Likelihood,
    Misfit,
    Targets,
)
from skbayesnn.posterior._measured import MeasuredGaussian
from skbayesnn.posterior._noisy_inputs import (
    NOISY_INPUTS,
    NoisyInputGaussian,
    NoisyInputsGaussian,
    at_slopes,
    slope_covariances,
    with_input_noise,
)
from skbayesnn.posterior._posterior import Energies, Expansion, Hyperparameters, Posterior
from skbayesnn.posterior._priors import INTERCEPT, WeightGroups, weight_groups
from skbayesnn.posterior._ridge import ridge
from skbayesnn.posterior._student_t import FARTHEST, StudentT, squared_scales

__all__ = [
    "FARTHEST",
    "INTERCEPT",
    "NOISY_INPUTS",
    "Bernoulli",
    "Categorical",
    "CorrelatedGaussian",
    "CorrelatedJoint",
    "Energies",
    "Expansion",
    "Gamma",
    "Gaussian",
    "GaussianPrior",
    "Hyperparameters",
    "Hyperprior",
    "Hyperpriors",
    "InputDependentJoint",
    "JointPosterior",
    "Likelihood",
    "LogUniform",
    "MeasuredGaussian",
    "MeasuredJoint",
    "Misfit",
    "NoisyInputGaussian",
    "NoisyInputsGaussian",
    "NoisyInputsJoint",
    "Posterior",
    "SquaredResiduals",
    "StudentT",
    "StudentTJoint",
    "Targets",
    "WeightGroups",
    "at_slopes",
    "correlation_coordinates",
    "correlation_root",
    "instructions",
    "log_prior_of_correlations",
    "ridge",
    "slope_covariances",
    "squared_scales",
    "weight_groups",
    "with_input_noise",
]
