"""From posteriors to predictions: error bars, moderated outputs, mixtures."""

from skbayesnn.predictive._drawn_noise import DrawnNoise, DrawnNoiseNetworks
from skbayesnn.predictive._leave_one_out import leave_one_out
from skbayesnn.predictive._members import Member, NoiseFunction
from skbayesnn.predictive._mixture import (
    evidence_weights,
    log_normal_density,
    mixture_moments,
    mixture_quantile,
    one_table,
    stacking_weights,
    tempered_weights,
)
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
from skbayesnn.predictive._scale_mixture import log_scale_mixture_density, noise_scales
from skbayesnn.predictive._variational import closest_gaussian

__all__ = [
    "DrawnNoise",
    "DrawnNoiseNetworks",
    "Member",
    "NoiseFunction",
    "closest_gaussian",
    "covariance_root",
    "evidence_weights",
    "leave_one_out",
    "log_normal_density",
    "log_scale_mixture_density",
    "mixture_moments",
    "mixture_quantile",
    "moderated_sigmoid",
    "moderated_softmax",
    "noise_scales",
    "normal_points",
    "one_table",
    "sigmoid_information",
    "sigmoid_variance",
    "softmax_information",
    "softmax_slopes",
    "stacking_weights",
    "tempered_weights",
]
