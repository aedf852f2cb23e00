"""Gaussian noise whose level is a function of the inputs (heteroscedastic)."""

from dataclasses import replace

import numpy as np

from skbayesnn.inference.curvature._method import Method
from skbayesnn.inference.minima._search import ALONE, distinct, fits, own_posterior
from skbayesnn.inference.minima._training import Trained, embedded, widened
from skbayesnn.inference.noise._constant_noise import (
    NOISE_MINIMA,
    ConstantNoise,
    information_of_data,
    stacked,
)
from skbayesnn.inference.noise._noise_network import (
    FEW_ROUNDS,
    NoisePlan,
    Pair,
    expected_noise_posterior,
    settle,
    train_with_noise,
)
from skbayesnn.posterior import Hyperparameters, InputDependentJoint, LogUniform


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
        plan = self.plan(problem)
        tasks = [(posed, plan, old, i > 0) for i, old in enumerate(starts)]
        with workers.searching(*posed, len(starts)) as report:
            found = workers.collect(lambda minima: report(minima and minima[0]), _with_noise, tasks)
        return distinct([minimum for minima in found for minimum in minima])

    def continues(self, problem, posed, old):
        """Return True if network and noise network of a minimum are compatible."""
        means = fits(old, posed.posterior.network, posed.posterior.groups)
        return means and fits(old.noise, *self.plan(problem))

    def starts(self, problem, posed, joint, starts, minima, seeds, from_prior):
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
            if not from_prior:
                pair = train_with_noise(pair, n_rounds=FEW_ROUNDS)
            mean, noise = pair.mean.found, pair.noise.found
            hyper = starts[i].hyper._replace(alpha=mean.hyper.alpha)
            starts[i] = starts[i]._replace(theta=mean.theta, hyper=hyper)
            v[i], alpha[i] = noise.theta, noise.hyper.alpha
        theta, hyper = stacked(starts)
        beta = settings.free.beta_prior.clip(np.exp(v[:, -network.n_outputs :]))
        hyper = Hyperparameters(np.hstack([hyper.alpha, alpha[:, :-1]]), beta)
        return joint.merged(theta, v), hyper

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
        (posterior, settings), v = posed, joint.noise_state(q)
        expected = expected_noise_posterior(posterior, *self.plan(problem))
        means = information_of_data(posterior, settings, joint.n_mean, joint.mean_weights(q), hyper)
        own = information_of_data(expected, settings, joint.n_noise, v, noise)[:, :-1]
        return np.hstack([means, own])


def _with_noise(posed, plan, old, optional):
    """Train a minimum together with its noise network, or with a new one if it has none.

    Where a new noise network finds little noise, the network of the means may resolve more of the
    function. So a second start restores the units that were pruned under constant noise, with
    random weights. Returns ``None`` for an ``optional`` minimum if the deadline has passed.
    """
    posterior, settings = posed
    if optional and settings.deadline.passed:
        return None
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
            trained = Trained(theta, old.hyper, old.n_iter)
            pair = train_with_noise(Pair.start(there, trained, settings, plan, seed))
            minimum = settle(pair)
            found.append(replace(minimum, pruned=pruned + minimum.pruned))
        return found
