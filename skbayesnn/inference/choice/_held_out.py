"""Model comparison by held-out log density, where there are many rows.

Laplace's approximation of the evidence is wrong by several nats for networks with hundreds of
weights, and not available for the larger networks that many rows support. With many rows, some can
be held out: their likelihood given the other rows is a factor of the evidence by the chain rule,
the conditional marginal likelihood, which measures predictive performance (Lotfi et al. 2022,
"Bayesian model selection, the marginal likelihood, and generalization").
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference.minima._search import own_posterior
from skbayesnn.inference.task._problem import Problem
from skbayesnn.network import outputs
from skbayesnn.posterior import Targets

SHARE, MOST = 0.1, 5000  # fraction of the rows, and largest number, held out


class HeldOut(NamedTuple):
    """Split of a problem into training and held-out rows.

    Attributes
    ----------
    kept, rest : Problem
        Problems of the training rows and of the held-out rows.
    """

    kept: Problem
    rest: Problem

    @classmethod
    def of(cls, problem):
        """Split a problem at random, regardless of sample weights, with a fixed seed."""
        n = len(problem.X)
        order = np.random.default_rng(0).permutation(n)
        n_rest = min(int(SHARE * n), MOST)
        kept, rest = (problem.of_rows(np.sort(rows)) for rows in (order[n_rest:], order[:n_rest]))
        # train as on all rows, but by early stopping, as no evidence is needed
        fewer = min(problem.limits.batch_rows, len(kept.X))
        limits = problem.limits._replace(batch_rows=fewer, batch_rows_per_weight=n)
        return cls(replace(kept, limits=limits), rest)

    def log_density(self, minima):
        """Mean held-out log density (nats per row) of an equally weighted mixture of networks.

        The density is in units of the user and uses the most probable weights: it ignores their
        posterior variance, but penalises a noise level that is too low.
        """
        logs = np.stack([self._log_densities(minimum) for minimum in minima])
        weight = self.rest.sample_weight
        mean = weight @ (logsumexp(logs, axis=0) - np.log(len(logs))) / weight.sum()
        return float(mean + self.rest.log_scale / weight.sum())

    def _log_densities(self, minimum):
        """Log density of every held-out row, in standardised units."""
        sizes = minimum.network.hidden_layer_sizes
        own = own_posterior(self.rest.posed(sizes).posterior, minimum)
        found, given = outputs(own.network, minimum.theta, own.X), (own.y, own.factors, own.known)
        # treat every row as a data set of its own
        y, factors, known = (None if some is None else some[:, None] for some in given)
        targets = Targets(y, np.ones(1), factors, known)
        misfit = own.likelihood.misfit(found[:, None], targets, minimum.hyper.beta).value
        logs = own.likelihood.log_normaliser(minimum.hyper.beta, 1.0) - misfit
        return logs if factors is None else logs + 0.5 * np.sum(np.log(own.factors), axis=1)
