"""Slopes and ends of transformations, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from skbayesnn.compose._distribution import MonotoneMap

RNG = np.random.default_rng(0)
POSITIVE = np.exp(RNG.standard_normal((50, 1)))
SHARES = expit(2 * RNG.standard_normal((50, 1)))
NUMBERS = RNG.standard_normal((50, 1))
INF = np.inf
# targets, transformation, inverse, ln |dt/dy|, limits of targets
CLOSED_FORMS = {
    "log": (POSITIVE, np.log, np.exp, lambda y: -np.log(y), (0, INF)),
    "log of 30 decades": (POSITIVE**10, np.log, np.exp, lambda y: -np.log(y), (0, INF)),
    "square root": (POSITIVE, np.sqrt, np.square, lambda y: -np.log(2 * np.sqrt(y)), (0, INF)),
    "reciprocal": (POSITIVE, np.reciprocal, np.reciprocal, lambda y: -2 * np.log(y), (0, INF)),
    "reciprocal root": (
        POSITIVE,
        lambda y: y**-0.5,
        lambda t: t**-2.0,
        lambda y: -1.5 * np.log(y) - np.log(2),
        (0, INF),
    ),
    "shifted log": (POSITIVE, np.log1p, np.expm1, lambda y: -np.log1p(y), (-1, INF)),
    "logit": (SHARES, logit, expit, lambda y: -np.log(y * (1 - y)), (0, 1)),
    "arcsinh": (NUMBERS, np.arcsinh, np.sinh, lambda y: -0.5 * np.log1p(y**2), (-INF, INF)),
    "arctan": (NUMBERS, np.arctan, np.tan, lambda y: -np.log1p(y**2), (-INF, INF)),
    "cube": (2 + NUMBERS / 2, lambda y: y**3, np.cbrt, lambda y: np.log(3 * y**2), (-INF, INF)),
    "units": (
        1e8 + NUMBERS,
        lambda y: (y - 1e8) / 5,
        lambda t: 5 * t + 1e8,
        lambda y: -np.log(5),
        (-INF, INF),
    ),
}


def functions(forward, inverse):
    return FunctionTransformer(forward, inverse, check_inverse=False)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name):
    y, forward, inverse, expected, support = CLOSED_FORMS[name]
    mapping = MonotoneMap(functions(forward, inverse), y)
    tol = 1e-6 if name == "units" else 1e-9  # numbers of 1e8 have 1e-8 of rounding
    assert_allclose(mapping.log_slope(forward(y)), expected(y) + 0 * y, rtol=0, atol=tol)
    assert_allclose(mapping.inverse(mapping.forward(y)), y, rtol=1e-12)
    assert_allclose(mapping.support[:, 0], support, atol=1e-9)


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
def test_slopes_of_power_transformers(method):
    transformer = PowerTransformer(method, standardize=False).fit(POSITIVE)
    power = transformer.lambdas_[0]
    origin = 0.0 if method == "box-cox" else 1.0
    mapping = MonotoneMap(transformer, POSITIVE)
    slopes = mapping.log_slope(mapping.forward(POSITIVE))
    assert_allclose(slopes, (power - 1) * np.log(POSITIVE + origin), rtol=0, atol=1e-9)


def test_ends():
    y = 1 + NUMBERS**2
    root = MonotoneMap(functions(np.sqrt, np.square), y)
    assert abs(root.lower[0]) < 1e-5
    assert root.upper[0] == np.inf
    assert_allclose(root.inverse(np.array([[-3.0], [2.0]])), [[0.0], [4.0]], atol=1e-10)
    inverse = MonotoneMap(functions(np.reciprocal, np.reciprocal), y)
    assert 0 < inverse.lower[0] < 1e-9
    assert not inverse.increasing[0]
    linear = MonotoneMap(StandardScaler().fit(y), y)
    assert (linear.lower[0], linear.upper[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("power", [-1.5, -0.2, 0.4, 1.0])
def test_ends_at_which_targets_grow(method, power):
    transformer = PowerTransformer(method, standardize=False).fit(POSITIVE)
    transformer.lambdas_ = np.array([power])
    mapping = MonotoneMap(transformer, POSITIVE)
    lower, upper = mapping.growing_ends(lambda y: y)
    assert np.all(lower == -np.inf)
    assert upper == pytest.approx(-1.0 / power if power < 0.0 else np.inf, abs=1e-5)
    assert mapping.upper[0] == upper
    assert power > 0.0 or np.isfinite(mapping.inverse(mapping.upper[None] + 1.0)).all()
    assert mapping.support[1, 0] == np.inf
    assert np.isinf(mapping.growing_ends(np.tanh)).all()


def test_slopes_that_do_not_exist_are_nan():
    mapping = MonotoneMap(functions(np.sqrt, np.square), np.array([[0.0], [1.0], [4.0]]))
    assert np.isnan(mapping.log_slope(np.array([[0.0], [1.0]]))).tolist() == [[True], [False]]


@pytest.mark.parametrize(
    ("transformer", "y", "message"),
    [
        (functions(np.square, np.sqrt), NUMBERS, "do not lead back to y"),
        (functions(lambda y: y[:, :1], lambda t: t), np.hstack([NUMBERS, NUMBERS]), "keep the sh"),
        (PCA(2), np.hstack([NUMBERS, POSITIVE]), "mixes outputs"),
    ],
)
def test_what_is_refused(transformer, y, message):
    with pytest.raises(ValueError, match=message):
        MonotoneMap(transformer.fit(y), y)
