"""Information about which model is right: quadrature, simulation, limiting cases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr, logsumexp, rel_entr
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.active_learning import discrimination_gain
from tests.active_learning.fitted import candidates, evidence, sampled

pytestmark = pytest.mark.usefixtures("laplace")

X = np.linspace(-1, 1, 30)[:, None]
Y = X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(30)
FAR = np.array([[0.0], [0.5], [1.0], [1.5], [2.0]])


def polynomial(degree, y=Y, estimator=EvidenceMLPRegressor, **parameters):
    linear = estimator((), **parameters)
    return make_pipeline(PolynomialFeatures(degree, include_bias=False), linear).fit(X, y)


def models():
    return [polynomial(1, noise=0.1), polynomial(3, noise=0.1)]


@pytest.mark.parametrize("P", [(0.5, 0.5), (0.9, 0.1), (0.0, 1.0)])
def test_gaussians(P):
    gains = discrimination_gain(models(), FAR, probabilities=P)
    (m1, s1), (m2, s2) = (model.predict(FAR, return_std=True) for model in models())
    t, step = np.linspace(-60, 60, 400_001, retstep=True)
    for gain, *of_row in zip(gains, m1, s1, m2, s2, strict=True):
        p1, p2 = norm.pdf(t, *of_row[:2]), norm.pdf(t, *of_row[2:])
        mixture = P[0] * p1 + P[1] * p2 + 1e-300  # no zero in the tails
        exact = step * np.sum(P[0] * rel_entr(p1, mixture) + P[1] * rel_entr(p2, mixture))
        assert gain == pytest.approx(exact, abs=1e-4)


def test_equation_of_mackay_for_nearly_equal_gaussians():
    """Half of equation 4.14, see the theory of active data selection."""
    near = [EvidenceMLPRegressor((), noise=noise).fit(X, Y) for noise in (1.0, 1.02)]
    (m1, s1), (m2, s2) = (model.predict(FAR, return_std=True) for model in near)
    formula = (s1**-2 + s2**-2) * (m1 - m2) ** 2 + ((s1**2 - s2**2) / (s1 * s2)) ** 2
    assert_allclose(discrimination_gain(near, FAR), formula / 16, rtol=0.02)


def test_simulation():
    """Drawn networks against Gaussians around minima, over targets drawn from both."""
    P, rows, n = np.array([0.3, 0.7]), candidates(3), 1000
    pair = [sampled("one"), evidence("one", combine="equal")]
    at = [model.predict_distribution(rows) for model in pair]
    total, variance = 0.0, 0.0
    for i, weight in enumerate(P):
        drawn = at[i].rvs(n, random_state=0)
        every = [model[np.tile(np.arange(3), n)].logpdf(drawn.ravel()) for model in at]
        gained = (every[i] - logsumexp(every, axis=0, b=P[:, None])).reshape(n, 3)
        total = total + weight * gained.mean(axis=0)
        variance = variance + weight**2 * gained.var(axis=0) / n
    gains = discrimination_gain(pair, rows, probabilities=P)
    assert np.all(np.abs(gains - total) < 4 * np.sqrt(variance))


def test_classes():
    P = np.array([0.2, 0.3, 0.5])
    three = [polynomial(degree, Y > 0.2, EvidenceMLPClassifier) for degree in (1, 2, 5)]
    p = np.stack([model.predict_proba(FAR) for model in three])
    mixture = np.tensordot(P, p, 1)
    exact = np.sum(P[:, None, None] * rel_entr(p, mixture), axis=(0, 2))
    assert_allclose(discrimination_gain(three, FAR, probabilities=10 * P), exact, rtol=1e-10)


def test_bounds():
    line, other = polynomial(1, noise=0.1), polynomial(1, Y + 50.0, noise=0.1)
    assert_allclose(discrimination_gain([line, line], FAR), 0.0, atol=1e-12)
    for P in (np.array([0.5, 0.5]), np.array([0.1, 0.9])):
        gains = discrimination_gain([line, other], FAR, probabilities=P)
        assert_allclose(gains, np.sum(entr(P)), rtol=1e-6)


def test_unsuitable_models():
    line, classes = polynomial(1), polynomial(1, Y > 0.2, EvidenceMLPClassifier)
    two, counts = (
        polynomial(1, np.column_stack([Y, -Y])),
        polynomial(1, np.arange(30), noise="poisson"),
    )
    for pair, message in [
        ([line], "two models or more"),
        ([line, classes], "all be regressors"),
        ([line, counts], "not of counts"),
        ([two, two], "one output"),
    ]:
        with pytest.raises(ValueError, match=message):
            discrimination_gain(pair, FAR)
    with pytest.raises(ValueError, match="same classes"):
        discrimination_gain([evidence("binary"), evidence("three")], candidates())
    with pytest.raises(ValueError, match="probabilities must have shape"):
        discrimination_gain([line, line], FAR, probabilities=[1.0])
