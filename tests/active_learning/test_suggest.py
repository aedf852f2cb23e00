"""Suggestions of experiments: acquisition functions, conditioning, constraints, bounds."""

from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import Bounds
from scipy.spatial.distance import pdist
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.active_learning import Straddle, log_expected_improvement, suggest
from skbayesnn.active_learning._suggest import _Search

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.usefixtures("laplace"),
]

FEW = {"n_chains": 2, "n_warmup": 30, "n_draws": 60, "measure_evidence": False, "random_state": 0}
LIMITS = [(0.0, 1.0), (-2.0, 2.0)]


def objective(X):
    """Largest at (0.3, 0.5)."""
    return 5.0 - 4.0 * (X[:, 0] - 0.3) ** 2 - (X[:, 1] - 0.5) ** 2


def make_rows(n=40):
    rng = np.random.default_rng(0)
    X = rng.uniform([0.0, -2.0], [1.0, 2.0], (n, 2))
    return X, objective(X) + 0.02 * rng.standard_normal(n)


@pytest.fixture(scope="module", params=["evidence", "hmc"])
def model(request):
    if request.param == "hmc":
        return HMCMLPRegressor((6,), noise="constant", **FEW).fit(*make_rows())
    model = EvidenceMLPRegressor((6,), noise="constant", n_restarts=2, random_state=0)
    return model.fit(*make_rows())


