"""Known noise of the inputs, which makes noise of the targets."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference._constant_noise import ConstantNoise, followed, what_data_tell
from skbayesnn.inference._noisy_inputs import with_noisy_inputs
from skbayesnn.inference._search import ALONE
from skbayesnn.posterior import at_slopes, with_input_noise


class NoisyInputs(ConstantNoise):
    """Gaussian noise of constant level beside that which known noise of the inputs makes."""

    by_name = False
    plain = False
    sampled = False

    def pose(self, problem, posed):
        """As `ConstantNoise.pose`."""
        likelihood = with_input_noise(posed.posterior.likelihood, problem.input_variances)
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`; see `with_noisy_inputs`."""
        return followed(with_noisy_inputs, posed, previous, workers)

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """As `ConstantNoise.positions`, each with the noise at its slopes."""
        there = super().positions(problem, posed, tuned, starts, minima, seeds, from_prior)
        known = []
        for i, theta in enumerate(there.theta):
            own = at_slopes(posed.posterior, theta)
            given = len(theta), theta[None], there.hyper.select([i])
            known.append(what_data_tell(own, posed.settings, *given))
        return there._replace(known=np.concatenate(known))
