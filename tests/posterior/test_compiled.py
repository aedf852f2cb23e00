"""The compiled core against NumPy, which it stands in for."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from skbayesnn.inference.sampling._moves import ScaleMoves, UnitMoves
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import Gaussian, LogUniform, instructions
from skbayesnn.posterior._posterior import MAX_INPUTS
from skbayesnn.samplers import Metric, leapfrog, start
from tests.posterior.joints import INDEPENDENT, MIXED, make_joint
from tests.tools import ALL_LIKELIHOODS, LIKELIHOODS, assert_same, make_problem, without_core

pytestmark = pytest.mark.usefixtures("laplace")

core = pytest.importorskip(
    "skbayesnn.posterior.kernels._core", reason="installed without a compiler"
)
if instructions() is None:
    pytest.skip("the compiled core is switched off", allow_module_level=True)

each_set = pytest.mark.parametrize("name", core.instructions())
IN_NUMPY = "measured", "correlated", "censored", "negative_binomial"
COMPILED = [name for name in ALL_LIKELIHOODS if not name.startswith(IN_NUMPY)]
each_likelihood = pytest.mark.parametrize("likelihood", [*COMPILED, "rows", "squares"])
each_depth = pytest.mark.parametrize("hidden", [(), (3, 4)], ids=str)
each_activation = pytest.mark.parametrize("activation", list(core.ACTIVATIONS))
SIZES = [1, 7, 8, 9, 129, 300]  # rows: whole vectors and not, whole blocks and not


@pytest.fixture
def used(name):
    """A set of instructions, for one test."""
    before = instructions()
    core.use(name)
    yield name
    core.use(before)


def both(likelihood, hidden, **options):
    """A posterior with the compiled core and one without, weights and precisions."""
    posterior, theta, hyper = make_problem(likelihood, hidden, **options)
    return posterior, without_core(posterior), theta, hyper


def assert_agree(likelihood, hidden, **options):
    """Everything that `Posterior` asks the core for."""
    posterior, plain, theta, hyper = both(likelihood, hidden, lead=(2,), **options)
    assert posterior.compiled
    assert_same(posterior.energies(theta, hyper.beta), plain.energies(theta, hyper.beta))
    fast, slow = (p.misfit_and_gradient(theta, hyper.beta) for p in (posterior, plain))
    assert_same([*fast[0], fast[1]], [*slow[0], slow[1]])
    for exact in (True, False):
        for i in range(2):
            fast, slow = (
                p.expansion(theta[i], hyper._make(v[i] for v in hyper), exact)
                for p in (posterior, plain)
            )
            assert_same([*fast[0], *fast[1:]], [*slow[0], *slow[1:]])
        ends, alone = (
            np.stack([theta[0], 0.9 * theta[0], theta[1]]),
            hyper._make(v[0] for v in hyper),
        )
        matrix = np.cos(np.add.outer(*2 * [np.arange(theta.shape[-1])]))
        for some in (ends, np.asfortranarray(ends)):  # LAPACK leaves columns
            traces = [p.traces(some, alone, matrix.copy("F"), exact) for p in (posterior, plain)]
            assert_same(traces[:1], traces[1:])
    fast, slow = (p.with_best_outputs(theta, hyper) for p in (posterior, plain))
    assert_same([fast], [slow], tol=1e-9)  # equations with a condition of up to 1e5


@each_set
@each_likelihood
@each_depth
@pytest.mark.parametrize("output_bias", [True, False])
def test_posterior(used, likelihood, hidden, output_bias):
    assert_agree(likelihood, hidden, n=23, output_bias=output_bias)


@each_likelihood
@each_activation
def test_activations(likelihood, activation):
    assert_agree(likelihood, (3, 4), activation=activation)


@each_set
@each_likelihood
def test_numbers_of_rows(used, likelihood):
    for n in SIZES:
        assert_agree(likelihood, (6,), n=n)


@each_set
def test_wide_layers(used):  # all remainders of the tiles
    for width in range(1, 11):
        assert_agree("gaussian", (width,), n=16)
        assert_agree("categorical", (width, 3), n=16)


@each_set
@pytest.mark.parametrize("size", [1e-9, 30.0, 1e3])
def test_weights_of_any_size(used, size):
    for likelihood in ("gaussian", "bernoulli", "categorical"):
        posterior, plain, theta, hyper = both(likelihood, (4,))
        fast, slow = (p.misfit_and_gradient(size * theta, hyper.beta) for p in (posterior, plain))
        assert_same([fast[0].value, fast[1]], [slow[0].value, slow[1]], tol=1e-11)


@each_set
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each_likelihood
def test_what_is_not_a_number_stays_so(used, likelihood):
    posterior, _, theta, hyper = both(likelihood, (4,))
    for bad in (np.nan, np.inf):
        theta[-1] = bad
        assert not np.isfinite(posterior.energies(theta, hyper.beta).misfit)


def test_gelu_is_left_to_numpy():
    assert make_problem("gaussian", (4,), activation="gelu")[0].compiled is None


def test_large_networks_have_their_hessian_from_matrix_products():
    posterior, plain, theta, hyper = both("gaussian", (400,))
    assert not posterior.compiled.is_small
    fast, slow = posterior.expansion(theta, hyper), plain.expansion(theta, hyper)
    assert_same(fast[1:], slow[1:])


# --- positions of samplers ------------------------------------------------------------------------


JOINTS = [*LIKELIHOODS, *INDEPENDENT]


def both_joints(
    name, hidden=(3,), prior="ard", integrate=True, fixed=False, n=23, wide=False, **options
):
    """A joint posterior with the compiled core and one without, and positions."""
    options |= {"hyperpriors": [LogUniform()] if wide else MIXED}
    joint, q = make_joint(name, hidden, prior, integrate, fixed=fixed, n=n, size=5, **options)
    plain = replace(joint, posterior=without_core(joint.posterior))
    vars(plain)["compiled"] = None
    return joint, plain, q


each_way = pytest.mark.parametrize("integrate", [True, False], ids=["integrated", "all"])


@each_set
@pytest.mark.parametrize("likelihood", JOINTS)
@each_depth
@each_way
def test_energies(used, likelihood, hidden, integrate):
    for fixed, output_bias in [(False, True), (True, True), (False, False)]:
        options = {"fixed": fixed, "output_bias": output_bias}
        joint, plain, q = both_joints(likelihood, hidden, "ard", integrate, **options)
        if likelihood.startswith("student_t"):
            left_to_numpy = fixed
        else:
            left_to_numpy = likelihood in INDEPENDENT and not integrate
        assert (joint.compiled is None) == left_to_numpy
        assert plain.compiled is None
        tol = 1e-7 if integrate else 1e-11  # by the condition of the ridge regression
        assert_same(joint(q), plain(q), tol)
        assert_same(joint(q[0]), plain(q[0]), tol)


@pytest.mark.parametrize("likelihood", ["input_dependent", "input_dependent_two"])
@each_way
def test_log_precisions_beyond_their_interval(likelihood, integrate):
    joint, plain, q = both_joints(likelihood, integrate=integrate)
    q[:, joint.n_mean : joint.n_sampled] *= 8.0
    state, X = joint.noise_state(q), joint.posterior.X
    beyond = outputs(joint.noise_network, state, X) != joint.noise_functions(state, X)
    assert 0.1 < np.mean(beyond) < 0.9
    assert_same(joint(q), plain(q), 1e-7 if integrate else 1e-11)


def test_energies_of_nearly_singular_equations():
    joint, plain, q = both_joints("gaussian", (12,), n=3, wide=True)
    q[1:3, -1] = 7.0  # noise far below what the prior leaves open
    q[1:3, -2] = -7.0
    assert joint.compiled.values(q).any()
    assert_same(joint(q), plain(q), tol=1e-7)


def after_moves(joint, q, move, n_moves):
    """Where chains are after some moves."""
    phase, rngs = start(joint, q), [np.random.default_rng(seed) for seed in range(5)]
    for _ in range(n_moves):
        phase = move(joint)(joint, phase, rngs)
    return phase


@pytest.mark.parametrize("likelihood", JOINTS)
@each_way
@pytest.mark.parametrize("move", [ScaleMoves, UnitMoves])
def test_moves(likelihood, integrate, move):
    """They evaluate what `test_energies` compares for each set of instructions."""
    *joints, q = both_joints(likelihood, (3, 2), "layer", integrate)
    found = [after_moves(joint, q.copy(), move, 3) for joint in joints]
    assert np.any(found[0].position != q)
    assert_same(*found, tol=1e-7)


@each_set
@pytest.mark.parametrize("likelihood", JOINTS)
@each_way
@pytest.mark.parametrize("dense", [False, True], ids=["diagonal", "dense"])
def test_trajectories(used, likelihood, integrate, dense):
    joint, plain, q = both_joints(likelihood, integrate=integrate)
    rng, d = np.random.default_rng(0), joint.dimension
    factor = rng.uniform(0.5, 1.0, (5, d))
    coupled = rng.standard_normal((d, d))
    metric = Metric(factor[:, None] * np.eye(d) + 0.05 * (coupled + coupled.T))
    metric = metric if dense else Metric(factor)
    phase = start(joint, q)._replace(momentum=rng.standard_normal((5, d)))
    step_size, n_steps = np.array([1e-4, 2e-4, 3e-4, 2e-4, 30.0]), np.array([5, 0, 9, 1, 50])
    fast, slow = (leapfrog(one, phase, step_size, n_steps, metric) for one in (joint, plain))
    single = joint.integrated or likelihood in ("bernoulli", "categorical", "poisson")
    tol = 1e-6 if dense else 1e-9  # dense metrics are in single precision
    tol = 1e-4 if likelihood == "poisson" else 1e-5 if single else tol  # some rates are large
    assert_same([f[:-1] for f in fast], [f[:-1] for f in slow], tol)
    if single:  # the energy of where it ends is exact
        assert_same([fast.value[:-1]], [plain(fast.position[:-1])[0]], 1e-9)
    assert fast.value[-1] == slow.value[-1] == np.inf  # given up


def test_trajectories_with_nearly_singular_equations():
    joint, plain, q = both_joints("gaussian", (12,), n=3, wide=True)
    q[0, -2:] = -7.0, 7.0
    phase = start(plain, q)._replace(momentum=np.random.default_rng(0).standard_normal(q.shape))
    settings = phase, np.full(5, 1e-4), np.full(5, 3), Metric(np.ones(q.shape))
    fast, slow = leapfrog(joint, *settings), leapfrog(plain, *settings)
    assert_same(fast, slow, tol=1e-5)  # forces are in single precision


def test_hyperparameters_without_weights():  # nothing moves but the noise level
    joint, plain, q = both_joints("gaussian", (), "single")
    assert joint.n_sampled == 0
    assert_same(joint(q), plain(q))


# --- whether it is used ---------------------------------------------------------------------------

FIT = """
import numpy as np, skbayesnn
from skbayesnn.posterior import instructions
x = np.linspace(-2, 2, 30)[:, None]
print(instructions())
model = skbayesnn.EvidenceMLPRegressor((3,), random_state=0, method="laplace")
print(model.fit(x, np.sin(x[:, 0]) + 0.1 * np.cos(40 * x[:, 0])).log_evidence_)
"""


def printed(setting):
    """Output of a process with a setting of the environment."""
    environment = os.environ | {"SKBAYESNN_COMPILED": setting}
    done = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_fit_does_not_need_it():
    core, switched_off = printed("baseline"), printed("0")
    assert (core[0], switched_off[0]) == ("baseline", "None")
    assert float(core[-1]) == pytest.approx(float(switched_off[-1]), abs=1e-3)


def test_posteriors_are_pickled_without_it():
    posterior, _, theta, hyper = both("gaussian", (4,))
    before = posterior.energies(theta, hyper.beta)
    again = pickle.loads(pickle.dumps(posterior)).energies(theta, hyper.beta)
    assert_same(again, before, tol=0)


def test_matrices_of_many_inputs():
    """Of more inputs than `MAX_INPUTS` they are matrix products, equal to those of the core."""
    rng = np.random.default_rng(0)
    few, theta, hyper = make_problem("gaussian", (3,))
    assert few.is_compiled
    X, network = rng.standard_normal((len(few.X), MAX_INPUTS + 1)), (MAX_INPUTS + 1, 2, 1)
    network = Network(network)
    theta = 0.1 * rng.standard_normal(network.n_weights)
    wide = replace(few, X=X, y=few.y[:, :1], network=network, likelihood=Gaussian.per_output(1))
    assert wide.compiled
    assert not wide.is_compiled
    for exact in (True, False):
        _, gradient, matrix = wide.data_expansion(theta, hyper.beta[:1], exact)
        *_, there, other = wide.compiled.evaluate(theta, hyper.beta[:1], 2, exact)
        np.testing.assert_allclose(gradient, there, atol=1e-10)
        np.testing.assert_allclose(matrix, other, atol=1e-10)
