"""MacKay's interpolation study (1992, chapter 2): the evidence knows what generated the data."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.basis import (
    FourierSplineFeatures,
    HermiteFunctionFeatures,
    LegendreFeatures,
    RadialBasisFeatures,
)

WIDTHS = np.geomspace(0.3, 3.0, 6)
FAMILIES = {
    "legendre": [LegendreFeatures(degree) for degree in (6, 10, 14, 18)],
    "gaussian": [RadialBasisFeatures(60, width=r) for r in WIDTHS],
    "cauchy": [RadialBasisFeatures(60, kernel="cauchy", width=r) for r in WIDTHS],
    "spline": [FourierSplineFeatures(p) for p in (1, 2, 3, 4, 6)],
}


@pytest.mark.parametrize("seed", range(2))
def test_three_hermite_functions_win(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5, 5, (40, 1))
    curve = 1.1 * (1 - x + 2 * x**2) * np.exp(-(x**2) / 2)
    y = curve[:, 0] + 0.1 * rng.standard_normal(40)

    def log_evidence(basis):
        linear = EvidenceMLPRegressor((), noise="constant", standardize=False)
        model = make_pipeline(basis, linear)
        return model.fit(x, y)[-1].log_evidence_

    hermite = log_evidence(HermiteFunctionFeatures(3))
    for bases in FAMILIES.values():
        values = [log_evidence(basis) for basis in bases]
        assert max(values) < hermite - 5
        assert logsumexp(values) - np.log(len(values)) < hermite - 7
    assert log_evidence(HermiteFunctionFeatures(2)) < hermite - 5
    assert log_evidence(HermiteFunctionFeatures(6)) < hermite
    network = EvidenceMLPRegressor((6,), noise="constant", n_restarts=2, random_state=0).fit(x, y)
    assert network.log_evidence_ < hermite - 7
