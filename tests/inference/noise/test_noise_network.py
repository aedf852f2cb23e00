"""Input-dependent noise: the gradient that the noise network follows, and the evidence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from skbayesnn.inference import NOISE_MODELS, Problem
from skbayesnn.inference.evidence._evidence import log_evidence_fixed
from skbayesnn.inference.minima._minimum import complete
from skbayesnn.inference.minima._search import find_minima
from skbayesnn.inference.noise._input_dependent_noise import NoisePlan, squared_residuals, with_rows
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.network import outputs
from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform, SquaredResiduals
from tests.inference.common import log_marginal, mode_of, settings_of
from tests.tools import assert_near, difference

INPUT_DEPENDENT = NOISE_MODELS["input_dependent"]


def make_problem(n=25, n_outputs=1, seed=0, sample_weight=None, **options):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-2, 2, (n, 1)), axis=0)
    sd = 0.1 * np.exp(0.5 * X)
    y = np.hstack([np.tanh(X + o) for o in range(n_outputs)])
    y = y + sd * rng.standard_normal(y.shape)
    weight = np.ones(n) if sample_weight is None else sample_weight
    return Problem(X, y, weight, Gaussian.per_output(n_outputs), **options)


def searched(problem, hidden=(), n_starts=1, seed=0, model=INPUT_DEPENDENT):
    """Minima with a noise network each."""
    posed, seeds = problem.posed(hidden), np.random.SeedSequence(seed).spawn(n_starts)
    return model.search(problem, posed, find_minima(*posed, seeds))


def mode_given_noise(posterior, log_precision, alpha, theta):
    """The posterior given the noise, and its mode."""
    own, level = with_rows(posterior, log_precision)
    hyper = Hyperparameters(np.full(len(posterior.groups.names), alpha), np.exp(level))
    return own, mode_of(own, theta, hyper, tol=1e-20).point


def evidence_given_noise(posterior, log_precision, alpha, theta):
    own, point = mode_given_noise(posterior, log_precision, alpha, theta)
    return log_evidence_fixed(own, point)


def targets_of_noise(own, theta, hyper):
    """Targets of the noise network, nothing added to them."""
    settings = settings_of(own)
    free = FreeHyperparameters.sharing(
        settings.free.alpha, settings.free.beta, LogUniform(lower=1e-12)
    )
    y, gamma = squared_residuals(own, theta, hyper, settings._replace(free=free))
    return own.targets()._replace(y=y, factors=gamma)


def slopes(posterior, log_precision, alpha, theta):
    """``gamma_m / 2 - beta_m E_Dm`` by way of the noise network's misfit."""
    own, point = mode_given_noise(posterior, log_precision, alpha, theta)
    targets = targets_of_noise(own, point.theta, point.hyper)
    gradient, _ = SquaredResiduals().derivatives(log_precision, targets, np.ones(0))
    return -gradient


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_slope_of_the_evidence_of_linear_means(n_outputs):
    """Exact there: differences of the evidence at re-optimised weights."""
    weight = np.random.default_rng(3).uniform(0.5, 3.0, 9)
    posterior = make_problem(9, n_outputs, sample_weight=weight).posed(()).posterior
    h = np.random.default_rng(1).uniform(0, 3, (9, n_outputs))
    theta = np.zeros(posterior.network.n_weights)
    expected = difference(
        lambda x: evidence_given_noise(posterior, x.reshape(h.shape), 2.0, theta), h.ravel()
    )
    assert_near(slopes(posterior, h, 2.0, theta).ravel(), expected, 1e-7)


def test_isolated_point_does_not_collapse_its_noise():
    """An output weight of its own fits one point exactly, yet its noise level stays finite."""
    rng = np.random.default_rng(0)
    X = np.append(rng.uniform(-1, 1, 39), 30.0)[:, None]
    y = 0.3 * rng.standard_normal((40, 1))
    y[-1] = 5.0
    problem = make_problem(40, noise_hidden_layer_sizes=(4,))
    problem = replace(problem, X=X / 5.0, y=y / y.std())
    best = searched(problem, (4,), 2)[0]
    log_precision = noise_outputs(best, problem.X)
    assert np.all(np.isfinite(log_precision))
    assert np.ptp(log_precision) < 6.0


