"""Tests of samplers and the joint posterior together.

If parameters come from the prior and data from them, then alternating transitions for the
parameters given the data with new data given the parameters leaves the prior as it is (Geweke
2004). Every chain has data of its own here.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from skbayesnn.inference.noise._input_dependent_noise import NoisePlan
from skbayesnn.inference.sampling._moves import renewal
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.network import Network, forward, outputs, vector_jacobian
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    Hyperparameters,
    InputDependentJoint,
    InputDependentStudentTJoint,
    JointPosterior,
    LogUniform,
    MeasuredGaussian,
    MeasuredJoint,
    Poisson,
    Posterior,
    StudentT,
    StudentTJoint,
    weight_groups,
)
from skbayesnn.samplers import Metric, RandomNumbers, start, transition

RANGE = LogUniform(0.3, 3.0)
GAMMA = Gamma(2.0, 1.5, 0.3, 3.0)
X = np.array([[-1.5], [-0.6], [0.1], [0.7], [1.6]])
X_TEST = np.array([[0.4], [2.5]])
DEGREES = (2.5, 5.0, 20.0)


class ManyTargets(Posterior):
    """Targets ``(m, n, n_outputs)``: a data set for each of the networks."""

    def misfit_and_gradient(self, theta, beta):
        trace = forward(self.network, theta, self.X, 1)
        misfit, residual = self.likelihood.misfit_and_gradient(trace.outputs, self.targets(), beta)
        return misfit, vector_jacobian(trace, residual)


class ManyPosteriors:
    """Joint posteriors that differ in their targets, as one for `samplers`.

    The last entry of a position, one more condition of the energy, tells which one.
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
        return joint(position)

    def rescaled(self, q, shift):
        moved, log_volume = self.joint.rescaled(q[:, :-1], shift)
        return np.concatenate([moved, q[:, -1:]], axis=1), log_volume

    def renewed(self, q, rngs, keep_outputs=False):
        joint, position = self.own(q)
        return np.concatenate([joint.renewed(position, rngs, keep_outputs), q[:, -1:]], axis=1)

    def draw_targets(self, q, theta, rng):
        """New targets of every chain given its weights and noise."""
        joint = self.joint
        f = outputs(joint.posterior.network, theta, X)
        if joint.posterior.likelihood.n_levels:
            position = q[:, :-1]
            beta = joint.place(position).hyper.beta
            sd = joint.posterior.likelihood.precisions(beta)[:, None] ** -0.5
            if isinstance(joint, InputDependentJoint):
                sd = np.exp(-0.5 * joint.noise_functions(joint.noise_state(position), X))
            if joint.posterior.known is not None:
                sd = np.hypot(sd, joint.posterior.known**0.5)
            if joint.n_conditions:
                sd = sd * joint.place(q[:, :-1]).conditions[:, : len(X), None] ** -0.5
            self.y = f + sd * rng.standard_normal(f.shape)
        elif isinstance(joint.posterior.likelihood, Poisson):
            self.y = rng.poisson(np.exp(f)).astype(float)
        elif f.shape[-1] == 1:
            self.y = (f + rng.logistic(size=f.shape) > 0).astype(float)
        else:
            self.y = np.eye(f.shape[-1])[np.argmax(f + rng.gumbel(size=f.shape), axis=-1)]

    def summary(self, q, theta):
        """What is compared: log precisions, the noise's own, weights, outputs at new inputs."""
        place, free = self.joint.place(q[:, :-1]), self.joint.free
        logs = [place.hyper.alpha[:, free.alpha], place.hyper.beta[:, free.beta]]
        f = outputs(self.joint.posterior.network, theta, X_TEST).reshape(len(q), -1)
        noise = self.joint.noise_state(q[:, :-1])
        return np.concatenate([np.log(np.concatenate(logs, axis=1)), noise, theta, f], axis=1)


