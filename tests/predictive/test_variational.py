"""The closest Gaussian to the posterior of a classifier's weights."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from skbayesnn.inference import DensePrecision, DualPrecision, Limits, Problem
from skbayesnn.inference.task._problem import Settings
from skbayesnn.network import forward
from skbayesnn.posterior import Bernoulli, Categorical, Hyperparameters, Posterior
from skbayesnn.predictive import Member, left_out, softmax_slopes
from skbayesnn.predictive._moderation import moderated_sigmoid
from skbayesnn.predictive._variational import closest_gaussian

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
SEPARABLE = np.linspace(-1.5, 1.5, 12)[:, None]


class Case(NamedTuple):
    """A posterior with hyperparameters, and a member at its most probable weights."""

    member: Member
    posterior: Posterior
    settings: Settings
    hyper: Hyperparameters


def at_minimum(X, y, alpha, hidden=(), weight=None):
    """A `Case` of some data under a single prior precision."""
    likelihood = Bernoulli() if y.shape[1] == 1 else Categorical()
    weight = np.ones(len(X)) if weight is None else weight
    posterior, settings = Problem(X, y, weight, likelihood, prior="single").posed(hidden)
    hyper, network = Hyperparameters(np.array([alpha]), np.ones(0)), posterior.network
    found = minimize(
        lambda w: float(posterior.energies(w, hyper.beta).total(hyper)),
        np.random.default_rng(0).normal(0.0, 0.7, network.n_weights),
        jac=lambda w: posterior.energies_and_gradient(w, hyper)[1],
        options={"gtol": 1e-8},
    )
    precision = DensePrecision(posterior.hessian(found.x, hyper, exact=False))
    return Case(Member(network, found.x, precision), posterior, settings, hyper)


def separable(alpha=0.02):
    return at_minimum(SEPARABLE, (SEPARABLE > 0.2).astype(float), alpha)


@pytest.fixture
def to_convergence(monkeypatch):
    monkeypatch.setattr("skbayesnn.predictive._variational.TOLERANCE", 1e-7)
    monkeypatch.setattr("skbayesnn.predictive._variational.MAX_ITER", 500)


def lower_bound(parameters, posterior, alpha):
    """``E[log P(t | w)] - KL`` of a Gaussian over the two weights of a logistic regression."""
    mean, root = parameters[:2], np.array([[parameters[2], 0.0], parameters[3:]])
    Z = np.hstack([posterior.X, np.ones((len(posterior.X), 1))])
    sign = 2.0 * posterior.y[:, 0] - 1.0
    a = (Z @ mean)[:, None] + np.linalg.norm(Z @ root, axis=1)[:, None] * NODES
    likelihood = np.sum(log_expit(sign[:, None] * a) @ NODE_WEIGHTS)
    trace = alpha * (np.sum(root**2) + mean @ mean)
    return likelihood - 0.5 * trace + np.log(abs(root[0, 0] * root[1, 1]))


def test_closest_gaussian_has_the_highest_bound(to_convergence):
    case = separable()
    found = closest_gaussian(*case)
    best = minimize(
        lambda x: -lower_bound(x, case.posterior, case.hyper.alpha[0]),
        [3.0, -1.0, 2.0, 0.0, 2.0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000},
    ).x
    root = np.array([[best[2], 0.0], best[3:]])
    np.testing.assert_allclose(found.theta + found.shift, best[:2], rtol=1e-4)
    np.testing.assert_allclose(found.precision.covariance(), root @ root.T, rtol=1e-3)


def test_moderated_outputs_of_separable_classes_are_those_of_the_posterior():
    case = separable()
    w = np.stack(np.meshgrid(np.linspace(-20, 60, 601), np.linspace(-40, 30, 601)), -1)
    flat = w.reshape(-1, 2)
    log_density = np.concatenate(
        [
            -case.posterior.energies(part, np.ones((len(part), 0))).total(case.hyper)
            for part in np.array_split(flat, 50)
        ]
    )
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    X = np.linspace(-2.0, 2.0, 9)[:, None]
    exact = np.array([share @ expit(flat @ np.append(x, 1.0)) for x in X])

    def error(of):
        (mean,), (covariance,) = of.moments(X)
        return np.max(np.abs(moderated_sigmoid(mean[:, 0], covariance[:, 0, 0]) - exact))

    closest = closest_gaussian(*case)
    assert error(closest) < 0.05
    assert error(case.member) > 3.0 * error(closest)


@pytest.fixture
def case():
    """Three classes, hidden units, and weighted rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 2))
    y = np.eye(3)[np.argmax(X @ rng.standard_normal((2, 3)) * 3.0, axis=1)]
    return at_minimum(X, y, 0.5, hidden=(3,), weight=rng.integers(1, 4, 25).astype(float))


