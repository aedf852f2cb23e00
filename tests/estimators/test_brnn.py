"""Agreement with the R package brnn, whose method is that of MATLAB's trainbr.

F. D. Foresee and M. T. Hagan (1997), "Gauss-Newton approximation to Bayesian learning".
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import minmax_scale

from skbayesnn import EvidenceMLPRegressor, Prior

DATA = json.loads((Path(__file__).parents[1] / "reference" / "brnn.json").read_text())
Y = np.array(DATA["y"])
X, T = minmax_scale(np.column_stack([DATA["x1"], DATA["x2"]]), (-1, 1)), minmax_scale(Y, (-1, 1))
MODEL = {"standardize": False, "fit_intercept": False, "method": "laplace", "combine": "best"}
AS_BRNN = {**MODEL, "solver": "gauss_newton", "n_restarts": 20, "random_state": 0}
FITS = {fit["neurons"]: fit for fit in DATA["fits"]}


def results(model):
    """Of every minimum: sums of squared errors and of squared weights, gamma; ten predictions."""
    for network, report in zip(model.networks_, model.evidence_report_.minima, strict=True):
        outputs = network.outputs(X)[:, 0]
        weights = np.concatenate([w.ravel() for w in (*network.coefs, *network.intercepts)])
        numbers = np.sum((outputs - T) ** 2), weights @ weights, sum(report.gamma.values())
        yield numbers, Y.min() + (outputs[:10] + 1) / 2 * np.ptp(Y)


def nearest(model, fit):
    """Minimum of a fit whose sum of squared errors is nearest to that of brnn."""
    return min(results(model), key=lambda result: abs(result[0][0] - fit["Ed"]))


@pytest.mark.parametrize("neurons", FITS)
def test_minimum_at_the_precisions_of_brnn(neurons):
    """It is the same minimum, with the same gamma, to the digits that brnn prints."""
    fit = FITS[neurons]
    prior, noise = Prior("single", precision=2 * fit["alpha"]), (2 * fit["beta"]) ** -0.5
    model = EvidenceMLPRegressor((neurons,), prior=prior, noise=noise, **AS_BRNN).fit(X, T)
    numbers, predictions = nearest(model, fit)
    np.testing.assert_allclose(numbers, [fit["Ed"], fit["Ew"], fit["gamma"]], rtol=2e-5)
    np.testing.assert_allclose(predictions, fit["predict_first_10"], atol=2e-5)


@pytest.mark.parametrize("neurons", FITS)
def test_precisions_of_the_largest_evidence(neurons):
    """They are nearly those of brnn, which leaves out that the minimum moves with them.

    Of several minima the one with the largest evidence predicts; brnn has the first that it finds.
    """
    fit = FITS[neurons]
    model = EvidenceMLPRegressor((neurons,), prior="single", noise="constant", **AS_BRNN).fit(X, T)
    (errors, _, gamma), predictions = nearest(model, fit)
    assert errors == pytest.approx(fit["Ed"], rel=2e-3)
    assert gamma == pytest.approx(fit["gamma"], abs=0.1)
    np.testing.assert_allclose(predictions, fit["predict_first_10"], atol=0.02)
    chosen = np.sum((model.predict(X) - T) ** 2)
    assert chosen < fit["Ed"] * 1.002
