import pickle

import numpy as np
import pytest

from skbayesnn.samplers import (
    Chains,
    Metric,
    Plan,
    RandomNumbers,
    effective_sample_size,
    r_hat,
    random_walk,
    sample,
    start,
    transition,
    warm_up,
)
from tests.tools import assert_near, assert_same_bits


class Gaussian:
    """Zero-mean normal distribution as an energy, with exact draws."""

    def __init__(self, covariance):
        self.covariance = covariance
        self.precision = np.linalg.inv(covariance)
        self.factor = np.linalg.cholesky(covariance)

    @classmethod
    def correlated(cls, dimension, condition, seed=0):
        """Random principal axes, variances from 1 down to 1 / condition."""
        normal = np.random.default_rng(seed).standard_normal((dimension, dimension))
        axes = np.linalg.qr(normal)[0]
        return cls((axes * np.geomspace(1.0, 1.0 / condition, dimension)) @ axes.T)

    def __call__(self, x):
        gradient = (self.precision @ x[..., None])[..., 0]
        return 0.5 * np.sum(x * gradient, axis=-1), gradient

    def draw(self, n, rng):
        return rng.standard_normal((n, len(self.factor))) @ self.factor.T

    def curvature(self, x):
        return np.tile(self.precision, (len(x), 1, 1))


def banana(x):
    """x_0 standard normal, x_1 normal around x_0^2 / 2, x_2 logistic."""
    bend = x[..., 1] - 0.5 * x[..., 0] ** 2
    value = 0.5 * (x[..., 0] ** 2 + bend**2) + x[..., 2] + 2.0 * np.logaddexp(0.0, -x[..., 2])
    slope = [x[..., 0] * (1.0 - bend), bend, np.tanh(0.5 * x[..., 2])]
    return value, np.stack(slope, axis=-1)


def draw_banana(n, rng):
    x = np.stack([rng.standard_normal(n), rng.standard_normal(n), rng.logistic(size=n)], axis=1)
    x[:, 1] += 0.5 * x[:, 0] ** 2
    return x


def generators(n, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(n)]


def collect(energy, chains, plan, n_transitions, **options):
    """The chains at the end, positions (n_chains, n_transitions, d), and the Infos."""
    positions, infos = [], []

    def keep(chains, info):
        positions.append(chains.phase.position)
        infos.append(info)

    chains = sample(energy, chains, plan, n_transitions, keep, **options)
    return chains, np.stack(positions, axis=1), infos


def assert_expected(values, expected):
    """Means of draws (n_chains, n, ...) within 5 Monte Carlo standard errors."""
    error = np.std(values, axis=(0, 1)) / np.sqrt(effective_sample_size(values))
    assert np.all(np.abs(np.mean(values, axis=(0, 1)) - expected) < 5.0 * error)


# --- one transition ------------------------------------------------------------------------------


def one_transition(energy, phase, uniform, step_size=0.5, n_steps=3, seed=3, **options):
    m, d = phase.position.shape
    noise = RandomNumbers(np.random.default_rng(seed).standard_normal((m, d)), np.full(m, uniform))
    args = np.full(m, step_size), np.full(m, n_steps), Metric(np.ones((m, d)))
    return transition(energy, phase, noise, *args, **options), noise


def test_rejection_turns_the_momentum_round():
    phase = start(banana, draw_banana(50, np.random.default_rng(0)))
    (end, info), noise = one_transition(banana, phase, 0.97, step_size=0.8)
    kept = info.acceptance <= 0.97
    assert 5 < kept.sum() < 45
    np.testing.assert_array_equal(np.all(end.position == phase.position, axis=1), kept)
    np.testing.assert_array_equal(end.momentum[kept], -noise.momentum[kept])
    for field in ("position", "value", "gradient"):
        mine, before = getattr(end, field), getattr(phase, field)
        np.testing.assert_array_equal(mine[kept], before[kept])
    (free, other), _ = one_transition(banana, phase, 0.97, step_size=0.8, metropolis=False)
    moved = np.any(free.position != phase.position, axis=1)
    np.testing.assert_array_equal(moved, ~info.diverged)
    np.testing.assert_array_equal(other.acceptance, info.acceptance)
    assert_same_bits(free.select(~kept), end.select(~kept))


@pytest.mark.parametrize("metropolis", [True, False], ids=str)
def test_trajectories_given_up_are_rejected(metropolis):
    energy = Gaussian(np.diag([1.0, 1e-4]))
    phase = start(energy, np.array([[1.0, 0.01], [0.5, 0.02]]))
    options = {"step_size": 0.5, "n_steps": 30, "metropolis": metropolis}
    (end, info), noise = one_transition(energy, phase, 0.0, **options)
    assert info.diverged.all()
    np.testing.assert_array_equal(info.acceptance, [0.0, 0.0])
    np.testing.assert_array_equal(end.position, phase.position)
    np.testing.assert_array_equal(end.value, phase.value)
    np.testing.assert_array_equal(end.momentum, -noise.momentum)


