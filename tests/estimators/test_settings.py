"""Parameters that belong together, and choices that cannot be combined."""

import inspect
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
    Solver,
)
from skbayesnn.estimators.inputs._parameters import (
    CENSORED,
    MEASUREMENTS,
    PARTIAL_FIT,
    REFUSALS,
    choices_of,
    refusal,
)
from skbayesnn.estimators.inputs._settings import SETTINGS
from skbayesnn.inference import FLEXIBLE
from skbayesnn.model_selection import EvidenceSearch
from skbayesnn.posterior import Gamma

pytestmark = pytest.mark.usefixtures("laplace")

ESTIMATORS = EvidenceMLPRegressor, EvidenceMLPClassifier, HMCMLPRegressor, HMCMLPClassifier
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = X[:, 0] - 0.5 * X[:, 1] + 0.3 * RNG.standard_normal(30)
FEW = {"n_chains": 2, "n_warmup": 5, "n_draws": 6, "measure_evidence": False, "random_state": 0}


def linear(**options):
    return EvidenceMLPRegressor((), **options)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_constructors_are_narrow_and_begin_alike(kind):
    names = list(inspect.signature(kind).parameters)
    assert len(names) <= 16
    own = "class_weight" if "Classifier" in kind.__name__ else "noise"
    assert names[:4] == ["hidden_layer_sizes", "prior", own, "activation"]
    assert names[4:6] == ["random_state", "max_time"]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_misspelt_parameters_inside(kind, name):
    if name in kind().get_params():
        for model in (kind(), kind(**{name: SETTINGS[name]()})):
            with pytest.raises(ValueError, match="Invalid parameter 'other' for estimator"):
                model.set_params(**{f"{name}__other": 1.0})


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ({"prior": "ard"}, {"prior": Prior("ard")}),
        ({"prior": ["a", "a", "b"]}, {"prior": Prior(["a", "a", "b"])}),
        ({"noise": "student_t"}, {"noise": Noise("student_t")}),
        ({"noise": 0.4}, {"noise": Noise(std=0.4)}),
        ({"noise": [0.4]}, {"noise": Noise(std=[0.4])}),
        ({"noise": {0: 0.4}}, {"noise": Noise(std={0: 0.4})}),
        ({"solver": "gauss_newton"}, {"solver": Solver("gauss_newton")}),
    ],
    ids=str,
)
def test_short_values(short, whole):
    one, other = linear(**short).fit(X, Y), linear(**whole).fit(X, Y)
    assert one.log_evidence_ == other.log_evidence_
    assert one.weight_group_names_ == other.weight_group_names_
    assert_array_equal(one.predict_std(X), other.predict_std(X))


@pytest.mark.parametrize(
    ("given", "inside", "expected"),
    [
        ({}, {"prior__precision": 2.0}, Prior(precision=2.0)),
        ({"prior": "ard"}, {"prior__precision": 2.0}, Prior("ard", precision=2.0)),
        ({"prior": Prior(mean=1.0)}, {"prior__kind": "ard"}, Prior("ard", mean=1.0)),
        ({"prior": Prior(mean=1.0)}, {"prior": "ard"}, "ard"),
        ({}, {"prior__precision": 2.0, "prior": "ard"}, Prior("ard", precision=2.0)),
        ({"noise": 0.1}, {"noise__kind": "shared"}, Noise("shared", std=0.1)),
        ({"noise": Noise("shared", std=0.1)}, {"noise": 0.2}, 0.2),
        ({"solver": "exact"}, {"solver__tol": 0.1}, Solver("exact", tol=0.1)),
    ],
    ids=str,
)
def test_parameters_inside_are_set(given, inside, expected):
    model = linear(**given)
    assert model.set_params(**inside) is model
    found = getattr(model, next(iter(inside)).partition("__")[0])
    assert repr(found) == repr(expected)
    assert repr(clone(model)) == repr(model)


