"""A minimum as a mixture over its precisions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.inference import Limits, Problem, spread
from skbayesnn.inference.minima._search import find_minima
from skbayesnn.posterior import Gaussian
from tests.tools import parts_of, set_limits, shares_of

pytestmark = pytest.mark.usefixtures("laplace")


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def found():
    X, y = rows()
    problem = Problem(X / X.std(), y[:, None] / y.std(), np.ones(40), Gaussian.per_output(1))
    posed = problem.posed((2,))
    (minimum, *_) = find_minima(*posed, np.random.SeedSequence(0).spawn(3))
    return posed, minimum


def test_moments_of_the_precisions(found):
    """Weighted places have the mean and the variance that the evidence says."""
    posed, minimum = found
    settings = posed.settings._replace(limits=Limits(places=512))
    places, weights = spread(posed.posterior, minimum, settings)
    assert_allclose(weights.sum(), 1.0)
    log_beta = np.log([place.hyper.beta[0] for place in places])
    mean = weights @ log_beta
    sd = np.sqrt(weights @ (log_beta - mean) ** 2)
    expected = np.sqrt(2.0 / (40 - minimum.noise_gamma[0]))  # MacKay 1992, section 2.5
    assert abs(mean - np.log(minimum.hyper.beta[0])) < expected
    assert 0.6 * expected < sd < 1.6 * expected


def test_every_place_is_a_minimum_of_its_own(found):
    posed, minimum = found
    places, weights = spread(posed.posterior, minimum, posed.settings)
    assert 1 < len(places) <= 17
    assert np.all(weights >= 0.01 * 0.99)
    own = posed.posterior.with_network(minimum.network, minimum.groups.labels)
    for place in places:
        gradient = own.energies_and_gradient(place.theta, place.hyper)[1]
        assert np.linalg.norm(gradient) < 1e-3


@pytest.mark.parametrize("change", ["none", "trouble", "linear"])
def test_where_there_is_nothing_to_spread(found, change):
    posed, minimum = found
    settings = posed.settings
    if change == "none":
        settings = settings._replace(limits=Limits(places=0))
    elif change == "trouble":
        minimum = replace(minimum, trouble="some")
    else:
        X, y = rows()
        problem = Problem(X, y[:, None], np.ones(40), Gaussian.per_output(1))
        posed = problem.posed(())
        settings = posed.settings
        (minimum,) = find_minima(*posed, np.random.SeedSequence(0).spawn(1))
    places, weights = spread(posed.posterior, minimum, settings)
    assert places == [minimum]
    assert_array_equal(weights, [1.0])


def test_predictions_are_wider(monkeypatch):
    set_limits(monkeypatch, places=16)
    model = EvidenceMLPRegressor((2,), noise="constant", n_restarts=2, random_state=0)
    model.fit(*rows())
    assert len(parts_of(model)) > 2
    assert_allclose(shares_of(model).sum(), 1.0)
    plain = EvidenceMLPRegressor(
        (2,), noise="constant", combine="tempered", n_restarts=2, random_state=0
    ).fit(*rows())
    X = np.linspace(-3, 3, 50)[:, None]
    wide, narrow = (m.predict_std(X, kind="epistemic") for m in (model, plain))
    assert 1.0 < np.mean(wide / narrow) < 2.0
    again = EvidenceMLPRegressor((2,), noise="constant", n_restarts=2, random_state=0)
    assert_array_equal(again.fit(*rows()).predict(X), model.predict(X))
