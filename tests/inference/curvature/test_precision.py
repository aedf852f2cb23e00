"""The protocol of `Precision`: every form against the matrix itself, on one problem."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag, eigh

from skbayesnn.inference import DensePrecision, DualPrecision
from skbayesnn.inference.curvature._precision_kronecker import KroneckerPrecision
from skbayesnn.network import Network, forward, jacobian
from skbayesnn.posterior import WeightGroups
from tests.tools import assert_moments

SHAPES = [(4, 3), (4, 2)]  # inputs and units of two layers
ROWS = [(2, 2), (2, 1)]  # of the square roots of both factors: six rows of S in all


class Problem:
    """A matrix that has all forms: ``D x 1 + F x G`` with ``F = B^T B`` and ``G = C^T C``.

    Attributes
    ----------
    A : ndarray of shape (20, 20)
    forms : dict
        From names to `Precision`; ``"tall_root"`` is made from more rows than weights.
    """

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        D = [np.exp(rng.uniform(-2, 2, fan_in)) for fan_in, _ in SHAPES]
        B = [rng.standard_normal((m, i)) for (i, _), (m, _) in zip(SHAPES, ROWS, strict=True)]
        C = [rng.standard_normal((m, o)) for (_, o), (_, m) in zip(SHAPES, ROWS, strict=True)]
        S = block_diag(*(np.kron(b, c) for b, c in zip(B, C, strict=True)))
        self.prior = np.concatenate([np.repeat(d, o) for d, (_, o) in zip(D, SHAPES, strict=True)])
        self.A = np.diag(self.prior) + S.T @ S
        rotation = np.linalg.qr(rng.standard_normal((25, len(S))))[0]
        factors = [(d, b.T @ b, c.T @ c) for d, b, c in zip(D, B, C, strict=True)]
        self.forms = {
            "dense": DensePrecision(self.A),
            "dual": DualPrecision(self.prior, S),
            "root": DensePrecision.of_roots(self.prior, [S]),
            "tall_root": DensePrecision.of_roots(self.prior, np.split(rotation @ S, 5)),
            "kronecker": KroneckerPrecision(factors),
        }


ONE, OTHER = Problem(0), Problem(1)
A, K = ONE.A, len(ONE.A)
INVERSE = np.linalg.inv(A)
MADE = {
    "new": lambda precision: precision,
    "kept": lambda precision: pickle.loads(pickle.dumps(precision.condensed())),
}


@pytest.fixture(params=ONE.forms)
def form(request):
    return request.param


@pytest.fixture(params=MADE)
def precision(form, request):
    return MADE[request.param](ONE.forms[form])


def vectors(*shape):
    return np.random.default_rng(2).standard_normal(shape)


def test_the_matrix(precision):
    assert precision.definite
    assert_allclose(precision.dense(), A, rtol=1e-12, atol=1e-12)
    assert_allclose(precision.diagonal, np.diag(A), rtol=1e-12)
    assert_allclose(precision.log_det, np.linalg.slogdet(A)[1], rtol=1e-13)
    if isinstance(precision, DensePrecision):
        assert_allclose(precision.smallest_eigenvalue(), np.linalg.eigvalsh(A)[0], rtol=1e-10)


STEPPING = [form for form in ONE.forms if form != "kronecker"]  # forms of training in steps


def test_eigenvalues(form, precision):
    expected = eigh(A, np.diag(ONE.prior), eigvals_only=True)[::-1]
    assert_allclose(precision.eigenvalues(ONE.prior), expected, rtol=1e-10)
    if form != "dense":
        return  # whose prior is its own
    another = another_prior()
    expected = eigh(A, np.diag(another), eigvals_only=True)[::-1]
    assert_allclose(precision.eigenvalues(another), expected, rtol=1e-10)


def another_prior():
    return np.random.default_rng(3).uniform(0.5, 2.0, K)


def test_inverse(precision):
    b, J = vectors(K, 3), vectors(4, 2, K)
    white = precision.whiten(b)
    assert_allclose(white.T @ white, b.T @ INVERSE @ b, rtol=1e-11)
    assert_allclose(precision.whiten(b[:, 0]), white[:, 0], rtol=1e-12, atol=1e-14)
    for some in (b, b[:, 0]):
        assert_allclose(precision.solve(some), INVERSE @ some, rtol=1e-10, atol=1e-13)
    assert_allclose(precision.covariance(), INVERSE, rtol=1e-11, atol=1e-14)
    assert_allclose(precision.variances(), np.diag(INVERSE), rtol=1e-12)
    expected = J @ INVERSE @ np.swapaxes(J, 1, 2)
    assert_allclose(precision.project(J), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("form", STEPPING, indirect=True)
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_damped(precision, damping):
    metric = np.exp(vectors(K))
    damped = precision.damped(damping, metric)
    matrix = A + damping * np.diag(metric)
    assert_allclose(damped.solve(np.eye(K)), np.linalg.inv(matrix), rtol=1e-10, atol=1e-13)
    assert_allclose(damped.log_det, np.linalg.slogdet(matrix)[1], rtol=1e-12)
    assert_allclose(precision.log_det, np.linalg.slogdet(A)[1], rtol=1e-13)  # as it was


def traced():
    """A network of as many weights at five rows."""
    rng = np.random.default_rng(3)
    theta, X = rng.standard_normal(K), rng.standard_normal((5, 3))
    return forward(Network((3, 3, 2)), theta, X, order=1)


@pytest.mark.parametrize("rough", [False, True])
def test_covariances_of_outputs(precision, rough):
    trace = traced()
    J = jacobian(trace)
    find = precision.rough_output_covariances if rough else precision.output_covariances
    assert_allclose(find(trace), J @ INVERSE @ np.swapaxes(J, 1, 2), rtol=1e-9, atol=1e-12)


def test_covariances_of_outputs_with_free_weights_of_the_last_layer():
    trace, last = traced(), slice(12, None)
    J = jacobian(trace)[..., last]
    inverse = np.linalg.inv(A[last, last])
    expected = J @ inverse @ np.swapaxes(J, 1, 2)
    kronecker = KroneckerPrecision(ONE.forms["kronecker"].factors[1:])
    for precision in (DensePrecision(A[last, last]), kronecker):
        assert_allclose(precision.output_covariances(trace, last), expected, rtol=1e-11)


def test_variances_of_outputs_less_their_mean(precision):
    trace = traced()
    J = jacobian(trace)
    J = J - J.mean(axis=1, keepdims=True)
    expected = np.diagonal(J @ INVERSE @ np.swapaxes(J, 1, 2), axis1=1, axis2=2)
    assert_allclose(precision.relative_variances(trace), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", STEPPING, indirect=True)
def test_trace_under_another(precision):
    expected = np.trace(np.linalg.solve(OTHER.A, A))
    for name in STEPPING:
        assert_allclose(precision.trace_under(OTHER.forms[name]), expected, rtol=1e-11)
    assert_allclose(precision.trace_under(precision), K, rtol=1e-12)


def test_determined_weights(precision):
    groups = WeightGroups(np.arange(K) % 3, ["a", "b", "c"])
    alpha = np.array([0.3, 1.0, 2.0])
    parts = [np.diag(INVERSE)[c::3].sum() for c in range(3)]
    expected = groups.sizes - alpha * parts
    assert_allclose(precision.determined(groups, alpha), expected, rtol=1e-11)


def test_covariance_of_draws(form, seed):
    draws = ONE.forms[form].draw(np.random.default_rng(seed), 40_000)
    assert draws.shape == (40_000, K)
    white = np.linalg.solve(np.linalg.cholesky(INVERSE), draws.T).T
    assert_moments(white[:, ::4], np.zeros(5), np.eye(5))
    assert_moments(draws[:, ::4], np.zeros(5), INVERSE[::4, ::4])


def test_draws_follow_the_generator(form, precision):
    first, second = (p.draw(np.random.default_rng(4), 5) for p in (ONE.forms[form], precision))
    assert_allclose(first, second, rtol=1e-13)
    assert_array_equal(second, precision.draw(np.random.default_rng(4), 5))
    assert precision.draw(np.random.default_rng(4), 0).shape == (0, K)


# --- where the matrix is not definite, or only just -----------------------------------------------


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
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_not_definite(matrix, made):
    precision = made(DensePrecision(matrix))
    assert not precision.definite
    assert_array_equal(precision.matrix, matrix)
    assert_array_equal(precision.diagonal, np.diag(matrix))
    if np.all(np.isfinite(matrix)):
        lowest = np.linalg.eigvalsh(matrix)[0]
        assert_allclose(precision.smallest_eigenvalue(), lowest, atol=1e-15)
        assert precision.damped(1.0, np.full(len(matrix), 1e-8 - lowest)).definite


def test_the_matrix_is_neither_changed_nor_repaired():
    matrix = A.copy()
    precision = DensePrecision(matrix)
    precision.covariance()
    precision.damped(1.0, np.ones(K))
    assert_array_equal(matrix, A)
    # far below any jitter one might be tempted to add
    tiny = DensePrecision(np.diag([1e-30, 1.0]))
    assert_allclose(tiny.log_det, np.log(1e-30), rtol=1e-14)
    frozen = np.asfortranarray(A)
    frozen.setflags(write=False)
    assert_array_equal(DensePrecision(frozen).factor, precision.factor)


def exact_inverse(matrix):
    """Inverse and determinant of a matrix of fractions (Gauss-Jordan elimination)."""
    k, determinant = len(matrix), Fraction(1)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(k))] for i, row in enumerate(matrix)]
    for i in range(k):
        pivot = rows[i][i]
        determinant *= pivot
        rows[i] = [entry / pivot for entry in rows[i]]
        for j in range(k):
            if j != i:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return np.array([[float(entry) for entry in row[k:]] for row in rows]), determinant


def exactly(prior, S):
    """Covariance and log determinant of ``diag(a) + S^T S`` in exact arithmetic."""
    S = [[Fraction(entry) for entry in row] for row in S.tolist()]
    k = len(prior)
    matrix = [[sum(row[i] * row[j] for row in S) for j in range(k)] for i in range(k)]
    for i, a in enumerate(prior.tolist()):
        matrix[i][i] += Fraction(a)
    inverse, determinant = exact_inverse(matrix)
    return inverse, math.log(determinant.numerator) - math.log(determinant.denominator)


ILL = {  # data that determine some directions 18 decades better than others
    "one_row": (np.ones(3), np.array([[1e9, 1e9, 3e8]])),
    "many_rows": (np.ones(2), np.full((4, 2), 1e9)),
    "prior": (np.array([1e-4, 1.0, 1e4]), np.array([[1e9, 1e9, 3e2], [0.0, 0.0, 5e2]])),
    "all_rows": (np.ones(3), np.array([[1e9, 1e9, 0.0], [1e9, 1e9, 1.0], [0.0, 1e-3, 2.0]] * 2)),
}


@pytest.mark.parametrize(("prior", "S"), ILL.values(), ids=ILL)
def test_factor_of_a_root_is_right_where_the_matrix_is_lost_in_rounding(prior, S):
    assert not DensePrecision(np.diag(prior) + S.T @ S).definite
    inverse, log_det = exactly(prior, S)
    precision = DensePrecision.of_roots(prior, [S])
    scale = np.sqrt(np.diag(inverse))
    assert_allclose(precision.log_det, log_det, rtol=1e-7)
    assert_allclose(precision.variances(), np.diag(inverse), rtol=1e-6)
    covariance = precision.covariance()
    assert_allclose(
        covariance / np.outer(scale, scale), inverse / np.outer(scale, scale), atol=1e-6
    )
    b = vectors(len(prior)) / scale
    assert_allclose(precision.solve(b) / scale, inverse @ b / scale, atol=1e-6)
    white = precision.whiten(b)
    assert_allclose(white @ white, b @ inverse @ b, rtol=1e-6)
    assert_allclose(precision.project(b[None, None])[0, 0, 0], b @ inverse @ b, rtol=1e-6)
    draws = precision.draw(np.random.default_rng(5), 20_000) / scale
    assert_moments(draws, 0.0 * scale, inverse / np.outer(scale, scale))


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e7])
def test_dual_form_serves_as_long_as_the_prior_counts(size):
    """Variances along the rows, what is left of the difference of much larger ones."""
    prior, S = np.ones(4), size * np.array([[3.0, 1.0, 0.0, 1.0], [0.0, -2.0, 1.0, 0.0]])
    precision = DualPrecision(prior, S)
    assert precision.definite
    inverse, log_det = exactly(prior, S)
    assert_allclose(precision.log_det, log_det, rtol=1e-12)
    assert_allclose(precision.variances(), np.diag(inverse), rtol=1e-9)
    exact = 1.0 - np.diag(np.linalg.inv(np.eye(2) + S @ S.T))
    assert_allclose(
        precision.project(S[:, None])[:, 0, 0], exact, rtol=0.2
    )  # differences of much larger numbers


# --- what is kept ---------------------------------------------------------------------------------


def test_what_is_kept_is_small(form):
    """Of a matrix one triangle; of the other forms nothing that can be made anew."""
    precision = ONE.forms[form]
    assert np.isfinite(precision.log_det + precision.covariance().sum())
    fresh = Problem(0).forms[form]
    packed = pickle.dumps(precision.condensed())
    assert len(packed) == len(pickle.dumps(fresh.condensed()))
    if form == "dense":
        assert len(packed) < 0.6 * A.nbytes + 500
        assert "matrix" not in vars(precision.condensed())
