"""How the sampling estimators run chains: seeds, going on, interruptions, warnings."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import HMCMLPClassifier, HMCMLPRegressor, Noise, Prior, Sampler
from tests.estimators.common import make_rows
from tests.tools import draws_of, result_of

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FEW = {"n_chains": 2, "n_warmup": 8, "n_draws": 8, "measure_evidence": False, "random_state": 0}
QUICK = FEW | {"sampler": "langevin", "n_warmup": 20, "n_draws": 20}
LINEAR = {"hidden_layer_sizes": ()}
GRID = np.random.default_rng(99).uniform(-3, 3, (17, 2))


def make(kind="one output", **options):
    options = {"hidden_layer_sizes": (3,)} | FEW | options
    if "classes" in kind:
        return HMCMLPClassifier().set_params(**options)
    return HMCMLPRegressor().set_params(**{"noise": "constant"} | options)


def fit(kind="one output", **options):
    return make(kind, **options).fit(*make_rows(kind))


def assert_same_draws(model, other):
    for mine, its in zip(draws_of(model), draws_of(other), strict=True):
        assert np.all(np.isfinite(mine))
        assert_array_equal(mine, its)


# --- going on ------------------------------------------------------------------------------------

RESUMED = {
    "auto": {},
    "classes": {},
    "float32": {"sampler": Sampler(dtype="float32")},
    "linear": LINEAR,
    "stochastic dynamics": {"sampler": "stochastic_dynamics"},
    "drawn lengths": {"sampler": Sampler("hmc", n_steps=(1, 4), persistence=0.5)},
    "random walk": {"sampler": "metropolis"},
    "thinned": {"sampler": Sampler("langevin", thin=3)},
    "prior": {"sampler": Sampler("langevin", init="prior")},
    "student_t": {"noise": "student_t", "sampler": Sampler(dtype="float32", thin=2)},
    "noise network": {
        "noise": Noise("input_dependent", hidden_layer_sizes=(2,)),
        "sampler": Sampler("stochastic_dynamics", init="prior"),
    },
}


@pytest.mark.parametrize("name", RESUMED)
def test_more_draws_equal_one_longer_fit(name):
    options, kind = RESUMED[name], "two classes" if name == "classes" else "one output"
    model = fit(kind, warm_start=True, **(options | {"n_draws": 5}))
    first = model.networks_[0].coefs[0]
    model = pickle.loads(pickle.dumps(model))
    model.set_params(n_draws=8).fit(*make_rows(kind))
    assert_same_draws(model, fit(kind, **options))
    assert model.diagnostics_.n_draws == 8
    assert model.n_iter_ == 8 + 8 * result_of(model).settings.thin
    assert len(model.networks_) == 16
    assert_array_equal(model.networks_[0].coefs[0], first)


def test_fits_of_limited_time_go_on():
    options = QUICK | {"n_draws": 10**6, "max_time": 0.2}
    model, counts = make(warm_start=True, **options), []
    for _ in range(3):
        theta = draws_of(model.fit(*make_rows())).theta
        counts.append(theta.shape[1])
    assert counts[0] < counts[1] < counts[2]
    model.set_params(n_draws=counts[2], max_time=None).fit(*make_rows())
    assert_array_equal(draws_of(model).theta, theta)


CHANGES = [
    {"n_warmup": 15},
    {"n_draws": 9},
    {"sampler": "hmc"},
    {"sampler__dtype": "float32"},
    {"random_state": 1},
    {"hidden_layer_sizes": (2,)},
    {"prior": "single"},
    {"noise": "student_t"},
    {"standardize": False},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_another_parameter_begins_anew(change):
    model = fit(warm_start=True, **QUICK)
    before = draws_of(model).theta
    assert np.shares_memory(draws_of(model.fit(*make_rows())).theta, before)  # nothing to do
    model.set_params(**change).fit(*make_rows())
    assert_same_draws(model, fit(**(QUICK | change)))
    assert not np.array_equal(draws_of(model).theta, before)


def test_other_data_begin_anew():
    X, y = make_rows()
    weight = np.tile([1.0, 2.0], 15)
    for other in ((X[::2], y[::2]), (X, np.tanh(y)), (X[:, :1], y), (X, y, weight)):
        model = make(warm_start=True, **QUICK).fit(X, y)
        first = result_of(model.fit(X, y)).sampled
        model.fit(*other)
        assert result_of(model).sampled is not first
        assert_same_draws(model, make(**QUICK).fit(*other))
    two = make_rows("two outputs")
    assert_same_draws(model.fit(*two), make(**QUICK).fit(*two))


# --- interruptions -------------------------------------------------------------------------------


def test_interrupted_sampling_keeps_the_draws(monkeypatch):
    options = QUICK | {"verbose": 1}
    printed = []

    def press(*args, **kwargs):
        printed.append(args)
        if len(printed) == 8:  # of ten lines: after 20 + 12 transitions
            raise KeyboardInterrupt

    monkeypatch.setattr("builtins.print", press)
    with pytest.warns(ConvergenceWarning, match="Interrupted: the 12 draws of each") as record:
        model = fit(warm_start=True, **options)
    assert len(record) == 1
    monkeypatch.undo()
    whole = fit(**QUICK)
    assert model.diagnostics_.n_draws == 12
    assert len(model.networks_) == 24
    assert model.n_iter_ == 32
    assert_array_equal(draws_of(model).theta, draws_of(whole).theta[:, :12])
    resumed = model.set_params(verbose=0).fit(*make_rows())
    assert_same_draws(resumed, whole)


# --- what a fit says -----------------------------------------------------------------------------


def warnings_of(kind="one output", **options):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = fit(kind, **options)
    assert all(w.category is ConvergenceWarning for w in record)
    assert all(w.filename == __file__ for w in record)  # where fit was called
    return model, [str(w.message) for w in record]


def test_chains_that_do_not_agree():
    model, messages = warnings_of(sampler__init="prior", **QUICK | {"n_warmup": 0})
    (message,) = messages
    assert "The chains have not converged: R-hat of the outputs is" in message
    assert f"Raise n_draws to about {model.diagnostics_.n_draws_needed:,}" in message
    model, messages = warnings_of(**(QUICK | {"n_draws": 7}))
    (message,) = messages
    assert "too few draws per chain to judge (7)" in message
    assert np.isnan(model.diagnostics_.r_hat)
    assert not model.diagnostics_.converged


def test_chains_that_agree_are_silent():
    options = {"hidden_layer_sizes": (), "prior": Prior(precision=1.0), "n_chains": 4}
    options |= {"n_warmup": 100, "n_draws": 250}
    model, messages = warnings_of("two classes", **options)
    assert messages == []
    assert model.diagnostics_.converged
    assert model.diagnostics_.bulk_ess > 100


@pytest.mark.parametrize(
    ("r_hat", "ess", "verdict", "needed"),
    [
        (1.005, 500.0, "converged", 500),
        (1.005, 200.0, "roughly converged: R-hat 1.005, effective sample size 200", 1000),
        (1.0406, 500.0, "roughly converged: R-hat 1.041, effective sample size 500", 2100),
        (1.2, 30.0, "not converged: R-hat of the outputs is 1.200, above 1.05", 11000),
    ],
)
def test_verdicts_name_the_draws_that_are_needed(r_hat, ess, verdict, needed):
    found = fit(**QUICK).diagnostics_
    found = replace(found, r_hat=r_hat, bulk_ess=ess, n_draws=500, divergences=0)
    assert found.verdict == verdict
    assert found.n_draws_needed == needed
    assert (f"about {needed:,}" in found.advice) == (needed > 500)


@pytest.mark.parametrize(
    ("sampler", "step_size"),
    [("stochastic_dynamics", 30.0), ("langevin", 1e3), ("metropolis", 1e3)],
)
def test_steps_that_are_far_too_long(sampler, step_size):
    """Chains stay where they began, and one warning says what to do."""
    model, messages = warnings_of(sampler=Sampler(sampler, step_size=step_size), n_chains=1)
    (message,) = messages
    assert "Reduce sampler.step_size" in message or "not converged" in message
    assert model.diagnostics_.acceptance < 0.01 or model.diagnostics_.divergences > 0
    assert np.all(np.isfinite(model.predict(GRID)))


# --- chains that start from populations ----------------------------------------------------------


@pytest.mark.usefixtures("as_users_fit")
def test_short_chains_continue_like_one_longer_fit():
    few = {"hidden_layer_sizes": (1,), "n_draws": 10, "measure_evidence": True, "warm_start": True}
    model = fit(**few)
    assert draws_of(model).energy.shape == (2, 10)  # of 16 in 16 short chains each
    first = model._result.log_evidence  # so few draws may have any R-hat
    model.set_params(n_draws=20).fit(*make_rows())
    assert draws_of(model).energy.shape == (2, 20)
    assert_same_draws(model, fit(**few | {"n_draws": 20}))
    assert model._result.log_evidence == first


@pytest.mark.usefixtures("as_users_fit")
def test_short_chains_do_not_depend_on_the_number_of_processes():
    few = {"hidden_layer_sizes": (1,), "n_draws": 20, "measure_evidence": True}
    one, two = fit(**few), fit(n_jobs=2, **few)
    assert_same_draws(one, two)
    assert one.log_evidence_ == two.log_evidence_
    assert one.log_evidence_std_ == two.log_evidence_std_ > 0.0
