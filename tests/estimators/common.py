"""Rows for every kind of target, networks written out, and what exact results are made of."""

import numpy as np
from scipy import stats

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


def grid_of_lines(slopes, intercepts, n, precision):
    """Slopes and intercepts on a grid, and the log prior probability of every cell.

    Both are normal with one precision; their ranges are given by pairs.
    """
    w, b = np.linspace(*slopes, n), np.linspace(*intercepts, n)
    W, B = (some.ravel() for some in np.meshgrid(w, b))
    area = np.log((w[1] - w[0]) * (b[1] - b[0]))
    prior = stats.norm.logpdf(W, 0, precision**-0.5) + stats.norm.logpdf(B, 0, precision**-0.5)
    return W, B, prior + area


def assert_left_out_like_refits(model, rows, which, tol, log_density):
    """Leave-one-out densities of a model are those of fits without the row.

    ``log_density`` fits to rows, a tuple of arrays, and returns that of the rows left out.
    """
    for i in which:
        rest, left = zip(*((np.delete(some, i, axis=0), some[[i]]) for some in rows), strict=True)
        expected = log_density(rest, left)
        assert abs(model.leave_one_out_log_density_[i] - expected) < tol
