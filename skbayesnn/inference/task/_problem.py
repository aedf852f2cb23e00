"""Data and model of a fit, from which the posterior for any hidden layers is built."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.task._deadline import NEVER, Deadline
from skbayesnn.inference.task._limits import Limits
from skbayesnn.inference.task._settings import FreeHyperparameters, Settings
from skbayesnn.network import Network
from skbayesnn.posterior import (
    Gaussian,
    Hyperparameters,
    Hyperpriors,
    Likelihood,
    LogUniform,
    Posterior,
    StudentT,
    WeightGroups,
    weight_groups,
)


class Posed(NamedTuple):
    """Posterior and the settings of the search for its minima."""

    posterior: Posterior
    settings: Settings

    def without_deadline(self):
        """Copy without a deadline, for comparing fits irrespective of their time limits."""
        return self._replace(settings=self.settings._replace(deadline=NEVER))


def all_free(names):
    """Mask and values of precisions that are all free, one for every name."""
    return np.ones(len(names), dtype=bool), np.ones(len(names))


def all_log_uniform(names, free):
    """Log-uniform hyperpriors, the default, for all weight precisions."""
    return [LogUniform()] * len(names)


@dataclass(frozen=True)
class Problem:
    """Inference problem in standardised units.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n, n_outputs)
    sample_weight : ndarray of shape (n,)
    likelihood : Likelihood
        Likelihood of the first search: with constant noise, if with any; with Student-t noise if
        gross outliers were found.
    activation : str
    output_bias : bool
        Whether outputs have biases.
    prior : str or ndarray
        See `weight_groups`.
    feature_names : list of str, optional
    groups : WeightGroups, optional
        Prior of the weights, in place of ``prior``, if there is a single network.
    weight_precision : callable
        Function from names of weight groups to a mask of the free precisions, and the values of the
        others.
    noise_precision : tuple of ndarray, optional
        Mask of the free noise levels, and the precisions of the others; by default all are free.
    hyperprior : callable
        Function from names of weight groups, and a mask of those whose precision is free, to the
        `Hyperprior` of each; by default all are `LogUniform`.
    noise_hyperprior : sequence of Hyperprior, optional
        Hyperpriors of the noise levels; by default all are `LogUniform`.
    known : ndarray of shape (n, n_outputs), optional
        Further number that belongs to every target, see `Targets`.
    noise_hidden_layer_sizes : tuple of int
        Hidden layers of the network of input-dependent noise.
    laws : tuple of str, optional
        Noise models that may be chosen; by default all.
    exact : bool
    max_iter : int
    tol : float
    limits : Limits
    deadline : Deadline
        See `Settings`.
    log_scale : float
        Constant added to log evidences to convert them to the user's units of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> problem = Problem(X, np.sin(3 * X), np.ones(20), Gaussian.per_output(1), prior="ard")
    >>> problem.posed(()).posterior.groups.names
    ['input_x0', 'output']
    """

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray
    likelihood: Likelihood
    activation: str = "tanh"
    output_bias: bool = True
    prior: object = "layer"
    feature_names: list | None = None
    groups: WeightGroups | None = None
    weight_precision: Callable = all_free
    noise_precision: tuple | None = None
    hyperprior: Callable = all_log_uniform
    noise_hyperprior: tuple | None = None
    known: np.ndarray | None = None
    noise_hidden_layer_sizes: tuple = (8,)
    laws: tuple | None = None
    exact: bool = True
    max_iter: int = 300
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    deadline: Deadline = field(default_factory=Deadline)
    log_scale: float = 0.0

    def of_rows(self, rows):
        """Problem with a subset of the rows."""
        weight = self.sample_weight[rows]
        scale = self.log_scale * float(weight.sum() / self.sample_weight.sum())
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            sample_weight=weight,
            known=None if self.known is None else self.known[rows],
            log_scale=scale,
        )

    @property
    def under_constant_noise(self):
        """Problem under Gaussian noise, even if gross outliers were found."""
        old = self.likelihood
        if not isinstance(old, StudentT):
            return self
        return replace(self, likelihood=Gaussian(old.levels, old.relative))

    def network(self, hidden_layer_sizes):
        """Network with the given hidden layers."""
        sizes = self.X.shape[1], *hidden_layer_sizes, self.y.shape[1]
        return Network(sizes, self.activation, self.output_bias)

    @property
    def noise_is_given(self):
        """True if a noise level is fixed or has a Gamma prior, or measurement errors are known."""
        fixed = self.noise_precision is not None and not np.all(self.noise_precision[0])
        informed = bool(np.any(self.noise_priors.informative))
        return fixed or informed or self.known is not None

    @property
    def noise_priors(self):
        """`Hyperpriors` of the noise levels."""
        default = all_log_uniform(range(self.likelihood.n_levels), None)
        return Hyperpriors.of(self.noise_hyperprior or default)

    def suits(self, hidden_layer_sizes):
        """Return True if a prior given by names or labels of groups has those of a network."""
        if self.groups is not None or not isinstance(self.prior, str):
            return False
        try:
            self.posed(hidden_layer_sizes)
        except ValueError:
            return False
        return True

    def posed(self, hidden_layer_sizes):
        """Pose the posterior of a network under the likelihood of the problem, with settings."""
        network = self.network(hidden_layer_sizes)
        groups = self.groups
        if groups is None:
            groups = weight_groups(network, self.prior, self.feature_names)
        free_alpha, alpha = self.weight_precision(groups.names)
        free_beta, beta = self.noise_precision or all_free(range(self.likelihood.n_levels))
        weights = Hyperpriors.of(self.hyperprior(groups.names, free_alpha))
        prior = Hyperpriors.joined([weights, self.noise_priors])
        free = FreeHyperparameters(free_alpha, free_beta, prior)
        settings = Settings(
            free,
            Hyperparameters(alpha, beta),
            self.exact,
            self.max_iter,
            self.tol,
            self.limits,
            self.deadline,
        )
        posterior = Posterior(
            network, self.likelihood, groups, self.X, self.y, self.sample_weight, known=self.known
        )
        return Posed(posterior, settings)
