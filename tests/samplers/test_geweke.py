"""Samplers and the joint posterior together: is it the posterior that is sampled?

If parameters come from the prior and data from them, then alternating transitions for the
parameters given the data with new data given the parameters leaves the prior as it is (Geweke
2004), and among draws from the posterior the parameters that made the data have no special rank
(Talts et al. 2018). Every chain has data of its own here.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from skbayesnn.inference import FreeHyperparameters
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.network import Network, forward, outputs, vector_jacobian
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    Hyperparameters,
    JointPosterior,
    LogUniform,
    Posterior,
    weight_groups,
)
from skbayesnn.samplers import Metric, Noise, start, transition

RANGE = LogUniform(0.3, 3.0)
X = np.array([[-1.5], [-0.6], [0.1], [0.7], [1.6]])
X_TEST = np.array([[0.4], [2.5]])


class ManyTargets(Posterior):
    """Targets ``(m, n, n_outputs)``: a data set for each of the networks."""

    def misfit(self, theta, beta):
        trace = forward(self.network, theta, self.X, 1)
        errors, residual = self.likelihood.errors_and_gradient(
            trace.outputs, self.y, self.sample_weight, beta
        )
        return errors, vector_jacobian(trace, residual)


class ManyPosteriors:
    """Joint posteriors that differ in their targets, as one for `samplers`.

    The last entry of a position tells which one; the metric never moves it.
    """

    def __init__(self, joint):
        self.joint = joint
        self.y = None

    def __getattr__(self, name):
        return getattr(self.joint, name)

    def own(self, q):
        y = self.y[q[:, -1].astype(int)]
        return replace(self.joint, posterior=replace(self.joint.posterior, y=y)), q[:, :-1]

    def energy(self, q):
        joint, position = self.own(q)
        value, gradient = joint.energy(position)
        return value, np.concatenate([gradient, np.zeros((len(q), 1))], axis=1)

    def rescaled(self, q, shift):
        moved, log_volume = self.joint.rescaled(q[:, :-1], shift)
        return np.concatenate([moved, q[:, -1:]], axis=1), log_volume

    def draw_targets(self, q, theta, rng):
        """New targets of every chain given its weights and noise."""
        joint = self.joint
        f = outputs(joint.posterior.network, theta, X)
        if joint.posterior.likelihood.has_noise:
            beta = joint.place(q[:, :-1]).hyper.beta
            sd = joint.posterior.likelihood.precisions(beta) ** -0.5
            self.y = f + sd[:, None] * rng.standard_normal(f.shape)
        elif f.shape[-1] == 1:
            self.y = (f + rng.logistic(size=f.shape) > 0).astype(float)
        else:
            self.y = np.eye(f.shape[-1])[np.argmax(f + rng.gumbel(size=f.shape), axis=-1)]

    def summary(self, q, theta):
        """What is compared: log precisions, weights, outputs at new inputs."""
        place, free = self.joint.place(q[:, :-1]), self.joint.free
        logs = [place.hyper.alpha[:, free.alpha], place.hyper.beta[:, free.beta]]
        f = outputs(self.joint.posterior.network, theta, X_TEST).reshape(len(q), -1)
        return np.concatenate([np.log(np.concatenate(logs, axis=1)), theta, f], axis=1)


CASES = {
    "regression": (Gaussian.per_output(1), 1, "layer", True),
    "regression_all": (Gaussian.per_output(1), 1, "layer", False),
    "one_group": (Gaussian(np.array([0, 0]), np.array([1.0, 4.0])), 2, "single", True),
    "binary": (Bernoulli(), 1, "layer", True),
    "classes": (Categorical(), 3, "layer", True),
}


def make_case(name, information=1.0):
    likelihood, n_outputs, prior, integrate = CASES[name]
    network = Network((1, 2, n_outputs), "tanh")
    groups = weight_groups(network, prior)
    alpha = np.ones(len(groups.names), dtype=bool)
    beta = np.full(likelihood.n_levels, likelihood.has_noise)
    posterior = ManyTargets(network, likelihood, groups, X, None, np.array([1.0, 1, 1, 1, 1]))
    free = FreeHyperparameters(alpha, beta, RANGE)
    fixed = Hyperparameters(np.ones(len(alpha)), np.ones(len(beta)))
    information = information * np.array([1.0, 0.3, 3.0])[: len(alpha)]
    return ManyPosteriors(JointPosterior(posterior, free, fixed, information, integrate))


def draw_prior(many, m, rng):
    """Parameters from the prior by plain simulation: positions and all weights."""
    posterior, free = many.joint.posterior, many.joint.free
    alpha = np.exp(rng.uniform(*RANGE.log_range, (m, len(free.alpha))))
    beta = np.ones((m, len(free.beta)))
    beta[:, free.beta] = np.exp(rng.uniform(*RANGE.log_range, (m, int(free.beta.sum()))))
    theta = rng.standard_normal((m, posterior.network.n_weights))
    theta /= np.sqrt(alpha[:, posterior.groups.labels])
    q = many.joint.position(theta, Hyperparameters(alpha, beta))
    # to the last bit as the chain will see them: after rejections ranks depend on ties
    theta[:, : many.joint.n_sampled] = many.joint.place(q).theta
    return np.concatenate([q, np.arange(m)[:, None]], axis=1), theta


class Kernel:
    """Transitions of fixed step size, Metropolis-corrected, and perhaps rescalings of groups."""

    def __init__(self, many, m, rng, step_size=0.3, persistence=0.0, rescale=False):
        d = many.joint.dimension
        # some correlation and unequal scales; the last row leaves the label alone
        factor = np.eye(d + 1) + 0.2 * np.tri(d + 1, k=-1)
        factor[-1] = 0.0
        metric = Metric(np.tile(factor, (m, 1, 1)))
        self.settings = np.full(m, step_size), np.full(m, 6), metric, persistence
        self.many, self.rng = many, rng
        self.momentum = rng.standard_normal((m, d + 1))
        self.rescale = ScaleMoves(many) if rescale else None
        self.accepted = []

    def __call__(self, q):
        """One transition of every chain given its data."""
        m = len(q)
        phase = start(self.many.energy, q)._replace(momentum=self.momentum)
        noise = Noise(self.rng.standard_normal(q.shape), self.rng.random(m))
        phase, info = transition(self.many.energy, phase, noise, *self.settings)
        self.accepted.append(info.acceptance.mean())
        if self.rescale is not None:
            phase = self.rescale(self.many.energy, phase, [self.rng] * m)
        self.momentum = phase.momentum
        return phase.position

    def weights(self, q):
        """All weights, those integrated out drawn from their conditional posterior."""
        joint, position = self.many.own(q)
        return joint.complete_weights(position, [self.rng] * len(q))


def geweke_scores(name, m, n_iterations, seed=0, **options):
    """Standard scores of means and second moments against the prior's."""
    many, rng = make_case(name), np.random.default_rng(seed)
    q, theta = draw_prior(many, m, rng)
    kernel, kept = Kernel(many, m, rng, **options), []
    for _ in range(n_iterations):
        many.draw_targets(q, theta, rng)
        q = kernel(q)
        theta = kernel.weights(q)
        kept.append(many.summary(q, theta))
    assert 0.5 < np.mean(kernel.accepted) < 0.99
    x = np.stack(kept, axis=1)
    reference = many.summary(*draw_prior(many, 100_000, rng))
    scores = []
    for f in (lambda x: x, np.square, np.abs, lambda x: x * x[..., :1]):
        own, prior = f(x).mean(axis=1), f(reference)  # chains are independent of each other
        error = own.var(axis=0, ddof=1) / m + prior.var(axis=0) / len(prior)
        scores.append((own.mean(axis=0) - prior.mean(axis=0)) / np.sqrt(error))
    return np.concatenate(scores)


