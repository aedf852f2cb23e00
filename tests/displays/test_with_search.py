"""Displays of a real search and of what it predicts with."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import (
    CalibrationDisplay,
    EvidenceDisplay,
    EvidenceVersusTestDisplay,
    PredictiveDisplay,
)
from skbayesnn.model_selection import EvidenceSearch

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (60, 1))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(60)
MODEL = EvidenceMLPRegressor(n_restarts=1, random_state=0)
GRID = {"hidden_layer_sizes": [(), (2,), (3,)], "prior": ["layer", "single"]}


@pytest.fixture(scope="module")
def search():
    return EvidenceSearch(MODEL, GRID, averaging="stacking").fit(X, Y)


def test_evidence(search):
    display = EvidenceDisplay.from_estimator(search, "hidden_layer_sizes", X, Y)
    evidence = search.results_["log_evidence"].reshape(3, 2)  # the grid varies the last name first
    assert len(display.lines_) == 2
    for line, column in zip(display.lines_, evidence.T, strict=True):
        assert_allclose(line.get_ydata(), column)


def test_evidence_versus_test(search):
    display = EvidenceVersusTestDisplay.from_estimator(search, X, Y, group_by="prior")
    assert set(display.correlations_) == {"layer", "single"}


def test_evidence_of_a_pipeline():
    pipeline = make_pipeline(PolynomialFeatures(), EvidenceMLPRegressor(()))
    found = EvidenceSearch(pipeline, {"polynomialfeatures__degree": [1, 3, 5]}).fit(X, Y)
    display = EvidenceDisplay.from_estimator(found, "polynomialfeatures__degree")
    assert_allclose(display.lines_[0].get_xdata(), [1, 3, 5])


def test_predictions_of_an_average(search):
    display = PredictiveDisplay.from_estimator(search, X, Y)
    assert_allclose(display.mean, search.predict(display.x[:, None]))
    CalibrationDisplay.from_estimator(search, X, Y)
