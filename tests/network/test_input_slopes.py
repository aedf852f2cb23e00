"""Derivatives by the inputs, and their own derivatives by the weights."""

import numpy as np
import pytest

from skbayesnn.network import Network, forward, input_slopes, outputs, slope_gradient
from tests.tools import assert_near, difference

SCALE = np.array([0.5, 2.0, 1.0])
each_network = pytest.mark.parametrize("hidden", [(), (4,), (3, 2)], ids=str)


def make(hidden, activation="tanh", lead=(), seed=0, output_bias=True):
    rng = np.random.default_rng(seed)
    network = Network((3, *hidden, 2), activation, output_bias)
    theta = rng.standard_normal((*lead, network.n_weights))
    return network, theta, rng.standard_normal((5, 3)), rng


@each_network
@pytest.mark.parametrize("lead", [(), (2, 3)])
@pytest.mark.parametrize("output_bias", [True, False])
def test_by_differences(hidden, lead, output_bias):
    network, theta, X, _ = make(hidden, lead=lead, output_bias=output_bias)
    found = input_slopes(forward(network, theta, X, 1), SCALE)
    assert found.outputs.shape == (*lead, 5, 2, 3)
    for j, scale in enumerate(SCALE):
        step = 1e-5 * scale * np.eye(3)[j]
        expected = (outputs(network, theta, X + step) - outputs(network, theta, X - step)) / 2e-5
        assert_near(found.outputs[..., j], expected, 1e-7)


@each_network
@pytest.mark.parametrize("activation", ["tanh", "silu", "logistic", "identity"])
@pytest.mark.parametrize("output_bias", [True, False])
def test_gradient_of_a_function_of_outputs_and_slopes(hidden, activation, output_bias):
    network, theta, X, rng = make(hidden, activation, output_bias=output_bias)
    a, b = rng.standard_normal((5, 2)), rng.standard_normal((5, 2, 3))

    def value(theta):
        trace = forward(network, theta, X, 1)
        slopes = input_slopes(trace, SCALE).outputs
        return np.sum(a * trace.outputs**2) + np.sum(b * slopes**3)

    trace = forward(network, theta, X, 2)
    slopes = input_slopes(trace, SCALE)
    given = 2.0 * a * trace.outputs, 3.0 * b * slopes.outputs**2
    found = slope_gradient(trace, slopes, *given)
    assert_near(found, difference(value, theta), 1e-6)


def test_many_networks_at_once():
    network, theta, X, rng = make((3, 2), lead=(4,))
    a, b = rng.standard_normal((5, 2)), rng.standard_normal((5, 2, 3))

    def gradient(theta):
        trace = forward(network, theta, X, 2)
        slopes = input_slopes(trace, SCALE)
        lead = theta.shape[:-1]
        given = np.broadcast_to(a, (*lead, 5, 2)), np.broadcast_to(b, (*lead, 5, 2, 3))
        return slope_gradient(trace, slopes, *given)

    together = gradient(theta)
    for one, own in zip(together, theta, strict=True):
        assert_near(one, gradient(own), 1e-13)
