import pytest

from skbayesnn.predictive import moderated_sigmoid
from tests.reference import MINIMA, load
from tests.tools import assert_near


@pytest.mark.parametrize("name", MINIMA)
def test_moderated_outputs_in_closed_form(name):
    point = getattr(load("binary"), name)
    moderated = moderated_sigmoid(
        point.test_activation, point.test_activation_variance, method="closed_form"
    )
    assert_near(moderated, point.test_output_moderated)
