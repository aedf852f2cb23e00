"""Classification by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._descriptions import ESTIMATORS, SAMPLERS
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators.inputs._settings import Prior, Sampler
from skbayesnn.estimators.predictions._categorical import TINY
from skbayesnn.estimators.reports._comparison import compare_classifiers
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.predictive import class_probabilities


@documented(SAMPLERS, ESTIMATORS)
@dataclass(eq=False, repr=False)
class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996). Use it to
    check the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are averages
    over the sampled networks.

    Most fits need no more than the first six parameters:
    ``HMCMLPClassifier((8, 4), prior="ard", class_weight="balanced", activation="silu",
    random_state=0, max_time=60)``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default=(16,)
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"`` takes those
        of the estimator given as ``init`` of the `Sampler`. Without one it chooses them as
        `EvidenceMLPClassifier` does. With ``warm_start`` the choice of the last fit is kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    References
    ----------
    R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import HMCMLPClassifier
    >>> X, y = (part[50:] for part in load_iris(return_X_y=True))  # two of the species
    >>> few = {"n_chains": 2, "n_draws": 200, "measure_evidence": False}
    >>> model = HMCMLPClassifier((), random_state=1, **few).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0.]])
    >>> print(f"{model.score(X, y):.0%} right")
    9...% right
    """

    hidden_layer_sizes: LayerSizes = (16,)
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "layer"
    class_weight: Any = None
    activation: str = "tanh"
    random_state: RandomState = None
    max_time: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    n_chains: int = 4
    n_warmup: int = 150
    n_draws: int = 500
    measure_evidence: bool = True
    sampler: str | Sampler = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    def _compare(self, fitted, X):
        return compare_classifiers(fitted, self, X)

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn classes and classes of some rows, by their numbers."""
        p = class_probabilities(f)
        observed = (y[:, 0] if y.shape[1] == 1 else np.argmax(y, axis=1)).astype(int)
        of_class = np.take_along_axis(p, observed[None, :, None], axis=-1)[..., 0]
        below = np.cumsum(p[..., :-1], axis=-1)
        drawn = np.sum(rng.uniform(size=(*p.shape[:-1], 1)) > below, axis=-1)
        return {"y": np.log(np.maximum(of_class, TINY))}, {"y": drawn}, {"y": observed}
