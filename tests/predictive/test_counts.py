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


@pytest.mark.parametrize("dispersions", [(0.0, 0.0), (0.5, 0.1)])
def test_ensemble_is_the_mixture(dispersions):
    log_rates, weights = np.log([4.0, 30.0]), np.array([0.3, 0.7])
    theta = np.column_stack([np.zeros(2), log_rates])
    draws = Draws(Network((1, 1)), theta, CountNoise(np.array(dispersions)[:, None]))
    ensemble, X, exposures = CountEnsemble((draws,), (weights,)), np.zeros((2, 1)), [[1.0], [3.0]]
    exposures = np.array(exposures)
    parts = [
        [scipy_law(e * np.exp(f), a) for f, a in zip(log_rates, dispersions, strict=True)]
        for e in exposures[:, 0]
    ]
    t = np.array([[5.0], [90.0]])
    pmf = [weights @ [p.pmf(k) for p in row] for row, k in zip(parts, t[:, 0], strict=True)]
    cdf = [weights @ [p.cdf(k) for p in row] for row, k in zip(parts, t[:, 0], strict=True)]
    assert_allclose(np.exp(ensemble.log_density(X, t, exposures)), pmf, rtol=1e-10)
    assert_allclose(ensemble.cdf(X, t, exposures)[:, 0], cdf, rtol=1e-10)
    mean, variance = ensemble.moments(X, "total", exposures)
    expected = [weights @ [p.mean() for p in row] for row in parts]
    squares = [weights @ [p.var() + p.mean() ** 2 for p in row] for row in parts]
    assert_allclose(mean[:, 0], expected)
    assert_allclose(variance[:, 0, 0], squares - np.square(expected))
    levels = 0.01, 0.5, 0.9
    small = exposures / 5.0
    for q, found in zip(levels, ensemble.quantiles(X, levels, small), strict=True):
        assert np.all(ensemble.cdf(X, found, small) >= q)
        assert np.all(ensemble.cdf(X, found - 1.0, small) < q)
    means = ensemble.function_moments(X, np.sqrt, exposures)
    k = np.arange(3000.0)
    for i, row in enumerate(parts):
        p = weights @ [some.pmf(k) for some in row]
        assert_allclose(means[0][i, 0], p @ np.sqrt(k), rtol=1e-3)
        assert_allclose(means[1][i, 0], p @ k - (p @ np.sqrt(k)) ** 2, rtol=0.01)


@pytest.mark.parametrize("dispersion", [0.0, 0.4])
@pytest.mark.parametrize("typical", [20.0, 1000.0])
@pytest.mark.parametrize("spread", [0.0, 0.03])  # of log rates, by three networks
def test_counts_of_any_size(dispersion, typical, spread):
    log_rates = np.log(typical) + spread * np.array([-1.0, 0.0, 1.0])
    draws = Draws(
        Network((1, 1)),
        np.column_stack([np.zeros(3), log_rates]),
        CountNoise(np.full((3, 1), dispersion)),
    )
    ensemble, X = CountEnsemble((draws,), (np.full(3, 1.0 / 3.0),)), np.zeros((1, 1))
    k = np.arange(40_000.0)
    p = np.mean([scipy_law(np.exp(f), dispersion).pmf(k) for f in log_rates], axis=0)
    entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)))
    assert_allclose(ensemble.entropy(X), [[entropy]], atol=0.01)
    mean, sd = k @ p, np.sqrt(k**2 @ p - (k @ p) ** 2)
    levels = 0.025, 0.3, 0.975
    for q, found in zip(levels, ensemble.quantiles(X, levels), strict=True):
        exact = np.argmax(np.cumsum(p) >= q)
        assert_allclose(found, [[exact]], atol=max(0.04 * sd, 1.0) if typical > 50 else 0.0)
    found = ensemble.function_moments(X, lambda t: t**1.5)
    assert_allclose(found[0], [[k**1.5 @ p]], rtol=0.005)
    assert_allclose(found[1], [[k**3 @ p - (k**1.5 @ p) ** 2]], rtol=0.02)
    assert_allclose(ensemble.mean(X), [[mean]], rtol=1e-6)


@pytest.mark.parametrize("dispersion", [0.0, 0.15, 0.3, 1.0])
@pytest.mark.parametrize("rates", [(0.01, 200.0), (1.0, 1000.0), (20.0, 500.0), (0.3, 4.0, 120.0)])
def test_entropies_of_unequal_rates(rates, dispersion):
    """Networks disagree far outside the data: some expect no counts, others many."""
    m = len(rates)
    theta = np.column_stack([np.zeros(m), np.log(rates)])
    draws = Draws(Network((1, 1)), theta, CountNoise(np.full((m, 1), dispersion)))
    ensemble = CountEnsemble((draws,), (np.full(m, 1.0 / m),))
    p = np.mean([scipy_law(rate, dispersion).pmf(np.arange(40_000)) for rate in rates], axis=0)
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
