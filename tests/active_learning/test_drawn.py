"""Suggestions of networks that are drawn from the posterior."""

import numpy as np
from numpy.testing import assert_allclose

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning._suggest import _Search


def test_variances_that_batches_leave_are_those_of_the_drawn_networks():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    model = EvidenceMLPRegressor(noise=1e-3, random_state=0).fit(X, np.sin(4 * X[:, 0]) * X[:, 1])
    search = _Search(model, "log_expected_improvement", True, None, None)
    pending, at = model._check_X([[0.8, 0.9]]), model._check_X([[0.8, 0.9], [0.7, 0.9], [0.1, 0.1]])
    draws = model._ensemble.parts[0]
    rows = np.concatenate([pending, at])
    C = np.cov(draws.outputs(rows)[..., 0], rowvar=False, ddof=0)  # of the means of output layers
    C += draws.joint_covariances(rows)[:, 0].mean(axis=0)
    noise = draws.noise.typical_variances[0, 0]
    expected = 1.0 - C[0, 1:] ** 2 / (C[0, 0] + noise) / np.diag(C)[1:]
    assert expected[0] < 0.01 < expected[2]
    found = search.left(at, pending)
    assert_allclose(found[0], expected[0], rtol=1e-6)
    correlations = np.sqrt(1.0 - expected)
    errors = 2.0 * correlations * expected / np.sqrt(draws.n_unknowns)  # of drawn functions
    assert np.all(np.abs(found - expected)[1:] < 4.0 * errors[1:] + 0.01)
