"""No model systematically beats the model that generated the data (MacKay 1992, section 2.6).

For data ``D`` drawn from model ``H`` the mean of ``log P(D|H) - log P(D|H')`` is the
Kullback-Leibler divergence of two distributions of data sets, hence never negative, and the mean of
``P(D|H') / P(D|H)`` is 1, so that ``H'`` leads by ``t`` nats with probability ``exp(-t)`` at most.
All precisions are fixed at the values that the parameters are drawn with; then ``H`` is exactly the
model of its estimator, and the evidence is exact too, except for the network's Laplace
approximation.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_less
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.basis import HermiteFunctionFeatures, RadialBasisFeatures

pytestmark = pytest.mark.usefixtures("laplace")

NOISE_STD, HIDDEN_STD = 0.2, 2.0
N_SETS, N_ROWS = 14, 40
H = np.arange(1, 21)  # harmonics of a spline
K = 2.0 * np.pi * H / 12.0
BASES = {
    "linear": FunctionTransformer(),
    "hermite": HermiteFunctionFeatures(3),
    "wide": RadialBasisFeatures(centers=np.linspace(-4, 4, 9)[:, None], width=2.0),
    "narrow": RadialBasisFeatures(centers=np.linspace(-4, 4, 33)[:, None], width=0.5),
    "spline": FunctionTransformer(lambda x: np.hstack([np.cos(x * K) / H, np.sin(x * K) / H])),
}


def log_evidence(family, x, y):
    options = {"standardize": False, "noise": NOISE_STD, "random_state": 0}
    if family != "network":
        regressor = EvidenceMLPRegressor((), prior=Prior(precision=1.0), **options)
        return make_pipeline(BASES[family], regressor).fit(x, y)[-1].log_evidence_
    into_units = HIDDEN_STD**-2
    precisions = {"hidden1_weights": into_units, "hidden1_biases": into_units, "output": 1.0}
    model = EvidenceMLPRegressor(
        (3,), prior=Prior(precision=precisions), combine="evidence", **options
    )
    return model.fit(x, y).log_evidence_


def draw_targets(family, x, rng):
    """Parameters from the family's prior, then noise."""
    if family == "network":
        into_units = rng.normal(0.0, HIDDEN_STD, (2, 3))
        values = np.tanh(x * into_units[0] + into_units[1])
    else:
        values = BASES[family].fit_transform(x)
    f = values @ rng.standard_normal(values.shape[1]) + rng.standard_normal()
    return f + NOISE_STD * rng.standard_normal(len(x))


def leads(truth, families):
    """Lead of the true family over each of the others in nats, ``(n_sets, n_others)``."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(N_SETS):
        x = rng.uniform(-3, 3, (N_ROWS, 1))
        y = draw_targets(truth, x, rng)
        own = log_evidence(truth, x, y)
        found.append([own - log_evidence(other, x, y) for other in families if other != truth])
    return np.array(found)


def assert_truth_wins(lead):
    standard_error = np.std(lead, axis=0, ddof=1) / np.sqrt(N_SETS)
    assert_array_less(2.0 * standard_error, np.mean(lead, axis=0))
    assert lead.min() > -np.log(2000.0)  # fewer than one in a hundred runs, for exact evidences


@pytest.mark.parametrize("truth", BASES)
def test_fixed_bases(truth):
    assert_truth_wins(leads(truth, BASES))


@pytest.mark.parametrize("truth", ["linear", "hermite", "network"])
def test_lines_hermite_functions_and_networks(truth):
    assert_truth_wins(leads(truth, ["linear", "hermite", "network"]))
