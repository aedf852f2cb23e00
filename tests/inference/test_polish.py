import numpy as np
import pytest

from skbayesnn.inference._evidence import log_evidence_fixed, well_determined
from skbayesnn.inference._newton import find_mode
from skbayesnn.inference._polish import (
    Settled,
    evidence_derivatives,
    maximise_evidence,
    reestimate_to_convergence,
)
from skbayesnn.inference._training import FreeHyperparameters
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    Hyperparameters,
    LogUniform,
    Posterior,
    weight_groups,
)
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
    }[name]
    network = Network((2, *hidden, n_outputs))
    X = rng.standard_normal((n, 2))
    truth = 1.5 * rng.standard_normal(network.n_weights)
    y = make_targets(name, outputs(network, truth, X), rng)
    groups = weight_groups(network, prior)
    weight = rng.integers(1, 3, n).astype(float)
    posterior = Posterior(network, likelihood, groups, X, y, weight)
    beta = np.full(likelihood.n_levels, 3.0 if likelihood.has_noise else 1.0)
    hyper = Hyperparameters(np.exp(rng.uniform(-0.5, 0.5, len(groups.names))), beta)
    return posterior, find_mode(posterior, truth, hyper), hyper


def logs_of(hyper):
    return np.log(np.concatenate(hyper))


def from_logs(logs, hyper):
    return Hyperparameters(*np.split(np.exp(logs), [len(hyper.alpha)]))


def evidence(posterior, theta, hyper):
    mode = find_mode(posterior, theta, hyper, tol=1e-20)
    return log_evidence_fixed(posterior, hyper, mode.energies, mode.gaussian.log_det)


def free_all(posterior):
    has_noise = posterior.likelihood.has_noise
    return FreeHyperparameters(
        np.ones(len(posterior.groups.names), bool),
        np.full(posterior.likelihood.n_levels, has_noise),
        PRIOR,
    )


CASES = [
    ("one output", (3,), "layer"),
    ("two outputs", (3,), "layer"),
    ("two outputs", (3,), "single"),
    ("shared noise", (2, 2), "layer"),
    ("bernoulli", (2,), "layer"),
    ("categorical", (2,), "ard"),
    ("bernoulli", (), "layer"),
    ("categorical", (), "ard"),
]
LINEAR = [("one output", "ard"), ("two outputs", "layer"), ("shared noise", "ard")]


@pytest.mark.parametrize(("name", "hidden", "prior"), CASES)
def test_gradient_of_the_evidence(name, hidden, prior):
    posterior, mode, hyper = make(name, hidden, prior=prior)
    mode = find_mode(posterior, mode.theta, hyper, tol=1e-20)
    assert mode.converged
    gradient = evidence_derivatives(posterior, mode, hyper).gradient
    expected = difference(
        lambda logs: evidence(posterior, mode.theta, from_logs(logs, hyper)), logs_of(hyper), 1e-2
    )
    if not posterior.likelihood.has_noise:  # beta stays 1
        gradient, expected = gradient[:-1], expected[:-1]
    assert_near(gradient, expected, 1e-4)


@pytest.mark.parametrize(("name", "prior"), LINEAR)
@pytest.mark.parametrize("exact", [True, False])
def test_curvature_is_exact_for_linear_models(name, prior, exact):
    posterior, mode, hyper = make(name, (), prior=prior)
    derivatives = evidence_derivatives(posterior, mode, hyper, exact)

    def gradient(logs):
        moved = from_logs(logs, hyper)
        there = find_mode(posterior, mode.theta, moved, tol=1e-20)
        return evidence_derivatives(posterior, there, moved, exact).gradient

    def value(logs):
        return evidence(posterior, mode.theta, from_logs(logs, hyper))

    assert_near(derivatives.gradient, difference(value, logs_of(hyper), 1e-2), 1e-6)
    assert_near(derivatives.curvature, -difference(gradient, logs_of(hyper), 1e-2), 1e-6)


@pytest.mark.parametrize(("name", "hidden", "prior"), [c for c in CASES if c[1]])
def test_gauss_newton_gradient_is_that_of_the_gauss_newton_evidence(name, hidden, prior):
    posterior, mode, hyper = make(name, hidden, prior=prior)
    derivatives = evidence_derivatives(posterior, mode, hyper, exact=False)

    def value(logs):
        moved = from_logs(logs, hyper)
        there = find_mode(posterior, mode.theta, moved, tol=1e-20)
        log_det = np.linalg.slogdet(posterior.hessian(there.theta, moved, exact=False))[1]
        return log_evidence_fixed(posterior, moved, there.energies, log_det)

    logs = logs_of(hyper)
    assert_near(derivatives.value, value(logs), 1e-10)
    free = np.ones(len(logs), bool)
    free[len(hyper.alpha) :] = posterior.likelihood.has_noise
    assert_near(derivatives.gradient[free], difference(value, logs, 1e-2)[free], 1e-5)


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_dropping_tau_gives_the_reestimation_formula(hidden):
    # MacKay (1992), equations 2.22-2.24: exact for linear models, off by tau for others
    posterior, mode, hyper = make("one output", hidden)
    derivatives = evidence_derivatives(posterior, mode, hyper, exact=False)
    determined = well_determined(posterior, mode.theta, hyper)
    formula = 0.5 * determined.gamma - hyper.alpha * mode.energies.weights
    tau = derivatives.gradient[: len(formula)] - formula
    assert (np.max(np.abs(tau)) > 1e-3) == bool(hidden)


