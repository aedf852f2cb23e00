"""Likelihoods, priors, and the energy that sums them."""

from skbayesnn.posterior._posterior import Energies, Hyperparameters, Posterior
from skbayesnn.posterior.joint._joint import JointPosterior
from skbayesnn.posterior.joint._joint_factors import (
    InputDependentJoint,
    InputDependentStudentTJoint,
    MeasuredJoint,
    StudentTJoint,
)
from skbayesnn.posterior.kernels._compiled import instructions
from skbayesnn.posterior.likelihoods._censored import CensoredGaussian, CensoredStudentT
from skbayesnn.posterior.likelihoods._correlated import (
    CorrelatedGaussian,
    correlation_of,
    log_prior_of_correlations,
)
from skbayesnn.posterior.likelihoods._counts import NegativeBinomial, Poisson
from skbayesnn.posterior.likelihoods._likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    Likelihood,
    Misfit,
    SquaredResiduals,
)
from skbayesnn.posterior.likelihoods._measured import MeasuredGaussian
from skbayesnn.posterior.likelihoods._output_layer import (
    OutputLayer,
    Targets,
    ridge,
    symmetric_root,
)
from skbayesnn.posterior.likelihoods._student_t import FARTHEST, StudentT, squared_scales
from skbayesnn.posterior.priors._hyperpriors import Gamma as Gamma  # for users: explicit exports
from skbayesnn.posterior.priors._hyperpriors import Hyperprior, Hyperpriors
from skbayesnn.posterior.priors._hyperpriors import LogUniform as LogUniform
from skbayesnn.posterior.priors._weight_groups import (
    INTERCEPT,
    WeightGroups,
    fan_ins,
    weight_groups,
)
