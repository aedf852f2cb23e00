from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.inference.minima._subsample import subsample
from skbayesnn.network import Network
from skbayesnn.posterior import Gaussian, Posterior, weight_groups
from tests.inference.common import method_of
from tests.tools import set_limits

pytestmark = pytest.mark.usefixtures("laplace")


def make_posterior(n_rows, sizes=(3, 4, 1)):
    rng = np.random.default_rng(0)
    network = Network(sizes)
    return Posterior(
        network,
        Gaussian.per_output(1),
        weight_groups(network, "layer"),
        rng.standard_normal((n_rows, sizes[0])),
        rng.standard_normal((n_rows, 1)),
        rng.integers(1, 4, n_rows).astype(float),
    )


def teach(n_rows=1500, seed=0):
    """Two hidden units and noise of a tenth of the spread: one minimum stands out."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 2))
    f = np.tanh(1.5 * X[:, 0]) - np.tanh(X[:, 0] - X[:, 1])
    return X, f + 0.1 * rng.standard_normal(n_rows)


@pytest.fixture
def small_parts(monkeypatch):
    set_limits(monkeypatch, part_rows=200, profile_work=0)  # no Hessians for Occam factors


@pytest.fixture
def hessian_rows(monkeypatch):
    """How often the Hessian of how many rows was asked for."""
    counts, original = Counter(), Posterior.expansion

    def counting(posterior, *args, **kwargs):
        counts[len(posterior.X)] += 1
        return original(posterior, *args, **kwargs)

    monkeypatch.setattr(Posterior, "expansion", counting)
    monkeypatch.setattr("skbayesnn.inference.optimise._steps.compiled_loop", lambda *args: None)
    return counts


def test_a_part_is_some_of_the_rows_with_their_weights():
    posterior = make_posterior(60_000)
    part = subsample(posterior, 10_000, np.random.default_rng(1))
    assert len(part.X) == len(np.unique(part.X, axis=0)) == 10_000
    where = {row.tobytes(): i for i, row in enumerate(posterior.X)}
    rows = [where[row.tobytes()] for row in part.X]
    assert rows == sorted(rows)
    assert_array_equal(part.y, posterior.y[rows])
    assert_array_equal(part.sample_weight, posterior.sample_weight[rows])
    assert abs(np.mean(rows) / 60_000 - 0.5) < 4 / np.sqrt(12 * 10_000)
    assert part.network is posterior.network


@pytest.mark.parametrize(
    ("n_rows", "sizes", "size"),
    [
        (49_999, (3, 4, 1), 0),
        (50_000, (3, 4, 1), 10_000),
        (200_000, (3, 1), 0),  # no hidden units
        (100_000, (8, 99, 1), 20 * 991),
        (100_000, (8, 100, 1), 0),  # 1001 weights ask for a fifth of 100100 rows
    ],
)
def test_size_of_the_part(n_rows, sizes, size):
    small = make_posterior(2, sizes)
    assert method_of(small).part_rows == 0
    rng = np.random.default_rng(0)
    assert subsample(small, 0, rng) is None
    many = replace(small, X=np.broadcast_to(0.0, (n_rows, sizes[0])))
    assert method_of(many).part_rows == size


def test_same_minimum_as_from_all_rows(small_parts, hessian_rows, monkeypatch):
    X, y = teach()
    fitted = EvidenceMLPRegressor((2,), n_restarts=2, random_state=0).fit(X, y)
    rows = hessian_rows.copy()
    hessian_rows.clear()
    set_limits(monkeypatch, part_worth=10**9, profile_work=0)
    reference = EvidenceMLPRegressor((2,), n_restarts=2, random_state=0).fit(X, y)
    assert set(rows) == {200, 1500}
    assert set(hessian_rows) == {1500}
    assert rows[1500] < 0.8 * hessian_rows[1500]
    assert_allclose(fitted.log_evidence_, reference.log_evidence_, atol=1e-4)
    assert_allclose(fitted.weight_precisions_, reference.weight_precisions_, rtol=1e-3)
    assert_allclose(fitted.noise_std_, reference.noise_std_, rtol=1e-6)
    assert_allclose(fitted.predict(X), reference.predict(X), atol=1e-5)


@pytest.mark.parametrize("noise", ["input_dependent", "student_t"])
def test_other_noise_models(small_parts, hessian_rows, noise):
    X, y = teach()
    options = {"noise": noise, "noise_hidden_layer_sizes": (), "n_restarts": 1, "random_state": 0}
    fitted = EvidenceMLPRegressor((2,), **options).fit(X, y)
    assert hessian_rows[200] > 0
    assert np.mean((fitted.predict(X) - y) ** 2) ** 0.5 < 0.11


def test_classifier(small_parts, monkeypatch):
    X, y = teach()
    label = (y > 0.3).astype(int)
    fitted = EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X, label)
    set_limits(monkeypatch, part_worth=10**9)
    reference = EvidenceMLPClassifier((2,), n_restarts=1, random_state=0).fit(X, label)
    # the evidence is nearly level in the precision of the biases, where it ends depends on the path
    assert_allclose(fitted.log_evidence_, reference.log_evidence_, atol=1e-2)
    assert_allclose(fitted.predict_proba(X), reference.predict_proba(X), atol=5e-3)


def test_random_state_decides_and_the_order_of_rows_does_not(small_parts):
    X, y = teach(1100)

    def fit(order, random_state):
        model = EvidenceMLPRegressor((2,), n_restarts=1, random_state=random_state, max_iter=5)
        return model.fit(X[order], y[order]).coefs_[0]

    given = np.arange(len(X))
    assert_array_equal(fit(given, 0), fit(given, 0))
    assert_array_equal(fit(given, 0), fit(given[::-1], 0))