CASES = {
    "regression": (Gaussian.per_output(1), 1, "layer", True),
    "regression_all": (Gaussian.per_output(1), 1, "layer", False),
    "one_group": (Gaussian(np.array([0, 0]), np.array([1.0, 4.0])), 2, "single", True),
    "gamma": (Gaussian.per_output(1), 1, "layer", True),
    "counts": (Poisson(), 1, "layer", True),
    "binary": (Bernoulli(), 1, "layer", True),
    "classes": (Categorical(), 3, "layer", True),
    "input_dependent": (Gaussian.per_output(1), 1, "layer", True),
    "input_dependent_all": (Gaussian.per_output(1), 1, "layer", False),
    "input_dependent_two_outputs": (Gaussian.per_output(2), 2, "single", True),
    "measured": (MeasuredGaussian(np.zeros(1, int), np.ones(1), np.ones(1)), 1, "layer", True),
    "student_t": (StudentT.per_output(1), 1, "layer", True),
    "student_t_all": (StudentT.per_output(1), 1, "layer", False),
    "input_dependent_student_t": (StudentT.per_output(1), 1, "layer", True),
    "input_dependent_student_t_two_outputs": (StudentT.per_output(2), 2, "single", True),
    "student_t_two_outputs": (StudentT(np.array([0, 0]), np.array([1.0, 4.0])), 2, "single", True),
}


# without hidden layers
LINEAR_CASES = {
    "linear_binary": (Bernoulli(), 1, "single", True),
    "linear_binary_gamma": (Bernoulli(), 1, "single", True),
    "linear_binary_groups": (Bernoulli(), 1, "ard", True),
    "linear_classes": (Categorical(), 3, "layer", True),
    "linear_classes_groups": (Categorical(), 3, "ard", True),
}


def make_case(name):
    likelihood, n_outputs, prior, integrate = (CASES | LINEAR_CASES)[name]
    hidden = () if name in LINEAR_CASES else (2,)
    network = Network((1, *hidden, n_outputs), "tanh")
    groups = weight_groups(network, prior)
    alpha = np.ones(len(groups.names), dtype=bool)
    beta = np.ones(likelihood.n_levels, dtype=bool)
    posterior = ManyTargets(network, likelihood, groups, X, None, np.array([1.0, 1, 1, 1, 1]))
    free = FreeHyperparameters.sharing(alpha, beta, GAMMA if "gamma" in name else RANGE)
    fixed = Hyperparameters(np.ones(len(alpha)), np.ones(len(beta)))
    information = np.array([1.0, 0.3, 3.0])[: len(alpha)]
    given = posterior, free, fixed, information, integrate
    if name.startswith("input_dependent"):
        plan = NoisePlan.build(network, (2,), prior)
        own = np.ones(len(plan.groups.names) - 1)
        free = free.with_groups(own > 0, RANGE)
        fixed = fixed._replace(alpha=np.ones(len(free.alpha)))
        information = np.append(information, 0.5 * own)
        given = posterior, free, fixed, information, integrate, *plan
        if "student_t" in name:
            return ManyPosteriors(InputDependentStudentTJoint(*given, DEGREES))
        return ManyPosteriors(InputDependentJoint(*given))
    if name == "measured":
        variances = np.array([[0.0], [0.3], [1.0], [4.0], [0.1]])
        return ManyPosteriors(MeasuredJoint(replace(posterior, known=variances), *given[1:]))
    kind, own = (JointPosterior, ()) if likelihood.linear else (StudentTJoint, (DEGREES,))
    return ManyPosteriors(kind(*given, *own))


def draw_prior(many, m, rng):
    """Parameters from the prior by plain simulation: positions and all weights."""
    free = many.joint.free
    groups = many.joint.groups  # of the weights in the position, and then of the others
    alpha = np.exp(free.alpha_prior.quantile(rng.random((m, len(free.alpha)))))
    beta = np.ones((m, len(free.beta)))
    levels = free.beta_prior[free.beta]
    beta[:, free.beta] = np.exp(levels.quantile(rng.random((m, int(free.beta.sum())))))
    theta = rng.standard_normal((m, len(groups.labels)))
    theta /= np.sqrt(alpha[:, groups.labels])
    q = many.joint.position(theta, Hyperparameters(alpha, beta))
    if many.joint.n_conditions:
        nu = rng.choice(DEGREES, (m, 1))
        factors = rng.gamma(0.5 * nu, 2.0 / nu, (m, len(X)))
        q[:, many.joint.dimension :][:, : len(X) + 1] = np.hstack([factors, nu])
    # to the last bit as the chain will see them: after rejections ranks depend on ties
    theta[:, : many.joint.n_sampled] = many.joint.place(q).theta
    theta = many.joint._of_means(theta)
    return np.concatenate([q, np.arange(m)[:, None]], axis=1), theta


