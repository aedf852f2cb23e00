"""Values of the basis functions against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import eval_hermite, eval_legendre, factorial

from skbayesnn.basis import HermiteFunctionFeatures, LegendreFeatures, RadialBasisFeatures

X = np.random.default_rng(1).uniform(-3.0, 7.0, (30, 2))


@pytest.mark.parametrize("orthonormal", [False, True])
def test_polynomials_on_the_interval_of_the_data(orthonormal):
    values = LegendreFeatures(6, orthonormal=orthonormal).fit(X).transform(2.0 * X)
    low, high = X.min(axis=0), X.max(axis=0)
    z = (2.0 * X - low) / (high - low) * 2.0 - 1.0
    expected = [
        np.sqrt(2 * i + 1) ** orthonormal * eval_legendre(i, z[:, j])
        for j in range(2)
        for i in range(1, 7)
    ]
    assert np.max(np.abs(z)) > 2.0  # some lie outside, where the polynomials go on
    assert_allclose(values, np.transpose(expected), rtol=1e-12, atol=1e-12)


def test_hermite_functions():
    values = HermiteFunctionFeatures(9).fit_transform(X)
    expected = [
        eval_hermite(i, X[:, j])
        * np.exp(-0.5 * X[:, j] ** 2)
        / np.sqrt(2.0**i * factorial(i) * np.sqrt(np.pi))
        for j in range(2)
        for i in range(9)
    ]
    assert_allclose(values, np.transpose(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_functions", [3, 60, 500])
def test_hermite_functions_are_orthonormal(n_functions):
    x = np.linspace(-80.0, 80.0, 20001)[:, None]
    values = HermiteFunctionFeatures(n_functions).fit_transform(x)
    products = values.T @ values * (x[1] - x[0])
    assert_allclose(products, np.eye(n_functions), atol=1e-10)


KERNELS = {"gaussian": lambda u: np.exp(-(u**2) / 2), "cauchy": lambda u: 1.0 / (1.0 + u**2)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_functions_of_one_input(kernel):
    x = X[:, :1]
    basis = RadialBasisFeatures(7, kernel=kernel, width=0.8).fit(x)
    centers = np.linspace(x.min(), x.max(), 7)
    assert_allclose(basis.centers_, centers[:, None])
    assert_allclose(basis.transform(x), KERNELS[kernel]((x - centers) / 0.8) / 0.8, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_functions_of_several_inputs(kernel):
    centers = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 5.0]])
    basis = RadialBasisFeatures(kernel=kernel, width=2.5, centers=centers).fit(X)
    distances = np.linalg.norm(X[:, None] - centers, axis=-1)
    assert_allclose(basis.transform(X), KERNELS[kernel](distances / 2.5) / 2.5, rtol=1e-12)


def test_one_centre_lies_in_the_middle():
    basis = RadialBasisFeatures(1).fit([[1.0], [2.0], [5.0]])
    assert_array_equal(basis.centers_, [[3.0]])
    assert basis.width_ == 1.0


def test_centres_of_several_inputs_cover_the_data():
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    basis = RadialBasisFeatures(5).fit(grid)
    corners = [[0, 0], [0, 4], [4, 0], [4, 4]]
    assert_array_equal(basis.centers_[0], [2, 2])
    assert_array_equal(sorted(basis.centers_[1:].tolist()), corners)


@pytest.mark.parametrize("n_centers", [2, 6, 15])
def test_centres_are_at_most_twice_as_far_as_need_be(n_centers):
    """Gonzalez 1985: no row is farther from its centre than the centres from each other."""
    centers = RadialBasisFeatures(n_centers).fit(X).centers_
    apart = np.linalg.norm(centers[:, None] - centers, axis=-1)[np.triu_indices(n_centers, 1)]
    to_nearest = np.linalg.norm(X[:, None] - centers, axis=-1).min(axis=1)
    assert to_nearest.max() <= apart.min()
