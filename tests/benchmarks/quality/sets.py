"""Data of the quality suite: makers of training and test rows, ``X, y, X_test, y_test``."""

import _data
import numpy as np
import problems
from sklearn import datasets

N_TEST = 1000  # of simulated sets


def published(name, split, standardise=False, **keys):
    """One of the splits that a file comes with; targets in units of the training rows if asked."""
    X, y, X_test, y_test = _data.split(name, split, **keys)
    if standardise:
        y, y_test = (y - y.mean()) / y.std(), (y_test - y.mean()) / y.std()
    return X, y, X_test, y_test


def permuted(name, split):
    """Rows of a file in one of ten orders that a generator draws in turn."""
    X, y, _ = _data.table(name)
    rng = np.random.default_rng(0)
    return first_rows(X, y, [rng.permutation(len(y)) for _ in range(10)][split])


def shipped(name, split):
    """A set of scikit-learn; ``cells`` is that of the README."""
    if name == "cells":
        measured = datasets.load_breast_cancer().data
        X, y = measured[:, :10], measured[:, 20]
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return first_rows(X, y, np.random.default_rng(split).permutation(len(y)))


def first_rows(X, y, order):
    """First 80 % of the rows in this order, and the others."""
    train, test = np.split(order, [int(0.8 * len(y))])
    return X[train], y[train], X[test], y[test]


def simulated(name, split, rows):
    """A set that a function of the same name draws, with many test rows."""
    X, y = DRAWN[name](rows + N_TEST, np.random.default_rng([1992, split]))
    return X[:rows], y[:rows], X[rows:], y[rows:]


def of_scikit_learn(make, **options):
    """One of the simulations of scikit-learn."""
    return lambda n, rng: make(n, random_state=int(rng.integers(2**31)), **options)[:2]


def sine(noise):
    """A sine of one input with noise of some law, a function of the input and a generator."""

    def drawn(n, rng):
        X = rng.uniform(-3, 3, (n, 1))
        return X, np.sin(2 * X[:, 0]) + noise(X[:, 0], rng)

    return drawn


def sparse(n, rng):
    """Three of twenty inputs matter, linearly."""
    X = rng.standard_normal((n, 20))
    return X, X[:, :3] @ [1.0, -2.0, 0.5] + 0.5 * rng.standard_normal(n)


def counts(n, rng):
    """Over-dispersed counts whose mean is the exponential of a sine."""
    X = rng.uniform(-3, 3, (n, 2))
    mean = np.exp(1.5 + np.sin(2 * X[:, 0]) + 0.3 * X[:, 1])
    return X, rng.poisson(mean * rng.gamma(5, 1 / 5, n))


def exact(n, rng):
    """A smooth function of two inputs without noise."""
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]


def waves(n, rng):
    """Sum of sines in random directions of four inputs, the same for all splits."""
    fixed = np.random.default_rng(0)
    directions, phases = fixed.standard_normal((4, 8)), fixed.uniform(0, 2 * np.pi, 8)
    X = rng.uniform(-1, 1, (n, 4))
    return X, np.sum(np.sin(X @ directions + phases), axis=1) + 0.1 * rng.standard_normal(n)


def linear_classes(n, rng):
    """Log odds that are linear in two of five inputs."""
    X = rng.standard_normal((n, 5))
    return X, (rng.random(n) < 1 / (1 + np.exp(0.8 * X[:, 1] - X[:, 0]))).astype(int)


DRAWN = {each.__name__: each for each in (sparse, counts, exact, waves, linear_classes)} | {
    "friedman1": of_scikit_learn(datasets.make_friedman1, n_features=7, noise=1.0),
    "friedman2": of_scikit_learn(datasets.make_friedman2, noise=50.0),
    "friedman3": of_scikit_learn(datasets.make_friedman3, noise=0.1),
    "swiss_roll": of_scikit_learn(datasets.make_swiss_roll, noise=0.5),
    "moons": of_scikit_learn(datasets.make_moons, noise=0.25),
    "gaussians": problems.gaussian_classes,
    "robot_arm": problems.robot_arm,
    "two_levels": sine(lambda x, rng: 0.02 * 20 ** (x / 6 + 0.5) * rng.standard_normal(len(x))),
    "outliers": sine(lambda x, rng: 0.1 * rng.standard_t(2, len(x))),
}
