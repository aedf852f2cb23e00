import numpy as np
import pytest
from scipy.linalg import block_diag

from skbayesnn.inference._gaussian import DenseGaussian, DualGaussian, KroneckerGaussian

K, M = 9, 5
rng = np.random.default_rng(0)
PRIOR = np.exp(rng.uniform(-2, 2, K))
S = rng.standard_normal((M, K))
A = np.diag(PRIOR) + S.T @ S

FACTORS = [  # two layers, of 2 x 3 and 3 x 1 weights
    (np.exp(rng.uniform(-2, 2, fan_in)), B.T @ B, C.T @ C)
    for fan_in, B, C in (
        (2, rng.standard_normal((5, 2)), rng.standard_normal((2, 3))),
        (3, rng.standard_normal((2, 3)), rng.standard_normal((4, 1))),
    )
]
LAYERS = block_diag(*(np.kron(np.diag(D), np.eye(len(G))) + np.kron(F, G) for D, F, G in FACTORS))

each_form = pytest.mark.parametrize(
    ("gaussian", "A"),
    [
        (DenseGaussian.from_precision(A), A),
        (DualGaussian(PRIOR, S), A),
        (KroneckerGaussian(FACTORS), LAYERS),
    ],
    ids=["dense", "dual", "kronecker"],
)


@each_form
def test_against_plain_numpy(gaussian, A):
    rng = np.random.default_rng(1)
    inverse = np.linalg.inv(A)
    one, several = rng.standard_normal(K), rng.standard_normal((K, 3))
    J = rng.standard_normal((4, 2, K))
    np.testing.assert_allclose(gaussian.log_det, np.linalg.slogdet(A)[1], rtol=1e-13)
    np.testing.assert_allclose(gaussian.solve(one), inverse @ one, rtol=1e-11)
    np.testing.assert_allclose(gaussian.solve(several), inverse @ several, rtol=1e-11)
    np.testing.assert_allclose(gaussian.covariance(), inverse, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(gaussian.variances(), np.diag(inverse), rtol=1e-12)
    expected = J @ inverse @ np.swapaxes(J, 1, 2)
    np.testing.assert_allclose(gaussian.project(J), expected, rtol=1e-11, atol=1e-13)


@each_form
def test_covariance_of_draws(gaussian, A):
    size = 40_000
    draws = gaussian.draw(np.random.default_rng(2), size)
    assert draws.shape == (size, K)
    covariance = np.linalg.inv(A)
    variances = np.diag(covariance)
    assert np.all(np.abs(draws.mean(0)) < 4 * np.sqrt(variances / size))
    # var(x_i x_j) = c_ii c_jj + c_ij^2
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / size)
    assert np.all(np.abs(draws.T @ draws / size - covariance) < 4 * error)


@each_form
def test_draws_follow_the_generator(gaussian, A):
    first, second = (gaussian.draw(np.random.default_rng(3), 5) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@each_form
def test_whiten(gaussian, A):
    b = np.random.default_rng(4).standard_normal((K, 3))
    white = gaussian.whiten(b)
    np.testing.assert_allclose(white.T @ white, b.T @ np.linalg.solve(A, b), rtol=1e-11)
    np.testing.assert_allclose(gaussian.whiten(b[:, 0]), white[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([1.0, -1e-9, 2.0]),
        np.diag([1.0, 0.0, 2.0]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.full((2, 2), np.nan),
        np.diag([1.0, np.inf]),
    ],
    ids=["negative", "zero", "saddle", "nan", "inf"],
)
def test_no_gaussian_without_positive_definite_precision(matrix):
    assert DenseGaussian.from_precision(matrix) is None


def test_the_precision_is_neither_changed_nor_repaired():
    matrix = A.copy()
    gaussian = DenseGaussian.from_precision(matrix)
    np.testing.assert_array_equal(matrix, A)
    # far below any jitter one might be tempted to add
    tiny = DenseGaussian.from_precision(np.diag([1e-30, 1.0]))
    np.testing.assert_allclose(tiny.log_det, np.log(1e-30), rtol=1e-14)
    frozen = np.asfortranarray(A)
    frozen.setflags(write=False)
    np.testing.assert_array_equal(DenseGaussian.from_precision(frozen).factor, gaussian.factor)


def test_well_determined_weights_of_the_dual_form():
    expected = K - np.sum(PRIOR * np.diag(np.linalg.inv(A)))
    np.testing.assert_allclose(DualGaussian(PRIOR, S).determined, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 6), (4, 4), (12, 6)], ids=str)
def test_primal_equals_dual(shape):
    rng = np.random.default_rng(5)
    prior, S = np.exp(rng.uniform(-6, 6, shape[1])), 3 * rng.standard_normal(shape)
    dense = DenseGaussian.from_precision(np.diag(prior) + S.T @ S)
    dual = DualGaussian(prior, S)
    J = rng.standard_normal((3, 2, shape[1]))
    b = rng.standard_normal(shape[1])
    scale = np.sqrt(dense.variances())
    np.testing.assert_allclose(dual.log_det, dense.log_det, rtol=1e-12)
    np.testing.assert_allclose(dual.solve(b) / scale, dense.solve(b) / scale, atol=1e-9)
    correlation = np.outer(scale, scale)
    np.testing.assert_allclose(
        dual.covariance() / correlation, dense.covariance() / correlation, atol=1e-9
    )
    np.testing.assert_allclose(dual.variances(), dense.variances(), rtol=1e-9)
    np.testing.assert_allclose(dual.project(J), dense.project(J), rtol=1e-9, atol=1e-9)
