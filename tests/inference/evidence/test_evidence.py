from math import factorial

import numpy as np
import pytest

from skbayesnn.inference import well_determined
from skbayesnn.inference.evidence._evidence import (
    level_derivatives,
    level_information,
    log_symmetry,
    occam_factors,
)
from skbayesnn.inference.task._problem import FreeHyperparameters
from skbayesnn.network import Network
from skbayesnn.posterior import LogUniform, weight_groups
from tests.inference.common import method_of, mode_of
from tests.tools import ALL_LIKELIHOODS, assert_near, difference, make_problem

PRIOR = LogUniform()


@pytest.mark.parametrize("name", ["gaussian", "gaussian_shared"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_occam_factors_are_never_positive(name, scale):
    """Also far from the maximum; their sum is checked by `test_evidence_linear`."""
    posterior, theta, hyper = make_problem(name, (), prior="ard", n=12)
    hyper = hyper._replace(alpha=PRIOR.clip(hyper.alpha * scale))
    point = mode_of(posterior, theta, hyper).point
    determined = well_determined(posterior, method_of(posterior), point.theta, hyper)
    n_groups = len(hyper.alpha)
    for mask in np.eye(n_groups + len(hyper.beta), dtype=bool):
        free = FreeHyperparameters.sharing(mask[:n_groups], mask[n_groups:], PRIOR)
        assert max(occam_factors(posterior, point, free, determined)) <= 0


def symmetry(sizes, activation, prior="layer", **options):
    network = Network(sizes, activation)
    return log_symmetry(network, weight_groups(network, prior), **options)


@pytest.mark.parametrize("prior", ["single", "layer", "ard"])
def test_copies_of_a_minimum(prior):
    def log_copies(sizes, activation):
        return pytest.approx(symmetry(sizes, activation, prior), rel=1e-13)

    assert log_copies((2, 5, 2), "tanh") == np.log(factorial(5) * 2**5)
    for activation in ("logistic", "relu", "silu", "gelu"):
        assert log_copies((2, 5, 2), activation) == np.log(factorial(5))
    assert log_copies((2, 3, 4, 1), "tanh") == np.log(factorial(3) * 2**3 * factorial(4) * 2**4)
    assert log_copies((2, 3, 4, 1), "logistic") == np.log(factorial(3) * factorial(4))
    assert symmetry((2, 1), "tanh", prior) == 0
    assert symmetry((2, 1), "identity", prior) == 0


def test_linear_hidden_units_can_be_rotated():
    assert np.isnan(symmetry((2, 2, 1), "identity"))
    assert np.isnan(symmetry((2, 1, 2, 1), "identity"))
    assert symmetry((2, 1, 1), "identity") == pytest.approx(np.log(2.0))


def test_layers_switched_off_are_not_mirrored():
    assert symmetry((2, 1, 1), "tanh", switched_off=[0]) == 0
    expected = pytest.approx(np.log(factorial(3) * 2**3))
    assert symmetry((2, 3, 1, 1), "tanh", switched_off=[1]) == expected


@pytest.mark.parametrize(
    "name", [name for name in ALL_LIKELIHOODS if make_problem(name)[2].beta.size]
)
def test_derivatives_by_noise_levels(name):
    posterior, theta, (_, beta) = make_problem(name)

    def at(logs):
        return posterior.data_expansion(theta, np.exp(logs), exact=True)

    for derivative, which in enumerate((1, 2)):
        slopes = difference(lambda logs, i=which: at(logs)[i], np.log(beta))
        found = [level_derivatives(posterior, theta, beta, i, True) for i in range(len(beta))]
        found = np.stack([both[derivative] for both in found], axis=-1)
        assert_near(found, slopes, 1e-7)

    def slope(logs):  # of minus the log likelihood
        return np.exp(logs) * at(logs)[0].errors - 0.5 * posterior.noise_counts(np.exp(logs))

    bends = difference(slope, np.log(beta))
    assert_near(level_information(posterior, theta, beta), bends, 1e-7)
