"""Predictive distributions from posteriors: error bars, moderated outputs, mixtures."""

from skbayesnn.predictive._combination import (
    Pooled,
    combined,
    ensemble_of_draws,
    ensemble_of_models,
    evidence_weights,
    noise_variances_of,
    stacking_weights,
    tempered_weights,
    with_chains,
)
from skbayesnn.predictive._counts import CountEnsemble, CountLaws, CountNoise
from skbayesnn.predictive._ensemble import Ensemble, Rescaled
from skbayesnn.predictive._leave_one_out import LeftOut, left_out
from skbayesnn.predictive._marginals import (
    NORMAL,
    Marginals,
    StudentTLaw,
    log_normal_density,
    mixture_moments,
    mixture_quantiles,
)
from skbayesnn.predictive._members import Draws, Member, Part, class_probabilities
from skbayesnn.predictive._moderation import (
    covariance_root,
    moderated_sigmoid,
    moderated_softmax,
    normal_points,
    sigmoid_information,
    sigmoid_variance,
    softmax_information,
    softmax_slopes,
)
from skbayesnn.predictive._noise import (
    CensoredNoise,
    CensoredStudentTNoise,
    CorrelatedNoise,
    GaussianNoise,
    NoiseNetworks,
    StudentTNoise,
    log_scale_mixture_density,
    noise_scales,
)
from skbayesnn.predictive._variational import closest_gaussian

__all__ = [
    "NORMAL",
    "CensoredNoise",
    "CensoredStudentTNoise",
    "CorrelatedNoise",
    "CountEnsemble",
    "CountLaws",
    "CountNoise",
    "Draws",
    "Ensemble",
    "GaussianNoise",
    "LeftOut",
    "Marginals",
    "Member",
    "NoiseNetworks",
    "Part",
    "Pooled",
    "Rescaled",
    "StudentTLaw",
    "StudentTNoise",
    "class_probabilities",
    "closest_gaussian",
    "combined",
    "covariance_root",
    "ensemble_of_draws",
    "ensemble_of_models",
    "evidence_weights",
    "left_out",
    "log_normal_density",
    "log_scale_mixture_density",
    "mixture_moments",
    "mixture_quantiles",
    "moderated_sigmoid",
    "moderated_softmax",
    "noise_scales",
    "noise_variances_of",
    "normal_points",
    "sigmoid_information",
    "sigmoid_variance",
    "softmax_information",
    "softmax_slopes",
    "stacking_weights",
    "tempered_weights",
    "with_chains",
]