def check_identities(posterior, settled, rtol):
    """``2 alpha_c E_W^c = gamma_c`` and ``2 beta E_D = N - gamma``; groups at a bound left out."""
    hyper, mode = settled.hyper, settled.mode
    determined = well_determined(posterior, mode.theta, hyper)
    inside = PRIOR.clip(hyper.alpha * 1.01) / PRIOR.clip(hyper.alpha / 1.01) > 1.015
    assert inside.sum() >= len(inside) - 1
    np.testing.assert_allclose(
        2 * hyper.alpha[inside] * mode.energies.weights[inside], determined.gamma[inside], rtol=rtol
    )
    counts = posterior.n_rows * posterior.likelihood.level_sizes()
    np.testing.assert_allclose(
        2 * hyper.beta * mode.energies.data, counts - determined.noise_gamma, rtol=rtol
    )


@pytest.mark.parametrize(("name", "prior"), LINEAR)
def test_reestimation_ends_at_its_fixed_point(name, prior):
    posterior, mode, hyper = make(name, (), prior=prior)
    start = Settled(hyper, mode, True)
    settled = reestimate_to_convergence(posterior, start, free_all(posterior), tol=1e-14)
    assert settled.converged
    check_identities(posterior, settled, 1e-6)
    total = settled.mode.energies.total(settled.hyper)  # 2 M = N
    targets = posterior.n_rows * posterior.likelihood.level_sizes().sum()
    np.testing.assert_allclose(2 * total, targets, rtol=1e-6)

    usual = reestimate_to_convergence(posterior, start, free_all(posterior))
    assert usual.converged
    check_identities(posterior, usual, 1e-3)


@pytest.mark.parametrize("name", ["one output", "two outputs"])
def test_reestimation_of_a_network(name):
    posterior, mode, hyper = make(name, (3,))
    settled = reestimate_to_convergence(
        posterior, Settled(hyper, mode, True), free_all(posterior), max_iter=100
    )
    assert settled.converged
    there = evidence_derivatives(posterior, settled.mode, settled.hyper, exact=False)
    left = 0.5 * np.sum(there.gradient**2 / np.diag(there.curvature))  # nats still to gain
    assert left < 1e-4


def test_fixed_hyperparameters_stay():
    posterior, mode, hyper = make("two outputs", (3,))
    free = FreeHyperparameters(np.array([True, False, True]), np.array([False, True]), PRIOR)
    start = Settled(hyper, mode, True)
    for settled in (
        reestimate_to_convergence(posterior, start, free),
        maximise_evidence(posterior, start, free),
    ):
        unchanged = logs_of(settled.hyper) == logs_of(hyper)
        np.testing.assert_array_equal(unchanged, ~free.mask)


def polish(posterior, mode, hyper):
    """After re-estimation and after the polish."""
    free = free_all(posterior)
    start = reestimate_to_convergence(posterior, Settled(hyper, mode, True), free)
    start = start._replace(mode=find_mode(posterior, start.mode.theta, start.hyper))
    return start, maximise_evidence(posterior, start, free, max_iter=50)


def settled_evidence(posterior, settled):
    mode = settled.mode
    return log_evidence_fixed(posterior, settled.hyper, mode.energies, mode.gaussian.log_det)


@pytest.mark.parametrize("name", ["one output", "two outputs", "bernoulli"])
@pytest.mark.parametrize("seed", range(3))
def test_polish_never_lowers_the_evidence(name, seed):
    posterior, mode, hyper = make(name, (2,), seed=seed)
    start, polished = polish(posterior, mode, hyper)
    assert settled_evidence(posterior, polished) >= settled_evidence(posterior, start) - 1e-8
    if polished.mode is not start.mode:  # and keeps clear of singular Hessians
        assert np.linalg.eigvalsh(polished.mode.hessian)[0] > 0.1 * np.min(polished.hyper.alpha)


def test_polish_reaches_the_maximum_of_the_evidence():
    posterior, mode, hyper = make("two outputs", (3,), n=60, seed=1)
    start, polished = polish(posterior, mode, hyper)
    before = evidence_derivatives(posterior, start.mode, start.hyper).gradient
    after = evidence_derivatives(posterior, polished.mode, polished.hyper).gradient
    assert np.max(np.abs(after)) < 1e-4 < np.max(np.abs(before))
    assert settled_evidence(posterior, polished) > settled_evidence(posterior, start)


def test_polish_of_a_linear_model_agrees_with_reestimation():
    posterior, mode, hyper = make("one output", (), prior="single")
    start = Settled(hyper, mode, True)
    first = reestimate_to_convergence(posterior, start, free_all(posterior), tol=1e-14)
    second = maximise_evidence(posterior, start, free_all(posterior), max_iter=50)
    assert_near(logs_of(second.hyper), logs_of(first.hyper), 1e-5)
