"""Priors of precisions: their densities by quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import gamma, kstest, loguniform

from skbayesnn.posterior import Gamma, Hyperpriors, LogUniform
from tests.tools import difference

PRIORS = [
    LogUniform(),
    LogUniform(0.1, 5.0),
    Gamma(5.0, 0.05),
    Gamma(0.01, 0.01),  # hardly more than its bounds
    Gamma(2.0, 1.0, 0.5, 0.8),  # most of it cut off
    Gamma(3e5, 2e3),
]
each = pytest.mark.parametrize("prior", PRIORS, ids=repr)


@each
def test_densities_integrate_to_one(prior):
    low, high = prior.log_range
    assert_allclose(np.exp([-0.5 * high, -0.5 * low]), [prior.lower, prior.upper])
    peak = np.log(prior.shape / prior.rate) if prior.shape else low
    points = [p for p in (peak - 0.02, peak, peak + 0.02, 0.0) if low < p < high]
    total = quad(lambda x: np.exp(prior.log_density(x)), low, high, points=points, limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-8)


def test_densities_against_scipy():
    x = np.array([-1.0, 0.5, 3.0])
    whole = gamma(5.0, scale=1 / 0.05).logpdf(np.exp(x)) + x
    assert_allclose(Gamma(5.0, 0.05).log_density(x), whole, rtol=1e-12)
    sd = np.exp(-0.5 * x)  # |d sd / d ln precision| = sd / 2
    of_sd = loguniform(0.1, 5.0).logpdf(sd) + np.log(0.5 * sd)
    assert_allclose(LogUniform(0.1, 5.0).log_density(x), of_sd, rtol=1e-12)


@each
def test_slopes(prior):
    x = np.array([-0.3, 0.4])
    slopes = [difference(lambda t: prior.log_density(t[0]), np.array([end]), 1e-5)[0] for end in x]
    assert_allclose(prior.slope(x), slopes, rtol=1e-6, atol=1e-6 * (1 + prior.shape))


@each
def test_draws_have_the_density(prior):
    x = prior.quantile(np.random.default_rng(0).random(2000))
    low, high = prior.log_range
    assert np.all((x >= low) & (x <= high))
    if prior.shape:
        ends = gamma(prior.shape, scale=1 / prior.rate).cdf(np.exp([low, high]))
        inside = gamma(prior.shape, scale=1 / prior.rate).cdf(np.exp(x))
        uniform = (inside - ends[0]) / (ends[1] - ends[0])
    else:
        uniform = (x - low) / (high - low)
    assert kstest(uniform, "uniform").pvalue > 1e-3


def test_several_are_as_each_alone():
    several, x = Hyperpriors.of(PRIORS), np.linspace(-0.5, 0.5, len(PRIORS))
    for name in ("log_density", "log_kernel", "slope", "clip", "quantile"):
        at = np.full(len(PRIORS), 0.3) if name == "quantile" else x
        alone = [getattr(p, name)(v) for p, v in zip(PRIORS, at, strict=True)]
        assert_array_equal(getattr(several, name)(at), alone)
    assert several[2].log_density(0.1) == PRIORS[2].log_density(0.1)
    assert_array_equal(several[1:3].shape, [0.0, 5.0])
    assert_array_equal(several.informative, [False, False, True, True, True, True])
    joined = Hyperpriors.joined([several[:2], several[2:]])
    assert_array_equal(joined.log_normaliser, several.log_normaliser)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogUniform(2.0, 1.0), "lower must be less than upper"),
        (lambda: LogUniform(0.0, 1.0), "positive and finite"),
        (lambda: LogUniform(1e-80, 1.0), "from 1e-50"),
        (lambda: Gamma(-1.0, 1.0), "shape of Gamma must be positive"),
        (lambda: Gamma(1.0, np.inf), "rate of Gamma must be positive and finite"),
        (lambda: Gamma(1e4, 1e-6), "beyond its bounds"),
        (lambda: LogUniform("0.1"), "must be a number"),
        (lambda: Gamma(np.ones(2), 1.0), "must be a number"),
    ],
)
def test_bad_values(make, message):
    with pytest.raises(TypeError if "number" in message else ValueError, match=message):
        make()
