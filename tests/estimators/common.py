"""Rows of a smooth function of two inputs for every kind of target; networks written out."""

import numpy as np

KINDS = ["one output", "two outputs", "two classes", "three classes"]


def make_rows(kind="one output", n=30, seed=0):
    """Inputs, and one or two outputs, or labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)
    if kind == "two outputs":
        return X, np.column_stack([y, 3.0 * X[:, 1] ** 2 + rng.standard_normal(n)])
    if kind == "two classes":
        return X, (y > 0).astype(int)
    if kind == "three classes":
        return X, np.digitize(y, [-0.6, 0.6])
    return X, y


def run_network(network, X, activation=np.tanh):
    """Outputs in units of the user, from ``coefs`` and ``intercepts``: ``(n, n_outputs)``."""
    for W, b in zip(network.coefs[:-1], network.intercepts[:-1], strict=True):
        X = activation(X @ W + b)
    return X @ network.coefs[-1] + network.intercepts[-1]


def run_networks(model, X):
    """Outputs of all networks of a model, ``(m, n, n_outputs)``."""
    return np.array([run_network(network, X) for network in model.networks_])
