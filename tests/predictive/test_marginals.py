import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr, stdtr

from skbayesnn.predictive._mixture import Components, Mixture
from skbayesnn.predictive._noise import NORMAL
from skbayesnn.predictive._student_t import StudentTLaw

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[-1.0, 0.0], [2.0, 3.0], [0.5, -40.0]])
SDS = np.array([[1.0, 0.1], [0.2, 2.0], [3.0, 1e-3]])


def by_root_finding(tables, probability, row):
    """Quantile of one row, and the standard deviation as if all scales were."""

    def excess(x):
        total = -probability
        for weights, means, scales, law in tables:
            z = (x - means[:, row]) / np.broadcast_to(scales, means.shape)[:, row]
            nu = getattr(law, "degrees_of_freedom", None)
            total += weights @ (ndtr(z) if nu is None else stdtr(nu, z))
        return total

    weights = np.concatenate([table.weights for table in tables])
    means = np.concatenate([table.means[:, row] for table in tables])
    scales = [np.broadcast_to(table.scales, table.means.shape)[:, row] for table in tables]
    variance = weights @ (np.concatenate(scales) ** 2 + (means - weights @ means) ** 2)
    return brentq(excess, -1e6, 1e6, xtol=1e-13, rtol=1e-14), np.sqrt(variance)


def many_draws(rng, kind, m=2000, n=4):
    """Drawn networks of equal weight whose spread is some ``width`` of the noise."""
    width = np.array([0.1, 0.5, 3.0, 20.0])
    means = 5.0 + width * rng.standard_normal((m, n))
    means[:, 3] += 60.0 * (rng.uniform(size=m) < 0.3)  # two separate groups
    scales = np.exp(0.2 * rng.standard_normal((m, 1)))
    if kind == "scales of rows":
        scales = scales * np.exp(0.5 * rng.standard_normal((m, n)))
    if kind != "student_t":
        return [Components(np.full(m, 1.0 / m), means, scales, NORMAL)]
    chosen = rng.integers(3, size=m)
    return [
        Components(
            np.full(np.sum(chosen == i), 1.0 / m), means[chosen == i], scales[chosen == i], law
        )
        for i, law in enumerate((StudentTLaw.of(2.5), StudentTLaw.of(10.0), NORMAL))
    ]


@pytest.mark.parametrize("kind", ["constant", "scales of rows", "student_t"])
def test_quantiles_of_many_components_against_root_finding(kind):
    tables = many_draws(np.random.default_rng(0), kind)
    probabilities = [1e-3, 0.025, 0.5, 0.8, 0.975]
    quantiles = Mixture(tables).quantiles(probabilities)
    for probability, found in zip(probabilities, quantiles, strict=True):
        for row in range(4):
            exact, sd = by_root_finding(tables, probability, row)
            assert abs(found[row] - exact) < 1e-7 * sd


def test_one_mixture_and_its_parts():
    probabilities = [1e-9, 0.025, 0.5, 0.7, 0.999]
    found = Mixture([Components(WEIGHTS, MEANS, SDS, NORMAL)]).quantiles(probabilities)
    parts = [Components(WEIGHTS[i], MEANS[i], SDS[i], NORMAL) for i in (slice(1), slice(1, 3))]
    assert_allclose(Mixture(parts).quantiles(probabilities), found, rtol=1e-12)
    for probability, values in zip(probabilities, found, strict=True):
        for row in range(2):
            exact, sd = by_root_finding(parts, probability, row)
            assert abs(values[row] - exact) < 1e-8 * sd


def dense_entropy(tables, row=0):
    """Entropy of one row by Gauss-Legendre rules between marks on the scale of every component."""
    near, far = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]), np.sinh(np.arange(25.0))
    marks, parts = [], []
    for weights, means, scales, law in tables:
        scales = np.broadcast_to(scales, means.shape)[:, row]
        reach = near if law is NORMAL else np.union1d(near, far)
        marks.append(means[:, row, None] + scales[:, None] * np.r_[-reach, reach])
        parts += zip(weights, means[:, row], scales, [law] * len(weights), strict=True)
    edges = np.unique(np.concatenate([some.ravel() for some in marks]))
    nodes, shares = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    density = sum(w / s * np.exp(law.log_density((x - mean) / s)) for w, mean, s, law in parts)
    mass = (half * shares).ravel() * density
    assert abs(mass.sum() - 1.0) < 1e-4  # the rule is dense enough
    return -mass @ np.log(np.maximum(density, 1e-300))