@pytest.mark.parametrize("z", [3.0, 0.0, -0.99, -1.01, -10.0, -200.0, -999.0, -1001.0])
def test_log_expected_improvement_by_quadrature(z):
    # EI = phi(z) int_0^inf t exp(-t^2 / 2 + t z) dt
    end = np.inf if z > -5 else 60 / abs(z)
    exact, _ = quad(lambda t: t * np.exp(-0.5 * t**2 + t * z), 0, end, epsabs=0, epsrel=1e-12)
    exact = np.log(2.0 * exact) - 0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    found = log_expected_improvement(np.array([2.0 * z + 7.0]), np.array([2.0]), 7.0)
    assert_allclose(found, exact, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("noise", [1e-4, 0.3])
def test_experiments_without_noise_are_not_repeated(noise):
    X = np.linspace(0, 1, 5)[:, None]
    model = EvidenceMLPRegressor((3,), noise=noise, random_state=0).fit(X, (X[:, 0] - 0.62) ** 2)
    rows = suggest(model, [(0.0, 1.0)], 3, maximize=False, random_state=0)
    every = np.concatenate([X, rows])[:, 0]
    apart = np.min(np.diff(np.sort(every))) / X.std()
    assert (apart > 0.009) == (noise < 0.01)
    first = suggest(model, X, 1, random_state=0)
    assert_array_equal(first, X[[np.argmax(model.predict(X))]])  # no others are left
    grid = np.linspace(0, 1, 9)[:, None]
    measured = np.isin(suggest(model, grid, 4, random_state=0), X)
    assert measured.any() == (noise > 0.01)


def test_the_maximum_is_suggested_within_bounds(model):
    for limits in (LIMITS, [*map(list, LIMITS)], Bounds([0.0, -2.0], [1.0, 2.0])):
        X = suggest(model, limits, random_state=0)
        assert_allclose(X, [[0.3, 0.5]], atol=0.15)  # by 40 noisy rows
    assert_array_equal(X, suggest(model, limits, random_state=0))


def test_the_minimum_is_that_of_the_opposite_function(model):
    X, y = make_rows()
    opposite = clone(model).fit(X, -y)
    found = suggest(opposite, LIMITS, maximize=False, random_state=0)
    assert_allclose(found, suggest(model, LIMITS, random_state=0), atol=0.02)


def test_the_order_of_candidates_does_not_matter(model):
    rng = np.random.default_rng(1)
    pool = rng.uniform([0.0, -2.0], [1.0, 2.0], (50, 2))
    found = suggest(model, pool, 3, random_state=0)
    assert_array_equal(found, suggest(model, pool[::-1], 3, random_state=0))
    assert len(np.unique(found, axis=0)) == 3
    assert all(np.any(np.all(pool == x, axis=1)) for x in found)


def test_drawn_functions_differ(model):
    X = suggest(model, LIMITS, 3, acquisition="thompson", random_state=0)
    assert len(np.unique(X, axis=0)) == 3


def test_constraints_and_costs(model):
    right = suggest(model, LIMITS, constraint=lambda X: X[:, 0] > 0.6, random_state=0)
    assert right[0, 0] > 0.6
    pool = np.array([[0.3, 0.5], [0.35, 0.55]])
    cheap = suggest(model, pool, cost=lambda X: np.where(X[:, 0] < 0.32, 1e9, 1.0))
    assert_array_equal(cheap, pool[1:])


def test_contours(model):
    X = suggest(model, LIMITS, acquisition=Straddle(3.0), random_state=0)
    mean, std = model.predict(X), model.predict_std(X, kind="epistemic")
    assert abs(mean[0] - 3.0) < 1.96 * std[0]


def given(model, pending, at, acquisition):
    """Acquisition function at rows, given the values of the function at pending ones."""
    return _Search(model, acquisition, True, None, None).score(np.array(pending), None)(at)[1]


def test_pending_values_condition_linear_models():
    """Against the posterior covariance of a ridge regression."""
    X, y = make_rows(12)
    prior = Prior("single", precision=1e-3)
    model = EvidenceMLPRegressor((), noise=0.2, prior=prior, standardize=False).fit(X, y)
    pending, at = np.array([[2.0, 3.0], [-1.0, 0.0]]), np.array([[0.5, 0.5], [1.5, 2.0]])
    rows = np.vstack([X, pending, at])
    rows = np.column_stack([rows, np.ones(len(rows))])
    S = rows @ np.linalg.inv(1e-3 * np.eye(3) + rows[:12].T @ rows[:12] / 0.04) @ rows.T
    p, a = slice(12, 14), slice(14, 16)
    rest = S[a, a] - S[a, p] @ np.linalg.solve(S[p, p], S[p, a])
    std = given(model, pending, at, lambda mean, std, best: std)
    assert_allclose(std, np.sqrt(np.diag(rest)), rtol=1e-6)
    mean = given(model, pending, at, lambda mean, std, best: mean)
    assert_allclose(mean, model.predict(at), rtol=1e-9)
    assert_allclose(given(model, pending, pending, lambda mean, std, best: std), 0.0, atol=1e-6)


def test_improvements_of_batches():
    """``E max(f, g, best) - E max(f, best)``, with the pending value ``f``, by quadrature."""
    X, y = make_rows(12)
    model = EvidenceMLPRegressor((), noise=2.0, prior=Prior("single", precision=1e-3)).fit(X, y)
    pending, at = np.array([[0.9, 1.8]]), np.array([[0.1, 1.7], [0.4, 1.9], [0.8, 1.7]])
    search = _Search(model, "log_expected_improvement", True, None, None)
    mean = model.predict(np.vstack([pending, at]))
    _, covariance = model._ensemble.joint_moments(model._check_X(np.vstack([pending, at])))
    S = covariance[..., 0] * model._y_scaling.scale**2 - 4.0 * np.eye(4)
    z = np.linspace(-8.0, 8.0, 4001)[:, None]
    f = mean[0] + np.sqrt(S[0, 0]) * z
    rest = np.sqrt(np.diag(S)[1:] - S[0, 1:] ** 2 / S[0, 0])
    u = (mean[1:] + S[0, 1:] / np.sqrt(S[0, 0]) * z - np.maximum(f, search.best)) / rest
    improvement = norm.pdf(z).T @ (rest * (norm.pdf(u) + u * norm.cdf(u))) * 0.004
    found = given(model, pending, at, "log_expected_improvement")
    assert_allclose(found, np.log(improvement[0]), atol=0.05)  # by 32 values
    assert np.ptp(found) > 1.0


@pytest.mark.usefixtures("as_users_fit")
def test_variances_that_batches_leave_are_those_of_the_drawn_networks():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    model = EvidenceMLPRegressor(noise=1e-3, random_state=0).fit(X, np.sin(4 * X[:, 0]) * X[:, 1])
    pending, at = np.array([[0.8, 0.9]]), np.array([[0.8, 0.9], [0.7, 0.9], [0.1, 0.1]])
    draws = model._ensemble.parts[0]
    rows = model._check_X(np.concatenate([pending, at]))
    C = np.cov(draws.outputs(rows)[..., 0], rowvar=False, ddof=0)  # of the means of output layers
    C += draws.joint_covariances(rows)[:, 0].mean(axis=0)
    expected = 1.0 - C[0, 1:] ** 2 / C[0, 0] / np.diag(C)[1:]
    assert expected[1] < 0.6 < expected[2]  # a near row, and a far one
    std = given(model, pending, at, lambda mean, std, best: std)
    found = (std / model.predict_std(at, kind="epistemic")) ** 2
    correlations = np.sqrt(1.0 - expected)
    errors = 2.0 * correlations * expected / np.sqrt(draws.n_unknowns)  # of drawn functions
    assert np.all(np.abs(found - expected) < 4.0 * errors + 1e-6)


@pytest.mark.usefixtures("as_users_fit")
def test_noisy_batches_spread():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(20, 2))
    y = -np.sum((X - 0.4) ** 2, axis=1) + 0.02 * rng.standard_normal(20)
    model = EvidenceMLPRegressor(random_state=0).fit(X, y)
    for seed in range(2):
        batch = suggest(model, [(0.0, 1.0)] * 2, 5, random_state=seed)
        assert pdist(batch).min() > 0.01
        assert pdist(batch).max() > 0.1


