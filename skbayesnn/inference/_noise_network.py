"""Input-dependent noise: a network for the means and one for the log precision of the noise.

With the precision of every residual given, the network of the means has ordinary Gaussian noise.
The slope of its evidence with respect to the log precision of a residual is ``gamma_m / 2 - beta_m
E_Dm`` with ``gamma_m = 1 - beta_m g_m^T A^-1 g_m`` (MacKay 1992, chapter 6), unlike that of the
likelihood, which would drive the precision to infinity where a point is fitted exactly. Given
``gamma_m`` and the residuals, that is the slope of a misfit of the noise network alone, so that
each network is trained, re-estimated, pruned and evaluated as any other, in turns.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skbayesnn.inference._fixed_point import FixedPoint
from skbayesnn.inference._gauss_newton import gauss_newton_forms
from skbayesnn.inference._noise_evidence import with_noise
from skbayesnn.inference._training import FreeHyperparameters, random_starts, train
from skbayesnn.network import Network, forward, jacobian, outputs, row_blocks
from skbayesnn.posterior import (
    Hyperparameters,
    Posterior,
    RowGaussian,
    SquaredResiduals,
    WeightGroups,
    weight_groups,
)

LEVEL = "level"  # the prior group of the output biases
ROUNDS = 10
ROUGH, SETTLED = 0.1, 0.03  # root mean square change of log precisions that ends the training
ENOUGH = 0.05  # nats: a round of completing that gains less is the last one
REFINING_ROUNDS = 4  # of polishing with the precisions
STILL = 1e-3  # change of ln alpha at which a side's precisions are left as they are
POLISHING_ROUNDS, POLISHED = 40, 1e-8  # largest change of any log precision that ends these
NEAR = 0.01  # largest change of any log precision from which the fixed point is extrapolated
MEMORY = 5  # from how many rounds it is
ROUGH_TOL = 10.0  # how much larger the tolerance of training is while the other side still moves
LEAST_GAMMA = 1e-6


class NoisePlan(NamedTuple):
    """The noise network to train.

    Attributes
    ----------
    network : Network
        From the inputs to the log precision of every output.
    groups : WeightGroups
        The output biases are a group of their own, `LEVEL`.

    Examples
    --------
    >>> from skbayesnn.inference import NoisePlan
    >>> from skbayesnn.network import Network
    >>> plan = NoisePlan.build(Network((2, 8, 1)), hidden_layer_sizes=(3,), prior="layer")
    >>> plan.network.layer_sizes
    (2, 3, 1)
    >>> plan.groups.names
    ['hidden1_weights', 'hidden1_biases', 'output', 'level']
    """

    network: Network
    groups: WeightGroups

    @classmethod
    def build(cls, mean_network, hidden_layer_sizes, prior, feature_names=None):
        """A noise network beside a network of means, with weight groups of the same kind."""
        ends = mean_network.layer_sizes[0], mean_network.n_outputs
        network = Network((ends[0], *hidden_layer_sizes, ends[1]), mean_network.activation)
        groups = weight_groups(network, prior, feature_names)
        labels = groups.labels.copy()
        labels[network.n_weights - network.n_outputs :] = len(groups.names)
        return cls(network, WeightGroups(labels, [*groups.names, LEVEL]))

    def settings(self, settings):
        """Settings of the noise network's own search.

        The flat prior of a noise level becomes a Gaussian of the same density at its centre, so
        wide that it pulls at nothing.
        """
        prior = settings.free.prior
        free = np.arange(len(self.groups.names)) < len(self.groups.names) - 1
        width = 2.0 * np.pi * np.exp(2.0 * prior.log_density)
        fixed = Hyperparameters(np.where(free, 1.0, width), np.ones(1))
        return settings._replace(
            free=FreeHyperparameters(free, np.zeros(1, dtype=bool), prior),
            fixed=fixed,
            noise_plan=None,
        )


@dataclass(frozen=True)
class Side:
    """One of the two networks on its way.

    Attributes
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    settings : Settings
    minimum : Minimum or None
        ``None`` while it is being trained.
    moved : float
        By how much the last step has changed any ``ln alpha``.
    """

    posterior: Posterior
    theta: np.ndarray
    hyper: Hyperparameters
    settings: object
    minimum: object = None
    moved: float = np.inf

    def outputs(self):
        """Of the network at all rows."""
        return outputs(self.posterior.network, self.theta, self.posterior.X)

    def trained(self, tol_factor=1.0):
        """After training from where it is."""
        hyper = self.settings.with_fixed(self.hyper).repeated(1)
        settings = self.settings._replace(tol=tol_factor * self.settings.tol)
        found = train(self.posterior, self.theta[None], hyper, settings)
        return replace(self, theta=found.theta[0], hyper=found.hyper.select(0))

    def completed(self, complete):
        """At the nearest minimum, redundant units deleted."""
        hyper = self.settings.with_fixed(self.hyper)
        found = complete(self.posterior, self.theta, hyper, self.settings)
        if self.minimum is not None:
            found = replace(found, pruned=self.minimum.pruned + found.pruned)
        posterior = self.posterior.with_network(found.network, found.groups.labels)
        return replace(
            self,
            posterior=posterior,
            theta=found.theta,
            hyper=found.hyper,
            minimum=found,
            moved=np.max(np.abs(np.log(found.hyper.alpha / hyper.alpha))),
        )

    def polished(self, polish, refine):
        """At the minimum to rounding, its precisions refined as long as that moves them."""
        refine = refine and self.moved > STILL
        return self.completed(partial(polish, refine=refine))


def with_rows(posterior, log_precision):
    """The posterior of the means given the log precision of every residual, and ``ln beta``."""
    level = posterior.sample_weight @ log_precision / posterior.n_rows
    y = np.hstack([posterior.y[:, : posterior.network.n_outputs], log_precision - level])
    likelihood = RowGaussian(posterior.likelihood.levels, posterior.likelihood.relative)
    return replace(posterior, likelihood=likelihood, y=y), level


def squared_residuals(posterior, theta, hyper, floor):
    """Targets of the noise network: squared residuals and their degrees of freedom.

    Parameters
    ----------
    posterior : Posterior
        Of the means, see `with_rows`.
    theta : ndarray of shape (k,)
    hyper : Hyperparameters
    floor : float
        Smallest noise variance: added to the squares, so that noise-free data do no harm.

    Returns
    -------
    ndarray of shape (n, 2 * n_outputs)
    """
    _, (curvature,) = gauss_newton_forms(posterior, theta[None], hyper.repeated(1))
    gaussian = curvature.gaussian()
    n_outputs, parts = posterior.network.n_outputs, []
    for rows in row_blocks(len(posterior.X), n_outputs * posterior.network.n_weights):
        trace = forward(posterior.network, theta, posterior.X[rows], order=1)
        variance = 0.0
        if gaussian is not None:  # else numerically singular
            variance = np.diagonal(gaussian.project(jacobian(trace)), axis1=1, axis2=2)
        _, precision = posterior.likelihood.derivatives(
            trace.outputs, posterior.y[rows], np.ones(len(trace.outputs)), hyper.beta
        )
        gamma = np.clip(1.0 - precision * variance, LEAST_GAMMA, 1.0)  # MacKay 1992, chapter 6
        squares = (trace.outputs - posterior.y[rows, :n_outputs]) ** 2
        parts.append(np.hstack([squares + floor * gamma, gamma]))
    return np.concatenate(parts)


class Pair(NamedTuple):
    """The network of the means and that of the noise.

    Attributes
    ----------
    mean, noise : Side
    plan : NoisePlan
    n_iter : int
        Training steps under constant noise.
    """

    mean: Side
    noise: Side
    plan: NoisePlan
    n_iter: int = 1

    @classmethod
    def start(cls, posterior, trained, settings, seed):
        """Means as trained under constant noise, and a random noise network.

        Parameters
        ----------
        posterior : Posterior
            With `Gaussian` noise.
        trained : Trained
            One network.
        settings : Settings
            With a ``noise_plan``.
        seed : numpy.random.SeedSequence
            That of the start; the noise network's is derived from it.

        Returns
        -------
        Pair
        """
        plan = settings.noise_plan
        noise = _noise_posterior(posterior, plan.network, plan.groups)
        seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0))
        v, hyper = random_starts(noise, [np.random.default_rng(seed)])
        level = np.log(posterior.likelihood.precisions(trained.hyper.beta))
        v[0, -plan.network.n_outputs :] = level
        return cls(
            Side(posterior, trained.theta, trained.hyper, settings._replace(noise_plan=None)),
            Side(noise, v[0], hyper.select(0), plan.settings(settings)),
            plan,
            int(trained.n_iter),
        )

    @classmethod
    def resume(cls, posterior, old, settings):
        """Where an earlier fit left both networks.

        Parameters
        ----------
        posterior : Posterior
            With the layout and the noise of ``old``.
        old : Minimum
        settings : Settings

        Returns
        -------
        Pair
        """
        noise = _noise_posterior(posterior, old.noise.network, old.noise.groups)
        own = settings.noise_plan.settings(settings)
        return cls(
            Side(posterior, old.theta, old.hyper, settings._replace(noise_plan=None)),
            Side(noise, old.noise.theta, old.noise.hyper, own),
            settings.noise_plan,
        )

    def round(self, advance, extrapolated=lambda log_precision: log_precision):
        """Noise network given the residuals, then means given the noise."""
        mean, noise = self.mean, self.noise
        floor = noise.settings.free.prior.lower**2
        targets = squared_residuals(mean.posterior, mean.theta, mean.hyper, floor)
        noise = advance(replace(noise, posterior=replace(noise.posterior, y=targets)))
        mean = _given_noise(mean, extrapolated(noise.outputs()))
        return self._replace(mean=advance(mean), noise=noise)


def _noise_posterior(posterior, network, groups):
    """Posterior of a noise network that has not seen any residuals yet."""
    empty = np.zeros((len(posterior.X), 2 * network.n_outputs))
    return Posterior(
        network, SquaredResiduals(), groups, posterior.X, empty, posterior.sample_weight
    )


def expected_noise_posterior(posterior, network, groups):
    """Posterior of a noise network whose residuals are as large as it expects."""
    noise = _noise_posterior(posterior, network, groups)
    gamma = np.ones((len(posterior.X), network.n_outputs))
    return replace(noise, y=np.hstack([0.0 * gamma, gamma]))


def train_with_noise(pair, tol=ROUGH, tol_factor=ROUGH_TOL):
    """Train both networks in turns until the noise changes little (MacKay 1992, chapter 6)."""
    advance = partial(Side.trained, tol_factor=tol_factor)
    for _ in range(ROUNDS):
        before, pair = pair.noise.outputs(), pair.round(advance)
        change = pair.mean.posterior.sample_weight @ (pair.noise.outputs() - before) ** 2
        if np.all(change < tol**2 * pair.mean.posterior.n_rows):
            break
    return pair


def settle(pair, complete, polish):
    """Take both networks to their minima, in turns.

    Parameters
    ----------
    pair : Pair
        After `train_with_noise`.
    complete, polish : callable
        Those of the module of minima.

    Returns
    -------
    Minimum
        Of the means, whose ``noise`` is the minimum of the noise network.
    """
    pair = train_with_noise(pair, SETTLED, 1.0)
    best, highest = None, -np.inf
    for _ in range(ROUNDS):
        pair = pair.round(partial(Side.completed, complete=complete))
        value = with_noise(pair).log_evidence
        gain = value - highest
        if best is None or gain > 0.0:
            best, highest = pair, value
        if not gain > ENOUGH:  # also if there is no evidence
            break
    for _ in range(REFINING_ROUNDS):
        best = best.round(partial(Side.polished, polish=polish, refine=True))
    point = _Extrapolated(best.noise.outputs())
    for _ in range(POLISHING_ROUNDS):
        best = best.round(partial(Side.polished, polish=polish, refine=False), point.next)
        if point.change < POLISHED:
            break
    found = with_noise(best)
    return replace(found, converged=found.converged and bool(point.change < 100.0 * POLISHED))


class _Extrapolated:
    """Log precisions for the means to go on with: those found, nearer to their fixed point."""

    def __init__(self, log_precision):
        self._point = FixedPoint(log_precision.ravel(), MEMORY, 1e-10)
        self.change = np.inf

    def next(self, found):
        """What to go on with instead of what was found."""
        move = found.ravel() - self._point.x
        self.change = np.max(np.abs(move))
        if self.change > NEAR:  # extrapolation may lead astray
            self._point = FixedPoint(found.ravel(), MEMORY, 1e-10)
            return found
        return self._point.move(move).reshape(found.shape)


def _given_noise(mean, log_precision):
    """The network of the means, with the noise of every row fixed."""
    posterior, level = with_rows(mean.posterior, log_precision)
    free = mean.settings.free
    settings = mean.settings._replace(
        free=free._replace(beta=np.zeros_like(free.beta)),
        fixed=mean.settings.fixed._replace(beta=np.exp(level)),
    )
    return replace(mean, posterior=posterior, settings=settings)