LAW_SETS = [(NORMAL,), (StudentTLaw.of(1.0),), (NORMAL, StudentTLaw.of(3.0), StudentTLaw.of(1.0))]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("laws", LAW_SETS, ids=["normal", "cauchy", "several laws"])
@pytest.mark.parametrize("width", [0.0, 0.3, 3.0])  # sd of log scales
def test_entropies_of_random_mixtures(seed, laws, width):
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 3, 12]))
    weights = rng.dirichlet(np.ones(m * len(laws))).reshape(len(laws), m)
    tables = [
        Components(
            own,
            rng.choice([0.0, 1.0, 30.0]) * rng.standard_normal((m, 2)),
            0.1 * np.exp(width * rng.standard_normal((m, 1))),
            law,
        )
        for own, law in zip(weights, laws, strict=True)
    ]
    expected = [dense_entropy(tables, row) for row in range(2)]
    assert_allclose(Mixture(tables).entropy(), expected, atol=5e-3)


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("mean", [0.0, 0.3, 50.0])
def test_entropies_of_a_narrow_component_beside_a_wide_one(scale, share, mean):
    weights, means = np.array([1.0 - share, share]), np.array([[0.0], [mean]])
    tables = [Components(weights, means, np.array([[1.0], [scale]]), NORMAL)]
    assert_allclose(Mixture(tables).entropy(), dense_entropy(tables), atol=3e-3)


@pytest.mark.parametrize("scale", [1.0, 3e-3])
def test_entropies_of_many_draws(scale):
    """Narrow laws stand apart, as of draws with little noise far outside the data."""
    means = np.random.default_rng(0).standard_normal((100, 2))
    tables = [Components(np.full(100, 0.01), means, scale, NORMAL)]
    expected = [dense_entropy(tables, row) for row in range(2)]
    assert_allclose(Mixture(tables).entropy(), expected, atol=3e-3)


@pytest.mark.parametrize("nu", [0.7, 1.0, 2.5, 30.0, np.inf])
def test_entropies_of_one_component(nu):
    """Closed forms; a component that is divided in equal ones has the same entropy."""
    law = NORMAL if nu == np.inf else StudentTLaw.of(nu)
    exact = (stats.norm if nu == np.inf else stats.t(nu)).entropy() + np.log(0.2)
    tables = [Components(np.full(3, 1.0 / 3.0), np.full((3, 2), 4.0), 0.2, law)]
    assert_allclose(Mixture(tables).entropy(), exact, atol=1e-3)


def test_rows_do_not_depend_on_each_other():
    tables = many_draws(np.random.default_rng(1), "constant")
    (alone,) = Mixture([tables[0]._replace(means=tables[0].means[:, 2:3])]).quantiles([0.3])
    (together,) = Mixture(tables).quantiles([0.3])
    assert_allclose(together[2], alone[0], rtol=1e-12)


def test_quantiles_where_noise_is_all_but_absent():
    means = np.random.default_rng(0).standard_normal((100, 1))
    (found,) = Mixture([Components(np.full(100, 0.01), means, 1e-8, NORMAL)]).quantiles([0.305])
    assert abs(found[0] - np.sort(means[:, 0])[30]) < 1e-7


@pytest.mark.parametrize("nu", [0.7, 2.5, 10.0, 300.0])
def test_student_t_law(nu):
    law, z = StudentTLaw.of(nu), np.concatenate([[-300.0, 0.0, 300.0], np.linspace(-9, 9, 1001)])
    cdf, density = law.cdf(z), np.exp(law.log_density(z))
    assert_allclose(cdf, stats.t.cdf(z, nu), atol=1e-10)
    assert_allclose(density, stats.t.pdf(z, nu), rtol=1e-10)
    near = np.linspace(-5, 5, 41)
    assert_allclose(law.quantile(law.cdf(near)), near, atol=1e-7)
