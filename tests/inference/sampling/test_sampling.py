"""Chains and evidences against another program, quadrature and closed forms."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import tests.reference
from skbayesnn.inference import Problem
from skbayesnn.inference.sampling._sampling import SamplingSettings, run_chains, start_sampling
from skbayesnn.inference.task._problem import Fit, Posed
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import Bernoulli, Posterior, weight_groups
from skbayesnn.samplers import Plan, r_hat
from tests.inference.common import population_evidence, settings_of

CASES = ["regression_one_group", "binary"]


def sampling(posterior, hyper=None, n_warmup=100, n_draws=100, tuned=True, **plan):
    """All precisions fixed at ``hyper``, or all of them free."""
    search = settings_of(posterior, hyper)
    return SamplingSettings(search, Plan(**plan), n_warmup, n_draws, tuned=tuned)


def started(posterior, settings, n_chains):
    given = posterior.X, posterior.y, posterior.sample_weight, posterior.likelihood
    fit = Fit(problem=Problem(*given), posed=Posed(posterior, settings.search))
    return start_sampling(fit, settings, np.random.SeedSequence(0).spawn(n_chains))


def run(posterior, settings, n_chains=16):
    return run_chains(*started(posterior, settings, n_chains), settings)


def test_chains_agree_where_classes_are_separable():
    """Only the prior bounds the weights: the posterior is a widening cone."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5))
    y = (X[:, :1] + 0.5 * X[:, 1:2] > 0.1).astype(float)
    network = Network((5, 1))
    posterior = Posterior(network, Bernoulli(), weight_groups(network, "single"), X, y, np.ones(60))
    draws = run(posterior, sampling(posterior, n_draws=500)).draws
    assert np.max(r_hat(np.log(draws.alpha))) < 1.1  # the largest of six seeds: 1.04


# as rare as 4 standard errors, if these are known by 16 chains only
LIMIT = stats.t.isf(stats.norm.sf(4.0), 15)


def mean_with_error(values):
    """Mean of (n_chains, n_draws, ...) and its standard error from the chains."""
    means = np.mean(values, axis=1)
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))


# --- another program's chains ---------------------------------------------------------------------


def load(name):
    """A case of `tests.reference` with what the other program's chains and annealing gave."""
    case = tests.reference.load(name)
    path = Path(tests.reference.__file__).parent / "posteriors.json"
    entry = json.loads(path.read_text())[name]
    case.expected = SimpleNamespace(**{key: np.array(value) for key, value in entry.items()})
    assert_array_equal(case.X_test, case.expected.X_test)
    assert_array_equal(case.trained_fixed.alpha, case.expected.alpha)
    case.hyper = case.trained_fixed.hyper
    return case


WAYS = {
    "tuned": {"tuned": True, "n_warmup": 200, "n_draws": 600},
    "all_weights": {"tuned": False, "n_warmup": 300, "n_draws": 600, "n_steps": 60},
}


@pytest.fixture(scope="module", params=[(c, w) for c in CASES for w in WAYS], ids="-".join)
def chains(request):
    name, way = request.param
    case = load(name)
    settings = sampling(case.posterior, case.hyper, **WAYS[way])
    case.sampled = run(case.posterior, settings)
    case.way = way
    return case


def total_energy(case, theta):
    """``beta E_D + alpha E_W + N/2 log(2 pi / beta)``, the other program's energy."""
    posterior, hyper = case.posterior, case.hyper
    normaliser = posterior.likelihood.log_normaliser(hyper.beta, posterior.n_rows)
    return posterior.energies(theta, hyper.beta).total(hyper) - normaliser


@pytest.mark.slow
def test_activations_of_another_program(chains):
    """The reference's variances are given the errors of its means, as if both mixed alike."""
    expected, draws = chains.expected, chains.sampled.draws
    f = outputs(chains.posterior.network, draws.theta, chains.X_test)
    mean, error = mean_with_error(f)
    theirs = expected.activation_mean_se
    assert np.all(np.abs(mean - expected.activation_mean) < LIMIT * np.hypot(error, theirs))
    squares = (f - expected.activation_mean) ** 2
    variance, error = mean_with_error(squares)
    n_effective = (expected.activation_sd / theirs) ** 2
    theirs = squares.std(axis=(0, 1)) / np.sqrt(n_effective)
    error = np.hypot(error, theirs)
    # one variance of the reference is too high in five of five runs, by 1 to 4 errors
    assert np.all(np.abs(variance - expected.activation_sd**2) < (2 + LIMIT) * error)


@pytest.mark.slow
def test_energy_of_another_program(chains):
    energy = total_energy(chains, chains.sampled.draws.theta)
    mean, error = mean_with_error(energy)
    expected = chains.expected
    assert abs(mean - expected.E_mean) < LIMIT * np.hypot(error, expected.E_mean_se)


@pytest.mark.slow
def test_evidence_of_another_program(chains):
    value, error = population_evidence(chains.sampled, 3)
    expected = chains.expected
    assert 0.0 < error < 0.7  # of four populations, 0.2 of it systematic
    combined = np.hypot(error, expected.log_marginal_likelihood_se)
    assert abs(value - expected.log_marginal_likelihood) < 4 * combined


@pytest.mark.parametrize("name", CASES)
def test_energy_of_the_position(name):
    """With all weights in the dynamics, the posterior's energy with all constants."""
    case = load(name)
    settings = sampling(case.posterior, case.hyper, 5, 4, tuned=False, n_steps=2)
    draws = run(case.posterior, settings, n_chains=2).draws
    k = case.posterior.network.n_weights
    expected = total_energy(case, draws.theta) - 0.5 * k * np.log(case.hyper.alpha[0] / 2 / np.pi)
    assert_allclose(draws.energy, expected, rtol=1e-9)
    assert_array_equal(draws.alpha, np.broadcast_to(case.hyper.alpha, draws.alpha.shape))
    assert_array_equal(draws.beta, np.broadcast_to(case.hyper.beta, draws.beta.shape))
