"""Values of another program, converted to this package's order of the weights; see README.md."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from skbayesnn.network import Network
from skbayesnn.posterior import (
    Bernoulli,
    Categorical,
    Gaussian,
    Hyperparameters,
    Posterior,
    weight_groups,
)

CASES = ["regression_one_group", "regression_four_groups", "binary", "softmax"]
POINTS = ["initial", "trained_fixed", "evidence_converged"]
MINIMA = POINTS[1:]


def load(case):
    """A case as namespace with its ``posterior``, ``X_test``, and the points by name."""
    data = json.loads((Path(__file__).parent / f"{case}.json").read_text())
    network = Network(tuple(data["layer_sizes"]), "tanh")
    order = _order(network)
    n_outputs = network.n_outputs
    likelihood = {
        "linear": Gaussian(np.zeros(n_outputs, dtype=int), np.ones(n_outputs)),
        "logistic": Bernoulli(),
        "softmax": Categorical(),
    }[data["output"]]
    posterior = Posterior(
        network,
        likelihood,
        weight_groups(network, np.array(data["group_of_weight"])[order]),
        np.array(data["X"]),
        np.array(data["Y"], dtype=float),
        np.ones(len(data["X"])),
    )
    points = {name: _point(data[name], order, likelihood.n_levels) for name in POINTS}
    return SimpleNamespace(posterior=posterior, X_test=np.array(data["X_test"]), **points)


def _order(network):
    """Where each weight of this package stands in the other program's vector."""
    n_inputs, n_hidden, n_outputs = network.layer_sizes
    sizes = [n_inputs * n_hidden, n_hidden, n_hidden * n_outputs, n_outputs]
    w1, b1, w2, b2 = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    first = np.vstack([w1.reshape(n_hidden, n_inputs).T, b1])
    second = np.vstack([w2.reshape(n_outputs, n_hidden).T, b2])
    return network.pack([first, second])


def _point(entry, order, n_levels):
    point = SimpleNamespace(**{key: np.array(value) for key, value in entry.items()})
    point.theta = point.weights[order]
    point.hyper = Hyperparameters(point.alpha, np.full(n_levels, point.beta, dtype=float))
    return point
