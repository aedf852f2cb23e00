"""Samplers and the joint posterior together: is it the posterior that is sampled?"""

import numpy as np
import pytest

from skbayesnn.inference.sampling._moves import ScaleMoves, UnitMoves
from skbayesnn.posterior import JointPosterior
from skbayesnn.samplers import transition
from tests.samplers import geweke
from tests.samplers.geweke import CASES, LINEAR_CASES, geweke_scores

ALL = {"moves": [ScaleMoves, UnitMoves]}
LAWS = [*CASES, *LINEAR_CASES]


def assert_prior(*args, **options):
    """The joint distribution is left as it is: largest of 15 to 70 standard scores."""
    assert np.max(np.abs(geweke_scores(*args, **options))) < 5.0  # the largest of 24 runs: 4.2


@pytest.mark.parametrize("name", LAWS[1::7])
def test_joint_distribution_in_short(name):
    assert_prior(name, 150, 15, seed=1, **ALL)


# mistakes as those below have scores of 8 to 60 with as many transitions
@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_law(name):
    step = 0.5 if name in LINEAR_CASES else 0.3  # so that some proposals are rejected
    assert_prior(name, 300, 40, 1, step_size=step, n_steps=(1, 12), persistence=0.8, **ALL)


# --- mistakes that have to be noticed ------------------------------------------------------------


def without_jacobian(joint, place, stretch, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch)
    _, change = joint.precision_map.derivatives(place.eta)
    gradient[..., joint.n_sampled :] += change
    return value + np.log(stretch).sum(axis=-1), gradient


def without_normaliser_of_weights(joint, place, stretch, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch)
    return value + 0.5 * np.sum(joint.sizes * np.log(place.share), axis=-1), gradient


def without_volume(joint, q, shift, right=JointPosterior.rescaled):
    moved, log_volume = right(joint, q, shift)
    return moved, np.where(np.isfinite(log_volume), 0.0, log_volume)


def without_metropolis_test(*args, right=transition):
    return right(*args, metropolis=False)


def with_wider_ellipses(move, rngs, right=UnitMoves.draw):
    unit, chosen, normal, *further = right(move, rngs)
    return unit, chosen, 1.5 * normal, *further


UNITS = {"moves": [UnitMoves], "dynamics": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "wrong", "case", "options"),
    [
        (JointPosterior, "_prior", without_jacobian, "regression", {}),
        (JointPosterior, "_prior", without_normaliser_of_weights, "regression", {}),
        (geweke, "transition", without_metropolis_test, "regression", {"step_size": 0.6}),
        (UnitMoves, "draw", with_wider_ellipses, "binary", UNITS),
        (JointPosterior, "rescaled", without_volume, "regression", {"moves": [ScaleMoves]}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mistakes_are_noticed(monkeypatch, owner, name, wrong, case, options):
    monkeypatch.setattr(owner, name, wrong)
    assert np.max(np.abs(geweke_scores(case, 300, 30, **options))) > 6.0