def noise_outputs(minimum, X):
    return outputs(minimum.noise.network, minimum.noise.theta, X)


# --- evidence of the whole -----------------------------------------------------------------------


class PinnedPlan(NoisePlan):
    """A plan whose weight precisions are fixed at 0.7."""

    def settings(self, settings):
        own = super().settings(settings)
        alpha = np.where(own.free.alpha, 0.7, own.fixed.alpha)
        free = replace(own.free, alpha=np.zeros_like(own.free.alpha))
        return own._replace(free=free, fixed=own.fixed._replace(alpha=alpha))


class Pinned(type(INPUT_DEPENDENT)):
    """Noise networks with this plan."""

    def plan(self, problem):
        return PinnedPlan(*super().plan(problem))


def all_at(value):
    """Weight precisions of a problem."""
    return lambda names: (np.zeros(len(names), dtype=bool), np.full(len(names), value))


def test_evidence_by_brute_force():
    """Linear means, log-linear noise, all alpha fixed: quadrature over the noise's two weights."""
    gaps = []
    for n in (40, 320):
        problem = make_problem(n, noise_hidden_layer_sizes=(), weight_precision=all_at(1.5))
        best = searched(problem, model=Pinned())[0]
        assert best.trouble is None
        posterior = problem.posed(()).posterior
        low, high = LogUniform().log_range
        slope, level = np.linspace(-4, 2, 121), np.linspace(2, 7, 101)
        rows = slope[:, None, None] * posterior.X[:, 0] + level[:, None]
        total = log_marginal(posterior.X, posterior.y[:, 0], 1.5, rows) - np.log(high - low)
        total += (0.5 * np.log(0.7 / (2 * np.pi)) - 0.35 * slope**2)[:, None]
        exact = logsumexp(total) + np.log((slope[1] - slope[0]) * (level[1] - level[0]))
        gaps.append(abs(best.log_evidence - exact))
    assert gaps[0] < 0.15
    assert gaps[1] < 0.03


def test_constant_noise_is_the_nested_case():
    """Nothing to learn about the noise: all terms but the last are those of constant noise."""
    problem = make_problem(60, noise_hidden_layer_sizes=(3,))
    rng = np.random.default_rng(4)
    problem = replace(problem, y=problem.X + 0.3 * rng.standard_normal((60, 1)))
    best = searched(problem)[0]
    plain = find_minima(*problem.posed(()), np.random.SeedSequence(0).spawn(1))[0]
    assert best.noise.gamma[:-1].sum() < 0.1
    terms = best.terms
    # exactly 0 would be right; by Laplace's approximation, at a precision without effect
    assert -0.25 < terms.noise_weight_precision_occam <= 0.0
    rest = terms.total - terms.noise_weight_precision_occam
    assert rest == pytest.approx(plain.terms.total, abs=0.02)
    assert best.hyper.beta == pytest.approx(plain.hyper.beta, rel=1e-3)
    level = terms.noise_weight_prior + terms.noise_log_det + terms.noise_symmetry
    assert level == pytest.approx(plain.terms.noise_occam, abs=0.02)


def test_terms_are_those_of_both_networks():
    problem = make_problem(80, noise_hidden_layer_sizes=(2,))
    best = searched(problem, (3,), 2, seed=1)[0]
    assert best.log_evidence == best.terms.total
    posterior, _ = problem.posed((3,))
    own, level = with_rows(
        posterior.with_network(best.network, best.groups.labels), noise_outputs(best, posterior.X)
    )
    assert np.exp(level) == pytest.approx(best.hyper.beta)
    mean = complete(own, best.theta, best.hyper, settings_of(own, best.hyper)).terms
    for name in ("misfit", "noise_normaliser", "weight_prior", "log_det", "symmetry"):
        assert getattr(best.terms, name) == pytest.approx(getattr(mean, name), abs=1e-6)
    weights = best.noise.groups.labels < len(best.noise.groups.names) - 1
    alpha = best.noise.groups.expand(best.noise.hyper.alpha)
    prior = 0.5 * np.sum((np.log(alpha) - alpha * best.noise.theta**2)[weights])
    low, high = LogUniform().log_range
    prior += 0.5 * np.log(2 * np.pi) - np.log(high - low)
    assert best.terms.noise_weight_prior == pytest.approx(prior)
