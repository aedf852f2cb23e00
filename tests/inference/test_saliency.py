"""Pruning single weights: saliencies, the evidence of what is left, and where it ends."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn.inference import (
    DensePrecision,
    Problem,
    find_minima,
    fit_evidence,
    prune_weights,
    saliencies,
    seeds_of,
)
from skbayesnn.posterior import Bernoulli, Categorical, Gaussian

ALPHA, BETA = 0.7, 6.0


def alpha_given(names):
    """All precisions of weights are given."""
    return np.zeros(len(names), dtype=bool), np.full(len(names), ALPHA)


GIVEN = {
    "weight_precision": alpha_given,
    "noise_precision": (np.zeros(1, dtype=bool), np.full(1, BETA)),
}


def make_problem(n_inputs=4, n=40, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_inputs)) @ (np.eye(n_inputs) + 0.3)
    y = X[:, :1] - 0.15 * X[:, 1:2] + 0.4 * rng.standard_normal((n, 1))
    options = {"likelihood": Gaussian.per_output(1), "prior": "single", "prunes": True, **options}
    return Problem(X, y, np.ones(n), **options)


def test_saliency_is_the_rise_of_a_quadratic_energy():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((5, 5))
    A, w = root @ root.T + np.eye(5), rng.standard_normal(5)
    found = saliencies(w, DensePrecision(A))
    for i in range(5):
        others = np.delete(np.arange(5), i)
        v = np.zeros(5)  # minimum of (v - w)^T A (v - w) / 2 with v_i = 0
        v[others] = w[others] + np.linalg.solve(A[np.ix_(others, others)], A[others, i] * w[i])
        assert_allclose(found[i], 0.5 * (v - w) @ A @ (v - w))


def features(problem, kept):
    """Columns of linear regression; the last one is the constant."""
    return np.column_stack([problem.X, np.ones(len(problem.X))])[:, sorted(kept)]


def log_evidence_of_columns(problem, kept):
    """Of linear regression at the given precisions, written out."""
    Phi, y = features(problem, kept), problem.y[:, 0]
    K = Phi @ Phi.T / ALPHA + np.eye(len(Phi)) / BETA
    return -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])


def test_path_of_a_linear_model_in_closed_form():
    """Every evidence, and the change that is foretold: the Savage-Dickey ratio."""
    problem = make_problem(**GIVEN)
    posed = problem.posed(())
    (minimum,) = find_minima(*posed, seeds_of(0, (), 1))
    best, path = prune_weights(posed.posterior, minimum, posed.settings)
    kept, y = list(range(5)), problem.y[:, 0]
    for before, step in zip([None, *path], path, strict=False):
        if step.weight is not None:
            Phi = features(problem, kept)
            C = np.linalg.inv(ALPHA * np.eye(len(kept)) + BETA * Phi.T @ Phi)
            w = BETA * C @ Phi.T @ y
            at = kept.index(step.weight)
            assert at == np.argmin(w**2 / np.diag(C))
            assert_allclose(step.saliency, 0.5 * w[at] ** 2 / C[at, at], rtol=1e-5)
            ratio = -step.saliency - 0.5 * np.log(ALPHA * C[at, at])
            assert_allclose(step.log_evidence - before.log_evidence, ratio, atol=1e-5)
            kept.remove(step.weight)
        assert step.n_weights == len(kept)
        assert_allclose(step.log_evidence, log_evidence_of_columns(problem, kept), atol=1e-5)
    assert len(path) == 5  # the first input alone is worth more than the patience
    assert best.log_evidence == max(step.log_evidence for step in path)
    subsets = [kept for size in range(1, 6) for kept in combinations(range(5), size)]
    assert_allclose(best.log_evidence, max(log_evidence_of_columns(problem, s) for s in subsets))


def test_precisions_are_inferred_anew_for_what_is_left():
    """As of a fit without the columns that were taken out, Occam factors included."""
    problem = make_problem()
    fit = fit_evidence(problem, (), 0)
    out = np.flatnonzero(fit.best.theta == 0.0)
    assert 3 in out  # one of the inputs that matter nothing
    assert fit.best.n_weights == 5 - len(out)
    columns = np.setdiff1d(np.arange(4), out)
    assert 4 in out  # the constant as well, as in the next line
    y = problem.y[:, 0]
    Phi = problem.X[:, columns]
    (alpha, _), (beta,) = fit.best.hyper
    gamma = len(columns) - alpha * np.trace(
        np.linalg.inv(alpha * np.eye(len(columns)) + beta * Phi.T @ Phi)
    )
    w = fit.best.theta[columns]
    assert_allclose(alpha * w @ w, gamma, rtol=1e-4)
    assert_allclose(beta * np.sum((y - Phi @ w) ** 2), len(y) - gamma, rtol=1e-4)


LIKELIHOODS = {"regression": None, "two classes": Bernoulli(), "three classes": Categorical()}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_networks_lose_what_they_do_not_need(name):
    problem = make_problem()
    if name != "regression":
        codes = np.digitize(problem.y[:, 0], [0.0] if name == "two classes" else [-0.5, 0.5])
        y = codes[:, None].astype(float) if name == "two classes" else np.eye(3)[codes]
        problem = Problem(**{**vars(problem), "likelihood": LIKELIHOODS[name], "y": y})
    full = fit_evidence(Problem(**{**vars(problem), "prunes": False}), (3,), 0, 2)
    fit = fit_evidence(problem, (3,), 0, 2)
    evidences = [step.log_evidence for step in fit.removals]
    assert fit.removals[0].weight is None
    assert_allclose(evidences[0], full.best.log_evidence, atol=1e-3)
    assert fit.best.log_evidence == max(evidences) > evidences[0] + 1
    n_weights = [step.n_weights for step in fit.removals]
    assert np.all(np.diff(n_weights) < 0)
    assert fit.best.n_weights in n_weights[1:]
    assert np.sum(fit.best.theta == 0) == len(fit.best.theta) - fit.best.n_weights
    assert fit.drawn == ()


def test_nothing_is_taken_out_where_there_is_no_evidence():
    problem = make_problem(limits=make_problem().limits._replace(dense=0, dual_doubles=0))
    posed = problem.posed((2,))
    minimum = find_minima(*posed, seeds_of(0, (2,), 1))[0]
    assert prune_weights(posed.posterior, minimum, posed.settings) == (minimum, ())


def test_an_empty_group_changes_nothing():
    """The group for weights that will be taken out, before any is."""
    plain, spare = make_problem(prunes=False), make_problem()
    first, second = (find_minima(*p.posed((2,)), seeds_of(0, (2,), 2))[0] for p in (plain, spare))
    assert_allclose(first.theta, second.theta, rtol=1e-8)
    assert_allclose(first.log_evidence, second.log_evidence, rtol=1e-9)
