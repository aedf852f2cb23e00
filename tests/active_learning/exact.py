"""Brute force for information gains: joint covariances by finite differences, dense algebra."""

import numpy as np
from scipy.special import rel_entr

from skbayesnn.network import outputs
from skbayesnn.predictive import Draws
from tests.tools import difference, standardised


def joint_covariance(estimator, member, X):
    """Covariance of all outputs at all rows, in units of y without noise: (n * n_outputs,) * 2."""
    scale, rows = estimator._y_scaling.scale, standardised(estimator, np.asarray(X, dtype=float))
    if isinstance(member, Draws):
        f = member.outputs(rows) * scale
        return np.cov(f.reshape(len(f), -1).T, bias=True)

    def values(theta):
        return (outputs(member.network, theta, rows) * scale).ravel()

    J = difference(values, member.theta)
    return J @ member.precision.covariance() @ J.T


def gaussian_information(covariance, first, second):
    """Mutual information of two groups of jointly normal variables."""

    def entropy(chosen):
        return 0.5 * np.linalg.slogdet(covariance[np.ix_(chosen, chosen)])[1]

    return entropy(first) + entropy(second) - entropy([*first, *second])


def table_information(table):
    """Mutual information of a joint table."""
    return np.sum(rel_entr(table, np.outer(table.sum(axis=1), table.sum(axis=0))))


def normal_grid(dimension, n=141, reach=7.0):
    """Points and weights of a trapezoidal rule for the standard normal distribution."""
    z = np.linspace(-reach, reach, n)
    weight = np.exp(-0.5 * z * z)
    grid = np.stack(np.meshgrid(*[z] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    weights = np.stack(np.meshgrid(*[weight] * dimension, indexing="ij"), axis=-1).prod(axis=-1)
    return grid, weights.ravel() / weights.sum()
