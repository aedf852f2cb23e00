import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, kstest

from skbayesnn.inference import noise_trend


def make_scores(seed, n=60, slope=0.0, law="standard_normal", n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    arguments = {"standard_t": (6.0,)}.get(law, ())
    e = getattr(rng, law)(*arguments, (n, n_outputs)) * np.exp(slope * X[:, :1])
    return X, e**2 - 1.0, np.ones(n)


def test_against_a_regression_by_hand():
    X, scores, weight = make_scores(0)
    Z = np.column_stack([np.ones(60), X])
    residual = scores[:, 0] - Z @ np.linalg.lstsq(Z, scores[:, 0])[0]
    r2 = 1 - residual.var() / scores.var()
    assert noise_trend(X, scores, weight) == pytest.approx(chi2.sf(60 * r2, 2))


@pytest.mark.parametrize("law", ["standard_normal", "standard_t"])
def test_uniform_under_constant_noise(law):
    """Also where the residuals have heavier tails than a Gaussian's."""
    p = [noise_trend(*make_scores(seed, n=300, law=law)) for seed in range(400)]
    assert kstest(p, "uniform").pvalue > 0.001


def test_finds_a_trend():
    assert noise_trend(*make_scores(1, n=200, slope=1.0)) < 1e-4


def test_rows_may_come_in_any_order_and_scale_and_repeated():
    X, scores, weight = make_scores(2, slope=0.5)
    p = noise_trend(X, scores, weight)
    assert_allclose(noise_trend(1e3 * X[::-1] + 7.0, 5.0 * scores[::-1] - 1.0, weight), p)
    times = np.random.default_rng(0).integers(0, 3, 60)
    repeated = [np.repeat(a, times, axis=0) for a in (X, scores, weight)]
    assert_allclose(noise_trend(X, scores, times), noise_trend(*repeated))


def test_several_outputs_pay_for_the_choice():
    X, scores, weight = make_scores(3, slope=1.0)
    both = np.column_stack([make_scores(4)[1], scores])
    single = [noise_trend(X, column[:, None], weight) for column in both.T]
    assert noise_trend(X, both, weight) == pytest.approx(2 * min(single))


def test_nothing_to_test():
    X, scores, weight = make_scores(5)
    assert np.isnan(noise_trend(X[:3], scores[:3], weight[:3]))
    assert np.isnan(noise_trend(np.ones((60, 2)), scores, weight))
    assert noise_trend(X, np.zeros((60, 1)), weight) == 1.0
    constant = np.column_stack([X, np.ones(60)])
    assert noise_trend(constant, scores, weight) == pytest.approx(noise_trend(X, scores, weight))
