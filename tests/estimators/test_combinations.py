"""Choices that cannot be combined."""

from inspect import signature
from itertools import product

import numpy as np
import pytest

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Prior,
)
from skbayesnn.estimators.inputs._parameters import (
    CENSORED,
    MEASUREMENTS,
    PARTIAL_FIT,
    REFUSALS,
    choices_of,
    refusal,
)
from skbayesnn.posterior import Gamma

ASKED = MEASUREMENTS, PARTIAL_FIT, CENSORED
ESTIMATORS = EvidenceMLPRegressor, EvidenceMLPClassifier, HMCMLPRegressor, HMCMLPClassifier
VALUES = {
    "noise": (
        *("constant", "shared", "correlated", "input_dependent", "student_t"),
        *("poisson", "negative_binomial"),
    ),
    "noise__std": (0.1,),
    "noise__hyperprior": (Gamma(1.0, 1.0),),
    "prior": (
        *("single", "layer", "ard", "single+intercept", "layer+intercept", "ard+intercept"),
        *(np.array([0, 0, 1]), EvidenceMLPRegressor()),
    ),
    "prior__mean": (0.0,),
    "prior__base_precision": (1.0, np.ones(3), {"hidden1_weights": 2.0}),
    "hidden_layer_sizes": ("auto", (2,), ()),
    "measure_evidence": (True, False),
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
    """Whether an estimator has all parameters."""
    return {name.partition("__")[0] for name in given} <= signature(kind).parameters.keys()


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
