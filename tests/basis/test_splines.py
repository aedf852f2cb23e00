"""Linear model of waves whose prior makes it the cubic smoothing spline (doc/theory/bases.md)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import make_smoothing_spline
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import EvidenceMLPRegressor, Prior


def waves(X, n_harmonics, period):
    h = np.arange(1, n_harmonics + 1)
    phase = 2.0 * np.pi * h * X / period
    return np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(h**-2.0, 2)


def fourier_spline(x, y, lam, weight, n_harmonics=1500, noise_std=0.2):
    """A smoothing spline of period 60 data ranges, its constant free."""
    period = 60.0 * np.ptp(x)
    precision = lam * noise_std**-2 * (0.5 * period) * (2.0 * np.pi / period) ** 4
    regressor = EvidenceMLPRegressor(
        (),
        standardize=False,
        prior=Prior(
            ["curve"] * (2 * n_harmonics) + ["constant"],
            precision={"curve": precision, "constant": 1e-6},
        ),
        noise=noise_std,
    )
    options = {"n_harmonics": n_harmonics, "period": period}
    basis = FunctionTransformer(waves, kw_args=options)
    model = make_pipeline(basis, regressor)
    return model.fit(x[:, None], y, evidencemlpregressor__sample_weight=weight)


@pytest.mark.parametrize("lam", [1e-3, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cubic_smoothing_spline(lam, weighted):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1, 1, 40))
    y = np.sin(3 * x) + x + 0.2 * rng.standard_normal(40)
    weight = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    spline = make_smoothing_spline(x, y, weight, lam=lam)
    model = fourier_spline(x, y, lam, weight)
    between = np.linspace(x[0], x[-1], 201)
    rougher = make_smoothing_spline(x, y, weight, lam=0.5 * lam)(between)
    expected = spline(between)
    assert np.max(np.abs(rougher - expected)) > 0.01  # the tolerance tells such splines apart
    assert_allclose(model.predict(between[:, None]), expected, atol=1e-3)
