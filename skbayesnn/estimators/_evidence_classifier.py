"""Classification by a multilayer perceptron under MacKay's evidence framework."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from skbayesnn._docs import documented
from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._descriptions import ESTIMATORS, EVIDENCE
from skbayesnn.estimators._evidence import EvidenceMLP, learns_in_batches
from skbayesnn.estimators.inputs._settings import Prior, Solver
from skbayesnn.estimators.tasks._classification import Classification


@documented(EVIDENCE, ESTIMATORS)
@dataclass(eq=False, repr=False)
class EvidenceMLPClassifier(Classification, EvidenceMLP):
    """Bayesian neural network for classification that needs no validation set.

    The weights have Gaussian priors in groups whose precisions are inferred from the training data
    by maximising the evidence (MacKay 1992). Predicted probabilities are averaged over the
    posterior of the weights (*moderated*), so they are less extreme where there are few data.

    Most fits need no more than the first six parameters:
    ``EvidenceMLPClassifier((8, 4), prior="ard", class_weight="balanced", activation="silu",
    random_state=0, max_time=60)``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    References
    ----------
    D. J. C. MacKay (1992), "The evidence framework applied to classification networks", Neural
    Computation 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import EvidenceMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceMLPClassifier(hidden_layer_sizes=(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    >>> print(f"{model.score(X, y):.0%} right")
    9...% right
    """

    hidden_layer_sizes: LayerSizes = "auto"
    _: KW_ONLY
    prior: str | ArrayLike | Estimator | Prior = "layer"
    class_weight: Any = None
    activation: str = "tanh"
    random_state: RandomState = None
    max_time: float | None = None
    fit_intercept: bool = True
    standardize: bool = True
    n_restarts: int = 5
    combine: str = "posterior"
    measure_evidence: bool | str = "auto"
    solver: str | Solver = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False

    @available_if(learns_in_batches)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one more batch: the posterior of the earlier ones is its prior.

        The first batch is fitted as by `fit`, and fixes the network and the scaling of X. After it
        the weights have the prior ``N(w_MP, A^-1)`` of the best minimum, with the precisions that
        were inferred, and no unit is pruned (Bishop 2006, sections 3.3.1 and 4.5.1). A Gaussian at
        one minimum replaces the earlier posterior, so that the result depends on the batches.

        As long as precisions are inferred, up to 200 rows are kept, and fitted again together with
        the next batch, as batches may be in some order. Rows that determine nothing, such as those
        of a single class, give a warning, and are kept, too (up to 500). Later batches far from the
        first ones give a warning.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), optional
            All classes that may occur; needed for the first batch.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self : object
            The fitted estimator; ``log_evidence_`` is that of all batches.
        """
        known = {}
        if not self.__sklearn_is_fitted__() and not hasattr(self, "_waiting"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            known["classes_"] = np.unique(classes)
            if len(known["classes_"]) < 2:
                raise ValueError(f"classes must hold at least 2 classes, got {classes!r}.")
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes={np.unique(classes)!r} is not the same as on the first call to "
                f"partial_fit: {self.classes_!r}."
            )
        return self._learn(X, y, sample_weight, earlier=self._before_batch(), batch=known)
