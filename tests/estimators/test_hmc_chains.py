"""How the sampling estimators run chains: seeds, going on, interruptions, warnings."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skbayesnn import EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor, Noise, Prior, Sampler
from skbayesnn.samplers import advance
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


def differ(model, other):
    mine, its = draws_of(model).theta, draws_of(other).theta
    return mine.shape != its.shape or np.any(mine != its)


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


def test_nothing_to_do():
    model = fit(warm_start=True, **QUICK)
    draws = draws_of(model)
    assert np.shares_memory(draws_of(model.fit(*make_rows())).theta, draws.theta)
    cold = fit(**QUICK)
    draws = draws_of(cold)
    assert draws_of(cold.fit(*make_rows())) is not draws


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
    model, before = fit(warm_start=True, **QUICK), fit(**QUICK)
    model.set_params(**change).fit(*make_rows())
    anew = fit(**(QUICK | change))
    assert_same_draws(model, anew)
    assert differ(model, before)


@pytest.mark.usefixtures("as_users_fit")
def test_another_parameter_begins_anew_where_networks_are_sampled():
    small = QUICK | {"hidden_layer_sizes": (1,)}
    model = fit(warm_start=True, **small)
    model.set_params(sampler__thin=2).fit(*make_rows())
    assert_same_draws(model, fit(sampler__thin=2, **small))


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


class Keyboard:
    """Breaks off at some call of a function."""

    def __init__(self, at):
        self.calls, self.at = 0, at

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def interrupt_lines(monkeypatch, at):
    """Ctrl-C while a line of progress is printed; there are ten, one in four transitions."""
    monkeypatch.setattr("builtins.print", Keyboard(at))


def interrupt_transitions(monkeypatch, at):
    keyboard = Keyboard(at)

    def press(*args):
        keyboard()
        return advance(*args)

    monkeypatch.setattr("skbayesnn.samplers._chains.advance", press)


def test_interrupted_evidence_keeps_the_draws(monkeypatch):
    """And the next fit goes on with it."""
    linear = FEW | {"hidden_layer_sizes": (), "n_draws": 20}
    keyboard = Keyboard(1)
    monkeypatch.setattr("skbayesnn.inference._sampled_fit.sample_population", keyboard)
    with pytest.warns(
        ConvergenceWarning, match="Interrupted: the 20 draws .* log_evidence_ is nan"
    ):
        model = fit(warm_start=True, **(linear | {"measure_evidence": True}))
    monkeypatch.undo()
    assert np.isnan(model.log_evidence_)
    assert_same_draws(model, fit(**linear))
    model.fit(*make_rows())
    assert np.isfinite(model.log_evidence_)
    assert_same_draws(model, fit(**linear))


def test_interrupted_sampling_keeps_the_draws(monkeypatch):
    options = QUICK | {"verbose": 1}
    interrupt_lines(monkeypatch, 8)  # after 20 + 12 transitions
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


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("at", [1, 20, 1 + 20 + 3])
def test_interrupted_warm_up_leaves_what_was_there(monkeypatch, at, warm_start):
    """As does an interruption in the first few draws, which say nothing."""
    first, later = make(**QUICK), fit(warm_start=warm_start, **QUICK)
    before, predicted = vars(later).copy(), later.predict(GRID)
    for model in (first, later):
        interrupt_transitions(monkeypatch, at)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(random_state=1).fit(*make_rows())
        monkeypatch.undo()
        model.set_params(random_state=0)
    assert vars(first) == vars(make(**QUICK))
    with pytest.raises(NotFittedError):
        first.predict(GRID)
    assert vars(later).keys() == before.keys()
    assert all(vars(later)[name] is value for name, value in before.items())
    assert_array_equal(later.predict(GRID), predicted)


@pytest.mark.parametrize("options", [{}, {"sampler": "langevin"}], ids=["tuned", "langevin"])
def test_interrupted_continuation_leaves_the_old_chains(monkeypatch, options):
    model = fit(warm_start=True, **(options | {"n_draws": 10}))
    interrupt_transitions(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_draws=20).fit(*make_rows())
    monkeypatch.undo()
    assert_same_draws(model.fit(*make_rows()), fit(**(options | {"n_draws": 20})))


# --- what a fit says -----------------------------------------------------------------------------


def test_progress_is_printed_on_demand(capsys):
    fit(verbose=False, **QUICK)
    assert capsys.readouterr() == ("", "")
    fit(verbose=1, **QUICK)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("transition 4 of 40 (warm-up): acceptance ")
    assert lines[-1].startswith("transition 40 of 40 (sampling): acceptance ")
    assert all("leapfrog steps, minus log posterior" in line for line in lines)
    assert all(re.search(r"; \d+ s so far", line) for line in lines)


def warnings_of(kind="one output", **options):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = fit(kind, **options)
    assert all(w.category is ConvergenceWarning for w in record)
    assert all(w.filename == __file__ for w in record)  # where fit was called
    return model, [str(w.message) for w in record]


def test_chains_that_do_not_agree():
    model, messages = warnings_of(sampler__init="prior", **QUICK | {"n_warmup": 0})
    assert len(messages) == 1
    assert "The chains have not converged: R-hat of the outputs is" in messages[0]
    assert ", above 1.05. " in messages[0]
    assert f"Raise n_draws to about {model.diagnostics_.n_draws_needed:,}" in messages[0]
    assert model.diagnostics_.n_draws_needed > model.n_draws
    assert not model.diagnostics_.converged


def test_too_few_draws_to_tell():
    model, messages = warnings_of(**(QUICK | {"n_draws": 7}))
    assert len(messages) == 1
    assert "too few draws per chain to judge (7)" in messages[0]
    assert np.isnan(model.diagnostics_.r_hat)
    assert not model.diagnostics_.converged
    assert "not converged" in repr(model.diagnostics_)
    assert np.all(np.isfinite(model.predict_std(GRID)))


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


def test_unstable_dynamics():
    model, messages = warnings_of(sampler=Sampler("stochastic_dynamics", step_size=30.0))
    assert len(messages) == 1
    assert "The dynamics are unstable" in messages[0]
    assert "Reduce sampler.step_size" in messages[0]
    assert model.diagnostics_.divergences > 0
    assert np.all(np.isfinite(model.predict(GRID)))


@pytest.mark.parametrize("sampler", ["langevin", "metropolis"])
def test_steps_that_are_far_too_long(sampler):
    """Nothing is accepted: chains stay where they began, and a warning says why or that."""
    start = EvidenceMLPRegressor((3,), n_restarts=1, random_state=0).fit(*make_rows())
    chains = Sampler(sampler, step_size=1e3, init=start)
    model, messages = warnings_of(sampler=chains, n_chains=1)
    assert len(messages) == 1
    assert "Reduce sampler.step_size" in messages[0] or "not converged" in messages[0]
    assert model.diagnostics_.acceptance < 0.01
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


@pytest.mark.usefixtures("as_users_fit")
def test_populations_give_the_metric_where_outputs_are_not_integrated_out():
    X, y = make_rows()
    model = HMCMLPClassifier((2,), n_chains=2, n_draws=40, random_state=0).fit(X, y > np.median(y))
    sampled = model._result.sampled
    (chains,) = sampled.chains
    factor = chains.metric.factor  # of 16 short chains in each chain
    assert factor.shape == (32, sampled.joint.dimension)
    assert np.all(factor == factor[0])
    n_sampled = sampled.joint.n_sampled
    assert factor[0, n_sampled:].max() < np.median(factor[0, :n_sampled])  # precisions are narrow
