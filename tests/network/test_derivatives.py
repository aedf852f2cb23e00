from itertools import product

import numpy as np
import pytest

from skbayesnn.network import (
    ACTIVATIONS,
    Network,
    forward,
    hessian,
    input_jacobian,
    jacobian,
    jacobian_vector,
    mixed_jacobian,
    output_covariances,
    outputs,
    vector_jacobian,
)
from tests.tools import DEPTHS, assert_near, difference, draw_weights

each_activation = pytest.mark.parametrize("activation", list(ACTIVATIONS))
each_depth = pytest.mark.parametrize("hidden", DEPTHS, ids=lambda hidden: f"depth{len(hidden)}")


def setup(hidden, activation, lead=(), n=4, sizes=(2, 2), output_bias=True):
    rng = np.random.default_rng(len(hidden))
    network = Network((sizes[0], *hidden, sizes[1]), activation, output_bias)
    X = rng.standard_normal((n, sizes[0]))
    return network, draw_weights(network, X, rng, lead), X, rng


def curvatures(rng, shape, kind):
    """Symmetric output curvature; ``diagonal`` has one number per output."""
    if kind == "diagonal":
        return rng.uniform(0.5, 2.0, shape)
    root = rng.standard_normal((*shape, shape[-1]))
    return root @ np.swapaxes(root, -1, -2)


def as_matrices(curvature, kind):
    return curvature[..., None] * np.eye(curvature.shape[-1]) if kind == "diagonal" else curvature


def per_network(theta, function):
    """``function(index, theta[index])`` for one or many networks."""
    if theta.ndim == 1:
        return function((), theta)
    return np.stack([function(i, theta[i]) for i in range(len(theta))])


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activation_derivatives(name):
    a = np.concatenate([np.linspace(-6.03, 6.03, 60), [-0.1, 0.1]])
    phi = ACTIVATIONS[name].derivatives
    for order in range(3):
        values = phi(a, order)
        assert len(values) == order + 1
        for value, same in zip(values, phi(a, 2), strict=False):
            np.testing.assert_array_equal(value, same)
    _, slope, bend = phi(a, 2)
    for derivative, order in ((slope, 0), (bend, 1)):
        expected = difference(lambda h, i=order: phi(a + h, i)[i], np.zeros(1))[:, 0]
        assert_near(derivative, expected, 1e-10)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activation_flags_and_extremes(name):
    activation = ACTIVATIONS[name]
    a = np.linspace(0.1, 4.0, 20)
    value, negative = activation.derivatives(a, 0)[0], activation.derivatives(-a, 0)[0]
    assert activation.odd == np.allclose(negative, -value, rtol=0, atol=1e-12)
    assert activation.linear == np.allclose(np.diff(value, 2), 0, rtol=0, atol=1e-12) or (
        name == "relu"
    )
    with np.errstate(all="raise", under="ignore"):
        ends = activation.derivatives(np.array([-800.0, 800.0]), 2)
        assert np.all(np.isfinite(ends))
    assert activation.half_range == (
        np.ptp(ends[0]) / 2 if name in ("tanh", "logistic") else np.inf
    )


def test_forward_is_the_plain_formula():
    network, theta, X, _ = setup((3, 4), "tanh")
    (w1, w2, w3) = network.layers(theta)
    z = np.tanh(np.tanh(X @ w1[:-1] + w1[-1]) @ w2[:-1] + w2[-1])
    np.testing.assert_allclose(outputs(network, theta, X), z @ w3[:-1] + w3[-1], rtol=1e-13)


@each_activation
@each_depth
@pytest.mark.parametrize(("lead", "output_bias"), [((), True), ((2,), True), ((), False)])
def test_jacobian_and_its_products(activation, hidden, lead, output_bias):
    network, theta, X, rng = setup(hidden, activation, lead, output_bias=output_bias)
    *widths, last = network.layer_sizes[:-1]
    fan_ins = [*(width + 1 for width in widths), last + output_bias]
    assert network.n_weights == np.dot(fan_ins, network.layer_sizes[1:])
    trace = forward(network, theta, X, 1)
    expected = per_network(theta, lambda _, t: difference(lambda w: outputs(network, w, X), t))
    assert_near(jacobian(trace), expected)

    v = rng.standard_normal(theta.shape)
    assert_near(jacobian_vector(trace, v), (expected @ v[..., None, :, None])[..., 0])
    r = rng.standard_normal(trace.outputs.shape)
    assert_near(vector_jacobian(trace, r), np.einsum("...no,...nok->...k", r, expected))


@each_activation
@each_depth
def test_output_covariances(activation, hidden):
    network, theta, X, rng = setup(hidden, activation)
    trace = forward(network, theta, X, 1)
    root, J = rng.standard_normal((network.n_weights, network.n_weights)), jacobian(trace)
    assert_near(output_covariances(trace, root @ root.T), (J @ root) @ (J @ root).swapaxes(1, 2))


@each_activation
@each_depth
@pytest.mark.parametrize("lead", [(), (2,)])
def test_derivatives_by_the_inputs(activation, hidden, lead):
    network, theta, X, _ = setup(hidden, activation, lead, sizes=(3, 2))

    def moved(h, order):
        return forward(network, theta, X + h, order)

    trace = moved(0.0, 2)
    slopes, mixed = input_jacobian(trace), mixed_jacobian(trace)
    assert_near(slopes, difference(lambda h: moved(h, 1).outputs, np.zeros(3)), 1e-9)
    by_weights = difference(lambda h: jacobian(moved(h, 1)), np.zeros(3))
    assert_near(mixed, np.swapaxes(by_weights, -1, -2), 1e-9)
    of_outputs = mixed_jacobian(trace, lowest=len(hidden))
    assert_near(of_outputs, mixed[..., network.slices[-1]])


NARROW = product([(1,), (1, 1), (5, 1), (1, 4)], [(1, 1), (1, 3), (3, 1)])


@pytest.mark.parametrize(
    ("activation", "hidden", "sizes"),
    [*product(ACTIVATIONS, DEPTHS, [(2, 2)]), *(("tanh", *shape) for shape in NARROW)],
)
@pytest.mark.parametrize(("lead", "kind"), [((2,), "diagonal"), ((), "full")])
def test_hessian(activation, hidden, sizes, lead, kind):
    network, theta, X, rng = setup(hidden, activation, lead, sizes=sizes)
    trace = forward(network, theta, X, 2)
    r = rng.standard_normal(trace.outputs.shape)
    curvature = curvatures(rng, trace.outputs.shape, kind)
    full = as_matrices(curvature, kind)

    def gauss_newton(i, t):
        J = difference(lambda w: outputs(network, w, X), t)
        return np.einsum("noi,nop,npj->ij", J, full[i], J)

    def second_order(i, t):
        return difference(lambda w: vector_jacobian(forward(network, w, X, 1), r[i]), t)

    outer, inner = per_network(theta, gauss_newton), per_network(theta, second_order)
    assert_near(hessian([(trace, r, curvature)], exact=False), outer)
    assert_near(hessian([(trace, r, np.zeros_like(curvature))]), inner)
    exact = hessian([(trace, r, curvature)])
    assert_near(exact, outer + inner)
    np.testing.assert_array_equal(exact, np.swapaxes(exact, -1, -2))

    first_order = forward(network, theta, X, 1)  # enough for Gauss-Newton
    np.testing.assert_array_equal(
        hessian([(first_order, r, curvature)], exact=False),
        hessian([(trace, r, curvature)], exact=False),
    )
