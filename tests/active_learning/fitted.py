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


def data(task, n=30, seed=0, noise="constant"):
    """Rows of two inputs with targets: "one", "two" outputs, "binary" or "three" classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 2))
    signal = np.column_stack([np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1], X[:, 0] * X[:, 1]])
    sd = 0.1 * np.exp(X[:, :1]) if noise == "input_dependent" else 0.1
    noisy = signal + sd * rng.standard_normal(signal.shape)
    if task == "one":
        return X, 5.0 * noisy[:, 0] + 100.0
    if task == "two":
        return X, noisy * [1.0, 30.0]
    flipped = signal + 0.5 * rng.standard_normal(signal.shape)
    if task == "binary":
        return X, (flipped[:, 0] > 0).astype(int)
    return X, np.argmax(np.column_stack([flipped, np.zeros(n)]), axis=1)


@cache
def evidence(task, combine="best", noise="constant"):
    """A fitted evidence estimator; ``combine="equal"`` has several minima."""
    options = {"combine": combine, "n_restarts": 4, "random_state": 0}
    if task in ("binary", "three"):
        model = EvidenceMLPClassifier((3,), **options)
    else:
        model = EvidenceMLPRegressor((3,), noise=noise, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task, noise=noise))


@cache
def sampled(task, noise="constant"):
    """A fitted sampling estimator with 200 draws."""
    options = {"n_chains": 2, "n_warmup": 50, "n_draws": 100, "evidence": False, "random_state": 0}
    if task in ("binary", "three"):
        model = HMCMLPClassifier((2,), **options)
    else:
        model = HMCMLPRegressor((2,), noise=noise, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task, noise=noise))


def candidates(n=7, seed=1):
    """Inputs inside the data and a little outside."""
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))
