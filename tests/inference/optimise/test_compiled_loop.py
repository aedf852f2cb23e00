"""The loops of damped steps and over batches in compiled code against those in NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from skbayesnn._progress import Deadline
from skbayesnn.inference.curvature._method import Point
from skbayesnn.inference.optimise._batches import BatchSteps
from skbayesnn.inference.optimise._damped import DampedSteps, Search
from skbayesnn.inference.optimise._reestimation import Reestimation
from skbayesnn.inference.optimise._steps import FixedPrecisions, compiled_loop, lower
from skbayesnn.posterior import Gamma, Hyperparameters, Hyperpriors, WeightGroups, instructions
from tests.inference.common import free_all, method_of
from tests.tools import LIKELIHOODS, assert_same, make_problem, without_core

if instructions() is None:
    pytest.skip("the compiled core is switched off or missing", allow_module_level=True)

KINDS = [*LIKELIHOODS, "squares", "no_intercept"]
RULES = ["reestimation", "gamma", "exact", "gauss_newton", "confined"]
FINE, ROUGH = 1e-10, 1e-6  # of the largest entry; of traces by differences, which rounding blurs
each_kind = pytest.mark.parametrize("kind", KINDS)
each_depth = pytest.mark.parametrize(
    "hidden", [(), (3, 4)], ids=lambda hidden: f"depth{len(hidden)}"
)


def problem(kind, hidden):
    """A posterior, weights and precisions."""
    name, bias = ("gaussian", False) if kind == "no_intercept" else (kind, True)
    return make_problem(name, hidden, n=40, output_bias=bias)


def rule_and_search(posterior, theta, hyper, name):
    """A rule of this name, and where its search begins."""
    method = method_of(posterior)
    if name in ("reestimation", "gamma"):
        free = free_all(posterior)
        if name == "gamma":
            priors = [Gamma(2.0 + i, 1.0 + 0.1 * i) for i in range(len(free.mask))]
            free = replace(free, prior=Hyperpriors.of(priors))
        rule = Reestimation(posterior, method, free, 1e-3)
        return rule, Search(method.point(posterior, theta, hyper), damping=1e-2)
    options = {"exact": name != "gauss_newton", "confined": name == "confined"}
    rule = FixedPrecisions(posterior, method, 1e-9, **options)
    return rule, rule.begun(theta, hyper)


def after_steps(posterior, theta, hyper, name, n_steps, **options):
    """The search after some steps."""
    rule, search = rule_and_search(posterior, theta, hyper, name)
    return lower(posterior, DampedSteps(), rule, search, n_steps, **options)


def assert_same_searches(actual, desired, tol):
    """Both searches are at one place, with the same memory."""
    assert actual.n_iter == desired.n_iter
    assert (actual.done, actual.converged) == (desired.done, desired.converged)
    assert actual.point.precision.definite == desired.point.precision.definite
    pairs = [
        (actual.point.theta, desired.point.theta),
        *zip(actual.point.hyper, desired.point.hyper, strict=True),
        *zip(actual.point.energies, desired.point.energies, strict=True),
        (actual.point.gradient, desired.point.gradient),
        (actual.point.precision.matrix, desired.point.precision.matrix),
        ([actual.damping, actual.growth], [desired.damping, desired.growth]),
    ]
    if actual.point.precision.definite:
        solved = (
            search.point.precision.solve(actual.point.gradient) for search in (actual, desired)
        )
        pairs.append(tuple(solved))
    if desired.memory is not None:
        pairs += zip(actual.memory, desired.memory, strict=True)
    assert_same(*zip(*pairs, strict=True), tol=tol)


@each_kind
@each_depth
@pytest.mark.parametrize("name", RULES)
def test_first_steps_are_those_of_numpy(kind, hidden, name):
    posterior, theta, hyper = problem(kind, hidden)
    tol = ROUGH if name in ("reestimation", "gamma") else FINE
    for n_steps in (1, 2, 4):
        found = [
            after_steps(which, theta, hyper, name, n_steps)
            for which in (posterior, without_core(posterior))
        ]
        assert_same_searches(*found, tol)


def test_the_loop_is_used():  # or everything above compares NumPy with itself
    posterior, theta, hyper = problem("gaussian", (3,))
    for name in ("reestimation", "exact", "gauss_newton"):
        rule, search = rule_and_search(posterior, theta, hyper, name)
        loop = compiled_loop(posterior, rule)
        found, left = loop.run(search, 2)
        assert not left
        assert found.n_iter == 2


def test_tau_of_a_part_of_the_rows():
    """Where training ends early, both loops take the same rows for tau; few rows change little."""
    posterior, theta, hyper = problem("gaussian", (3,))
    found = {}
    for early in (True, False):
        for which in (posterior, without_core(posterior)):
            rule, search = rule_and_search(which, theta, hyper, "reestimation")
            rule = rule._replace(method=replace(rule.method, early=early))
            search = lower(which, DampedSteps(), rule, search, 2)
            found.setdefault(early, []).append(search)
        assert_same_searches(*found[early], ROUGH)
    factors = [found[early][0].memory.tau_factor for early in (True, False)]
    assert not np.array_equal(*factors)
    np.testing.assert_allclose(*factors, rtol=0.5)  # 10 of 40 rows


def test_a_search_that_ends_at_a_saddle_point_has_not_converged():
    posterior, theta, hyper = problem("gaussian", (3,))
    theta = np.zeros_like(theta)  # all units are alike and off: no gradient in the weights below
    hyper = Hyperparameters(0.01 * np.ones_like(hyper.alpha), hyper.beta)
    search = rule_and_search(posterior, theta, hyper, "exact")[1]
    assert not search.point.precision.definite
    ends = [
        after_steps(which, theta, hyper, "exact", 200)
        for which in (posterior, without_core(posterior))
    ]
    assert_same_searches(*ends, FINE)
    assert ends[0].done
    assert not ends[0].converged
    assert not ends[0].point.precision.definite


def after_stages(posterior, theta, hyper, **options):
    """Weights after two stages of steps by batches."""
    point = Point(theta, hyper, posterior.energies(theta, hyper.beta), None, None)
    search, steps = Search(point), BatchSteps(posterior, 2, 30, **options)
    for _ in range(2):
        theta = steps.trial(posterior, search).theta
        search = search._replace(point=search.point._replace(theta=theta))
    return theta


def test_the_deadline_ends_a_stage():
    posterior, theta, hyper = problem("gaussian", (3,))
    late = after_stages(posterior, theta, hyper, deadline=Deadline(at=0.0))
    np.testing.assert_array_equal(late, theta)


@pytest.fixture(params=[7, 32, 256])
def batch(request, monkeypatch):
    """Size of batches: less than are padded, some of the rows, all of them."""
    monkeypatch.setattr("skbayesnn.inference.optimise._batches.BATCH", request.param)


@each_kind
@each_depth
@pytest.mark.usefixtures("batch")
def test_steps_by_batches_are_those_of_numpy(kind, hidden, monkeypatch):
    posterior, theta, hyper = problem(kind, hidden)
    found = after_stages(posterior, theta, hyper)
    monkeypatch.setattr("skbayesnn.inference.optimise._batches._batch_loop", None)
    expected = after_stages(without_core(posterior), theta, hyper)
    assert np.max(np.abs(expected - theta)) > 0.1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_batches_under_a_prior_with_a_mean_are_left_to_numpy():
    posterior, theta, hyper = problem("gaussian", (3,))
    groups, k = posterior.groups, len(theta)
    prior = WeightGroups(groups.labels, groups.names, np.linspace(-2, 2, k), np.full(k, 3.0))
    posterior = replace(posterior, groups=prior)
    expected = after_stages(without_core(posterior), theta, hyper)
    found = after_stages(posterior, theta, hyper)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
