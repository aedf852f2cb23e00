"""Joint posterior with known measurement errors, for samplers."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbayesnn.posterior.joint._joint import Derivatives, JointPosterior
from skbayesnn.posterior.kernels._compiled import compiled_joint
from skbayesnn.posterior.likelihoods._likelihoods import Gaussian
from skbayesnn.posterior.likelihoods._output_layer import Rows


@dataclass(frozen=True)
class MeasuredJoint(JointPosterior):
    """Joint posterior with known errors of the targets on top of a noise level.

    Parameters
    ----------
    posterior : Posterior
        Posterior with `MeasuredGaussian` noise.
    """

    @cached_property
    def compiled(self):
        """Compiled twin of `terms`, or ``None``."""
        likelihood = self.posterior.likelihood
        noise = Gaussian(likelihood.levels, likelihood.relative)
        return compiled_joint(self, replace(self.posterior, likelihood=noise))

    def _likelihood(self, place):
        rows, share = self._rows(place), self._shares(place)
        found, by_row = self._of_rows(place.theta, place.hyper, rows, need_factors=True)
        weight = self.posterior.sample_weight
        value = found.value - 0.5 * np.sum(weight @ np.log(rows.factors), axis=-1)
        slope = (by_row.log_factors - 0.5 * weight[:, None]) * share  # d ln(tau F) / d ln tau = F
        by_beta = self._sum_levels(np.sum(slope, axis=-2))
        return Derivatives(value, found.theta, found.log_alpha, by_beta)

    def _rows(self, place):
        """Targets with individual precisions, as `Rows`."""
        posterior = self.posterior
        tau = posterior.likelihood.precisions(place.hyper.beta)[..., None, :]
        ones = np.ones(posterior.network.n_outputs)
        return Rows(posterior.y, self._row_weights, ones, tau * self._shares(place))

    def _level_information(self, place):
        """Expected second derivative ``1/2 sum_no s_n F_no^2`` in ``ln beta_l``."""
        weight = self.posterior.sample_weight
        return self._sum_levels(0.5 * (weight @ self._shares(place) ** 2))

    def _shares(self, place):
        """Shares ``F`` of `MeasuredGaussian`, ``(..., n, n_outputs)``."""
        posterior = self.posterior
        return posterior.likelihood.shares(posterior.targets(), place.hyper.beta)[1]
