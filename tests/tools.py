"""Finite differences, small problems and the public modules, which several tests share."""

import importlib
import inspect
import pkgutil
from copy import copy
from dataclasses import replace

import numpy as np

import skbayesnn
from skbayesnn.estimators import BayesianMLP
from skbayesnn.inference import Limits
from skbayesnn.network import Network, forward
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    CensoredGaussian,
    CensoredStudentT,
    CorrelatedGaussian,
    Gaussian,
    Hyperparameters,
    MeasuredGaussian,
    NegativeBinomial,
    Poisson,
    Posterior,
    SquaredResiduals,
    StudentT,
    WeightGroups,
    weight_groups,
)

# as large data
NOT_SAMPLED = {"sampled_seconds": 0.0, "checked_seconds": 0.0, "chain_work": 0.0}
BRIEF = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "measure_evidence": False, "random_state": 0}
DEPTHS = [(), (4,), (3, 2, 3)]


def difference(f, x, h=1e-3):
    """Fourth-order central differences of ``f`` along every entry of ``x``; these come last."""
    columns = []
    for i in range(len(x)):
        e = np.zeros(len(x))
        e[i] = h
        near = np.asarray(f(x + e)) - f(x - e)
        far = np.asarray(f(x + 2 * e)) - f(x - 2 * e)
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=-1)


