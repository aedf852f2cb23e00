"""Novelty of inputs: closed form of linear models, limits, distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("laplace"),
]


def make_rows(n=40):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    return X, X[:, 0] + 0.5 * rng.standard_normal(n)


def test_linear_models_have_the_share_of_the_closed_form():
    X, y = make_rows()
    model = EvidenceMLPRegressor(
        (), prior="single", noise="constant", weight_precision=2.0, standardize=False
    ).fit(X, y)
    grid = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, -9.0]])
    prior = (1.0 + np.sum(grid**2, axis=1)) / 2.0
    share = model.predict_std(grid, kind="epistemic") ** 2 / prior
    found = model.novelty(grid)
    assert_allclose(found, share, rtol=4 * np.sqrt(2 * 2.0 / 512))  # standard errors


@pytest.mark.parametrize(
    "model",
    [
        EvidenceMLPRegressor((5,), noise="constant", n_restarts=1, random_state=0),
        HMCMLPRegressor((5,), noise="constant", n_warmup=50, n_draws=50, random_state=0),
    ],
    ids=["evidence", "hmc"],
)
def test_far_rows_are_newer(model):
    X, y = make_rows()
    model.fit(X, y)
    share, distance = model.novelty(np.vstack([X, X + 8.0]), return_distance=True)
    assert np.all((share >= 0) & (share <= 1))
    assert np.median(share[len(X) :]) > 3 * np.median(share[: len(X)])
    assert_allclose(distance[: len(X)], 0.0, atol=1e-7)
    assert np.all(distance[len(X) :] > 1)


@pytest.mark.usefixtures("as_users_fit")
def test_networks_drawn_from_the_posterior_have_their_own_prior():
    X, y = make_rows()
    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
    share = model.novelty(np.array([[0.0, 0.0], [30.0, 30.0]]))
    assert share[0] < share[1] <= 1


def test_classes():
    X, y = load_iris(return_X_y=True)
    model = EvidenceMLPClassifier((3,), n_restarts=1, random_state=0).fit(X, y)
    share, distance = model.novelty(X[:10] + 20.0, return_distance=True)
    assert np.all((share >= 0) & (share <= 1))
    assert np.all(distance > 5)
