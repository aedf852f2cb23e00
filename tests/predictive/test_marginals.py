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


@pytest.mark.parametrize("kind", ["constant", "scales of rows", "student_t"])
@pytest.mark.parametrize("m", [1, 25, 400])
def test_entropies_by_the_trapezoidal_rule(kind, m):
    tables = [some for some in many_draws(np.random.default_rng(2), kind, m) if len(some.weights)]
    if m == 25:  # separate, and much narrower than the mixture
        tables = [table._replace(scales=0.2 * table.scales) for table in tables]
    x, entropies = np.linspace(-200.0, 200.0, 20_001), Mixture(tables).entropy()
    for row in range(3):
        of_row = [
            table._replace(
                means=table.means[:, [row]],
                scales=np.broadcast_to(table.scales, table.means.shape)[:, [row]],
            )
            for table in tables
        ]
        logs = Mixture(of_row).log_density(x)
        assert abs(entropies[row] + np.trapezoid(np.exp(logs) * logs, x)) < 3e-3


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
