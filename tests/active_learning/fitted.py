"""Small fitted models that the tests of this folder share."""

import warnings
from functools import cache

import numpy as np

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
)


def data(task, n=30, seed=0):
    """Rows of two inputs with targets: "one", "two" outputs, "binary" or "three" classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 2))
    signal = np.column_stack([np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1], X[:, 0] * X[:, 1]])
    noisy = signal + 0.1 * rng.standard_normal(signal.shape)
    if task == "one":
        return X, 5.0 * noisy[:, 0] + 100.0
    if task == "two":
        return X, noisy * [1.0, 30.0]
    flipped = signal + 0.5 * rng.standard_normal(signal.shape)
    if task == "binary":
        return X, (flipped[:, 0] > 0).astype(int)
    return X, np.argmax(np.column_stack([flipped, np.zeros(n)]), axis=1)


@cache
def evidence(task, combine="best"):
    """A fitted evidence estimator; ``combine="equal"`` has several minima."""
    classes = task in ("binary", "three")
    make = EvidenceMLPClassifier if classes else EvidenceMLPRegressor
    model = make((3,), combine=combine, n_restarts=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task))


@cache
def sampled(task):
    """A fitted sampling estimator with 200 draws."""
    make = HMCMLPClassifier if task in ("binary", "three") else HMCMLPRegressor
    model = make((2,), n_chains=2, n_warmup=50, n_draws=100, evidence=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task))


def candidates(n=7, seed=1):
    """Inputs inside the data and a little outside."""
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))
