"""Settings of a search for minima: free hyperparameters, tolerances and limits."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.task._deadline import Deadline
from skbayesnn.inference.task._limits import Limits
from skbayesnn.posterior import Hyperparameters, Hyperpriors


@dataclass(frozen=True)
class FreeHyperparameters:
    """Masks of the inferred hyperparameters, and the prior of each."""

    alpha: np.ndarray  # (n_groups,)
    beta: np.ndarray  # (n_levels,)
    prior: Hyperpriors  # of all hyperparameters, groups first
    mask: np.ndarray = field(init=False)  # both masks in one array
    priors: Hyperpriors = field(init=False)  # of the inferred hyperparameters
    alpha_prior: Hyperpriors = field(init=False)
    beta_prior: Hyperpriors = field(init=False)

    def __post_init__(self):
        n_groups, mask = len(self.alpha), np.concatenate([self.alpha, self.beta])
        vars(self).update(
            mask=mask,
            priors=self.prior[mask],
            alpha_prior=self.prior[:n_groups],
            beta_prior=self.prior[n_groups:],
        )

    @classmethod
    def sharing(cls, alpha, beta, prior):
        """Give all hyperparameters the same `Hyperprior`."""
        return cls(alpha, beta, Hyperpriors.of([prior] * (len(alpha) + len(beta))))

    def with_groups(self, free, prior):
        """Append weight groups of one `Hyperprior`, inferred where ``free`` is true."""
        more = Hyperpriors.of([prior] * len(free))
        prior = Hyperpriors.joined([self.alpha_prior, more, self.beta_prior])
        return FreeHyperparameters(np.append(self.alpha, free), self.beta, prior)


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
