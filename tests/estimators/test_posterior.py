"""The posterior of the weights in the open: names, units, spectrum, and single networks."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    Prior,
    Sampler,
)
from skbayesnn.estimators import GaussianPosterior
from skbayesnn.predictive import class_probabilities
from tests.tools import BRIEF, assert_moments, difference

pytestmark = pytest.mark.usefixtures("laplace")

SCALE, SHIFT = np.array([1.0, 20.0]), np.array([3.0, 500.0])
GRID = np.array([[2.0, 480.0], [3.5, 530.0], [5.0, 500.0]])


def make_rows(n=50, n_outputs=1):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (n, 2))
    f = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], x[:, 0] * x[:, 1]], axis=1)[:, :n_outputs]
    y = 1000.0 + 7.0 * (f + 0.1 * (1 + 0.5 * x[:, :1]) * rng.standard_normal((n, n_outputs)))
    return SHIFT + SCALE * x, y


def make_classes(n=60, n_classes=3):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (n, 2))
    score = np.stack([x[:, 0], np.sin(2 * x[:, 1]), -x[:, 0] - x[:, 1]], axis=1)[:, :n_classes]
    best = np.argmax(score + 0.5 * rng.standard_normal(score.shape), axis=1)
    return SHIFT + SCALE * x, np.array(["a", "b", "c"])[best]


def fit_regressor(hidden=(3,), n_outputs=1, **options):
    X, y = make_rows(n_outputs=n_outputs)
    given = {"noise": "constant", "n_restarts": 2, "combine": "best", "random_state": 0}
    model = EvidenceMLPRegressor(hidden, **{**given, **options})
    return model.fit(X, y[:, 0] if n_outputs == 1 else y)


def run(theta, X, sizes, phi=np.tanh):
    """A network written out, from its weights in the order of the names: ``(n, n_outputs)``."""
    a, start = X, 0
    for fan_in, fan_out in pairwise(sizes):
        end = start + fan_in * fan_out
        W, b = theta[start:end].reshape(fan_in, fan_out), theta[end : end + fan_out]
        a, start = (a if start == 0 else phi(a)) @ W + b, end + fan_out
    return a


def sizes_of(model):
    return (2, *model.evidence_report_.minima[0].hidden_layer_sizes, model.n_outputs_)


@pytest.mark.parametrize(
    ("noise", "n_outputs", "hidden"),
    [
        ("constant", 1, ()),
        ("constant", 2, (2, 2)),
        ("student_t", 1, (2,)),
        ("input_dependent", 2, (2,)),
    ],
    ids=str,
)
def test_error_bars_follow_from_the_covariance_in_user_units(noise, n_outputs, hidden):
    """``g^T A^-1 g`` with derivatives of the network written out, by finite differences."""
    model = fit_regressor(hidden, n_outputs, noise=noise)
    posterior, sizes = model.posterior_[0], sizes_of(model)
    assert_allclose(run(posterior.mean, GRID, sizes).ravel(), model.predict(GRID).ravel())
    J = difference(lambda theta: run(theta, GRID, sizes), posterior.mean, 1e-6)
    expected = J @ posterior.covariance @ np.swapaxes(J, 1, 2)
    # differences of values near 1000 lose digits
    cov = model.predict_output_cov(GRID, kind="epistemic")
    assert_allclose(expected, cov, rtol=1e-4, atol=1e-5 * cov.max())


def energy_of_classes(model, X, y):
    """Minus the log posterior in weights of the user, written out."""
    alpha, sizes = model.weight_precisions_[0], sizes_of(model)
    codes = np.searchsorted(model.classes_, y)
    posterior = model.posterior_[0]

    def energy(theta):
        own = to_standardised @ (theta - zero)
        a = run(theta, X, sizes)
        return 0.5 * alpha * own @ own - np.sum(log_softmax(a, axis=1)[np.arange(len(y)), codes])

    zero = posterior.user_units.weights(np.zeros(len(posterior.mean)))
    to_standardised = np.linalg.inv(posterior.user_units.deviations(np.eye(len(zero))).T)
    return energy


def test_precision_of_a_classifier_is_the_hessian_in_user_units():
    X, y = make_classes()
    model = EvidenceMLPClassifier(
        (2,), prior=Prior("single", precision=0.3), n_restarts=2, random_state=0
    ).fit(X, y)
    posterior = model.posterior_[0]
    assert posterior.exact
    energy, k = energy_of_classes(model, X, y), len(posterior.mean)
    steps = np.linalg.cholesky(posterior.covariance)  # independent, of one standard deviation

    def slope(z):
        return difference(lambda z: energy(posterior.mean + steps @ z), z, 1e-2)

    assert np.max(np.abs(slope(np.zeros(k)))) < 1e-6  # a minimum
    assert_allclose(difference(slope, np.zeros(k), 1e-2), np.eye(k), atol=1e-5)
    assert_allclose(steps.T @ posterior.precision @ steps, np.eye(k), atol=1e-8)
    assert_allclose(steps @ steps.T, posterior.covariance, rtol=1e-6)


def test_linear_model_in_closed_form():
    X, y = make_rows()
    model = fit_regressor((), prior="single")
    alpha, beta = model.weight_precisions_[0], model.noise_std_**-2
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    unit = y.std()
    A = alpha * np.eye(3) + beta * unit**2 * Z.T @ Z
    posterior = model.posterior_[0]
    assert_allclose(posterior.gaussian.dense(), A, rtol=1e-6, atol=1e-6)
    inside = posterior.gaussian.covariance()
    assert_allclose(inside, np.linalg.inv(A), rtol=1e-6, atol=1e-12)
    w = np.linalg.solve(A, beta * unit * Z.T @ (y[:, 0] - y.mean()))
    assert_allclose(posterior.theta, w, rtol=1e-6, atol=1e-9)
    values = np.linalg.eigvalsh(A)[::-1]
    assert_allclose(posterior.eigenvalues * alpha, values, rtol=1e-6)
    assert_allclose(posterior.gamma, (values - alpha) / values, rtol=1e-6)
    assert_allclose(posterior.gamma.sum(), model.n_effective_weights_, rtol=1e-6)
    raw = np.column_stack([X, np.ones(len(X))])  # the same functions, in units of X and y
    assert_allclose(raw @ posterior.covariance @ raw.T, unit**2 * Z @ inside @ Z.T)


def test_samples_have_mean_and_covariance():
    posterior = fit_regressor((2,)).posterior_[0]
    draws = posterior.sample(20_000, random_state=0)
    white = np.linalg.solve(np.linalg.cholesky(posterior.covariance), (draws - posterior.mean).T)
    assert_moments(white.T, np.zeros(len(white)), np.eye(len(white)))
    assert_array_equal(posterior.sample(2, random_state=3), posterior.sample(2, random_state=3))


def test_names():
    X, y = make_rows(n_outputs=2)
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = EvidenceMLPRegressor((), noise="constant").fit(frame, y)
    names = ["age -> 0", "age -> 1", "dose -> 0", "dose -> 1", "bias -> 0", "bias -> 1"]
    assert model.posterior_[0].names == tuple(f"output[{name}]" for name in names)
    assert_allclose(model.networks_[0].outputs(frame), model.predict(frame))
    X, y = make_classes(n_classes=2)
    model = EvidenceMLPClassifier((1,), n_restarts=1, random_state=0).fit(X, y)
    hidden = tuple(f"hidden1[{name} -> 0]" for name in ("x0", "x1", "bias"))
    assert model.posterior_[0].names == (*hidden, "output[0]", "output[bias]")
    X, y = make_classes()
    model = EvidenceMLPClassifier(()).fit(X, y)
    assert model.posterior_[0].names[-3:] == tuple(f"output[bias -> {c}]" for c in "abc")


def test_one_posterior_for_every_network():
    X, y = make_rows()
    model = EvidenceMLPRegressor(noise="constant", random_state=0).fit(X[:30], y[:30, 0])
    posteriors, networks = model.posterior_, model.networks_
    assert len(posteriors) == len(networks) > 1
    for posterior, network in zip(posteriors, networks, strict=True):
        assert posterior.weight == network.weight
        assert posterior.log_evidence == network.log_evidence
        layers = zip(network.coefs, network.intercepts, strict=True)
        weights = np.concatenate([np.vstack(layer).ravel() for layer in layers])
        assert_array_equal(posterior.mean, weights)
    assert repr(posteriors).startswith(f"<{len(networks)} items, the first <GaussianPosterior: ")
    again = pickle.loads(pickle.dumps(posteriors[0]))
    assert isinstance(again, GaussianPosterior)
    assert_array_equal(again.covariance, posteriors[0].covariance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_networks_predict():
    for n_outputs in (2, 1):
        model = fit_regressor((2,), n_outputs=n_outputs)
        f = model.networks_[0].outputs(GRID)
        assert_allclose(f.reshape(model.predict(GRID).shape), model.predict(GRID))
    with pytest.raises(ValueError, match="3 features, the network takes 2"):
        model.networks_[0].outputs(np.ones((1, 3)))
    for n_classes in (2, 3):
        X, y = make_classes(n_classes=n_classes)
        model = EvidenceMLPClassifier((2,), n_restarts=1, combine="best", random_state=0).fit(X, y)
        p = class_probabilities(model.networks_[0].outputs(GRID))
        assert_allclose(p, model.predict_proba(GRID, moderated=False), rtol=1e-9)
        model = HMCMLPClassifier((2,), sampler=Sampler(thin=1), **BRIEF).fit(X, y)
        p = np.mean([class_probabilities(net.outputs(GRID)) for net in model.networks_], axis=0)
        assert_allclose(p, model.predict_proba(GRID), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:log_evidence_ is nan")
def test_no_gaussian_where_the_curvature_is_singular(monkeypatch):
    model = fit_regressor(())
    monkeypatch.setattr("skbayesnn.estimators._evidence.gaussian_around", lambda *_: (None, False))
    posterior = model.posterior_[0]
    assert "no Gaussian" in repr(posterior)
    assert posterior.mean.shape == (3,)
    for name in ("std", "covariance", "precision", "eigenvalues", "gamma"):
        with pytest.raises(AttributeError, match="numerically singular"):
            getattr(posterior, name)
