"""Noise that is correlated between the outputs."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference._constant_noise import ConstantNoise
from skbayesnn.inference._correlations import correlation_of, with_correlations
from skbayesnn.inference._residual_tests import correlated_outputs
from skbayesnn.inference._search import ALONE, distinct
from skbayesnn.network import outputs
from skbayesnn.posterior import (
    CorrelatedGaussian,
    CorrelatedJoint,
    LogUniform,
    correlation_coordinates,
)

FARTHEST = 3.0  # coordinate of a correlation, a priori standard normal, of starts


class CorrelatedNoise(ConstantNoise):
    """Gaussian noise with one covariance matrix between the outputs for all rows."""

    tried_below = 0.01
    plain = False
    sampled = False

    def p_value(self, posed, residuals):
        """Of a test for this noise: `correlated_outputs`.

        It is not chosen where the prior has a mean or a matrix, or tells the outputs of a unit
        apart: samplers integrate output weights out, of all outputs together.
        """
        network, groups = posed.posterior.network, posed.posterior.groups
        last = network.layers(groups.labels)[-1]
        if network.n_outputs == 1 or not groups.centred or np.any(last != last[:, :1]):
            return None
        return correlated_outputs(*residuals)

    def pose(self, posed):
        """As `ConstantNoise.pose`; searches begin without correlations."""
        old = posed.posterior.likelihood
        likelihood = CorrelatedGaussian(old.levels, old.relative, np.eye(len(old.levels)))
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`; see `with_correlations`."""
        workers.announced(*posed, len(previous))
        tasks = [(posed, old, i > 0) for i, old in enumerate(previous)]
        with workers.searching(*posed, len(previous)) as told:
            return distinct(workers.told_of(told, with_correlations, tasks), posed)

    def joint(self, posed, tuned):
        """As `ConstantNoise.joint`, with coordinates of the correlations."""
        plain = super().joint(posed, tuned)
        return CorrelatedJoint(
            plain.posterior,
            plain.free.with_groups(np.zeros(1, dtype=bool), LogUniform()),
            plain.fixed._replace(alpha=np.append(plain.fixed.alpha, 1.0)),
            np.append(plain.information, 0.0),
            tuned,
        )

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """As `ConstantNoise.positions`, each with the correlations of its residuals."""
        there = super().positions(problem, posed, tuned, starts, minima, seeds, from_prior)
        posterior = posed.posterior
        residuals = outputs(posterior.network, there.theta, posterior.X) - posterior.y
        weighted = posterior.sample_weight[:, None] * residuals
        moments = np.swapaxes(residuals, -1, -2) @ weighted / posterior.n_rows
        floor = np.diag(np.exp(-posed.settings.free.beta_prior.high))
        z = np.stack([correlation_coordinates(correlation_of(m + floor)) for m in moments])
        ones = np.ones((len(z), 1))
        return there._replace(
            theta=there.joint.merged(there.theta, np.clip(z, -FARTHEST, FARTHEST)),
            hyper=there.hyper._replace(alpha=np.hstack([there.hyper.alpha, ones])),
            known=np.hstack([there.known, 0.0 * ones]),
        )
