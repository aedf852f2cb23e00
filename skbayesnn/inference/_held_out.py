"""Choices between models where there are many rows: by the likelihood of rows held out of training.

Laplace's evidence is nats off where a network has hundreds of weights, and of the networks that
many rows support it cannot be had at all. But there are rows to spare: the likelihood of some of
them, given the others, is a part of the evidence by the chain rule, and the one that tells how well
a model predicts (Lotfi et al. 2022, "Bayesian model selection, the marginal likelihood, and
generalization").
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skbayesnn.inference._problem import Problem
from skbayesnn.inference._search import own_posterior
from skbayesnn.network import outputs
from skbayesnn.posterior import Targets

SHARE, MOST = 0.1, 5000  # of the rows, and at most so many, are held out


class HeldOut(NamedTuple):
    """A problem without some of its rows, and these.

    Attributes
    ----------
    kept, rest : Problem

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import HeldOut, Problem, find_minima
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> y = 2 * X + 0.1 * np.random.default_rng(0).standard_normal((100, 1))
    >>> held = HeldOut.of(Problem(X, y, np.ones(100), Gaussian.per_output(1)))
    >>> len(held.kept.X), len(held.rest.X)
    (90, 10)
    >>> minima = find_minima(*held.kept.posed(()), np.random.SeedSequence(0).spawn(1))
    >>> round(held.log_density(minima), 1)  # about ln(1 / 0.1) - 1.4
    1.2
    """

    kept: Problem
    rest: Problem

    @classmethod
    def of(cls, problem):
        """Rows are held out at random, whatever their weights, and always the same ones."""
        n = len(problem.X)
        order = np.random.default_rng(0).permutation(n)
        n_rest = min(int(SHARE * n), MOST)
        kept, rest = (problem.of_rows(np.sort(rows)) for rows in (order[n_rest:], order[:n_rest]))
        # trained as on all rows are, but no evidences: minima need not be reached
        fewer = min(problem.limits.batch_rows, len(kept.X))
        limits = problem.limits._replace(batch_rows=fewer, batch_rows_per_weight=n)
        return cls(replace(kept, limits=limits), rest)

    def log_density(self, minima):
        """Mean log density of the rows held out under networks that count equally (nats per row).

        In units of the user, at the most probable weights: wide error bars do not count, but a
        noise level too low does.

        Parameters
        ----------
        minima : sequence of Minimum
        """
        logs = np.stack([self._log_densities(minimum) for minimum in minima])
        weight = self.rest.sample_weight
        mean = weight @ (logsumexp(logs, axis=0) - np.log(len(logs))) / weight.sum()
        return float(mean + self.rest.log_scale / weight.sum())

    def _log_densities(self, minimum):
        """Of every row, in standardised units."""
        sizes = minimum.network.hidden_layer_sizes
        own = own_posterior(self.rest.posed(sizes).posterior, minimum)
        found, factors = outputs(own.network, minimum.theta, own.X), own.factors
        given = own.y, np.ones(len(own.y)), factors, own.variances
        # a set of one row, many times
        y, one, *each = (None if some is None else some[:, None] for some in given)
        targets = Targets(y, one[0], *each)
        misfit = own.likelihood.misfit(found[:, None], targets, minimum.hyper.beta).value
        logs = own.likelihood.log_normaliser(minimum.hyper.beta, 1.0) - misfit
        return logs if factors is None else logs + 0.5 * np.sum(np.log(factors), axis=1)
