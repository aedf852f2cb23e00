"""The closest Gaussian to the posterior of a classifier's weights."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.datasets import load_iris

from skbayesnn import EvidenceMLPClassifier
from skbayesnn.inference import DenseGaussian, DualGaussian
from skbayesnn.network import Network
from skbayesnn.posterior import Bernoulli, Categorical, Hyperparameters, Posterior, weight_groups
from skbayesnn.predictive import (
    Member,
    _variational,
    closest_gaussian,
    leave_one_out,
    moderated_sigmoid,
    softmax_slopes,
)

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
SEPARABLE = np.linspace(-1.5, 1.5, 12)[:, None]


def at_minimum(X, y, alpha, hidden=(), weight=None):
    """A posterior with its hyperparameters, and a member at its most probable weights."""
    likelihood = Bernoulli() if y.shape[1] == 1 else Categorical()
    network = Network((X.shape[1], *hidden, y.shape[1]))
    weight = np.ones(len(X)) if weight is None else weight
    posterior = Posterior(network, likelihood, weight_groups(network, "single"), X, y, weight)
    hyper = Hyperparameters(np.array([alpha]), np.ones(1))
    found = minimize(
        lambda w: float(posterior.energies(w).total(hyper)),
        np.random.default_rng(0).normal(0.0, 0.7, network.n_weights),
        jac=lambda w: posterior.gradient(w, hyper),
        options={"gtol": 1e-8},
    )
    gaussian = DenseGaussian.from_precision(posterior.hessian(found.x, hyper, exact=False))
    return posterior, hyper, Member(network, found.x, gaussian, np.zeros(y.shape[1]))


def separable(alpha=0.02):
    return at_minimum(SEPARABLE, (SEPARABLE > 0.2).astype(float), alpha)


@pytest.fixture
def to_convergence(monkeypatch):
    monkeypatch.setattr(_variational, "TOLERANCE", 1e-7)
    monkeypatch.setattr(_variational, "MAX_ITER", 500)


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
    posterior, hyper, member = separable()
    found = closest_gaussian(member, posterior, hyper)
    best = minimize(
        lambda x: -lower_bound(x, posterior, hyper.alpha[0]),
        [3.0, -1.0, 2.0, 0.0, 2.0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000},
    ).x
    root = np.array([[best[2], 0.0], best[3:]])
    np.testing.assert_allclose(found.theta + found.shift, best[:2], rtol=1e-4)
    np.testing.assert_allclose(found.gaussian.covariance(), root @ root.T, rtol=1e-3)


def test_moderated_outputs_of_separable_classes_are_those_of_the_posterior():
    posterior, hyper, member = separable()
    w = np.stack(np.meshgrid(np.linspace(-20, 60, 601), np.linspace(-40, 30, 601)), -1)
    flat = w.reshape(-1, 2)
    log_density = np.concatenate(
        [-posterior.energies(part).total(hyper) for part in np.array_split(flat, 50)]
    )
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    X = np.linspace(-2.0, 2.0, 9)[:, None]
    exact = np.array([share @ expit(flat @ np.append(x, 1.0)) for x in X])

    def error(of):
        mean, covariance = of.mean_and_covariance(X)
        return np.max(np.abs(moderated_sigmoid(mean[:, 0], covariance[:, 0, 0]) - exact))

    closest = closest_gaussian(member, posterior, hyper)
    assert error(closest) < 0.05
    assert error(member) > 3.0 * error(closest)


def test_stationary_with_several_classes_and_hidden_units(to_convergence):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 2))
    y = np.eye(3)[np.argmax(X @ rng.standard_normal((2, 3)) * 3.0, axis=1)]
    weight = rng.integers(1, 4, len(X)).astype(float)
    posterior, hyper, member = at_minimum(X, y, 0.5, hidden=(3,), weight=weight)
    found = closest_gaussian(member, posterior, hyper)
    mean, J = found.linearised(X)
    probability, slopes = softmax_slopes(mean, found.gaussian.project(J))
    precision = np.einsum("n,nck,ncd,ndl->kl", weight, J, slopes, J, optimize=True)
    precision[np.diag_indices(len(precision))] += 0.5
    force = 0.5 * (found.theta + found.shift)
    force += np.einsum("n,nck,nc->k", weight, J, probability - y)
    covariance = found.gaussian.covariance()
    assert np.sqrt(force @ covariance @ force) < 0.02  # the quasi-random points are not smooth
    np.testing.assert_allclose(covariance @ precision, np.eye(len(force)), atol=0.02)


def test_whole_weights_are_repetitions():
    X, y = SEPARABLE, (SEPARABLE > 0.2).astype(float)
    weight = np.arange(12) % 3 + 1.0
    once = closest_gaussian(*_order(at_minimum(X, y, 0.1, weight=weight)))
    copies = np.repeat(np.arange(12), weight.astype(int))
    posterior, hyper, _ = at_minimum(X[copies], y[copies], 0.1)
    again = closest_gaussian(replace(once, shift=None), posterior, hyper)
    np.testing.assert_allclose(again.shift, once.shift, rtol=1e-6)


def _order(problem):
    posterior, hyper, member = problem
    return member, posterior, hyper


def test_dual_form_is_the_dense_one():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4, 9))
    y = (X[:, :1] > 0).astype(float)
    posterior, hyper, member = at_minimum(X, y, 0.1)
    dual = closest_gaussian(member, posterior, hyper)
    assert isinstance(dual.gaussian, DualGaussian)
    twice = replace(posterior, X=np.vstack([X, X]), y=np.vstack([y, y]))
    twice = replace(twice, sample_weight=np.full(8, 0.5))
    dense = closest_gaussian(member, twice, hyper)
    assert isinstance(dense.gaussian, DenseGaussian)
    np.testing.assert_allclose(dual.shift, dense.shift, rtol=1e-6)
    np.testing.assert_allclose(dual.gaussian.covariance(), dense.gaussian.covariance(), atol=1e-8)


def test_leave_one_out_is_near_refits(to_convergence):
    posterior, hyper, member = separable(alpha=0.3)
    X, y = posterior.X, posterior.y
    closest = closest_gaussian(member, posterior, hyper)
    quick = leave_one_out(closest, posterior.likelihood, hyper.beta, X, y)
    refits = []
    for left in range(len(X)):
        rest = np.arange(len(X)) != left
        some, _, other = at_minimum(X[rest], y[rest], 0.3)
        other = closest_gaussian(other, some, hyper)
        mean, covariance = other.mean_and_covariance(X[[left]])
        sign = 2.0 * y[left] - 1.0
        refits.append(np.log(moderated_sigmoid(sign * mean[:, 0], covariance[:, 0, 0])[0]))
    np.testing.assert_allclose(quick, refits, atol=0.05)


def test_too_large_problems_keep_their_gaussian(monkeypatch):
    monkeypatch.setattr(_variational, "LARGEST_STEP", 10)
    posterior, hyper, member = separable()
    assert closest_gaussian(member, posterior, hyper) is member


def test_classifier_is_sure_of_separable_classes():
    X, y = load_iris(return_X_y=True)
    rest = np.arange(150) % 5 > 1
    model = EvidenceMLPClassifier((), random_state=0).fit(X[~rest], y[~rest])
    assert np.mean(model.log_predictive_density(X[rest], y[rest])) > -0.16  # Laplace: -0.26