class Kernel:
    """Transitions of fixed step size, Metropolis-corrected, and perhaps of other kinds."""

    def __init__(
        self, many, m, rng, step_size=0.3, persistence=0.0, moves=(), dynamics=True, n_steps=(6, 6)
    ):
        d = many.joint.dimension
        factor = np.diag(np.linspace(1.0, 1.4, d)) + 0.2 / d  # correlation and unequal scales
        metric = Metric(np.tile(factor, (m, 1, 1)))
        self.settings = metric, persistence
        self.step_size, self.n_steps = np.full(m, step_size), n_steps
        self.many, self.rng = many, rng
        self.momentum = self._draw_momentum(m)
        self.moves = [kind(many) for kind in moves]
        self.dynamics = dynamics
        self.accepted = []

    def _draw_momentum(self, m):
        d = self.many.joint.dimension
        return self.rng.standard_normal((m, d + 1))[:, :d]

    def __call__(self, q):
        """One transition of every chain given its data."""
        m = len(q)
        phase = start(self.many.energy, q)._replace(momentum=self.momentum)
        if self.dynamics:
            noise = RandomNumbers(self._draw_momentum(m), self.rng.random(m))
            low, high = self.n_steps
            steps = self.step_size, self.rng.integers(low, high + 1, size=m)
            phase, info = transition(self.many.energy, phase, noise, *steps, *self.settings)
            self.accepted.append(info.acceptance.mean())
        for move in self.moves:
            phase = move(self.many.energy, phase, [self.rng] * m)
        if self.many.joint.n_conditions:
            phase = renewal(self.many)(self.many.energy, phase, [self.rng] * m)
        self.momentum = phase.momentum
        return phase.position

    def weights(self, q):
        """All weights, those integrated out drawn from their conditional posterior."""
        joint, position = self.many.own(q)
        return joint.complete_weights(position, [self.rng] * len(q))


def bounded(x):
    """Without the heavy tails that would make means of some hundred chains far from normal."""
    return np.tanh(0.5 * x)


STATISTICS = [bounded, lambda x: bounded(x) ** 2, lambda x: bounded(x) * bounded(x[..., :1])]


@cache
def prior_moments(name):
    """Means of the `STATISTICS` under the prior, with their squared standard errors."""
    many = make_case(name)
    draws = many.summary(*draw_prior(many, 100_000, np.random.default_rng(99)))
    values = [f(draws) for f in STATISTICS]
    return [(some.mean(axis=0), some.var(axis=0) / len(some)) for some in values]


def geweke_scores(name, m, n_iterations, seed=0, **options):
    """Standard scores of means and second moments of bounded values against the prior's."""
    many, rng = make_case(name), np.random.default_rng(seed)
    q, theta = draw_prior(many, m, rng)
    kernel, kept = Kernel(many, m, rng, **options), []
    for _ in range(n_iterations):
        many.draw_targets(q, theta, rng)
        q = kernel(q)
        theta = kernel.weights(q)
        kept.append(many.summary(q, theta))
    if kernel.dynamics:
        assert 0.5 < np.mean(kernel.accepted) < 0.99
    x = np.stack(kept, axis=1)
    scores = []
    for f, (mean, error) in zip(STATISTICS, prior_moments(name), strict=True):
        own = f(x).mean(axis=1)  # chains are independent of each other
        total = error + own.var(axis=0, ddof=1) / m
        scores.append((own.mean(axis=0) - mean) / np.sqrt(total))
    return np.concatenate(scores)