KERNELS = {"dynamics": {}, "persistent": {"persistence": 0.8}, "rescaled": {"rescale": True}}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KERNELS)
def test_joint_distribution_in_short(name, kind):
    assert np.max(np.abs(geweke_scores(name, 200, 15, seed=1, **KERNELS[kind]))) < 4.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KERNELS)
def test_joint_distribution(name, kind):
    assert np.max(np.abs(geweke_scores(name, 1000, 150, **KERNELS[kind]))) < 4.0


def ranks(name, m, n_draws, thin, seed):
    """Rank of the true parameters among draws from their posterior, ``(m, n_quantities)``.

    The truth is put at a random place of a chain that is run from it in both directions (Besag &
    Clifford 1989): a transition that draws momenta afresh is reversible, so no chain has to forget
    where it began.
    """
    many, rng = make_case(name), np.random.default_rng(seed)
    q, theta = draw_prior(many, m, rng)
    many.draw_targets(q, theta, rng)
    truth = many.summary(q, theta)
    kernel = Kernel(many, m, rng)
    sides = []
    for _ in range(2):
        position, kept = q, []
        for _ in range(n_draws):
            for _ in range(thin):
                position = kernel(position)
            kept.append(many.summary(position, kernel.weights(position)))
        sides.append(np.stack(kept))
    before = rng.integers(0, n_draws + 1, m)
    index = np.arange(n_draws)[:, None]
    draws = np.where((index < before)[..., None], sides[0], sides[1][index - before, np.arange(m)])
    below = np.sum(draws < truth, axis=0)
    equal = np.sum(draws == truth, axis=0)  # after rejections
    return below + np.floor(rng.random(below.shape) * (equal + 1)).astype(int)


