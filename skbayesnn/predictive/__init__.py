"""Predictive distributions from posteriors: error bars, moderated outputs, mixtures."""

from skbayesnn.predictive._combination import (
    combination_weights,
    combined,
    ensemble_of_draws,
    ensemble_of_models,
    noise_of,
    noise_of_drawn,
)
from skbayesnn.predictive._counts import CountEnsemble
from skbayesnn.predictive._draws import Draws, GivenHidden
from skbayesnn.predictive._ensemble import Ensemble, Rescaled
from skbayesnn.predictive._leave_one_out import LeftOut, left_out
from skbayesnn.predictive._members import Member, Part, class_probabilities
from skbayesnn.predictive._moderation import (
    moderated_sigmoid,
    moderated_softmax,
    normal_points,
    softmax_information,
    softmax_slopes,
)
from skbayesnn.predictive._noise import CorrelatedNoise, GaussianNoise, NoiseNetworks
from skbayesnn.predictive._student_t import StudentTNoise
