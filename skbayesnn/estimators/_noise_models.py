"""Noise models of regressors, whatever the engine."""

from dataclasses import replace

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.estimators._evidence import member_of, total_log_evidence
from skbayesnn.estimators._parameters import layer_sizes
from skbayesnn.estimators._report import SIGNIFICANT
from skbayesnn.inference import (
    DEGREES_OF_FREEDOM,
    FIRST,
    NOISE_MINIMA,
    NoisePlan,
    distinct,
    heavy_tails,
    noise_trend,
)
from skbayesnn.posterior import StudentT

OTHER_NOISES = "input_dependent", "student_t"  # than Gaussian noise of one level
LEAST_GAMMA = 0.01  # of a row; residuals of those fitted more closely are mostly rounding


class ChoosingNoise:
    """Regressors that choose their noise model by the evidence, where residuals ask for it."""

    _noises = "constant", "shared", *OTHER_NOISES, "auto"

    def _compared(self, problem, minima):
        """Try other noise models than the constant one where residuals speak for them.

        Sets ``noise_``, ``noise_log_evidences_`` and the p values of the report.

        Parameters
        ----------
        problem : Problem
            Under constant noise.
        minima : list of Minimum

        Returns
        -------
        list of tuple
            A problem and its minima for every noise model tried, the one of highest evidence first.
        """
        self._noise_p_values = p_values = self._residual_tests(problem.posterior, minima[0])
        comparable = np.isfinite(minima[0].log_evidence)
        suspected = [noise for noise, p in p_values.items() if comparable and p < SIGNIFICANT]
        found = {"constant": (problem, minima)}
        found |= {noise: self._under(noise, problem, minima) for noise in suspected}
        if suspected:
            # what is a minimum with other noise may be one with constant noise, too
            further = [found[noise][1][0] for noise in suspected]
            found["constant"] = problem, distinct([*minima, *self._find(problem, [], further)])
        scale_term = self._scale_term(problem)
        evidences = {n: total_log_evidence(some) + scale_term for n, (_, some) in found.items()}
        self.noise_ = max(evidences, key=lambda noise: np.nan_to_num(evidences[noise], nan=-np.inf))
        self.noise_log_evidences_ = evidences
        return [found.pop(self.noise_), *found.values()]

    def _under(self, noise, problem, minima):
        """The problem and its minima under another noise model than the constant one.

        They are searched from minima under constant noise: what the network of the means has not
        learnt yet would be taken for noise.
        """
        other = with_noise(self, problem, noise)
        return other, self._search(other, [], minima[:NOISE_MINIMA])

    def _residual_tests(self, posterior, minimum):
        """P values under constant noise of what speaks for each of the other noise models."""
        if noise_is_fixed(self):
            return {}
        with blas_threads(minimum.network.n_weights):
            mean, covariance = member_of(minimum).mean_and_covariance(posterior.X)
        beta = minimum.likelihood.precisions(minimum.hyper.beta)
        gamma = 1.0 - beta * np.diagonal(covariance, axis1=1, axis2=2)
        residuals = (mean - posterior.y) * np.sqrt(beta / np.maximum(gamma, LEAST_GAMMA))
        return {
            "input_dependent": noise_trend(posterior.X, residuals, posterior.sample_weight),
            "student_t": heavy_tails(residuals, posterior.sample_weight),
        }

    def _forget_noise(self):
        """Delete what an earlier fit, maybe with another ``noise``, has found out."""
        vars(self).pop("noise_log_evidences_", None)
        self._noise_p_values = {}


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
