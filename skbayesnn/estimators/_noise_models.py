"""Noise models of regressors, whatever the engine."""

from dataclasses import replace

import numpy as np

from skbayesnn.estimators._parameters import layer_sizes
from skbayesnn.inference import DEGREES_OF_FREEDOM, FIRST, NoisePlan
from skbayesnn.posterior import StudentT

OTHER_NOISES = "input_dependent", "student_t"  # than Gaussian noise of one level


def noise_is_fixed(estimator):
    """Whether a noise level is given by the user."""
    return not (isinstance(estimator.noise_std, str) and estimator.noise_std == "auto")


def check_noise(estimator):
    """Raise ``ValueError`` if the parameters of the noise make no sense together."""
    layer_sizes(estimator, "noise_hidden_layer_sizes")
    if estimator.noise == "input_dependent" and noise_is_fixed(estimator):
        raise ValueError(
            "noise_std fixes a noise level that is the same everywhere; leave it at 'auto' "
            "with noise='input_dependent'."
        )


def same_noise(likelihood, other):
    """Whether two likelihoods are of one kind."""
    return likelihood.has_noise == other.has_noise and likelihood.linear == other.linear


def same_plan(plan, other):
    """Whether two noise networks, or none, have the same layout and weight groups."""
    if plan is None or other is None:
        return plan is other
    return plan.network == other.network and np.array_equal(plan.groups.labels, other.groups.labels)


def with_noise(estimator, problem, noise):
    """The same problem under another noise model than constant Gaussian noise.

    Parameters
    ----------
    estimator : EvidenceMLPRegressor or HMCMLPRegressor
    problem : Problem
    noise : str

    Returns
    -------
    Problem
    """
    posterior, settings = problem.posterior, problem.settings
    if noise == "student_t":
        old = posterior.likelihood
        likelihood = StudentT(old.levels, old.relative, DEGREES_OF_FREEDOM[FIRST])
        # fixed noise levels are standard deviations, precisions those of the scale
        beta = settings.fixed.beta * np.where(settings.free.beta, 1, likelihood.variance_factor)
        posterior = replace(posterior, likelihood=likelihood)
        settings = settings._replace(fixed=settings.fixed._replace(beta=beta))
    elif noise == "input_dependent":
        names = getattr(estimator, "feature_names_in_", None)
        plan = NoisePlan.build(
            posterior.network,
            layer_sizes(estimator, "noise_hidden_layer_sizes"),
            estimator.prior if isinstance(estimator.prior, str) else "layer",
            None if names is None else list(names),
        )
        settings = settings._replace(noise_plan=plan)
    return problem._replace(posterior=posterior, settings=settings)
