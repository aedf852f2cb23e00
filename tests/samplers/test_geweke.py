"""Samplers and the joint posterior together: is it the posterior that is sampled?"""

import numpy as np
import pytest

from skbayesnn.inference.sampling._moves import ScaleMoves, UnitMoves
from skbayesnn.network import outputs
from skbayesnn.posterior import JointPosterior, instructions
from skbayesnn.samplers import transition
from tests.samplers import geweke
from tests.samplers.geweke import CASES, LINEAR_CASES, OneByOne, geweke_scores

ALL = {"moves": [ScaleMoves, UnitMoves]}
LAWS = [*CASES, *LINEAR_CASES]
# with all weights in the position, input-dependent noise is evaluated by NumPy
IN_THE_CORE = [name for name in LAWS if name != "input_dependent_all"]
compiled = pytest.mark.skipif(instructions() is None, reason="without the compiled core")


def assert_prior(*args, **options):
    """The joint distribution is left as it is: largest of 20 to 100 standard scores."""
    assert np.max(np.abs(geweke_scores(*args, **options))) < 4.0


@pytest.mark.parametrize("name", LAWS[::2])
def test_joint_distribution_in_short(name):
    assert_prior(name, 150, 15, seed=1, **ALL)


@compiled
def test_joint_distribution_in_the_core_in_short():
    assert_prior("student_t", 200, 15, seed=1, many=OneByOne, **ALL)


# mistakes as those below have scores above 6 with as many transitions
@compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", IN_THE_CORE)
def test_every_law_in_the_core(name):
    assert_prior(name, 300, 40, seed=0, many=OneByOne, **ALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_law(name):
    step = 0.5 if name in LINEAR_CASES else 0.3  # so that some proposals are rejected
    assert_prior(name, 300, 40, 0, step_size=step, n_steps=(1, 12), persistence=0.8, **ALL)


# --- mistakes that have to be noticed ------------------------------------------------------------


def without_jacobian(joint, place, stretch, change, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch, change)
    gradient[..., joint.n_sampled :] += change
    return value + np.log(stretch).sum(axis=-1), gradient


def without_normaliser_of_weights(joint, place, stretch, change, right=JointPosterior._prior):
    value, gradient = right(joint, place, stretch, change)
    return value + 0.5 * np.sum(joint.sizes * np.log(place.share), axis=-1), gradient


def without_volume(joint, q, shift, right=JointPosterior.rescaled):
    moved, log_volume = right(joint, q, shift)
    return moved, np.where(np.isfinite(log_volume), 0.0, log_volume)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("_prior", without_jacobian),
        ("_prior", without_normaliser_of_weights),
        pytest.param("rescaled", without_volume, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mistakes_are_noticed(monkeypatch, method, wrong):
    monkeypatch.setattr(JointPosterior, method, wrong)
    moves = [ScaleMoves] if method == "rescaled" else ()
    scores = geweke_scores("regression", 200, 30, moves=moves)
    assert np.max(np.abs(scores)) > 6.0


def test_a_missing_metropolis_test_is_noticed(monkeypatch):
    def always(*args, right=transition):
        return right(*args, metropolis=False)

    monkeypatch.setattr(geweke, "transition", always)
    assert np.max(np.abs(geweke_scores("regression", 200, 30, step_size=0.6))) > 6.0


def test_ellipses_of_wrong_width_are_noticed(monkeypatch):
    def wider(move, rngs, right=UnitMoves.draw):
        unit, chosen, normal, *further = right(move, rngs)
        return unit, chosen, 1.5 * normal, *further

    monkeypatch.setattr(UnitMoves, "draw", wider)
    scores = geweke_scores("binary", 300, 30, moves=[UnitMoves], dynamics=False)
    assert np.max(np.abs(scores)) > 6.0


@compiled
@pytest.mark.slow
def test_noise_a_tenth_too_large_is_noticed_in_the_core(monkeypatch):
    def wrong(many, q, theta, rng, right=geweke.ManyPosteriors.draw_targets):
        right(many, q, theta, rng)
        f = outputs(many.joint.posterior.network, theta, geweke.X)
        many.y = f + 1.1 * (many.y - f)

    monkeypatch.setattr(geweke.ManyPosteriors, "draw_targets", wrong)
    scores = geweke_scores("regression", 300, 40, many=OneByOne, **ALL)
    assert np.max(np.abs(scores)) > 6.0
