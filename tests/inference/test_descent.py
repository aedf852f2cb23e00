import numpy as np
import pytest

from skbayesnn.inference import _descent, _minima
from skbayesnn.inference._descent import (
    by_descent,
    descend,
    precision_moves,
    train_by_descent,
)
from skbayesnn.inference._newton import find_mode
from skbayesnn.inference._training import FreeHyperparameters, Settings, random_starts, train
from skbayesnn.network import Network
from skbayesnn.posterior import Hyperparameters, LogUniform
from tests.tools import make_problem

PRIOR = LogUniform()


def classification(name="categorical", hidden=(4,), prior="layer", n=60):
    posterior, theta, hyper = make_problem(name, hidden, prior=prior, n=n)
    return posterior, theta, Hyperparameters(np.ones_like(hyper.alpha), np.ones(1))


def settings_for(hyper, free=True):
    mask = np.full(len(hyper.alpha), free)
    return Settings(FreeHyperparameters(mask, np.zeros(1, dtype=bool), PRIOR), hyper)


def variances_of(posterior, theta, hyper):
    return np.diag(np.linalg.inv(posterior.hessian(theta, hyper, exact=False)))


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_a_descent_ends_where_newton_steps_do(name):
    posterior, theta, hyper = classification(name)
    there = descend(posterior, theta, hyper, tol=1e-12)
    mode = find_mode(posterior, there, hyper)
    lowest = mode.energies.total(hyper)
    assert posterior.energies(there).total(hyper) == pytest.approx(lowest, abs=1e-6)
    assert posterior.energies(theta).total(hyper) > lowest + 1.0


def test_a_descent_ends_early_where_it_is_told_to():
    posterior, theta, hyper = classification()
    ends = [
        posterior.energies(end).total(hyper)
        for end in (
            theta,
            descend(posterior, theta, hyper, max_steps=2),
            descend(posterior, theta, hyper, tol=0.1),
            descend(posterior, theta, hyper),
        )
    ]
    assert np.all(np.diff(ends) < -1e-3)


def test_one_precision_moves_as_in_the_text():
    # MacKay 1992, equation 2.22: alpha <- gamma / 2 E_W.
    posterior, theta, hyper = classification(prior="single")
    variances = variances_of(posterior, theta, hyper)
    moves, gamma = precision_moves(posterior, theta, hyper, variances)
    expected = len(theta) - hyper.alpha[0] * variances.sum()
    assert gamma[0] == pytest.approx(expected)
    assert moves[0] == pytest.approx(np.log(expected / (hyper.alpha[0] * theta @ theta)))


@pytest.mark.parametrize("hidden", [(4,), (3, 4)])
def test_layers_share_what_the_data_determine(hidden):
    posterior, theta, hyper = classification(hidden=hidden)
    variances = variances_of(posterior, theta, hyper)
    counts = posterior.groups.sizes - hyper.alpha * posterior.groups.sums(variances)
    _, gamma = precision_moves(posterior, theta, hyper, variances)
    n_layers = len(hidden) + 1
    assert gamma.sum() == pytest.approx(counts.sum())
    np.testing.assert_allclose(
        gamma[0::2][:n_layers] + np.append(gamma[1::2], 0), gamma.sum() / n_layers
    )
    assert np.ptp(counts) > 0.1 * np.ptp(gamma)


def test_moves_do_not_depend_on_the_scale_of_the_layers():
    # Weights into the units times c, out of them over c, prior widths alike.
    posterior, theta, hyper = classification()
    variances = variances_of(posterior, theta, hyper)
    factor = np.ones(len(theta))
    factor[posterior.network.slices[0]], factor[posterior.network.slices[1]] = 3.0, 1 / 3.0
    scaled = hyper._replace(alpha=hyper.alpha * np.array([3.0, 3.0, 1 / 3.0]) ** -2)
    moves, gamma = precision_moves(posterior, theta, hyper, variances)
    others = precision_moves(posterior, theta * factor, scaled, variances * factor**2)
    np.testing.assert_allclose(others[0], moves)
    np.testing.assert_allclose(others[1], gamma)
    assert np.ptp(moves) > 0.05  # biases and weights of the first layer move apart


def test_precisions_of_groups_without_information_stay():
    posterior, theta, hyper = classification(prior="ard")
    variances = variances_of(posterior, theta, hyper)
    idle = posterior.groups.labels == 0
    moves, gamma = precision_moves(
        posterior, np.where(idle, 0.0, theta), hyper, np.where(idle, 1.0, variances)
    )
    assert moves[0] == gamma[0] == 0.0
    assert np.all(np.isfinite(moves))


def test_training_ends_at_its_fixed_point():
    posterior, theta, hyper = classification(n=200)
    trained = train_by_descent(posterior, theta, hyper, settings_for(hyper))
    assert trained.converged
    variances = variances_of(posterior, trained.theta, trained.hyper)
    moves, gamma = precision_moves(posterior, trained.theta, trained.hyper, variances)
    inside = np.clip(np.log(trained.hyper.alpha) + moves, *PRIOR.log_range)
    gain = 0.25 * gamma @ (inside - np.log(trained.hyper.alpha)) ** 2
    assert gain < 2e-3
    assert not np.allclose(trained.hyper.alpha, hyper.alpha)


def test_fixed_precisions_stay_as_they_are():
    posterior, theta, hyper = classification()
    trained = train_by_descent(posterior, theta, hyper, settings_for(hyper, free=False))
    np.testing.assert_array_equal(trained.hyper.alpha, hyper.alpha)
    assert trained.converged
    assert trained.n_iter == 1


def test_which_networks_are_trained_by_descent():
    small, *_ = classification()
    assert not by_descent(small)
    wide = Network((2, 900, 3))
    large = small.with_network(wide, np.zeros(wide.n_weights, dtype=int))
    assert by_descent(large)
    binary, *_ = classification("bernoulli")
    wide = Network((2, 1800, 1))
    assert not by_descent(binary.with_network(wide, np.zeros(wide.n_weights, dtype=int)))
    noisy, *_ = make_problem("gaussian", (4,), n=60)
    wide = Network((2, 900, 2))
    assert not by_descent(noisy.with_network(wide, np.zeros(wide.n_weights, dtype=int)))


def test_completed_minima_agree_with_those_of_gauss_newton_steps(monkeypatch):
    # One weight precision, fixed: both ways must find the same minimum and the same evidence.
    posterior, _, hyper = classification(hidden=(2,), prior="single", n=200)
    settings = settings_for(hyper, free=False)
    theta, _ = random_starts(posterior, [np.random.default_rng(0)])
    usual = train(posterior, theta, hyper.repeated(1), settings)
    usual = _minima.complete(posterior, usual.theta[0], hyper, settings)
    monkeypatch.setattr(_descent, "DEAR_HESSIAN", 0)
    trained = train_by_descent(posterior, theta[0], hyper, settings)
    minimum = _minima.complete(posterior, trained.theta, trained.hyper, settings)
    assert minimum.log_evidence == pytest.approx(usual.log_evidence, abs=1e-6)
