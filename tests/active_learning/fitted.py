"""Small fitted models that the tests of this folder share."""

import warnings
from functools import cache

import numpy as np
from sklearn.base import clone

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn.network import Network
from skbayesnn.predictive import Part


def data(task, n=30, seed=0, noise="constant"):
    """Rows of two inputs with targets: "one", "two" outputs, "binary" or "three" classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 2))
    signal = np.column_stack([np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1], X[:, 0] * X[:, 1]])
    sd = 0.1 * np.exp(1.5 * X[:, :1]) if noise == "input_dependent" else 0.1
    noisy = signal + sd * rng.standard_normal(signal.shape)
    if task == "one":
        return X, 5.0 * noisy[:, 0] + 100.0
    if task == "two":
        return X, noisy * [1.0, 30.0]
    flipped = signal + 0.5 * rng.standard_normal(signal.shape)
    if task == "binary":
        return X, (flipped[:, 0] > 0).astype(int)
    return X, np.argmax(np.column_stack([flipped, np.zeros(n)]), axis=1)


def fit(task, noise, classifier, regressor):
    """Fit the estimator for a task."""
    is_classifier = task in ("binary", "three")
    model = clone(classifier) if is_classifier else clone(regressor).set_params(noise=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(task, noise=noise))


@cache
def evidence(task, combine="best", noise="constant"):
    """A fitted evidence estimator; ``combine="equal"`` has several minima."""
    options = {"combine": combine, "n_restarts": 4, "random_state": 0}
    classifier, regressor = (
        cls((3,), **options) for cls in (EvidenceMLPClassifier, EvidenceMLPRegressor)
    )
    return fit(task, noise, classifier, regressor)


@cache
def sampled(task, noise="constant"):
    """A fitted sampling estimator with 200 draws."""
    options = {"n_chains": 8, "n_warmup": 20, "n_draws": 25, "measure_evidence": False}
    classifier, regressor = (
        cls((2,), random_state=0, **options) for cls in (HMCMLPClassifier, HMCMLPRegressor)
    )
    return fit(task, noise, classifier, regressor)


@cache
def blank(n_classes):
    """A fitted classifier of one input that scales nothing, for networks made by hand."""
    return EvidenceMLPClassifier((), standardize=False).fit(
        np.arange(6.0)[:, None], np.arange(6) % n_classes
    )


class Numbered(Part):
    """Outputs ``mean + V z`` with ``z ~ N(0, 1)`` at inputs 0, 1, 2, ...

    Parameters
    ----------
    mean : ndarray of shape (n, n_outputs)
    V : ndarray of shape (n, n_outputs, r)
    """

    noise = None

    def __init__(self, mean, V):
        self.network = Network((1, mean.shape[1]))
        self.n_unknowns = V.shape[-1]
        self._mean, self._V = mean, V

    def whitened(self, X):
        """Means and vectors of the inputs in ``X``."""
        rows = X[:, 0].astype(int)
        return self._mean[rows], self._V[rows]


def candidates(n=7, seed=1):
    """Inputs inside the data and a little outside."""
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))
