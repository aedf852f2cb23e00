"""Likelihoods, priors, and the energy that sums them."""

from skbayesnn.posterior._input_dependent import RowGaussian, SquaredResiduals
from skbayesnn.posterior._joint import JointPosterior
from skbayesnn.posterior._joint_input_dependent import InputDependentJoint
from skbayesnn.posterior._joint_student_t import StudentTJoint
from skbayesnn.posterior._likelihoods import Bernoulli, Categorical, Gaussian
from skbayesnn.posterior._posterior import Energies, Hyperparameters, Posterior
from skbayesnn.posterior._priors import LogUniform, WeightGroups, weight_groups
from skbayesnn.posterior._student_t import StudentT

__all__ = [
    "Bernoulli",
    "Categorical",
    "Energies",
    "Gaussian",
    "Hyperparameters",
    "InputDependentJoint",
    "JointPosterior",
    "LogUniform",
    "Posterior",
    "RowGaussian",
    "SquaredResiduals",
    "StudentT",
    "StudentTJoint",
    "WeightGroups",
    "weight_groups",
]
