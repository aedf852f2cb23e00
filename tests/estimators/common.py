"""Rows for every kind of target, networks written out, and what exact results are made of."""

import numpy as np
from scipy import stats
from scipy.special import logsumexp

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


def linear_model(Phi, y, precision, variance, prior_mean=0.0):
    """Log evidence, and mean and covariance of the weights (Bishop 3.49 to 3.51).

    The precision is a number or a matrix, the variance of the noise a number or one for each row.
    """
    k, n = Phi.shape[1], len(y)
    P = precision * np.eye(k) if np.ndim(precision) == 0 else precision
    noise, r = np.broadcast_to(variance, n), y - Phi @ np.broadcast_to(prior_mean, k)
    K = Phi @ np.linalg.solve(P, Phi.T) + np.diag(noise)
    S = np.linalg.inv(P + (Phi.T / noise) @ Phi)
    mean = prior_mean + S @ (Phi.T @ (r / noise))
    return stats.multivariate_normal.logpdf(r, cov=K), mean, S


def mean_and_sd(share, values):
    """Of values with their probabilities."""
    mean = share @ values
    return mean, np.sqrt(share @ (values - mean) ** 2)


def quadrature(log_density, ranges, n_grid=13):
    """Log integral of a density, points ``(k, m)`` on a grid, and their probabilities.

    The grid is narrowed to 5 standard deviations on either side, in steps of which a sum over a
    density that is nearly normal is accurate to many digits.
    """
    for _ in range(4):
        axes = [np.linspace(*ends, n_grid) for ends in ranges]
        place = np.stack([some.ravel() for some in np.meshgrid(*axes, indexing="ij")])
        steps = [axis[1] - axis[0] for axis in axes]
        logs = log_density(place) + np.sum(np.log(steps))
        share, ranges = np.exp(logs - logsumexp(logs)), []
        for points, step in zip(place, steps, strict=True):
            mean, sd = mean_and_sd(share, points)
            half = 5.0 * max(sd, 0.5 * step)
            ranges.append((mean - half, mean + half))
    return logsumexp(logs), place, share


def assert_left_out_like_refits(model, rows, which, tol, log_density):
    """Leave-one-out densities of a model are those of fits without the row.

    ``log_density`` fits to rows, a tuple of arrays, and returns that of the rows left out.
    """
    for i in which:
        rest, left = zip(*((np.delete(some, i, axis=0), some[[i]]) for some in rows), strict=True)
        expected = log_density(rest, left)
        assert abs(model.leave_one_out_log_density_[i] - expected) < tol