def uniformity(values, n_values):
    """p-value of the chi-square test of ranks 0, ..., n_values - 1."""
    counts = np.bincount(values, minlength=n_values)
    expected = len(values) / n_values
    return chi2.sf(np.sum((counts - expected) ** 2) / expected, n_values - 1)


@pytest.mark.parametrize("name", CASES)
def test_simulation_based_calibration_in_short(name):
    values = ranks(name, m=300, n_draws=9, thin=3, seed=1)
    assert min(uniformity(column, 10) for column in values.T) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_simulation_based_calibration(name):
    values = ranks(name, m=2000, n_draws=9, thin=6, seed=0)
    assert min(uniformity(column, 10) for column in values.T) > 1e-3


# --- mistakes that have to be noticed ------------------------------------------------------------


def without_jacobian(joint, place, stretch, change, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch, change)
    gradient[..., joint.n_sampled :] += change
    return value + np.log(stretch).sum(axis=-1), gradient


def without_normaliser_of_weights(joint, place, stretch, change, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch, change)
    return value + 0.5 * np.sum(joint.sizes * np.log(place.share), axis=-1), gradient


def without_determinant(joint, theta, hyper, right=JointPosterior._marginal):
    result = right(joint, theta, hyper)
    alpha = joint.posterior.groups.expand(hyper.alpha)[..., joint.n_sampled :]
    return result._replace(value=result.value + 0.25 * np.log(alpha).sum(axis=-1))


def without_spread(joint, q, rngs):
    return joint.mean_weights(q)


def without_volume(joint, q, shift, right=JointPosterior.rescaled):
    moved, log_volume = right(joint, q, shift)
    return moved, np.where(np.isfinite(log_volume), 0.0, log_volume)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("_prior", without_jacobian),
        ("_prior", without_normaliser_of_weights),
        ("_marginal", without_determinant),
        ("complete_weights", without_spread),
        ("rescaled", without_volume),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mistakes_are_noticed(monkeypatch, method, wrong):
    monkeypatch.setattr(JointPosterior, method, wrong)
    scores = geweke_scores("regression", 300, 60, rescale=method == "rescaled")
    assert np.max(np.abs(scores)) > 6.0


def test_a_missing_metropolis_test_is_noticed(monkeypatch):
    def always(*args, right=transition):
        return right(*args, metropolis=False)

    monkeypatch.setitem(globals(), "transition", always)
    assert np.max(np.abs(geweke_scores("regression", 300, 60, step_size=0.6))) > 6.0


@pytest.mark.parametrize("wrong", [without_jacobian, without_normaliser_of_weights])
def test_mistakes_are_noticed_by_ranks(monkeypatch, wrong):
    monkeypatch.setattr(JointPosterior, "_prior", wrong)
    values = ranks("regression", m=300, n_draws=9, thin=6, seed=0)
    assert min(uniformity(column, 10) for column in values.T) < 1e-5
