"""Splines in a Fourier basis: the cubic smoothing spline, and the order that data prefer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import make_smoothing_spline
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.basis import FourierSplineFeatures


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
    basis = FourierSplineFeatures(4, n_harmonics=n_harmonics, period=period)
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


ORDERS = [1, 2, 3, 4, 5, 6, 8]


def evidences(x, y, orders):
    models = [
        make_pipeline(
            FourierSplineFeatures(p), EvidenceMLPRegressor((), noise="constant", standardize=False)
        )
        for p in orders
    ]
    return np.array([model.fit(x[:, None], y)[-1].log_evidence_ for model in models])


@pytest.mark.parametrize("seed", range(2))
def test_smooth_data_prefer_high_orders_and_rough_data_low_ones(seed):
    """Table 2.1 of MacKay (1992) in small."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-4, 4, 60))
    smooth = np.sin(2 * x) + 0.1 * rng.standard_normal(60)
    assert ORDERS[np.argmax(evidences(x, smooth, ORDERS))] in (4, 5)
    walk = np.cumsum(np.sqrt(np.gradient(x)) * rng.standard_normal(60))
    rough = walk + 0.05 * rng.standard_normal(60)
    assert ORDERS[np.argmax(evidences(x, rough, ORDERS))] in (2, 3)
