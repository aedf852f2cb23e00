from dataclasses import replace

import numpy as np
import pytest

from skbayesnn.inference import DensePrecision
from skbayesnn.inference.evidence._ascent import (
    BOLD,
    WARY,
    ascend,
    evidence_derivatives,
    without_idle_groups,
)
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    Hyperparameters,
    Hyperpriors,
    LogUniform,
    Posterior,
    StudentT,
    weight_groups,
)
from tests.inference.common import free_all, method_of, mode_of
from tests.tools import assert_near, difference, make_targets

PRIOR = LogUniform()


def make(name, hidden, n=60, prior="layer", seed=0):
    """Data drawn from a network of the same shape, so that it has a clear minimum."""
    rng = np.random.default_rng(seed)
    likelihood, n_outputs = {
        "one output": (Gaussian.per_output(1), 1),
        "two outputs": (Gaussian.per_output(2), 2),
        "shared noise": (Gaussian(np.zeros(2, dtype=int), np.array([1.0, 4.0])), 2),
        "bernoulli": (Bernoulli(), 1),
        "categorical": (Categorical(), 3),
        "student_t": (StudentT.per_output(1), 1),
    }[name]
    network = Network((2, *hidden, n_outputs))
    X = rng.standard_normal((n, 2))
    truth = 1.5 * rng.standard_normal(network.n_weights)
    y = make_targets(name, outputs(network, truth, X), rng)
    groups = weight_groups(network, prior)
    weight = rng.integers(1, 3, n).astype(float)
    posterior = Posterior(network, likelihood, groups, X, y, weight)
    beta = np.full(likelihood.n_levels, 3.0)
    hyper = Hyperparameters(np.exp(rng.uniform(-0.5, 0.5, len(groups.names))), beta)
    return posterior, mode_of(posterior, truth, hyper)


def logs_of(hyper):
    return np.log(np.concatenate(hyper))


def from_logs(logs, hyper):
    return Hyperparameters(*np.split(np.exp(logs), [len(hyper.alpha)]))


def at(posterior, search, logs):
    """The minimum that is next to that of a search, at other precisions."""
    hyper = from_logs(logs, search.point.hyper)
    return mode_of(posterior, search.point.theta, hyper, tol=1e-20)


def log_evidence(posterior, search):
    """With fixed precisions, from the exact Hessian."""
    return log_evidence_fixed(posterior, search.point)


def derivatives_at(posterior, search, exact=True):
    prior = free_all(posterior).prior
    return evidence_derivatives(posterior, method_of(posterior), search.point, prior, exact)


def ascended(posterior, search, free=None, exact=False, tol=1e-9, **options):
    """After `ascend`, and whether that settled."""
    free, method = free_all(posterior) if free is None else free, method_of(posterior)
    found = ascend(posterior, method, search, free, WARY if exact else BOLD, tol, **options)
    search = found.search if exact else without_idle_groups(posterior, method, found, free)
    return search, found.settled


CASES = [
    ("one output", (3,), "layer"),
    ("two outputs", (3,), "layer"),
    ("two outputs", (3,), "single"),
    ("shared noise", (2, 2), "layer"),
    ("bernoulli", (2,), "layer"),
    ("categorical", (2,), "ard"),
    ("student_t", (3,), "layer"),
    ("student_t", (), "layer"),
    ("bernoulli", (), "layer"),
    ("categorical", (), "ard"),
]
LINEAR = [("one output", "ard"), ("two outputs", "layer"), ("shared noise", "ard")]


@pytest.mark.parametrize(("name", "hidden", "prior"), CASES)
def test_gradient_of_the_evidence(name, hidden, prior):
    posterior, search = make(name, hidden, prior=prior)
    logs = logs_of(search.point.hyper)
    search = at(posterior, search, logs)
    assert search.converged
    gradient = derivatives_at(posterior, search).gradient
    expected = difference(lambda x: log_evidence(posterior, at(posterior, search, x)), logs, 1e-2)
    assert_near(gradient, expected, 1e-4)