def test_stationary_with_several_classes_and_hidden_units(to_convergence, case):
    found, posterior = closest_gaussian(*case), case.posterior
    X, y, weight = posterior.X, posterior.y, posterior.sample_weight
    mean, J = found.linearised(X)
    probability, slopes = softmax_slopes(mean, found.precision.project(J))
    precision = np.einsum("n,nck,ncd,ndl->kl", weight, J, slopes, J, optimize=True)
    precision[np.diag_indices(len(precision))] += 0.5
    force = 0.5 * (found.theta + found.shift)
    force += np.einsum("n,nck,nc->k", weight, J, probability - y)
    covariance = found.precision.covariance()
    assert np.sqrt(force @ covariance @ force) < 1e-4
    np.testing.assert_allclose(covariance @ precision, np.eye(len(force)), atol=1e-4)


def test_dual_form_is_the_dense_one():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4, 9))
    y = (X[:, :1] > 0).astype(float)
    case = at_minimum(X, y, 0.1)
    limits = case.settings.limits._replace(dual_targets=0)
    case = case._replace(settings=case.settings._replace(limits=limits))
    dual = closest_gaussian(*case)
    assert isinstance(dual.precision, DualPrecision)
    twice = case.posterior.of_rows(np.tile(np.arange(4), 2))
    twice = replace(twice, sample_weight=np.full(8, 0.5))
    dense = closest_gaussian(*case._replace(posterior=twice))
    assert isinstance(dense.precision, DensePrecision)
    np.testing.assert_allclose(dual.shift, dense.shift, rtol=1e-6)
    np.testing.assert_allclose(dual.precision.covariance(), dense.precision.covariance(), atol=1e-8)


def test_leave_one_out_is_near_refits(to_convergence):
    case = separable(alpha=0.3)
    X, y = case.posterior.X, case.posterior.y
    quick = left_out(closest_gaussian(*case), case.posterior, case.hyper.beta).log_density
    refits = []
    for left in range(len(X)):
        rest = np.arange(len(X)) != left
        other = closest_gaussian(*at_minimum(X[rest], y[rest], 0.3))
        mean, covariance = (some[0] for some in other.moments(X[[left]]))
        sign = 2.0 * y[left] - 1.0
        refits.append(np.log(moderated_sigmoid(sign * mean[:, 0], covariance[:, 0, 0])[0]))
    np.testing.assert_allclose(quick, refits, atol=0.05)


@pytest.mark.parametrize("improved", [False, True])
def test_many_classes_are_left_out_as_few_are(improved, monkeypatch):
    """Independent activations beside the exact formula, for 12 classes."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 2))
    y = np.eye(12)[np.argmax(X @ rng.standard_normal((2, 12)) + rng.gumbel(size=(120, 12)), axis=1)]
    case = at_minimum(X, y, 0.5)
    member = closest_gaussian(*case) if improved else case.member
    exact = left_out(member, case.posterior, case.hyper.beta).log_density
    p = member.probabilities(X, True)
    monkeypatch.setattr("skbayesnn.predictive._leave_one_out.MANY_CLASSES", 2)
    monkeypatch.setattr("skbayesnn.predictive._members.MANY_CLASSES", 2)
    quick = left_out(member, case.posterior, case.hyper.beta).log_density
    assert abs(np.mean(quick - exact)) < 0.01
    np.testing.assert_allclose(quick, exact, atol=0.25)  # nats of single rows
    for quick, exact in zip(member.probabilities(X, True), p, strict=True):
        np.testing.assert_allclose(quick, exact, atol=0.02)


class TestLargeNetworks:
    """Of these the output layer alone gets a Gaussian, given the hidden units."""

    @staticmethod
    def large(case):
        return case._replace(settings=case.settings._replace(limits=Limits(moderation_work=0.0)))

    def test_is_that_of_a_linear_model_of_the_hidden_units(self, case):
        found = closest_gaussian(*self.large(case))
        posterior, last = case.posterior, case.posterior.network.slices[-1]
        assert found.free == last
        assert found.n_unknowns == last.stop - last.start
        np.testing.assert_array_equal(found.theta, case.member.theta)

        z = forward(posterior.network, found.theta, posterior.X).inputs[-1][:, :-1]
        problem = Problem(z, posterior.y, posterior.sample_weight, Categorical(), prior="single")
        above, settings = problem.posed(())
        theta = found.theta[last]
        precision = DensePrecision(above.hessian(theta, case.hyper))
        linear = Member(above.network, theta, precision)
        linear = closest_gaussian(linear, above, settings, case.hyper)
        for mine, expected in zip(found.moments(posterior.X), linear.moments(z), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-9)

    def test_small_ones_and_linear_ones_are_treated_whole(self, case):
        assert closest_gaussian(*case).free == slice(None)
        assert closest_gaussian(*self.large(separable())).free == slice(None)
