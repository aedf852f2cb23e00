"""What a search for minima is to infer, and how far it goes."""

from typing import NamedTuple

import numpy as np

from skbayesnn.inference._deadline import Deadline
from skbayesnn.inference._limits import Limits
from skbayesnn.posterior import Hyperparameters

REMOVED = "removed"  # the prior group of weights that were taken out, the last one
NO_WIDTH = 1e10  # its precision: leaves some 1e-4 nats of a weight, and 1e-6 of an eigenvalue


class FreeHyperparameters(NamedTuple):
    """Which hyperparameters are inferred, and their common prior."""

    alpha: np.ndarray
    beta: np.ndarray
    prior: object

    @property
    def mask(self):
        """Both masks in one array, groups first."""
        return np.concatenate([self.alpha, self.beta])


class Settings(NamedTuple):
    """How to search for minima.

    Attributes
    ----------
    free : FreeHyperparameters
    fixed : Hyperparameters
        Values (standardised units) of the precisions that are not free.
    exact : bool
        Exact Hessian at the minimum; ``False``: Gauss-Newton.
    max_iter : int
        Training steps per start.
    tol : float
        Training ends when steps lower ``M``, and re-estimation raises the evidence (to second
        order, by ``gamma/4`` times the squared change of ``ln alpha``), by less than ``tol`` nats
        (``tol k / 100`` for more than 100 weights).
    limits : Limits
        From which the `Method` is chosen.
    deadline : Deadline
        When training ends at the latest.
    """

    free: FreeHyperparameters
    fixed: Hyperparameters
    exact: bool = True
    max_iter: int = 300
    tol: float = 1e-3
    limits: Limits = Limits()
    deadline: Deadline = Deadline()

    def with_fixed(self, hyper):
        """``hyper`` with the values that are not free put in place."""
        return Hyperparameters(
            np.where(self.free.alpha, hyper.alpha, self.fixed.alpha),
            np.where(self.free.beta, hyper.beta, self.fixed.beta),
        )

    def tolerance(self, n_weights):
        """``tol`` for a network of this many weights."""
        return self.tol * max(1.0, n_weights / 100.0)