def assert_near(actual, desired, tol=1e-8):
    """Largest deviation relative to the largest entry."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape
    scale = max(np.max(np.abs(desired), initial=0.0), 1e-2)
    assert np.max(np.abs(actual - desired), initial=0.0) <= tol * scale


def assert_same(actual, desired, tol=1e-12):
    """Arrays are equal up to rounding on the scale of the largest entry of each, at least 1."""
    for one, other in zip(actual, desired, strict=True):
        assert np.shape(one) == np.shape(other)
        scale = max(1.0, np.max(np.abs(other), initial=0.0))
        np.testing.assert_allclose(one, other, rtol=0, atol=tol * scale)


def assert_same_bits(first, second):
    """Arrays, or tuples of them, are equal to the last bit."""
    if isinstance(first, np.ndarray):
        assert first.shape == second.shape
        assert first.tobytes() == second.tobytes()
    else:
        for a, b in zip(first, second, strict=True):
            assert_same_bits(a, b)


def assert_moments(draws, mean, covariance):
    """Draws ``(n, k)`` have this mean and covariance within 4 Monte Carlo standard errors."""
    n, off, variances = len(draws), draws - mean, np.diag(covariance)
    assert np.all(np.abs(off.mean(axis=0)) <= 4.0 * np.sqrt(variances / n))
    products = off[:, :, None] * off[:, None]
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - covariance) <= 4.0 * error)


def draw_weights(network, X, rng, lead=()):
    """Random weights; for relu no hidden unit is near its kink at any row of ``X``."""
    while True:
        theta = 0.7 * rng.standard_normal((*lead, network.n_weights))
        if network.activation != "relu":
            return theta
        trace = forward(network, theta, X)
        sums = [z @ w for z, w in zip(trace.inputs[:-1], trace.layers[:-1], strict=True)]
        if all(np.min(np.abs(a)) > 0.02 for a in sums):
            return theta


CORRELATION = np.array([[1.0, 0.7, -0.2], [0.7, 1.0, 0.3], [-0.2, 0.3, 1.0]])


def make_likelihood(name):
    """A likelihood with its number of outputs."""
    return {
        "gaussian": (Gaussian.per_output(2), 2),
        "gaussian_shared": (Gaussian(np.array([0, 1, 0]), np.array([1.0, 1.0, 4.0])), 3),
        "correlated": (CorrelatedGaussian(np.arange(2), np.ones(2), CORRELATION[:2, :2]), 2),
        "correlated_shared": (
            CorrelatedGaussian(np.array([0, 1, 0]), np.array([1.0, 1.0, 4.0]), CORRELATION),
            3,
        ),
        "measured": (MeasuredGaussian(np.zeros(1, dtype=int), np.ones(1), np.ones(1)), 1),
        "measured_shared": (
            MeasuredGaussian(np.array([0, 1, 0]), np.array([1.0, 1.0, 4.0]), np.ones(3)),
            3,
        ),
        "censored": (CensoredGaussian.per_output(1), 1),
        "censored_shared": (CensoredGaussian(np.array([0, 1, 0]), np.array([1.0, 1.0, 4.0])), 3),
        "censored_student_t": (CensoredStudentT.per_output(1), 1),
        "student_t": (StudentT.per_output(1), 1),
        "student_t_shared": (StudentT(np.array([0, 1, 0]), np.array([1.0, 1.0, 4.0]), 3.0), 3),
        "poisson": (Poisson(), 1),
        "negative_binomial": (NegativeBinomial.per_output(1), 1),
        "bernoulli": (Bernoulli(), 1),
        "categorical": (Categorical(), 3),
    }[name]


LIKELIHOODS = ["gaussian", "gaussian_shared", "bernoulli", "categorical", "poisson"]
ALL_LIKELIHOODS = [
    *LIKELIHOODS,
    "negative_binomial",
    "censored_student_t",
    *(
        name + kind
        for name in ("student_t", "measured", "correlated", "censored")
        for kind in ("", "_shared")
    ),
]


def make_targets(name, outputs, rng):
    """Targets that could have come from ``outputs``."""
    if name == "bernoulli":
        return (outputs + rng.logistic(size=outputs.shape) > 0).astype(float)
    if name in ("poisson", "negative_binomial"):
        return rng.poisson(rng.gamma(2.0, 0.5, outputs.shape) * np.exp(outputs)).astype(float)
    if name == "categorical":
        best = np.argmax(outputs + rng.gumbel(size=outputs.shape), axis=1)
        return np.eye(outputs.shape[1])[best]
    return outputs + 0.5 * rng.standard_normal(outputs.shape)


def make_variances(name, shape, rng):
    """Variances of errors, one of them zero, exposures or sides, for likelihoods with some."""
    if name.startswith("censored"):
        return rng.integers(-1, 2, shape).astype(float)
    if name in ("poisson", "negative_binomial"):
        return rng.uniform(0.5, 2.0, shape)
    if not name.startswith("measured"):
        return None
    variances = rng.gamma(1.0, 1.0, shape)
    variances[0] = 0.0
    return variances


def make_groups(network, prior):
    """`weight_groups`, or for ``"matrix"`` a prior with a mean that couples all weights."""
    if prior != "matrix":
        return weight_groups(network, prior)
    rng, k = np.random.default_rng(4), network.n_weights
    root = rng.standard_normal((k, k))
    shape = root @ root.T / k + np.eye(k)
    return WeightGroups(np.zeros(k, dtype=int), ["weights"], rng.standard_normal(k), shape)


def make_problem(
    name, hidden=(4,), activation="tanh", prior="layer", lead=(), n=7, seed=0, output_bias=True
):
    """A posterior with sample weights, weights ``theta`` and hyperparameters.

    ``"rows"`` are Gaussian targets with a factor each, ``"squares"`` their squares.
    """
    factors = name in ("rows", "squares")
    rng = np.random.default_rng(seed)
    likelihood, n_outputs = make_likelihood("gaussian" if factors else name)
    network = Network((2, *hidden, n_outputs), activation, output_bias)
    X = rng.standard_normal((n, 2))
    theta = draw_weights(network, X, rng, lead)
    truth = forward(network, draw_weights(network, X, rng), X).outputs
    y = make_targets(name, truth, rng)
    groups = make_groups(network, prior)
    weight, variances = rng.uniform(0.5, 3.0, n), make_variances(name, y.shape, rng)
    posterior = Posterior(network, likelihood, groups, X, y, weight, known=variances)
    alpha = np.exp(rng.uniform(-1, 1, (*lead, len(groups.names))))
    beta = np.exp(rng.uniform(-1, 1, (*lead, likelihood.n_levels)))
    found = posterior, theta, Hyperparameters(alpha, beta)
    return with_factors(*found, name == "squares") if factors else found


def with_factors(posterior, theta, hyper, squares):
    """A factor for every target, and squares of the targets on request."""
    y, likelihood = posterior.y, posterior.likelihood
    factors = np.random.default_rng(2).uniform(0.2, 1.0, y.shape)
    if squares:
        y, likelihood, hyper = y**2, SquaredResiduals(), hyper._replace(beta=hyper.beta[..., :0])
    return replace(posterior, likelihood=likelihood, y=y, factors=factors), theta, hyper


def without_core(posterior):
    """Copy of a posterior that computes in NumPy."""
    other = replace(posterior)
    vars(other)["compiled"] = None
    return other


def public_modules():
    """`skbayesnn`, and its modules and packages whose name has no leading underscore."""
    yield skbayesnn
    for module in pkgutil.iter_modules(skbayesnn.__path__, "skbayesnn."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def exported(module):
    """Names in ``__all__``, or in building blocks all that these import."""
    items = {name: item for name, item in vars(module).items() if not name.startswith("_")}
    imported = [name for name, item in items.items() if not inspect.ismodule(item)]
    return getattr(module, "__all__", imported)


def result_of(model):
    """Result of the engine of a fitted estimator: `EvidenceFit` or `SampledFit`."""
    return model._result


def draws_of(model):
    """`Draws` of a fitted sampler."""
    return model._result.draws


def parts_of(model):
    """Minima or drawn networks that predict together."""
    return model._ensemble.parts


def shares_of(model):
    """Weights of all networks in the predictions."""
    return model._ensemble.member_weights


def standardised(model, X):
    """Inputs as the networks see them."""
    return model._X_scaling.transform(X)


def set_limits(monkeypatch, **limits):
    """Other `Limits` for all estimators, so that small problems are treated as large ones."""
    monkeypatch.setattr(BayesianMLP, "_limits", Limits(**NOT_SAMPLED | limits))


def set_block_doubles(monkeypatch, doubles):
    """Another bound of the memory that sums over rows take at a time, as `BLOCK_DOUBLES`."""
    monkeypatch.setattr("skbayesnn.network._network.BLOCK_DOUBLES", doubles)


def with_ensemble(model, ensemble):
    """A fitted estimator that predicts by other networks."""
    other = copy(model)
    other._ensemble = ensemble
    if hasattr(model, "_laplace"):
        other._laplace = model._laplace._replace(gaussians=ensemble)
    else:
        other._gaussians = ensemble
    return other
