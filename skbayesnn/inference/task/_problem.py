"""Data, model and settings of a fit, from which the posterior for any hidden layers is built.

`Fit` holds what all results of fits have in common.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from skbayesnn._progress import Deadline
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    Gamma,
    Gaussian,
    Hyperparameters,
    Hyperpriors,
    Likelihood,
    LogUniform,
    Posterior,
    StudentT,
    WeightGroups,
    fan_ins,
    weight_groups,
)

NARROW, USUAL = 8, 16  # hidden units of the networks from which `Limits.many_rows` decides


class Limits(NamedTuple):
    """Thresholds between methods, with their reasons."""

    # weights up to which matrices of that size are formed. At this limit the six matrices of a step
    # take 430 MB, and a Cholesky factorisation takes a third of a second
    dense: int = 3000
    # rows times squared weights up to which Hessians of all rows are formed. One takes about a
    # second there, a start some minutes
    dense_work: float = 1e10
    # ratio of weights to targets from which the dual form is faster than dense matrices, and the
    # number as which fewer targets count, since dense steps are compiled (measured crossovers, 10
    # to 1,000 targets). Where dense matrices are not formed the ratio is 1, as Kronecker factors
    # would yield an effective number of parameters above the number of targets
    dual: float = 2.0
    dual_targets: int = 100
    # weights up to which linear models with more weights than targets form dense matrices. The dual
    # form is as exact but for Student-t noise, without the evidence along the precisions
    dense_linear: int = 600
    # squared targets times weights up to which the dual form is used: a matrix takes a second
    dual_work: float = 2e10
    # rows times squared weights from which networks with softmax outputs are trained by gradients,
    # which then takes seconds less (measured on digits). For a close fit, the second derivatives of
    # the network exceed the Gauss-Newton part, and Levenberg-Marquardt steps become very small
    softmax_work: float = 1e8
    # rows per weight from which these networks are trained on batches, if training ends early: as
    # good there, and faster. With fewer, batches fit the noise (2,309 x 128, six classes: log loss
    # 1.32 on batches, 1.17 by gradients; digits, 32 units: .145 and .107), and up to `batch_rows`
    # rows all of them are used in every step
    softmax_rows_per_weight: int = 5
    # rows times squared weights up to which a fit can use hundreds of Hessians (each takes a tenth
    # of a second)
    cheap_work: float = 2e9
    # weights times free precisions up to which precisions are refined by the gradient of the
    # evidence, which needs a Hessian for each
    refined: int = 5000
    # rows times squared weights times free precisions up to which the evidence is evaluated along
    # precisions, which takes some hundred Hessians for each
    profile_work: float = 1e9
    # predicted seconds up to which a fit samples the posterior by default, where there are few
    # targets per weight
    sampled_seconds: float = 10.0
    # the limit with many targets per weight, where sampling hardly changes predictions
    checked_seconds: float = 2.5
    # targets per weight below which Laplace's approximation is inaccurate, and posterior samples
    # predict better (measured on sets of 80 to 700 rows)
    few_targets_per_weight: float = 1.5
    # weights, and rows times weights, up to which networks are drawn by independent chains: a
    # metric takes about a second there, and a step of a trajectory a millisecond
    chain_weights: int = 1000
    chain_work: float = 3e6
    # hidden units per row from which the hidden weights of one layer are drawn from their prior,
    # and only precisions follow the dynamics: the conditional error bars of the output layer are
    # then right (measured on 15 to 30 rows of Branin's and Hartmann's functions). It is infinite
    # for chains, as their energy takes long with so many units
    wide_units_per_row: float = 3.0
    # rows from which networks without dense matrices are trained on batches, and from which
    # networks are compared by held-out log density
    batch_rows: int = 5000
    # smaller number of rows from which this is so if there are many inputs: Hessians of a network
    # of `NARROW` hidden units then take long (`cheap_work`), or, for three classes or more, a
    # network of `USUAL` hidden units has few rows per weight (`few_targets_per_weight`), so that
    # Laplace's approximation is too inaccurate for a choice (measured on digits)
    wide_rows: int = 1000
    compared: bool = False  # whether networks are compared by held-out rows
    # with so many rows, but fewer than this per weight, training ends before the minimum. Laplace's
    # approximation is wrong by several nats there, and Newton steps to the minimum take minutes
    # without better predictions (measured on kin8nm). If Hessians take long (`cheap_work`), more
    # rows per weight are required
    batch_rows_per_weight: int = 50
    # number of steps of training on batches, which take some seconds
    batch_steps: int = 30_000
    # rows times squared weights up to which training with early stopping uses Levenberg-Marquardt
    # steps, which reach a lower energy than batches: a step takes a tenth of a second
    early_work: float = 4.5e9
    # weights up to which networks are tried on many rows: a start takes a minute there
    growth_weights: int = 50_000
    # rows times squared weights up to which sizes are compared from several random starts: a start
    # takes some seconds there
    restarted_work: float = 1e8
    # rows times squared weights of two layers of `USUAL` units from which networks are trained with
    # early stopping, if they are not drawn by chains: a start takes some ten seconds there
    wide_work: float = 3e8
    # rows times outputs times squared weights up to which the Gaussian closest to the posterior of
    # all weights of a classifier is found, which needs about 25 curvatures. Larger classifiers use
    # that of the output layer
    moderation_work: float = 1e10

    def compares_rows(self, likelihood, n_rows, n_features, n_outputs):
        """Return True if networks are compared by held-out rows, where training takes long.

        They are if two layers of `USUAL` units are beyond `wide_work`. For classes it has to be
        one layer, as networks of the highest evidence predict these better (measured).
        """
        n_layers = 1 if likelihood.classes else 2
        work = n_rows * (USUAL * (n_features + 2 + (n_layers - 1) * USUAL)) ** 2
        slow = n_rows >= self.wide_rows and work > self.wide_work
        return slow or self.many_rows(likelihood, n_rows, n_features, n_outputs)

    def few_targets(self, posterior):
        """Return True if there are few targets per weight."""
        n_targets = posterior.n_rows * max(1, posterior.likelihood.n_levels)
        return n_targets < self.few_targets_per_weight * posterior.network.n_weights

    def takes_long(self, n_rows, n_weights):
        """Return True if a start of a network takes many seconds."""
        return n_rows * n_weights**2 > self.restarted_work

    def many_rows(self, likelihood, n_rows, n_features, n_outputs):
        """Return True if training of large networks stops early, with many rows or if compared."""
        work = n_rows * (NARROW * (n_features + 2)) ** 2
        n_weights = USUAL * (n_features + 1) + (USUAL + 1) * n_outputs
        softmax = likelihood.classes and n_outputs > 1
        few = softmax and n_rows < self.few_targets_per_weight * n_weights
        wide = work > self.cheap_work or few
        many = n_rows >= self.batch_rows or (n_rows >= self.wide_rows and wide)
        return self.compared or many


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
    held_out: Posterior | None = None  # of rows whose density ends training, if any

    def without_noise(self):
        """Fix the noise at its least levels."""
        prior, none = self.free.beta_prior, np.zeros_like(self.free.beta)
        fixed = self.fixed._replace(beta=np.exp(prior.high))
        return self._replace(free=replace(self.free, beta=none), fixed=fixed)

    def with_fixed(self, hyper):
        """Replace fixed values in ``hyper``, and clip the free ones to their bounds."""
        free = self.free
        return Hyperparameters(
            np.where(free.alpha, free.alpha_prior.clip(hyper.alpha), self.fixed.alpha),
            np.where(free.beta, free.beta_prior.clip(hyper.beta), self.fixed.beta),
        )


class Posed(NamedTuple):
    """Problem posed for one network: its posterior, and the settings of the search for minima."""

    posterior: Posterior
    settings: Settings

    @property
    def hidden_layer_sizes(self):
        """Hidden layers of the network."""
        return self.posterior.network.hidden_layer_sizes


def all_free(names):
    """Mask and values of precisions that are all free, one for every name."""
    return np.ones(len(names), dtype=bool), np.ones(len(names))


def all_log_uniform(names, free):
    """Log-uniform hyperpriors, the default, for all weight precisions."""
    return [LogUniform()] * len(names)


SHAPE = 0.5  # of weak priors: weights of a group have a Cauchy distribution, given their scale


def weak_hyperpriors(network, groups):
    """Gamma priors of the precision of every group, by the inputs of the units it leads to.

    A weight has a Cauchy distribution of scale ``fan_in^(-1/2)`` a priori, so that outputs of
    hidden units are of order one whatever the width of the layer below.
    """
    return [Gamma(SHAPE, SHAPE / fan_in) for fan_in in fan_ins(network, groups)]


@dataclass(frozen=True)
class Problem:
    """Inference problem in standardised units."""

    X: np.ndarray  # (n, n_features)
    y: np.ndarray  # (n, n_outputs)
    sample_weight: np.ndarray  # (n,)
    # likelihood of the first search: with constant noise, if with any; with Student-t noise if
    # gross outliers were found
    likelihood: Likelihood
    activation: str = "tanh"
    output_bias: bool = True  # whether outputs have biases
    prior: object = "layer"  # see `weight_groups`; ``"auto"`` may become ``"ard"``
    feature_names: list | None = None
    # prior of the weights, in place of ``prior``, if there is a single network
    groups: WeightGroups | None = None
    # function from names of weight groups to a mask of the free precisions, and the values of the
    # others
    weight_precision: Callable = all_free
    # mask of the free noise levels, and the precisions of the others; by default all are free
    noise_precision: tuple | None = None
    # function from names of weight groups, and a mask of those whose precision is free, to the
    # `Hyperprior` of each; by default all are `LogUniform`
    hyperprior: Callable = all_log_uniform
    # True if the user leaves the prior open, and whether it is then that of `weak_hyperpriors`
    open_prior: bool = False
    weak_prior: bool = False
    # hyperpriors of the noise levels; by default all are `LogUniform`
    noise_hyperprior: tuple | None = None
    # (n, n_outputs), further number that belongs to every target, see `Targets`
    known: np.ndarray | None = None
    noise_hidden_layer_sizes: tuple = (8,)  # hidden layers of the network of input-dependent noise
    laws: tuple | None = None  # noise models that may be chosen; by default all
    exact: bool = True
    max_iter: int = 300
    tol: float = 1e-3
    limits: Limits = field(default_factory=Limits)
    deadline: Deadline = field(default_factory=Deadline)  # see `Settings`
    # constant added to log evidences to convert them to the user's units of the targets
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
    def has_relevances(self):
        """True if the weights of every input have a precision."""
        return isinstance(self.prior, str) and self.prior.startswith("ard")

    @property
    def noise_is_given(self):
        """True if a noise level is fixed or has a Gamma prior, or measurement errors are known."""
        fixed = self.noise_precision is not None and not np.all(self.noise_precision[0])
        informed = any(prior.shape > 0 for prior in self.noise_hyperprior or ())
        return fixed or informed or self.known is not None

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
        """Pose the problem for a network, under the likelihood of the first search."""
        network = self.network(hidden_layer_sizes)
        groups = self.groups
        if groups is None:
            groups = weight_groups(network, self.prior, self.feature_names)
        free_alpha, alpha = self.weight_precision(groups.names)
        free_beta, beta = self.noise_precision or all_free(range(self.likelihood.n_levels))
        weights = self.hyperprior(groups.names, free_alpha)
        if self.weak_prior:
            weights = weak_hyperpriors(network, groups)
        levels = self.noise_hyperprior or [LogUniform()] * self.likelihood.n_levels
        prior = Hyperpriors.of([*weights, *levels])
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


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Result of an engine: `EvidenceFit`, `DrawnFit` or `SampledFit`.

    Where the noise was chosen automatically, P values of tests against constant noise and log
    evidences in units of the user are kept by noise model.
    """

    problem: Problem
    posed: Posed  # under the chosen noise
    noise: str = "constant"
    growth: tuple = ()  # `Candidate` networks that were tried, if hidden layers were chosen
    noise_p_values: dict = field(default_factory=dict)
    noise_log_evidences: dict = field(default_factory=dict)

    minima = drawn = ()

    def draw_prior(self, X, size, rng):
        """Outputs ``(size, n, n_outputs)`` of networks drawn from the prior at typical precisions.

        ``typical_prior`` of a subclass: network, weight groups, and precisions ``(m, n_groups)``.
        """
        network, groups, alpha = self.typical_prior
        alpha = alpha[rng.integers(len(alpha), size=size)]
        return outputs(network, groups.draw(alpha, rng), X)
