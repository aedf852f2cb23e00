"""General Gaussian priors: against dense formulas, and against zero-mean groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from skbayesnn.inference import DensePrecision
from skbayesnn.posterior import WeightGroups
from tests.tools import assert_moments

LABELS, NAMES = np.array([0, 1, 0, 1, 0]), ["a", "b"]
ALPHA = np.array([0.7, 3.0])


def blocks(seed=0):
    """A positive definite matrix without elements between the groups."""
    root = np.random.default_rng(seed).standard_normal((5, 5))
    return (root @ root.T + np.eye(5)) * (LABELS[:, None] == LABELS)


def dense(prior, alpha=ALPHA):
    """The precision as a matrix."""
    R = prior.shape if prior.coupled else np.diag(prior.shape)
    return R * np.sqrt(np.outer(alpha[LABELS], alpha[LABELS]))


@pytest.fixture(params=["matrix", "diagonal"])
def prior(request):
    R = blocks() if request.param == "matrix" else np.diag(blocks()).copy()
    return WeightGroups(LABELS, NAMES, np.array([1.0, -2.0, 0.5, 0.0, 3.0]), R)


def test_density(prior):
    theta = np.random.default_rng(1).standard_normal((3, 5))
    P, mean = dense(prior), prior.mean
    value = -prior.energies(theta) @ ALPHA + prior.log_normaliser(ALPHA) - 2.5 * np.log(2 * np.pi)
    assert_allclose(value, multivariate_normal(mean, np.linalg.inv(P)).logpdf(theta), rtol=1e-12)
    assert_allclose(prior.pull(theta, ALPHA), (theta - mean) @ P, rtol=1e-12)
    assert_allclose(prior.product(theta, ALPHA), theta @ P, rtol=1e-12)
    assert_allclose(prior.pulls(theta[0], ALPHA).sum(axis=0), prior.pull(theta[0], ALPHA))
    assert_allclose(prior.diagonal(ALPHA), np.diag(P), rtol=1e-12)
    assert_allclose(prior.least(ALPHA), np.linalg.eigvalsh(P)[0], rtol=1e-12)
    matrices = np.zeros((2, 5, 5))
    prior.add_to(matrices, np.tile(ALPHA, (2, 1)))
    assert_allclose(matrices[1], P, rtol=1e-12)


def test_well_determined_weights(prior):
    A = dense(prior) + np.diag([1.0, 2.0, 3.0, 4.0, 0.0])
    S, P = np.linalg.inv(A), dense(prior)
    members = [np.flatnonzero(c == LABELS) for c in (0, 1)]
    expected = [len(some) - np.trace((S @ P)[np.ix_(some, some)]) for some in members]
    assert_allclose(DensePrecision(A).determined(prior, ALPHA), expected, rtol=1e-12)


def test_draws_have_the_moments_of_the_prior(prior, seed):
    draws = prior.draw(np.tile(ALPHA, (100_000, 1)), np.random.default_rng(seed))
    assert_moments(draws, prior.mean, np.linalg.inv(dense(prior)))


def test_a_prior_of_one_network_takes_no_other_labels(prior):
    assert prior.relabelled(LABELS.copy()) is prior
    with pytest.raises(ValueError, match="one network"):
        prior.relabelled(LABELS[1:])
