"""Input-dependent noise: a network of the means and a network of the log noise precision.

Given the precision of every residual, the network of the means has ordinary Gaussian noise.
The slope of its evidence with respect to the log precision of a residual is ``gamma_m / 2 - beta_m
E_Dm`` with ``gamma_m = 1 - beta_m g_m^T A^-1 g_m`` (MacKay 1992, chapter 6). The slope of the
likelihood, by contrast, would drive the precision to infinity where a point is fitted exactly.
Given ``gamma_m`` and the residuals, this slope is that of a misfit of the noise network alone. The
two networks are therefore trained, re-estimated, pruned and evaluated in turns, each like any other
network.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.evidence._evidence import EvidenceTerms, integrated
from skbayesnn.inference.minima._minimum import Minimum, Trouble, complete, polish
from skbayesnn.inference.minima._search import ALONE, distinct, fits, own_posterior
from skbayesnn.inference.minima._training import Trained, embedded, random_starts, train, widened
from skbayesnn.inference.noise._constant_noise import (
    NOISE_MINIMA,
    ConstantNoise,
    derived_generator,
    information_of_data,
    residuals_and_covariances,
    stacked,
)
from skbayesnn.inference.task._problem import FreeHyperparameters, Settings
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    INTERCEPT,
    Hyperparameters,
    InputDependentJoint,
    LogUniform,
    Posterior,
    SquaredResiduals,
    WeightGroups,
    weight_groups,
)

LEVEL = "level"  # the prior group of the output biases
MIN_GAMMA = 1e-6
ROUNDS = 10
FEW_ROUNDS = 3  # before sampling; with one chains stay where they overfit the noise
EARLY_ROUNDS = 2  # with early stopping: each further round would fit the noise a little more
ROUGH, SETTLED = 0.1, 0.03  # root mean square change of log precisions that ends the training
REFINING_ROUNDS = 2  # rounds of polishing that re-estimate the precisions as well
MAX_ROUNDS, POLISHED = 200, 1e-8  # of polishing; least change of log precisions at its end
ROUGH_TOL = 10.0  # factor of the training tolerance while the other side still moves


class NoisePlan(NamedTuple):
    """Noise network to train."""

    network: Network  # network from the inputs to the log precision of every output
    groups: WeightGroups  # weight groups, with the output biases in a group of their own, `LEVEL`

    @classmethod
    def build(cls, mean_network, hidden_layer_sizes, prior, feature_names=None):
        """Build a noise network for a network of the means, with weight groups of the same kind."""
        ends = mean_network.layer_sizes[0], mean_network.n_outputs
        network = Network((ends[0], *hidden_layer_sizes, ends[1]), mean_network.activation)
        # the output biases form a group of their own in any case
        groups = weight_groups(network, prior.removesuffix(INTERCEPT), feature_names)
        labels = groups.labels.copy()
        labels[network.n_weights - network.n_outputs :] = len(groups.names)
        return cls(network, WeightGroups(labels, [*groups.names, LEVEL]))

    def settings(self, settings):
        """Settings of the search for minima of the noise network.

        The flat prior of a noise level is replaced by a Gaussian of the same density at its centre.
        It is so wide that it hardly affects the output biases.
        """
        free = np.arange(len(self.groups.names)) < len(self.groups.names) - 1
        width = 2.0 * np.pi * np.exp(-2.0 * np.mean(settings.free.beta_prior.log_width))
        fixed = Hyperparameters(np.where(free, 1.0, width), np.ones(0))
        free = FreeHyperparameters.sharing(free, np.zeros(0, dtype=bool), LogUniform())
        return settings._replace(free=free, fixed=fixed)


def with_rows(posterior, log_precision):
    """Posterior of the means given log precisions of all residuals, and the mean ``ln beta``."""
    level = posterior.sample_weight @ log_precision / posterior.n_rows
    return replace(posterior, factors=np.exp(log_precision - level)), level


def residuals_and_gamma(posterior, theta, hyper, precision):
    """Residuals of the means, and the remaining degrees of freedom of each.

    Both have shape (n, n_outputs), with ``gamma_m = 1 - beta_m g_m^T A^-1 g_m`` (MacKay 1992,
    chapter 6). The noise is Gaussian, and ``precision`` that of the weights.
    """
    residuals, covariances = residuals_and_covariances(posterior, theta, precision)
    ones = posterior.targets()._replace(weight=np.ones(len(residuals)))
    _, beta = posterior.likelihood.derivatives(residuals + posterior.y, ones, hyper.beta)
    return residuals, 1.0 - beta * np.diagonal(covariances, axis1=1, axis2=2)


def squared_residuals(posterior, theta, hyper, settings):
    """Targets of the noise network and their factors, see `SquaredResiduals`.

    Both have shape (n, n_outputs). The posterior is that of the means, see `with_rows`.
    """
    precision = Method.choose(posterior, settings).point(posterior, theta, hyper).precision
    if precision.definite:
        residuals, gamma = residuals_and_gamma(posterior, theta, hyper, precision)
    else:  # numerically singular
        residuals = outputs(posterior.network, theta, posterior.X) - posterior.y
        gamma = np.ones_like(residuals)
    gamma = np.clip(gamma, MIN_GAMMA, 1.0)
    floor = np.exp(-settings.free.beta_prior.high)  # keeps the targets positive for noise-free data
    return residuals**2 / gamma + floor, gamma


def expected_noise_posterior(posterior, network, groups):
    """Posterior of a noise network whose squared residuals are all 1, their expectation at level 1.

    These placeholder targets are replaced by squared residuals later, or only the curvature is
    used.
    """
    y = np.ones((len(posterior.X), network.n_outputs))
    return Posterior(network, SquaredResiduals(), groups, posterior.X, y, posterior.sample_weight)


@dataclass(frozen=True, repr=False)
class NoiseNetworkTerms(EvidenceTerms):
    """Terms of the log evidence with a noise network; the others are those of `EvidenceTerms`."""

    # ``-sum_c alpha_c E_v^c + 1/2 sum_c k_c log alpha_c`` over the weights ``v`` of the noise
    # network; its output biases have the hyperprior of a constant noise level instead
    noise_weight_prior: float = 0.0
    noise_log_det: float = 0.0  # ``-1/2 log det A_v``
    noise_symmetry: float = 0.0
    noise_weight_precision_occam: float = 0.0


class Side(NamedTuple):
    """State of the search for one of the two networks."""

    posterior: Posterior
    settings: Settings
    found: Trained | Minimum  # so far; a network that was not trained before has made no steps

    def outputs(self):
        """Outputs of the network at all rows."""
        return outputs(self.posterior.network, self.found.theta, self.posterior.X)

    def trained(self, tol_factor=1.0):
        """Train the network from its present weights and precisions."""
        settings = self.settings._replace(tol=tol_factor * self.settings.tol)
        return self._replace(found=train(self.posterior, self.found, settings)._replace(n_iter=1))

    def completed(self, finish=complete):
        """Move to the nearest minimum, and delete redundant units."""
        hyper = self.settings.with_fixed(self.found.hyper)
        found = finish(self.posterior, self.found.theta, hyper, self.settings)
        if isinstance(self.found, Minimum):
            found = replace(found, pruned=self.found.pruned + found.pruned)
        posterior = self.posterior.with_network(found.network, found.groups.labels)
        return Side(posterior, self.settings, found)


class Pair(NamedTuple):
    """Network of the means and noise network."""

    mean: Side
    noise: Side

    @classmethod
    def start(cls, posterior, trained, settings, plan, seed):
        """Start from means trained under constant noise and a random noise network.

        The posterior is that of the means, with `Gaussian` noise. The seed of the noise network is
        derived from ``seed``.
        """
        noise = expected_noise_posterior(posterior, *plan)
        (start,) = random_starts(noise, [derived_generator(seed)])
        level = np.log(posterior.likelihood.precisions(trained.hyper.beta))
        start.theta[-plan.network.n_outputs :] = level
        mean = Side(posterior, settings, trained._replace(n_iter=1))
        return cls(mean, Side(noise, plan.settings(settings), start))

    @classmethod
    def resume(cls, posterior, old, settings, plan):
        """Resume from both networks of an earlier fit.

        The posterior is that of the means, with the layout and the noise of ``old``.
        """
        noise = expected_noise_posterior(posterior, old.noise.network, old.noise.groups)
        return cls(
            Side(posterior, settings, Trained(old.theta, old.hyper, 1)),
            Side(noise, plan.settings(settings), Trained(old.noise.theta, old.noise.hyper, 1)),
        )

    @property
    def method(self):
        """Method of the search for the means."""
        return Method.choose(*self.mean[:2])

    def round(self, advance):
        """Advance the noise network given the residuals, then the means given the noise."""
        (posterior, settings, found), noise = self.mean, self.noise
        y, gamma = squared_residuals(posterior, found.theta, found.hyper, settings)
        noise = noise._replace(posterior=replace(noise.posterior, y=y, factors=gamma))
        noise = advance(noise)
        posterior, level = with_rows(posterior, noise.outputs())
        settings = settings._replace(
            free=replace(settings.free, beta=np.zeros_like(settings.free.beta)),
            fixed=settings.fixed._replace(beta=np.exp(level)),
        )
        return self._replace(mean=advance(Side(posterior, settings, found)), noise=noise)

    @property
    def minimum(self):
        """Joint minimum of both networks, with its evidence (MacKay 1992, equation 6.1).

        The minimum of the means, whose ``noise`` is the minimum of the noise network.
        """
        mean, noise = (integrated(side.posterior, side.found, side.settings) for side in self)
        biases = noise.groups.labels == len(noise.groups.names) - 1
        pull = 0.5 * noise.hyper.alpha[-1] * np.sum(noise.theta[biases] ** 2)
        terms = NoiseNetworkTerms(
            **vars(mean.terms),
            noise_weight_prior=noise.terms.weight_prior + float(pull),  # flat for the biases
            noise_log_det=noise.terms.log_det,
            noise_symmetry=noise.terms.symmetry,
            noise_weight_precision_occam=noise.terms.weight_precision_occam,
        )
        return replace(
            mean,
            terms=terms,
            noise=noise,
            converged=mean.converged and noise.converged,
            trouble=mean.trouble or (noise.trouble and Trouble.NOISE_NETWORK),
        )


def in_turns(pair, advance, most, tol):
    """Advance both networks in at most some rounds, until the noise moves by less than ``tol``.

    Returns the pair, and the root mean square of the last change of log precisions.
    """
    moved, (posterior, settings, _) = np.inf, pair.mean
    weight = posterior.sample_weight
    for _ in range(most):
        before, pair = pair.noise.outputs(), pair.round(advance)
        change = pair.noise.outputs() - before
        moved = np.sqrt(np.max(weight @ change**2) / weight.sum())
        if moved < tol or settings.deadline.passed:
            break
    return pair, moved


def train_with_noise(pair, tol=ROUGH, tol_factor=ROUGH_TOL, n_rounds=ROUNDS):
    """Train both networks in turns until the noise has settled (MacKay 1992, chapter 6)."""
    most = EARLY_ROUNDS if pair.method.early else n_rounds
    return in_turns(pair, partial(Side.trained, tol_factor=tol_factor), most, tol)[0]


def settle(pair):
    """Converge both networks to their minima, in turns; return the minimum of the means.

    Its ``noise`` is the minimum of the noise network.
    """
    if pair.method.early:
        return pair.round(Side.completed).minimum
    deadline = pair.mean.settings.deadline
    pair, method = train_with_noise(pair, SETTLED, 1.0).round(Side.completed), pair.method
    # where minima are found to r nats, n log precisions are known to (4 r / n)^(1/2)
    tol = max(POLISHED, 2.0 * np.sqrt(method.resolution / method.n_rows))
    for refine, most in ((True, 0 if deadline.passed else REFINING_ROUNDS), (False, MAX_ROUNDS)):
        finish = partial(polish, refine=refine)
        pair, moved = in_turns(pair, partial(Side.completed, finish=finish), most, tol)
    found = pair.minimum
    return replace(found, converged=found.converged and bool(moved < max(tol, 100.0 * POLISHED)))


class InputDependentNoise(ConstantNoise):
    """Heteroscedastic Gaussian noise, whose log precision is the output of a second network."""

    plain = False

    def plan(self, problem):
        """Build the noise network and its weight groups."""
        prior = problem.prior if isinstance(problem.prior, str) else "layer"
        return NoisePlan.build(
            problem.network(()), problem.noise_hidden_layer_sizes, prior, problem.feature_names
        )

    def search(self, problem, posed, previous, workers=ALONE):
        """Find minima from given ones; those under constant noise get a noise network each."""
        pairs = [old for old in previous if old.noise is not None]
        plain = distinct([old for old in previous if old.noise is None])
        starts = [*pairs, *plain[: max(0, NOISE_MINIMA - len(pairs))]]
        tasks = [(posed, self.plan(problem), old) for old in starts]
        with workers.searching(*posed, len(starts)) as report:
            report_best = lambda minima: report(minima and minima[0])  # noqa: E731
            found = workers.collect(report_best, _with_noise, tasks, posed.settings.deadline)
        return distinct([minimum for minima in found for minimum in minima])

    def continues(self, problem, posed, old):
        """Return True if network and noise network of a minimum are compatible."""
        means = fits(old, posed.posterior.network, posed.posterior.groups)
        return means and fits(old.noise, *self.plan(problem))

    def starts(self, problem, posed, joint, starts, minima, seeds):
        """Starting points, see `ConstantNoise`, with a noise network for every chain."""
        posterior, settings = posed
        plan = self.plan(problem)
        network, groups = plan
        noises = [minimum.noise for minimum in minima]
        noises = [noise if fits(noise, *plan) else None for noise in noises]
        v = np.empty((len(seeds), network.n_weights))
        alpha = np.empty((len(seeds), len(groups.names)))
        for i, seed in enumerate(seeds):
            noise = noises[i] if i < len(noises) else None
            if noise is not None:
                v[i], alpha[i] = embedded(noise, network), noise.hyper.alpha
                continue
            pair = Pair.start(posterior, starts[i], settings, plan, seed)
            pair = train_with_noise(pair, n_rounds=FEW_ROUNDS)
            mean, noise = pair.mean.found, pair.noise.found
            hyper = starts[i].hyper._replace(alpha=mean.hyper.alpha)
            starts[i] = starts[i]._replace(theta=mean.theta, hyper=hyper)
            v[i], alpha[i] = noise.theta, noise.hyper.alpha
        theta, hyper = stacked(starts)
        beta = settings.free.beta_prior.clip(np.exp(v[:, -network.n_outputs :]))
        hyper = Hyperparameters(np.hstack([hyper.alpha, alpha[:, :-1]]), beta)
        return np.hstack([theta[:, : joint.n_mean], v[:, : joint.n_noise]]), hyper

    def joint(self, problem, posed, integrate_outputs):
        """Joint posterior of both networks, in non-centred coordinates."""
        (posterior, settings), plan = posed, self.plan(problem)
        own = np.ones(len(plan.groups.names) - 1)
        return InputDependentJoint(
            posterior,
            settings.free.with_groups(own > 0, LogUniform()),
            settings.fixed._replace(alpha=np.append(settings.fixed.alpha, own)),
            np.zeros(len(settings.free.alpha) + len(own)),
            integrate_outputs,
            *plan,
        )

    def information(self, problem, posed, joint, q):
        """Information of the data about the weights of both networks, see `ConstantNoise`."""
        n_means, typical = len(posed.posterior.groups.names), joint.typical_hyper(q)
        means, own = typical.alpha[:, :n_means], typical.alpha[:, n_means:]
        hyper, ones = Hyperparameters(means, typical.beta), np.ones((len(own), 1))
        noise = Hyperparameters(np.hstack([own, ones]), ones[:, :0])
        (posterior, settings), v = posed, joint.noise_weights(q)
        expected = expected_noise_posterior(posterior, *self.plan(problem))
        means = information_of_data(posterior, settings, joint.n_mean, joint.mean_weights(q), hyper)
        own = information_of_data(expected, settings, joint.n_noise, v, noise)[:, :-1]
        return np.hstack([means, own])


def _with_noise(posed, plan, old):
    """Train a minimum together with its noise network, or with a new one if it has none.

    Where a new noise network finds little noise, the network of the means may resolve more of the
    function. So a second start restores the units that were pruned under constant noise, with
    random weights.
    """
    posterior, settings = posed
    with Method.choose(posterior, settings).threads():
        own = own_posterior(posterior, old)
        if old.noise is not None:
            return [settle(Pair.resume(own, old, settings, plan))]
        seed = np.random.SeedSequence(0)  # starts differ enough in the means
        starts = [(own, old.theta, old.pruned)]
        if old.network != posterior.network and not Method.choose(own, settings).early:
            wide = widened(old, posterior.network, np.random.default_rng(seed))
            starts.append((posterior, wide, ()))
        found = []
        for there, theta, pruned in starts:
            if found and settings.deadline.passed:
                break
            trained = Trained(theta, old.hyper)
            minimum = settle(train_with_noise(Pair.start(there, trained, settings, plan, seed)))
            pruned += minimum.pruned
            found.append(replace(minimum, pruned=pruned, n_iter=old.n_iter))
        return found
