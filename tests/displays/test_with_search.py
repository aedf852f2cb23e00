"""Displays of a real search and of what it predicts with."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import (
    CalibrationDisplay,
    EvidenceVersusTestDisplay,
    PredictiveDisplay,
)
from skbayesnn.model_selection import EvidenceSearch

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (60, 1))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(60)
MODEL = EvidenceMLPRegressor(n_restarts=1, random_state=0)
GRID = {"hidden_layer_sizes": [(), (2,), (3,)], "prior": ["layer", "single"]}


@pytest.fixture(scope="module")
def search():
    return EvidenceSearch(MODEL, GRID, combine="stacking").fit(X, Y)


def test_evidence_versus_test(search):
    display = EvidenceVersusTestDisplay.from_estimator(search, X, Y, group_by="prior")
    assert set(display.correlations_) == {"layer", "single"}


def test_predictions_of_an_average(search):
    display = PredictiveDisplay.from_estimator(search, X, Y)
    assert_allclose(display.mean, search.predict(display.x[:, None]))
    CalibrationDisplay.from_estimator(search, X, Y)
