import numpy as np
import pytest

from skbayesnn.samplers import Metric, leapfrog, start
from tests.tools import assert_near, assert_same_bits

STIFFNESS = np.array([1.0, 4.0, 0.5])


def quartic(x):
    """A target whose dynamics is not linear, coupled in all coordinates (d = 3)."""
    pair = x[..., 0] * x[..., 1] - x[..., 2]
    value = np.sum(0.25 * x**4 + 0.5 * STIFFNESS * x**2, axis=-1) + 0.5 * pair**2
    along = np.stack([x[..., 1], x[..., 0], -np.ones_like(pair)], axis=-1)
    return value, x**3 + STIFFNESS * x + pair[..., None] * along


def dense_metric(n_chains, dimension, seed=0):
    root = np.random.default_rng(seed).standard_normal((n_chains, dimension, dimension))
    return Metric.from_precisions(root @ np.swapaxes(root, -1, -2) + 0.5 * np.eye(dimension))


def random_phase(energy, n_chains, dimension, seed=1):
    rng = np.random.default_rng(seed)
    phase = start(energy, rng.standard_normal((n_chains, dimension)))
    return phase._replace(momentum=rng.standard_normal((n_chains, dimension)))


def test_metric_from_a_matrix_that_rounding_has_spoilt():
    root = np.random.default_rng(0).standard_normal((2, 6, 3))
    precision = root @ np.swapaxes(root, -1, -2)  # of rank 3
    before = precision.copy()
    F = Metric.from_precisions(precision).factor
    np.testing.assert_array_equal(precision, before)
    scaled = np.swapaxes(F, -1, -2) @ precision @ F
    ranks = np.sum(np.linalg.eigvalsh(scaled) > 0.5, axis=-1)
    np.testing.assert_array_equal(ranks, [3, 3])  # round where the matrix says something
    assert np.all(np.isfinite(F))


def test_one_step_in_the_usual_mass_matrix_form():
    # with momenta F^-T p of mass matrix (F F^T)^-1 (Neal 2011, equations 5.18-5.20)
    metric, phase = dense_metric(2, 3), random_phase(quartic, 2, 3)
    eps = np.array([0.1, 0.2])
    end = leapfrog(quartic, phase, eps, np.array([1, 1]), metric)
    for i in range(2):
        F = metric.factor[i]
        half = np.linalg.solve(F.T, phase.momentum[i]) - 0.5 * eps[i] * phase.gradient[i]
        position = phase.position[i] + eps[i] * F @ F.T @ half
        value, gradient = quartic(position)
        assert_near(end.position[i], position, 1e-13)
        assert_near(end.momentum[i], F.T @ (half - 0.5 * eps[i] * gradient), 1e-12)
        assert_near(end.value[i], value, 1e-13)
        assert_near(end.gradient[i], gradient, 1e-13)


def test_reversible():
    metric, phase = dense_metric(6, 3), random_phase(quartic, 6, 3)
    eps, n_steps = np.linspace(0.01, 0.06, 6), np.array([1, 2, 10, 30, 7, 50])
    end = leapfrog(quartic, phase, eps, n_steps, metric)
    assert np.all(np.linalg.norm(end.position - phase.position, axis=1) > 1e-3)
    back = leapfrog(quartic, end._replace(momentum=-end.momentum), eps, n_steps, metric)
    assert_near(back.position, phase.position, 1e-10)
    assert_near(back.momentum, -phase.momentum, 1e-10)
    assert_near(back.value, phase.value, 1e-10)
    assert_near(back.gradient, phase.gradient, 1e-10)


def test_each_chain_makes_its_own_number_of_steps():
    n_steps = np.array([3, 1, 0, 25, 3, 8])
    metric, phase = dense_metric(6, 3), random_phase(quartic, 6, 3)
    eps = np.array([0.05, 0.1, 0.1, 0.02, 0.01, 0.03])
    evaluations = []

    def counted(x):
        evaluations.append(len(x))
        return quartic(x)

    end = leapfrog(counted, phase, eps, n_steps, metric)
    assert sum(evaluations) == n_steps.sum()  # nothing is evaluated for chains that are done
    assert len(evaluations) == n_steps.max()
    assert_same_bits(end.select([2]), phase.select([2]))
    for i in range(6):
        alone = phase.select([i])
        one = np.array([1])
        for _ in range(n_steps[i]):
            alone = leapfrog(quartic, alone, eps[[i]], one, metric.select([i]))
        np.testing.assert_allclose(end.position[i], alone.position[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(end.momentum[i], alone.momentum[0], rtol=1e-12, atol=1e-14)


def test_unstable_trajectories_are_given_up():
    # the leapfrog method is unstable for steps beyond 2 standard deviations
    calls = []

    def energy(x):
        calls.append(len(x))
        return 0.5 * np.sum(x**2, axis=-1), x

    phase = random_phase(energy, 3, 4)
    calls.clear()
    eps, n_steps = np.array([0.3, 2.5, 30.0]), np.array([40, 400, 400])
    end = leapfrog(energy, phase, eps, n_steps, Metric(np.ones((3, 4))))
    np.testing.assert_array_equal(end.value == np.inf, [False, True, True])
    alone = leapfrog(energy, phase.select([0]), eps[:1], n_steps[:1], Metric(np.ones((1, 4))))
    assert_same_bits(end.select([0]), alone)
    assert calls[:40].count(1) > 20  # others stop early


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
def test_values_that_are_no_numbers(bad):
    def energy(x):
        value, gradient = 0.5 * np.sum(x**2, axis=-1), x.copy()
        outside = x[:, 0] > 1.0
        value[outside], gradient[outside] = bad, np.nan
        return value, gradient

    position = np.array([[0.9, 0.0], [0.9, 0.0], [-3.0, 0.0]])
    momentum = np.array([[5.0, 0.0], [-0.5, 0.3], [0.1, 0.0]])
    phase = start(energy, position)._replace(momentum=momentum)
    end = leapfrog(energy, phase, np.full(3, 0.1), np.full(3, 10), Metric(np.ones((3, 2))))
    np.testing.assert_array_equal(end.value == np.inf, [True, False, False])
    assert all(np.all(np.isfinite(field[1:])) for field in end)


def test_overflow_without_warnings():
    def energy(x):
        return np.sum(np.exp(x**2), axis=-1), 2.0 * x * np.exp(x**2)

    phase = start(energy, np.array([[1.0], [3.0]]))._replace(momentum=np.array([[0.1], [-9.0]]))
    end = leapfrog(energy, phase, np.array([0.05, 1e3]), np.array([5, 5]), Metric(np.ones((2, 1))))
    np.testing.assert_array_equal(end.value == np.inf, [False, True])
