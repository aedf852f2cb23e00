import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skbayesnn.active_learning import information_gain
from skbayesnn.predictive import class_probabilities
from tests.active_learning.exact import mixture_entropy, table_information
from tests.active_learning.fitted import blank, candidates, constants, sampled
from tests.tools import parts_of, standardised, with_ensemble

pytestmark = pytest.mark.usefixtures("laplace")

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


def constant_networks(means, sds, weights):
    """An estimator of one output by networks whose outputs are the same everywhere."""
    return with_ensemble(blank("one"), constants(means[:, None], sds[:, None] ** 2, weights))


def spread_information(means, sds, counts):
    """Information of a target about its draw; each draw is repeated ``counts`` times."""
    means, sds = np.repeat(means, counts), np.repeat(sds, counts)
    model = constant_networks(means, sds, np.full(len(means), 1.0 / len(means)))
    return information_gain(model, [[0.0]])[0]


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0, 3000.0])
def test_information_about_the_component(spread):
    rng = np.random.default_rng(0)
    means, sds = spread * rng.standard_normal(5), rng.uniform(0.5, 2.0, 5)
    counts = rng.integers(1, 6, 5)
    weights = counts / counts.sum()
    exact = mixture_entropy(means, sds, weights) - weights @ norm.entropy(0, sds)
    assert_allclose(spread_information(means, sds, counts), exact, rtol=1e-7, atol=1e-9)


def test_draws_that_lie_far_apart():
    """Each is recognised at once; with hardly any noise they are widened to fit the grid."""
    means = np.array([0.0, 1.0, 5.0, 1e3])
    for sd in (1e-2, 1e-12):
        assert_allclose(spread_information(means, np.full(4, sd), 1), np.log(4), rtol=1e-9)


def test_total_gain_of_regression():
    model, X = sampled("one", "input_dependent"), candidates(3)
    gains = information_gain(model, X)
    rows = standardised(model, X)
    f = parts_of(model)[0].outputs(rows)
    scales = np.broadcast_to(parts_of(model)[0].noise.scales(rows), f.shape)
    for row, gain in enumerate(gains):
        sds = scales[:, row, 0]
        entropy = mixture_entropy(f[:, row, 0], sds, np.full(len(f), 1 / len(f)))
        assert_allclose(gain, entropy - np.mean(norm.entropy(0, sds)), rtol=1e-8)
    assert np.all(gains > 0)


def test_total_gain_of_several_outputs():
    model, X = sampled("two"), candidates()
    f = parts_of(model)[0].outputs(standardised(model, X))
    noise = parts_of(model)[0].noise.typical_variances
    expected = [
        0.5 * np.linalg.slogdet(np.cov(f[:, row].T, bias=True) + np.diag(noise.mean(axis=0)))[1]
        - 0.5 * np.mean(np.sum(np.log(noise), axis=1))
        for row in range(len(X))
    ]
    assert_allclose(information_gain(model, X), expected, rtol=1e-9)


@pytest.mark.parametrize("task", ["binary", "three"])
def test_gains_of_classification(task):
    model, X = sampled(task), candidates()
    n_classes = len(model.classes_)
    a = parts_of(model)[0].outputs(standardised(model, np.vstack([X, X_INTEREST])))
    p = class_probabilities(a)
    marginal = information_gain(model, X, X_INTEREST, kind="marginal")
    total = information_gain(model, X)
    for row in range(len(X)):
        for point in range(3):
            table = np.zeros((n_classes, n_classes))
            for draw in p:
                table += np.outer(draw[row], draw[len(X) + point]) / len(p)
            assert_allclose(marginal[row, point], table_information(table), rtol=1e-8, atol=1e-15)
        # the draw as the other variable
        table = p[:, row] / len(p)
        assert_allclose(total[row], table_information(table), rtol=1e-8)
    mean = information_gain(model, X, X_INTEREST, interest_weight=WEIGHT)
    assert_allclose(mean, marginal @ WEIGHT / WEIGHT.sum(), rtol=1e-10)
    assert np.all(marginal <= total[:, None])


def test_joint_gain_needs_draws():
    with pytest.raises(ValueError, match="at least 410"):
        information_gain(sampled("one"), candidates(), candidates(41), kind="joint")
