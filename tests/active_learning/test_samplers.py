import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.active_learning import information_gain
from skbayesnn.predictive import class_probabilities
from tests.active_learning.exact import table_information
from tests.active_learning.fitted import candidates, sampled
from tests.tools import parts_of, standardised

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


def test_joint_gain_needs_draws():
    with pytest.raises(ValueError, match="at least 410"):
        information_gain(sampled("one"), candidates(), candidates(41), kind="joint")
