"""Choices between models where there are many rows: by the likelihood of rows held out of training.

Laplace's evidence is nats off where a network has hundreds of weights, and of the networks that
many rows support it cannot be had at all. But there are rows to spare: the likelihood of some of
them, given the others, is a part of the evidence by the chain rule, and the one that tells how well
a model predicts (Lotfi et al. 2022, "Bayesian model selection, the marginal likelihood, and
generalization").
"""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._problem import Problem
from skbayesnn.inference._search import own_posterior

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
    >>> round(held.log_density(minima[0]), 1)  # about ln(1 / 0.1) - 1.4
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
        return cls(
            problem.of_rows(np.sort(order[n_rest:])), problem.of_rows(np.sort(order[:n_rest]))
        )

    def log_density(self, minimum):
        """Mean log density of the rows held out, at the most probable weights (nats per row).

        In units of the user. Wide error bars do not count, but a noise level too low does.
        """
        sizes = minimum.network.hidden_layer_sizes
        own = own_posterior(self.rest.posed(sizes).posterior, minimum)
        energies = own.energies(minimum.theta, minimum.hyper.beta)
        value = own.likelihood.log_normaliser(minimum.hyper.beta, own.n_rows) - energies.misfit
        if own.factors is not None:
            value = value + 0.5 * np.sum(own.sample_weight @ np.log(own.factors))
        return float(value + self.rest.log_scale) / own.n_rows
