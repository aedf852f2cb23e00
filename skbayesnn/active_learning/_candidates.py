"""Gains of many candidates under one linear model, in blocks of bounded memory."""

from typing import NamedTuple

import numpy as np

from skbayesnn.active_learning._classification import classification_gain
from skbayesnn.active_learning._linear import covariance_of, curved, observation, shrink
from skbayesnn.active_learning._regression import regression_gain
from skbayesnn.network import row_blocks

LEAST_RANK = 1e-10  # singular values, relative to the largest, that count as zero


class Interest(NamedTuple):
    """Moments of the outputs at points of interest, given the observations.

    Attributes
    ----------
    mean : ndarray of shape (n_points, p)
    S : ndarray of shape (n_points, p, p)
    directions : ndarray of shape (m, r)
        Vectors whose products with those of candidates are the covariances.
    """

    mean: np.ndarray
    S: np.ndarray
    directions: np.ndarray


class Candidates:
    """Standardised rows with their gains, under one linear model.

    Parameters
    ----------
    question : Question
    linear : LinearModel
    classes : bool
        Whether targets are classes.
    X : ndarray of shape (n, n_features)
    """

    def __init__(self, question, linear, classes, X):
        self._question, self._linear, self._classes, self._X = question, linear, classes, X
        n_points = 0 if question.X_interest is None else len(question.X_interest)
        width = linear.n_outputs * max(linear.n_unknowns, linear.n_outputs * n_points)
        self._rows = list(row_blocks(len(X), width))
        self._updates = []
        self._interest = None
        if question.X_interest is not None:
            self._interest = linear.expand_all(question.X_interest)

    def gains(self):
        """Gains of all rows: ``(n,)``, or ``(n, n_points)`` for the kind ``"marginal"``."""
        interest = self._interest_now()
        if self._classes:
            gain = classification_gain(self._question, interest)
        else:
            gain = regression_gain(self._question, self._linear.noise_variances, interest)
        return np.concatenate([gain(*moments) for moments in self._moments(interest)])

    def _moments(self, interest):
        """Yield ``mean``, ``S`` and ``C`` of every block."""
        for rows in self._rows:
            mean, V = self._linear.expand(self._X[rows])
            yield mean, covariance_of(V), _between(V, interest)

    def _interest_now(self):
        """Moments at the points of interest, given all observations."""
        if self._interest is None:
            return None
        mean, V = self._interest
        V = shrink(V, self._updates)
        directions = V.reshape(-1, V.shape[-1])
        if self._question.kind == "joint":
            _, sizes, directions = np.linalg.svd(directions, full_matrices=False)
            directions = directions[sizes > LEAST_RANK * sizes[0]]
        return Interest(mean, covariance_of(V), shrink(directions, self._updates[::-1]))


class FollowedCandidates(Candidates):
    """Candidates whose gains are updated after every choice.

    Variances are kept and updated. Vectors never change: updates are moved to the directions with
    which they are multiplied.

    Parameters
    ----------
    question, linear, classes, X
        Parameters of `Candidates`.
    keep : bool
        Keep the vectors of all rows in memory instead of recomputing them for every choice.
    """

    def __init__(self, question, linear, classes, X, keep):
        super().__init__(question, linear, classes, X)
        self._kept = [] if keep else None
        self._means, self._S = [], []
        for rows in self._rows:
            mean, V = linear.expand(X[rows])
            self._means.append(mean)
            self._S.append(covariance_of(V))
            if keep:
                self._kept.append(V)

    def observe(self, row):
        """Update everything as if the target of a row had been measured."""
        mean, V = self._linear.expand(self._X[row : row + 1])
        V = shrink(V, self._updates)
        if self._linear.noise_variances is None:
            V = curved(mean, V)
        directions = []
        for update in observation(V[0]):
            b = shrink(update.direction, self._updates[::-1])
            directions.append(b / np.sqrt(1.0 + update.direction @ update.direction))
            self._updates.append(update)
        B = np.stack(directions, axis=1)
        for S, V in zip(self._S, self._vectors(), strict=True):
            fall = V @ B
            S -= fall @ np.swapaxes(fall, 1, 2)  # A^-1 - A^-1 g g^T A^-1 / (1 + s^2)
            diagonal = np.einsum("nii->ni", S)
            np.maximum(diagonal, 0.0, out=diagonal)

    def _moments(self, interest):
        if interest is None:
            return zip(self._means, self._S, [None] * len(self._S), strict=True)
        between = (_between(V, interest) for V in self._vectors())
        return zip(self._means, self._S, between, strict=True)

    def _vectors(self):
        """Yield the vectors of every block."""
        if self._kept is not None:
            return self._kept
        return (self._linear.expand(self._X[rows])[1] for rows in self._rows)


def _between(V, interest):
    """Covariances ``C`` with the outputs at points of interest, ``(n, p, n_points * p)``."""
    if interest is None:
        return None
    n, p, r = V.shape
    return (V.reshape(n * p, r) @ interest.directions.T).reshape(n, p, -1)
