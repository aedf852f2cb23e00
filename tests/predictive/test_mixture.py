import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from skbayesnn.predictive._combination import (
    stacking_weights,
    tempered_weights,
)


@pytest.mark.parametrize("seed", range(4))
def test_stacking_against_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    log_densities = norm.logpdf(rng.standard_normal((3, 40)) + rng.uniform(0, 1, (3, 1)))
    weight = rng.uniform(0.5, 2.0, 40)

    def loss(z):
        w = np.exp(z - np.logaddexp.reduce(z))
        return -weight @ np.log(w @ np.exp(log_densities))

    options = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000}
    starts = [np.zeros(3), *(2.0 * np.eye(3))]
    best = min(minimize(loss, z, method="Nelder-Mead", options=options).fun for z in starts)
    weights = stacking_weights(log_densities, weight)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(weights >= 0)
    reached = -weight @ np.log(weights @ np.exp(log_densities))
    assert reached < best + 1e-5


class TestTemperedWeights:
    def test_both_scores_count_alike(self):
        sample_weight = np.array([1.0, 3.0])
        evidences, densities = np.array([-4.0, -4.4]), np.array([[-1.0, -1.0], [-1.0, -1.08]])
        weights = tempered_weights(evidences, sample_weight, densities)
        assert weights[1] / weights[0] == pytest.approx(np.exp(0.5 * (-0.1 - 0.06) / 0.05))

    def test_leave_one_out_densities_cannot_outdo_the_evidence(self):
        evidences, densities = np.array([-4.4, -4.0]), np.array([[9.0, 9.0], [1.0, 1.0]])
        weights = tempered_weights(evidences, np.ones(2), densities)
        assert weights[0] / weights[1] == pytest.approx(np.exp(0.5 * -0.2 / 0.05))

    def test_densities_decide_without_evidences(self):
        evidences, densities = np.array([-4.4, np.nan]), np.array([[9.0, 7.0], [8.0, 7.9]])
        weights = tempered_weights(evidences, np.ones(2), densities)
        assert weights[1] / weights[0] == pytest.approx(np.exp(-0.05 / 0.05))

    def test_small_shares_are_none(self):
        weights = tempered_weights(np.array([-10.0, -32.0, -34.0]), np.full(100, 1.0))
        assert weights[1] > 0 == weights[2]
        assert weights[0] + weights[1] == pytest.approx(1)