# --- distributions -------------------------------------------------------------------------------

KINDS = {
    "hmc": Plan(step_size=0.5, n_steps=6),
    "lengths": Plan(step_size=0.5, length=2.0),
    "langevin": Plan(step_size=0.8, n_steps=1),
    "persistent": Plan(step_size=0.5, n_steps=1, persistence=0.9),
    "drawn lengths": Plan(step_size=0.6, n_steps=(1, 9)),
    "persistent drawn lengths": Plan(step_size=0.6, n_steps=(1, 3), persistence=0.7),
    "random walk": Plan(step_size=0.9, n_steps=1, kernel=random_walk),
}
SLOW = {"random walk": 3000}  # transitions


@pytest.mark.parametrize("kind", KINDS)
def test_moments(kind):
    plan, m = KINDS[kind], 40
    position = draw_banana(m, np.random.default_rng(0))
    chains = Chains.start(banana, position, generators(m), plan)
    _, x, infos = collect(banana, chains, plan, SLOW.get(kind, 800))
    assert 0.5 < np.mean([info.acceptance for info in infos]) < 0.995  # the test matters
    assert np.all(r_hat(x) < 1.05)
    a, b, c = np.moveaxis(x, -1, 0)
    assert_expected(np.stack([a, b, c], -1), [0.0, 0.5, 0.0])
    assert_expected(np.stack([a**2, b**2, c**2], -1), [1.0, 1.75, np.pi**2 / 3.0])
    assert_expected(np.stack([a * b, a * c, b * c, a**2 * b], -1), [0.0, 0.0, 0.0, 1.5])


@pytest.mark.parametrize(
    ("eps", "n_steps", "persistence"), [(1.0, 1, 0.0), (0.5, 1, 0.9), (1.0, 4, 0.5)], ids=str
)
def test_stochastic_dynamics_samples_a_widened_distribution(eps, n_steps, persistence):
    # leapfrog steps keep x^2 (1 - eps^2 / 4) + p^2 of the oscillator exactly, and so does the
    # refreshment of momenta keep the distribution whose energy is half of it
    m, d = 20, 50

    def energy(x):
        return 0.5 * np.sum(x**2, axis=-1), x

    rng = np.random.default_rng(0)
    width = (1.0 - 0.25 * eps**2) ** -0.5
    phase = start(energy, width * rng.standard_normal((m, d)))
    phase = phase._replace(momentum=rng.standard_normal((m, d)))
    rngs, squares = generators(m), []
    for _ in range(300):
        args = np.full(m, eps), np.full(m, n_steps), Metric(np.ones((m, d))), persistence
        phase, _ = transition(energy, phase, RandomNumbers.draw(rngs, d), *args, metropolis=False)
        squares.append(np.mean(phase.position**2, axis=1))
    squares = np.stack(squares, axis=1)
    assert_expected(squares, width**2)
    error = np.std(squares) / np.sqrt(effective_sample_size(squares))
    assert width**2 - 1.0 > 6.0 * error  # so that the bias is what is seen


# --- chains --------------------------------------------------------------------------------------


PLANS = [
    Plan(),
    Plan(n_steps=4, persistence=0.5),
    Plan(n_steps=(2, 5)),
    Plan(n_steps=1, kernel=random_walk),
]


# trajectory lengths and step sizes fill their ranges evenly, in this order


def test_random_walk_keeps_conditions_and_refuses_what_is_not_finite():
    def energy(x):  # the last entry is a condition, negative positions have no density
        with np.errstate(invalid="ignore"):
            return np.log(x[:, 0]) ** 2 * x[:, 2], x[:, :2]

    phase = start(energy, np.tile([1.0, 1.0, 5.0], (200, 1)))
    noise = RandomNumbers(np.random.default_rng(0).standard_normal((200, 2)), np.zeros(200))
    args = np.full(200, 2.0), np.ones(200, dtype=int), Metric(np.ones((200, 2)))
    end, info = random_walk(energy, phase, noise, *args)
    assert np.all(end.position[:, 2] == 5.0)
    assert np.all(end.position[:, 0] > 0)
    np.testing.assert_array_equal(
        info.diverged, phase.position[:, 0] + 2 * noise.momentum[:, 0] <= 0
    )


