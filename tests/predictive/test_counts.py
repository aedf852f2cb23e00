"""Laws of counts against quadrature, SciPy's distributions and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import entr

from skbayesnn.network import Network
from skbayesnn.predictive import CountEnsemble, Draws
from skbayesnn.predictive._counts import CountLaws, CountNoise

COUNTS = np.arange(400.0)


def laws(log_mean=1.0, variance=0.3, dispersion=0.0):
    """One network and one row."""
    return CountLaws(*(np.full((1, 1, 1), some) for some in (log_mean, variance, dispersion)))


def scipy_law(mean, dispersion):
    """SciPy's distribution of a count of known mean."""
    if dispersion == 0.0:
        return stats.poisson(mean)
    return stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * mean))


@pytest.mark.parametrize("dispersion", [0.0, 0.7])
@pytest.mark.parametrize(("log_mean", "variance"), [(1.0, 0.3), (-2.0, 2.0), (4.0, 0.5)])
def test_averages_over_the_log_rate(log_mean, variance, dispersion):
    law, z = laws(log_mean, variance, dispersion), np.linspace(-9.0, 9.0, 5001)
    known = scipy_law(np.exp(log_mean + np.sqrt(variance) * z), dispersion)
    for t in (0, 2, 50):
        exact = trapezoid(stats.norm.pdf(z) * known.pmf(t), z)
        assert_allclose(np.exp(law.log_probability(np.array([[t]]))), exact, rtol=1e-5)
    pmf = np.exp(law.log_probability(COUNTS[:, None, None, None]).ravel())
    assert_allclose(law.cdf(COUNTS[:, None, None, None]).ravel(), np.cumsum(pmf), atol=3e-6)


@pytest.mark.parametrize("dispersion", [0.0, 0.4])
def test_moments_are_sums(dispersion):
    law = laws(1.0, 0.2, dispersion)
    pmf = np.exp(law.log_probability(COUNTS[:, None, None, None]).ravel())
    assert pmf.sum() == pytest.approx(1.0, abs=1e-9)
    mean, spread, within = (float(some.item()) for some in law.moments())
    assert mean == pytest.approx(COUNTS @ pmf, rel=1e-6)
    assert spread == pytest.approx(np.exp(2.2) * np.expm1(0.2))  # of a log-normal mean
    assert spread + within == pytest.approx((COUNTS - mean) ** 2 @ pmf, rel=1e-4)


MIXTURES = {  # rates, dispersions and weights of networks
    **{
        f"{typical:g}, {spread}, {dispersion}": (
            typical * np.exp(spread * np.array([-1.0, 0.0, 1.0])),
            np.full(3, dispersion),
            np.full(3, 1.0 / 3.0),
        )
        for typical in (20.0, 1000.0)
        for spread in (0.0, 0.03)
        for dispersion in (0.0, 0.4)
    },
    "unequal weights": (np.array([4.0, 30.0]), np.array([0.5, 0.1]), np.array([0.3, 0.7])),
    "few counts": (np.array([0.8, 6.0]), np.zeros(2), np.array([0.3, 0.7])),
}


def ensemble_of(rates, dispersions, weights):
    """Networks of constant rates, and the exact probabilities of counts."""
    theta = np.column_stack([np.zeros(len(rates)), np.log(rates)])
    draws = Draws(Network((1, 1)), theta, CountNoise(np.array(dispersions)[:, None]))
    k = np.arange(40_000.0)
    pairs = zip(rates, dispersions, strict=True)
    pmf = weights @ np.array([scipy_law(rate, a).pmf(k) for rate, a in pairs])
    return CountEnsemble((draws,), (weights,)), k, pmf


@pytest.mark.parametrize("name", MIXTURES)
def test_ensemble_is_the_mixture(name):
    rates, dispersions, weights = MIXTURES[name]
    ensemble, k, p = ensemble_of(rates, dispersions, weights)
    X, exposure = np.zeros((1, 1)), np.array([[3.0]])
    with_exposure = ensemble_of(rates / 3.0, dispersions, weights)[0]
    for found, errors in ((ensemble, None), (with_exposure, exposure)):
        for t in (0.0, 5.0, 90.0, 1.5):
            at, whole = np.array([[t]]), t == np.floor(t)
            density = np.exp(found.log_density(X, at, errors))
            assert_allclose(density, p[int(t)] * whole, rtol=1e-10)
            assert_allclose(found.cdf(X, at, errors), [[p[: int(t) + 1].sum()]], rtol=1e-10)
        mean, variance = found.moments(X, "total", errors)
        assert_allclose(mean, [[k @ p]], rtol=1e-6)
        assert_allclose(variance, [[[k**2 @ p - (k @ p) ** 2]]], rtol=1e-4)
    levels, large = (0.01, 0.3, 0.5, 0.975), max(rates) > 50.0
    for q, found in zip(levels, ensemble.quantiles(X, levels), strict=True):
        tolerance = max(0.04 * np.sqrt(variance.item()), 1.0) if large else 0.0
        assert_allclose(found, [[np.argmax(np.cumsum(p) >= q)]], atol=tolerance)
    for power in (0.5, 1.5):
        found, spread = ensemble.function_moments(X, lambda t, power=power: t**power)
        assert_allclose(found, [[k**power @ p]], rtol=0.005)
        assert_allclose(spread, [[k ** (2 * power) @ p - (k**power @ p) ** 2]], rtol=0.02)
    assert_allclose(ensemble.entropy(X), [[entr(p).sum()]], atol=0.01)


@pytest.mark.parametrize("dispersion", [0.0, 0.15, 0.3, 1.0])
@pytest.mark.parametrize("rates", [(0.01, 200.0), (1.0, 1000.0), (20.0, 500.0), (0.3, 4.0, 120.0)])
def test_entropies_of_unequal_rates(rates, dispersion):
    """Networks disagree far outside the data: some expect no counts, others many."""
    m = len(rates)
    ensemble, _, p = ensemble_of(rates, np.full(m, dispersion), np.full(m, 1.0 / m))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert_allclose(ensemble.entropy(np.zeros((1, 1))), entr(p).sum(), atol=0.01)


def test_pointwise_distribution_function_is_centred():
    noise, rng = CountNoise(np.array([[0.3]])), np.random.default_rng(0)
    f = np.full((1, 4000, 1), 1.0)
    y = np.asarray(scipy_law(np.exp(1.0), 0.3).rvs(4000, random_state=rng), float)[:, None]
    logs, mean, cdf, variance = noise.pointwise(y, f, 0.0, None)
    assert_allclose(np.exp(logs[0]), scipy_law(np.exp(1.0), 0.3).pmf(y[:, 0]))
    assert_allclose(mean, np.e)
    assert_allclose(variance, np.e + 0.3 * np.e**2)
    assert cdf.mean() == pytest.approx(0.5, abs=0.02)


def test_a_log_rate_that_is_hardly_known_does_not_outweigh_all_others():
    noise = CountNoise(np.zeros((1, 1)))
    laws = [noise.laws_at(np.zeros((1, 1, 1)), np.full((1, 1, 1, 1), v)) for v in (3.0, 26.0)]
    assert laws[0].moments()[0] == pytest.approx(np.exp(1.5))
    assert laws[1].moments()[0] == pytest.approx(np.exp(2.0))