def test_what_is_inside_of_no_setting():
    with pytest.raises(ValueError, match="Invalid parameter 'noise' for estimator"):
        EvidenceMLPClassifier().set_params(noise__std=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'std' for estimator Prior"):
        linear(prior=Prior()).set_params(prior__std=1.0)
    model = linear(prior=linear(noise=0.3).fit(X, Y))
    assert model.set_params(prior__n_restarts=3).prior.n_restarts == 3
    model.set_params(prior__precision="inferred")
    assert isinstance(model.prior.kind, EvidenceMLPRegressor)
    assert model.fit(X, Y).weight_precisions_.shape == (1,)


def test_objects_are_shared_by_no_copies():
    prior = Prior("ard", hyperprior={"output": Gamma(2.0, 1.0)})
    model = linear(prior=prior)
    clone(model).set_params(prior__kind="layer")
    assert prior.kind == "ard"
    fitted = linear(noise=Noise(std=0.3)).fit(X, Y)
    sampler = HMCMLPRegressor.from_evidence(fitted, sampler="hmc", **FEW)
    assert (fitted.noise.kind, sampler.noise.kind, sampler.noise.std) == ("auto", "constant", 0.3)
    assert (sampler.sampler.kind, sampler.sampler.init.estimator) == ("hmc", fitted)
    own = Sampler(init="prior")
    assert HMCMLPRegressor.from_evidence(fitted, sampler=own).sampler is own


@pytest.mark.parametrize("prior", ["layer", Prior("layer")])
def test_searches_reach_inside(prior):
    pipeline = make_pipeline(StandardScaler(), linear(prior=prior))
    grid = {"prior__kind": ["layer", "ard"], "noise__std": [0.3, 3.0]}
    grid = {f"evidencemlpregressor__{name}": values for name, values in grid.items()}
    for search in (GridSearchCV(pipeline, grid, cv=3), EvidenceSearch(pipeline, grid)):
        found = search.fit(X, Y).best_estimator_[-1]
        assert found.noise_std_ == pytest.approx(found.noise.std)
    assert found.noise.std == 0.3  # by the evidence; squared errors hardly tell


def test_every_setting_has_its_own_parameters():
    """Otherwise ``prior__x`` could be meant for the prior or for an estimator given as prior."""
    taken = {name for kind in ESTIMATORS for name in inspect.signature(kind).parameters}
    assert not taken & {*Prior._get_param_names()}
    assert set(SETTINGS) <= taken


# --- what cannot be combined ---------------------------------------------------------------------

ASKED = MEASUREMENTS, PARTIAL_FIT, CENSORED
VALUES = {
    "noise": (
        *("constant", "shared", "correlated", "input_dependent", "student_t", FLEXIBLE),
        *("poisson", "negative_binomial"),
    ),
    "noise__std": (0.1,),
    "noise__hyperprior": (Gamma(1.0, 1.0),),
    "prior": (
        *("single", "layer", "ard", "single+intercept", "layer+intercept", "ard+intercept"),
        *(np.array([0, 0, 1]), EvidenceMLPRegressor()),
    ),
    "prior__mean": (0.0,),
    "prior__base_precision": (1.0, np.ones(3)),
    "hidden_layer_sizes": ("auto", (2,), ()),
    "method": ("population", "chains", "laplace", "early_stopping"),
    "fit_intercept": (False,),
}
ALONE = {"hidden_layer_sizes": (2,)}  # with which all of these make sense


def made_by(choice):
    """Parameters by which each alone makes a choice."""
    if not choice.isdisjoint(ASKED):
        return [{}]
    given = [{name: value} for name, values in VALUES.items() for value in values]
    models = [EvidenceMLPRegressor().set_params(**ALONE | one) for one in given]
    return [one for one, m in zip(given, models, strict=True) if choices_of(m) & choice]


def is_of(kind, given):
    """Return True if an estimator has all parameters."""
    return {name.partition("__")[0] for name in given} <= inspect.signature(kind).parameters.keys()


@pytest.mark.parametrize("reason", REFUSALS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_pair_is_reached(reason, kind):
    for pair in REFUSALS[reason]:
        check_pair(*pair, reason, kind)


def check_pair(first, second, reason, kind):
    asked = next(iter((first | second).intersection(ASKED)), None)
    reached = False
    for one, other in product(made_by(first), made_by(second)):
        given = one | other
        if one.keys() & other.keys() or not is_of(kind, given):
            continue
        model = kind().set_params(**ALONE | given)
        made = choices_of(model) | {asked}
        if made.isdisjoint(first) or made.isdisjoint(second):
            continue  # measured evidences of samplers go with any prior
        words = refusal(model, asked)
        assert words is not None
        reached = reached or words.endswith(f": {reason}.")
    assert reached or kind is not EvidenceMLPRegressor


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_choices_alone_are_possible(kind):
    for name, values in VALUES.items():
        for value in values:
            given = ALONE | {name: value}
            if is_of(kind, given):
                assert refusal(kind().set_params(**given)) is None
    for asked in ASKED:
        assert refusal(kind(**ALONE), asked) is None


def test_the_message_names_both():
    with pytest.raises(ValueError, match=r"^noise='correlated' is not possible with prior.mean:"):
        EvidenceMLPRegressor((2,), noise="correlated", prior=Prior(mean=0.0)).fit([[0.0]], [0.0])