@pytest.mark.parametrize("plan", PLANS, ids=["auto", "fixed", "drawn", "walk"])
def test_a_chain_does_not_depend_on_its_neighbours(plan):
    energy = Gaussian.correlated(6, 100.0)
    position = energy.draw(5, np.random.default_rng(0)) * np.arange(1.0, 6.0)[:, None]

    def curvature(x):  # another one for every chain
        return (1.0 + np.sum(x**2, axis=-1))[:, None, None] * energy.curvature(x)

    def run(members):
        rngs = [generators(5)[i] for i in members]
        chains = Chains.start(energy, position[members], rngs, plan)
        chains = warm_up(energy, chains, plan, 40, curvature)
        chains, x, infos = collect(energy, chains, plan, 15)
        fields = [np.stack([info[i] for info in infos], axis=1) for i in range(3)]
        return [x, *chains.phase, *chains.steps[:4], chains.metric.factor, *fields]

    together = run([0, 1, 2, 3, 4])
    assert len(np.unique(together[7])) == 5  # step sizes of their own
    for members in ([0], [3], [4, 1], [2, 3, 0]):
        assert_same_bits(run(members), [field[members] for field in together])


@pytest.mark.parametrize("plan", PLANS, ids=["auto", "fixed", "drawn", "walk"])
def test_going_on_equals_one_longer_run(plan):
    energy = Gaussian.correlated(4, 50.0)

    def warm():
        position = energy.draw(3, np.random.default_rng(0))
        chains = Chains.start(energy, position, generators(3), plan)
        return warm_up(energy, chains, plan, 30, energy.curvature)

    end, x, _ = collect(energy, warm(), plan, 40)
    half, first, _ = collect(energy, warm(), plan, 15)
    half = pickle.loads(pickle.dumps(half))
    other, second, _ = collect(energy, half, plan, 25)
    assert_same_bits(np.concatenate([first, second], axis=1), x)
    assert_same_bits(other.phase, end.phase)
    assert other.count == end.count == 70


@pytest.mark.parametrize("curved", [False, True], ids=["identity", "curvature"])
def test_ill_conditioned_gaussian(curved):
    energy, m = Gaussian.correlated(20, 1e4), 4
    position = energy.draw(m, np.random.default_rng(0)) + 0.3
    plan = Plan(length=1.5, metric_power=1.0)
    chains = Chains.start(energy, position, generators(m), plan)
    n = 800 if curved else 150
    chains = warm_up(energy, chains, plan, 200, energy.curvature if curved else None)
    chains, x, infos = collect(energy, chains, plan, n)
    assert np.all(r_hat(x) < 1.05)
    variances, axes = np.linalg.eigh(energy.covariance)
    z = x @ axes / np.sqrt(variances)
    assert_expected(z, np.zeros(20))
    assert_expected(z[..., :, None] * z[..., None, :], np.eye(20))
    assert not any(info.diverged.any() for info in infos)
    gradients = np.mean([info.n_steps for info in infos])
    size = chains.steps.average
    if curved:  # round: all directions at once
        assert np.all(size > 0.4)
        assert gradients < 6
        assert np.all(effective_sample_size(x) > 0.3 * m * n)
        F = chains.metric.factor
        assert_near(F @ np.swapaxes(F, -1, -2), np.tile(energy.covariance, (m, 1, 1)), 1e-6)
    else:  # the narrowest direction, of standard deviation 0.01, sets the pace
        assert np.all(size < 0.02)
        assert gradients > 50


@pytest.mark.parametrize(("target", "n_steps"), [(0.8, None), (0.95, None), (0.6, 1)], ids=str)
def test_acceptance_comes_close_to_its_target(target, n_steps):
    energy, m = Gaussian.correlated(20, 10.0), 8
    plan = Plan(target=target, n_steps=n_steps)
    position = energy.draw(m, np.random.default_rng(0))
    chains = Chains.start(energy, position, generators(m), plan)
    chains = warm_up(energy, chains, plan, 500)
    _, _, infos = collect(energy, chains, plan, 300)
    adapted = [info for i, info in enumerate(infos, start=501) if n_steps or i % 5]
    acceptance = np.mean([info.acceptance for info in adapted], axis=0)
    # the average of log step sizes lies a little below the step size of the mean acceptance
    assert np.all(acceptance > target - 0.03)
    assert np.all(acceptance < target + min(0.15, 0.6 * (1.0 - target)))


@pytest.mark.parametrize("n_transitions", [0, 1, 2, 5, 13], ids=str)
def test_warm_up_of_any_length(n_transitions):
    energy, calls, seen = Gaussian.correlated(3, 10.0), [], []

    def curvature(x):
        calls.append(len(x))
        return energy.curvature(x)

    def progress(chains, info):
        seen.append(chains.count)

    plan = Plan(metric_power=1.0)
    chains = Chains.start(energy, np.ones((2, 3)), generators(2), plan)
    chains = warm_up(energy, chains, plan, n_transitions, curvature, progress=progress)
    assert chains.count == n_transitions
    assert seen == list(range(1, n_transitions + 1))
    assert all(np.all(np.isfinite(part)) for part in [*chains.phase, *chains.steps[:4]])
    if n_transitions:
        F = chains.metric.factor
        assert_near(F @ np.swapaxes(F, -1, -2), np.tile(energy.covariance, (2, 1, 1)), 1e-9)
    else:
        assert not calls
