"""Table of the noise models of regressors; a new model takes a module and an entry here."""

from skbayesnn.inference.noise._constant_noise import ConstantNoise
from skbayesnn.inference.noise._correlated_noise import CorrelatedNoise
from skbayesnn.inference.noise._input_dependent_noise import InputDependentNoise
from skbayesnn.inference.noise._input_dependent_student_t_noise import (
    InputDependentStudentTNoise,
)
from skbayesnn.inference.noise._student_t_noise import StudentTNoise

NOISE_MODELS = {
    "constant": ConstantNoise(),
    "shared": ConstantNoise(),
    "input_dependent": InputDependentNoise(),
    "student_t": StudentTNoise(),
    "input_dependent_student_t": InputDependentStudentTNoise(),
    "correlated": CorrelatedNoise(),
    "poisson": ConstantNoise(),
    "negative_binomial": ConstantNoise(),
}
