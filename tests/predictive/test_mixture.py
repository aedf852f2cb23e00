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


TEMPERED = {  # evidences, weights of rows, densities, log ratio of the second weight times 0.05
    "both scores count alike": (
        [-4.0, -4.4],
        [1.0, 3.0],
        [[-1.0, -1.0], [-1.0, -1.08]],
        0.5 * (-0.1 - 0.06),
    ),
    "densities cannot outdo the evidence": (
        [-4.4, -4.0],
        [1.0, 1.0],
        [[9.0, 9.0], [1.0, 1.0]],
        0.5 * 0.2,
    ),
    "densities decide without evidences": ([-4.4, np.nan], [1, 1], [[9, 7], [8, 7.9]], -0.05),
    "evidences alone": ([-10.0, -32.0], np.ones(100), None, -0.22),
    "small shares are none": ([-10.0, -34.0], np.ones(100), None, -np.inf),
}


@pytest.mark.parametrize("name", TEMPERED)
def test_tempered_weights(name):
    evidences, weight, densities, expected = TEMPERED[name]
    densities = None if densities is None else np.array(densities)
    first, second = tempered_weights(np.array(evidences), np.array(weight), densities)
    assert first + second == pytest.approx(1.0)
    assert second / first == pytest.approx(np.exp(expected / 0.05))