@cache
def of_shares(d, filled=True):
    """A model of shares, best where all are equal; of ``d``, or of which one more fills up to 1."""
    n, rng = d if filled else d + 1, np.random.default_rng(0)
    X = rng.dirichlet(np.ones(n), 60)[:, :d]
    y = -np.sum((X - 1.0 / n) ** 2, axis=1) + 0.01 * rng.standard_normal(60)
    options = {"method": "laplace", "n_restarts": 2, "random_state": 0}
    return EvidenceMLPRegressor((4,), noise="constant", **options).fit(X, y), X


def below_one(X):
    return X.sum(axis=1) <= 1.0


def filled(X):
    return np.abs(X.sum(axis=1) - 1.0) < 1e-6


def around(X, size):
    """A ball around one training row."""
    return np.linalg.norm(X - of_shares(4)[1][7] - 0.2 * size, axis=1) < size


def on_sphere(X):
    """About the origin, through one training row."""
    return np.abs(np.sum(X**2, axis=1) - np.sum(of_shares(4)[1][7] ** 2)) < 1e-9


REGIONS = {  # model, constraint, least distance of rows; walks start at training rows, and follow
    # directions between them
    "4 shares below 1": ((4, False), below_one, 0.01),
    "8 shares below 1": ((8, False), below_one, 0.01),
    "shares that fill up": ((4,), filled, 0.01),
    "a ball": ((4,), partial(around, size=0.01), 1e-3),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", REGIONS)
def test_regions(name, seed):
    given_shares, constraint, apart = REGIONS[name]
    model, d = of_shares(*given_shares)[0], given_shares[0]
    rows = suggest(model, [(0, 1)] * d, 2, constraint=constraint, random_state=seed)
    assert constraint(rows).all()
    assert np.all((rows >= 0) & (rows <= 1))
    assert pdist(rows) > apart
    if constraint is below_one:
        many = np.random.default_rng(seed).dirichlet(np.ones(d + 1), 5000)[:, :d]
        found, others = (
            given(model, rows[:0], some, "log_expected_improvement") for some in (rows[:1], many)
        )
        assert found[0] > others.max()


def test_pipelines_of_shares():
    """Training rows of the pipeline are not known in the units of the user."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(9), 60)[:, :8]
    model = make_pipeline(StandardScaler(), EvidenceMLPRegressor((), noise="constant"))
    model.fit(X, X[:, 0] + 0.01 * rng.standard_normal(60))
    rows = suggest(model, [(0, 1)] * 8, 2, constraint=below_one, random_state=0)
    assert below_one(rows).all()
    assert rows[0, 0] > 0.95  # of a linear function


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (lambda X: np.abs(X.sum(axis=1) - 1.5) < 1e-9, "No row within the bounds was found"),
        (on_sphere, "hardly any room"),
    ],
)
def test_regions_without_room(constraint, message):
    with pytest.raises(ValueError, match=message + r".*\. Give an array of possible rows"):
        suggest(of_shares(4)[0], [(0, 1)] * 4, constraint=constraint, random_state=0)


@pytest.mark.parametrize("scaled", [False, True])
def test_names_of_columns_are_kept(scaled):
    X, y = make_rows()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = EvidenceMLPRegressor((), noise="constant")
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(frame, y)
    for candidates in (frame, LIMITS):  # a warning would be an error
        assert suggest(model, candidates, 2, random_state=0).shape == (2, 2)


def test_rows_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = {"load": rng.uniform(0, 1, 40), "material": rng.choice(["steel", "brass"], 40)}
    table = pandas.DataFrame(table)
    y = table["load"] + (table["material"] == "brass")
    scaled = make_column_transformer(("passthrough", ["load"]), (OneHotEncoder(), ["material"]))
    model = make_pipeline(scaled, EvidenceMLPRegressor((), random_state=0)).fit(table, y)
    best = table.loc[y.idxmax()]
    found = suggest(model, table.drop(index=y.idxmax()), 2, random_state=0)
    assert list(found.columns) == ["load", "material"]
    assert set(found["material"]) == {best["material"]}
    cheap = suggest(model, table, constraint=lambda rows: rows["material"] == "steel")
    assert cheap["material"].item() == "steel"


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        (LIMITS, {"acquisition": "best"}, "acquisition must be"),
        ({"x0": (0.0, 1.0), "x1": (0.0, 1.0)}, {}, "limits as a list of pairs"),
        (LIMITS, {"acquisition": "thompson", "cost": np.ones_like}, "cost divides"),
        ([(1.0, 0.0), (0.0, 1.0)], {}, "must be below"),
        (LIMITS, {"constraint": lambda X: X[:, 0] > 2}, "No row within the bounds"),
        (np.zeros((2, 2)), {"n": 3}, "Only 2 candidates"),
        (np.zeros(2), {}, "Expected 2D array"),
        (np.full((3, 2), np.nan), {}, "candidates contains NaN"),
        (LIMITS, {"cost": lambda X: -np.ones(len(X))}, "cost must return .* positive numbers"),
        (LIMITS, {"acquisition": lambda mean, std, best: 1.0}, "must return .* numbers"),
        (LIMITS, {"constraint": lambda X: True}, "constraint must return 1024 booleans"),
        ([*LIMITS, (0.0, 1.0)], {}, "must be finite pairs"),
        ((0.0, 1.0), {}, "must be finite pairs"),
    ],
)
def test_bad_requests(model, candidates, options, message):
    with pytest.raises(ValueError, match=message):
        suggest(model, candidates, **options)


def test_only_regressors_of_one_output():
    X, y = make_rows()
    with pytest.raises(TypeError, match="fitted regressor of this package"):
        suggest(EvidenceMLPClassifier(()).fit(X, y > 4), LIMITS)
    with pytest.raises(ValueError, match="2 outputs"):
        suggest(EvidenceMLPRegressor(()).fit(X, np.column_stack([y, y**2])), LIMITS)
