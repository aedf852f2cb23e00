"""Targets that need large weights: linear models and networks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor, Prior

pytestmark = pytest.mark.usefixtures("laplace")


def test_large_weights_are_not_taken_for_noise():
    """Waves whose weights must be large: from a strong prior they were all taken for noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-4, 4, 60))
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(60)
    h = np.arange(1, 51)
    phase = 2 * np.pi * np.outer(x, h) / 16
    X = np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(h**-2.0, 2)
    model = EvidenceMLPRegressor((), standardize=False).fit(X, y)
    precisions = np.exp(np.arange(-6.0, 2.0))
    fixed = [
        EvidenceMLPRegressor((), standardize=False, prior=Prior(precision=value))
        .fit(X, y)
        .log_evidence_
        for value in precisions
    ]
    assert abs(model.noise_std_ - 0.1) < 0.02
    weights = np.full(len(fixed), 1.0 / (12 * np.log(10)))  # trapezium rule of the prior's density
    assert_allclose(
        model.log_evidence_, np.log(weights @ np.exp(fixed)), atol=0.3
    )  # nats: 8 points for the integral


def test_eight_periods_are_learnt():
    """By a network that starts with larger weights."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (150, 1))
    f = np.sin(16 * np.pi * x[:, 0])
    model = EvidenceMLPRegressor((16,), noise="constant", n_restarts=1, random_state=0)
    assert model.fit(x, f + 0.1 * rng.standard_normal(150)).score(x, f) > 0.95
