"""Settings of a search for minima: free hyperparameters, tolerances and limits."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.task._deadline import Deadline
from skbayesnn.inference.task._limits import Limits
from skbayesnn.posterior import Hyperparameters, Hyperpriors


class FreeHyperparameters(NamedTuple):
    """Masks of the inferred hyperparameters, and the prior of each."""

    alpha: np.ndarray  # (n_groups,)
    beta: np.ndarray  # (n_levels,)
    prior: Hyperpriors  # priors of all hyperparameters, groups first

    @classmethod
    def sharing(cls, alpha, beta, prior):
        """Give all hyperparameters the same `Hyperprior`."""
        return cls(alpha, beta, Hyperpriors.of([prior] * (len(alpha) + len(beta))))

    def with_groups(self, free, prior):
        """Append weight groups of one `Hyperprior`, inferred where ``free`` is true."""
        more = Hyperpriors.of([prior] * len(free))
        prior = Hyperpriors.joined([self.alpha_prior, more, self.beta_prior])
        return self._replace(alpha=np.append(self.alpha, free), prior=prior)

    def with_least_noise(self, variances):
        """Raise the least noise variances ``(n_levels,)``, which have log-uniform priors."""
        prior = self.beta_prior
        high = np.minimum(prior.high, -np.log(np.maximum(variances, np.finfo(float).tiny)))
        prior = replace(prior, high=high, log_normaliser=np.log(high - prior.low))
        return self._replace(prior=Hyperpriors.joined([self.alpha_prior, prior]))

    @property
    def alpha_prior(self):
        """Priors of the weight precisions."""
        return self.prior[: len(self.alpha)]

    @property
    def beta_prior(self):
        """Priors of the noise precisions."""
        return self.prior[len(self.alpha) :]

    @property
    def priors(self):
        """Priors of the inferred hyperparameters."""
        return self.prior[self.mask]

    @property
    def mask(self):
        """Both masks in one array, groups first."""
        return np.concatenate([self.alpha, self.beta])


class Settings(NamedTuple):
    """Settings of a search for minima."""

    free: FreeHyperparameters
    fixed: Hyperparameters  # values (standardised units) of the precisions that are not free
    exact: bool = True  # exact Hessian at the minimum; False: Gauss-Newton approximation
    max_iter: int = 300  # training steps per start
    # training ends when steps lower M, and re-estimation raises the evidence (to second order,
    # by gamma/4 times the squared change of ln alpha), by less than tol nats (tol k /
    # 100 for more than 100 weights)
    tol: float = 1e-3
    limits: Limits = Limits()  # limits from which the `Method` is chosen
    deadline: Deadline = Deadline()  # time at which training ends at the latest

    def with_fixed(self, hyper):
        """Replace fixed values in ``hyper``, and clip the free ones to their bounds."""
        free = self.free
        return Hyperparameters(
            np.where(free.alpha, free.alpha_prior.clip(hyper.alpha), self.fixed.alpha),
            np.where(free.beta, free.beta_prior.clip(hyper.beta), self.fixed.beta),
        )

    def tolerance(self, n_weights):
        """Tolerance for a network of ``n_weights`` weights."""
        return self.tol * max(1.0, n_weights / 100.0)
