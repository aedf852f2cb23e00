import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import information_gain, select
from skbayesnn.predictive import Ensemble
from tests.active_learning.exact import gaussian_information, joint_covariance
from tests.active_learning.fitted import candidates, evidence, sampled
from tests.tools import parts_of, set_block_doubles, standardised, with_ensemble

pytestmark = pytest.mark.usefixtures("laplace")

X_INTEREST = candidates(3, seed=2)
WEIGHT = np.array([1.0, 3.0, 0.5])


def brute_force(estimator, X, kind):
    """Gains of all candidates by joint covariance matrices, averaged over the minima."""
    rows = np.vstack([X, X_INTEREST])
    n, m, p = len(X), len(X_INTEREST), estimator.n_outputs_
    P = WEIGHT / WEIGHT.sum()
    gains = []
    for member in parts_of(estimator):
        everything = joint_covariance(estimator, member, rows)
        noise = member.noise_covariances(standardised(estimator, rows)).mean(axis=0)
        scale = estimator._y_scaling.scale
        noise = np.broadcast_to(noise * np.outer(scale, scale), (len(rows), p, p))
        noisy = len(rows) if kind == "predicted_target" else n
        targets = everything.copy()
        for row in range(noisy):
            targets[row * p : (row + 1) * p, row * p : (row + 1) * p] += noise[row]
        points = [list(range((n + u) * p, (n + u + 1) * p)) for u in range(m)]
        own = np.empty((n, m))
        for row in range(n):
            t = list(range(row * p, (row + 1) * p))
            everywhere = list(range(n * p, (n + m) * p))
            if kind == "total":  # of the weights: with noise, less what is left given them
                own[row] = 0.5 * np.linalg.slogdet(targets[np.ix_(t, t)])[1]
                own[row] -= 0.5 * np.linalg.slogdet(noise[row])[1]
            elif kind == "joint":
                own[row] = gaussian_information(targets, t, everywhere)
            elif kind == "q_optimal":
                C = everything[np.ix_(t, everywhere)]
                fall = C.T @ np.linalg.solve(targets[np.ix_(t, t)], C)
                own[row] = np.diag(fall) @ np.repeat(P, p)
            else:
                own[row] = [gaussian_information(targets, t, u) for u in points]
        gains.append(own)
    shares = [weights.sum() for weights in estimator._ensemble.weights]
    gains = np.tensordot(shares, gains, 1)
    if kind == "marginal":
        return gains
    return gains @ P if kind in ("mean_marginal", "predicted_target") else gains[:, 0]


KINDS = ["total", "marginal", "joint", "mean_marginal", "predicted_target", "q_optimal"]


def with_strong_correlation():
    """Networks of two outputs, as if their noise had the correlation .97."""
    estimator = evidence("two", noise="correlated")
    (member,) = parts_of(estimator)
    noise = replace(member.noise, correlation=np.array([[[1.0, 0.97], [0.97, 1.0]]]))
    return with_ensemble(estimator, Ensemble((replace(member, noise=noise),), (np.ones(1),)))


MODELS = {
    "several minima": lambda task: evidence(task, "equal"),
    "input-dependent noise": lambda task: evidence(task, noise="input_dependent"),
    "student_t": lambda task: evidence(task, noise="student_t"),
    "draws": sampled,
    "draws, input-dependent noise": lambda task: sampled(task, "input_dependent"),
    "correlated": lambda task: with_strong_correlation(),
}
CASES = [*product(list(MODELS)[:-1], ("one", "two")), ("correlated", "two")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "task"), CASES)
def test_gains_are_mutual_information(name, task, kind):
    estimator, X = MODELS[name](task), candidates()
    assert (len(parts_of(estimator)) > 1) == (name == "several minima")
    gains = information_gain(estimator, X, X_INTEREST, kind=kind, interest_weight=WEIGHT)
    expected = brute_force(estimator, X, kind)
    assert gains.shape == expected.shape
    assert_allclose(gains, expected, rtol=1e-5, atol=1e-9)


def test_blocks_do_not_matter(monkeypatch):
    model, X = evidence("two", "equal"), candidates(23)
    whole = information_gain(model, X, X_INTEREST)
    set_block_doubles(monkeypatch, 200)
    assert_allclose(information_gain(model, X, X_INTEREST), whole, rtol=1e-10)


def test_memory_is_bounded():
    """The covariances of all pairs would take 120 MB."""
    model = evidence("one")
    rng = np.random.default_rng(0)
    many, points = rng.uniform(-2, 2, (50_000, 2)), rng.uniform(-2, 2, (300, 2))
    tracemalloc.start()
    try:
        information_gain(model, many, points)
        select(model, many, 2, points)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["joint", "q_optimal", "predicted_target"])
def test_nothing_is_learnt_about_a_certain_output(kind):
    model = EvidenceMLPRegressor((), fit_intercept=False, standardize=False, noise=0.1)
    model.fit([[1.0], [2.0]], [1.0, 2.1])
    assert_allclose(information_gain(model, [[1.0], [3.0]], [[0.0]], kind=kind), 0.0, atol=1e-15)