@pytest.mark.parametrize(("name", "prior"), LINEAR)
@pytest.mark.parametrize("exact", [True, False])
def test_curvature_is_exact_for_linear_models(name, prior, exact):
    posterior, search = make(name, (), prior=prior)
    derivatives = derivatives_at(posterior, search, exact)

    def gradient(logs):
        return derivatives_at(posterior, at(posterior, search, logs), exact).gradient

    def value(logs):
        return log_evidence(posterior, at(posterior, search, logs))

    logs = logs_of(search.point.hyper)
    assert_near(derivatives.gradient, difference(value, logs, 1e-2), 1e-6)
    assert_near(derivatives.curvature, -difference(gradient, logs, 1e-2), 1e-6)


@pytest.mark.parametrize(("name", "hidden", "prior"), [c for c in CASES if c[1]])
def test_gauss_newton_gradient_is_that_of_the_gauss_newton_evidence(name, hidden, prior):
    posterior, search = make(name, hidden, prior=prior)
    derivatives = derivatives_at(posterior, search, exact=False)

    def value(logs):
        point = at(posterior, search, logs).point
        matrix = posterior.hessian(point.theta, point.hyper, exact=False)
        return log_evidence_fixed(posterior, point._replace(precision=DensePrecision(matrix)))

    logs = logs_of(search.point.hyper)
    assert_near(derivatives.value, value(logs), 1e-10)
    assert_near(derivatives.gradient, difference(value, logs, 1e-2), 1e-5)


@pytest.mark.parametrize("exact", [True, False])
def test_gamma_hyperpriors_add_their_density(exact):
    """Derivatives by differences, and the maximum that the ascent finds."""
    posterior, start = make("two outputs", (3,))
    uniform = free_all(posterior)
    prior = Hyperpriors.of(([Gamma(3.0, 2.0), LogUniform()] * 5)[: len(uniform.mask)])
    given = method_of(posterior), start.point, prior, exact
    found, plain = evidence_derivatives(posterior, *given), derivatives_at(posterior, start, exact)
    logs = logs_of(start.point.hyper)

    def density(logs):
        return np.sum(prior.log_kernel(logs))

    assert_near(found.value - plain.value, density(logs), 1e-10)
    assert_near(found.gradient - plain.gradient, difference(density, logs, 1e-4), 1e-6)
    assert_near(found.curvature - plain.curvature, np.diag(prior.rate * np.exp(logs)), 1e-10)
    search, settled = ascended(posterior, start, replace(uniform, prior=prior), exact)
    assert settled
    there = evidence_derivatives(posterior, given[0], search.point, prior, exact)
    assert np.max(np.abs(there.gradient)) < 1e-2
    assert there.value > found.value


def polish(posterior, search):
    """After the ascent with Gauss-Newton curvature, and after that with the exact one."""
    search, _ = ascended(posterior, search)
    start = mode_of(posterior, *search.point[:2])
    return start, ascended(posterior, start, exact=True, tol=1e-12, max_iter=50)[0]


@pytest.mark.parametrize("name", ["one output", "two outputs", "bernoulli"])
def test_polish_never_lowers_the_evidence(name):
    posterior, search = make(name, (2,))
    start, polished = polish(posterior, search)
    assert log_evidence(posterior, polished) >= log_evidence(posterior, start) - 1e-8
    if polished is not start:  # and keeps clear of singular Hessians
        lowest = np.linalg.eigvalsh(polished.point.precision.matrix)[0]
        assert lowest > 0.1 * np.min(polished.point.hyper.alpha)


def test_groups_that_determine_nothing_get_the_largest_precision():
    """Two inputs, of which the targets show no trace of the second."""
    posterior, search = make("one output", (), prior="ard")
    X, noise = posterior.X, np.random.default_rng(0).standard_normal((60, 1))
    inputs = np.hstack([X, np.ones((60, 1))])
    noise -= inputs @ np.linalg.lstsq(inputs, noise)[0]
    X = X - X.mean(axis=0)
    X[:, 1] -= X[:, 0] * (X[:, 0] @ X[:, 1]) / (X[:, 0] @ X[:, 0])
    posterior = replace(posterior, X=X, y=X[:, :1] + 0.3 * noise, sample_weight=np.ones(60))
    search, settled = ascended(posterior, mode_of(posterior, *search.point[:2]))
    assert settled
    alpha = search.point.hyper.alpha
    assert alpha[1] == pytest.approx(np.exp(PRIOR.log_range[1]))
    assert alpha[0] < 10.0
