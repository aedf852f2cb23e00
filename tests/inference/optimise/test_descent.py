"""Training by gradients alone: descents, and precisions that move fairly between them."""

import numpy as np
import pytest

from skbayesnn.inference import DensePrecision, Limits
from skbayesnn.inference.curvature._method import Point
from skbayesnn.inference.curvature._precision_kronecker import KroneckerPrecision
from skbayesnn.inference.minima._minimum import complete
from skbayesnn.inference.minima._training import Trained, random_starts, train
from skbayesnn.inference.optimise._damped import Search
from skbayesnn.inference.optimise._reestimation import fair_moves
from skbayesnn.inference.optimise._steps import Descents
from skbayesnn.posterior import Gamma, Hyperparameters, Hyperpriors, LogUniform
from tests.inference.common import free_all, method_of, mode_of, settings_of
from tests.tools import make_problem

SOFTMAX = Limits(softmax_work=0)
KRONECKER = Limits(dense=0, dual_work=0)


def problem(name="categorical", hidden=(4,), prior="layer", n=60):
    posterior, theta, hyper = make_problem(name, hidden, prior=prior, n=n)
    return posterior, theta, Hyperparameters(np.ones_like(hyper.alpha), np.ones_like(hyper.beta))


def descended(posterior, theta, hyper, tol=1e-7):
    energies = posterior.energies(theta, hyper.beta)
    trial = Descents(tol).trial(posterior, Search(Point(theta, hyper, energies, None, None)))
    lower = energies.total(hyper) - trial.energies.total(hyper)
    assert trial.gain == pytest.approx(lower)
    return trial.theta


def energy(posterior, theta, hyper):
    return posterior.energies(theta, hyper.beta).total(hyper)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "gaussian"])
def test_a_descent_ends_where_newton_steps_do(name):
    posterior, theta, hyper = problem(name)
    there = descended(posterior, theta, hyper, tol=1e-12)
    lowest = mode_of(posterior, there, hyper).point.energy
    assert energy(posterior, there, hyper) == pytest.approx(lowest, abs=1e-6)
    assert energy(posterior, theta, hyper) > lowest + 1.0


def moves_of(posterior, theta, hyper, matrix=None, prior=None):
    """`fair_moves` with the Gauss-Newton matrix, or with another one."""
    method = method_of(posterior)
    point = method.point(posterior, theta, hyper)
    if matrix is not None:
        point = point._replace(precision=DensePrecision(matrix))
    return fair_moves(posterior, point, prior or free_all(posterior).alpha_prior)


def gauss_newton(posterior, theta, hyper):
    return posterior.hessian(theta, hyper, exact=False)


@pytest.mark.parametrize("prior", [LogUniform(), Gamma(2.0, 3.0)], ids=["uniform", "gamma"])
def test_one_precision_moves_as_in_the_text(prior):
    # MacKay 1992, equation 2.22, with a hyperprior: alpha <- (gamma + 2 a) / (2 E_W + 2 b).
    posterior, theta, hyper = problem(prior="single")
    variances = np.diag(np.linalg.inv(gauss_newton(posterior, theta, hyper)))
    moves, gamma = moves_of(posterior, theta, hyper, prior=Hyperpriors.of([prior]))
    expected = len(theta) - hyper.alpha[0] * variances.sum()
    assert gamma[0] == pytest.approx(expected)
    alpha = (expected + 2.0 * prior.shape) / (theta @ theta + 2.0 * prior.rate)
    assert moves[0] == pytest.approx(np.log(alpha / hyper.alpha[0]))


def test_moves_do_not_depend_on_the_scale_of_the_layers():
    # Weights into the units times c, out of them over c, prior widths alike.
    posterior, theta, hyper = problem()
    matrix = gauss_newton(posterior, theta, hyper)
    factor = np.ones(len(theta))
    factor[posterior.network.slices[0]], factor[posterior.network.slices[1]] = 3.0, 1 / 3.0
    scaled = hyper._replace(alpha=hyper.alpha * np.array([3.0, 3.0, 1 / 3.0]) ** -2)
    moves, gamma = moves_of(posterior, theta, hyper)
    other = moves_of(posterior, theta * factor, scaled, matrix / np.outer(factor, factor))
    np.testing.assert_allclose(other[0], moves)
    np.testing.assert_allclose(other[1], gamma)
    assert np.ptp(moves) > 0.05  # biases and weights of the first layer move apart


def test_training_by_gradients_ends_at_the_noise_that_is_left():
    """``2 beta E_D = N - gamma`` (MacKay 1992, equation 2.24)."""
    posterior, theta, hyper = problem("gaussian")
    settings = settings_of(posterior, limits=KRONECKER)
    trained = train(posterior, Trained(theta, hyper), settings)
    precision = KroneckerPrecision(posterior.kronecker_factors(trained.theta, trained.hyper))
    gamma = precision.determined(posterior.groups, trained.hyper.alpha)
    errors = posterior.energies(trained.theta, trained.hyper.beta).errors
    used = posterior.level_counts.sum() - 2.0 * trained.hyper.beta @ errors
    assert used == pytest.approx(gamma.sum(), rel=0.03)


def test_completed_minima_agree_with_those_of_gauss_newton_steps():
    # One weight precision, fixed: both ways must find the same minimum and the same evidence.
    posterior, _, hyper = problem(hidden=(2,), prior="single", n=200)
    (start,) = random_starts(posterior, [np.random.default_rng(0)])
    minima = []
    for limits in (Limits(), SOFTMAX):
        settings = settings_of(posterior, hyper, limits=limits)
        trained = train(posterior, start, settings)
        minima.append(complete(posterior, trained.theta, trained.hyper, settings))
    assert minima[1].log_evidence == pytest.approx(minima[0].log_evidence, abs=1e-6)
