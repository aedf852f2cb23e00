import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.active_learning import information_gain, select
from skbayesnn.predictive import Ensemble, class_probabilities
from tests.active_learning.exact import table_information
from tests.active_learning.fitted import candidates, sampled
from tests.tools import parts_of, standardised, with_ensemble

pytestmark = pytest.mark.usefixtures("laplace")

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


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


def joint_table(p, weights, rows):
    """Probabilities ``(m, n_outcomes)`` of networks and of all classes at some rows together."""
    table = weights[:, None]
    for row in rows:
        table = (table[:, :, None] * p[:, row][:, None]).reshape(len(p), -1)
    return table


def two_parts(task):
    """A classifier that predicts by two sets of drawn networks with different weights."""
    (draws,) = parts_of(sampled(task))
    weights = np.full(50, 0.4 / 50), np.full(draws.size, 0.6 / draws.size)
    return with_ensemble(sampled(task), Ensemble((draws.first(50), draws), weights))


@pytest.mark.parametrize("interest", [None, X_INTEREST])
@pytest.mark.parametrize("task", ["binary", "three"])
def test_batches_by_all_outcomes(task, interest):
    """Every choice has the largest gain, by tables of the classes at all chosen rows."""
    model, pool = two_parts(task), candidates(12, seed=3)
    rows = standardised(model, np.vstack([pool, X_INTEREST]))
    p = class_probabilities(model._ensemble.outputs(rows))

    def information(chosen):
        table = joint_table(p, model._ensemble.member_weights, chosen)
        if interest is None:
            return table_information(table)
        return np.mean([table_information(p[:, 12 + u].T @ table) for u in range(3)])

    indices, gains = select(model, pool, 3, interest, return_gains=True)
    for step, (index, gain) in enumerate(zip(indices, gains, strict=True)):
        before = indices[:step].tolist()
        now = np.array([information([*before, row]) for row in range(12)]) - information(before)
        now[before] = -np.inf
        assert index == np.argmax(now)
        assert_allclose(gain, now[index], rtol=1e-8)


def test_batches_with_more_outcomes_than_are_kept(monkeypatch):
    model, pool = sampled("three"), candidates(12, seed=3)
    p = class_probabilities(model._ensemble.outputs(standardised(model, pool)))

    def information(chosen):
        return table_information(joint_table(p, model._ensemble.member_weights, chosen))

    largest = information(select(model, pool, 6))
    monkeypatch.setattr("skbayesnn.active_learning._candidates.MAX_OUTCOMES", 20)
    chosen, gains = select(model, pool, 6, return_gains=True)
    assert information(chosen) > 0.99 * largest
    assert_allclose(np.sum(gains), information(chosen), rtol=0.05)


def test_joint_gain_needs_draws():
    with pytest.raises(ValueError, match="at least 410"):
        information_gain(sampled("one"), candidates(), candidates(41), kind="joint")
