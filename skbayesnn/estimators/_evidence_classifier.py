"""Classification by a multilayer perceptron under MacKay's evidence framework."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._evidence import EvidenceMLP, learns_in_batches
from skbayesnn.estimators.inputs._settings import Prior, Solver
from skbayesnn.estimators.tasks._classification import Classification


class EvidenceMLPClassifier(Classification, EvidenceMLP):
    """Bayesian neural network for classification that needs no validation set.

    The weights have Gaussian priors in groups whose precisions are inferred from the training data
    by maximising the evidence (MacKay 1992). Predicted probabilities are averaged over the
    posterior of the weights (*moderated*), so they are less extreme where there are few data.

    Most fits need no more than the first six parameters:
    ``EvidenceMLPClassifier((8, 4), prior="ard", class_weight="balanced", activation="silu",
    random_state=0, max_time=60)``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"`` chooses none
        on small data, where networks are drawn from the posterior (``measure_evidence``): one layer
        of 8 units and no hidden layer predict together, with shares that maximise the leave-one-out
        predictive density (``candidates_``). On larger data it chooses the layers by the evidence:

        * It tries no hidden layer, one layer of 2, 4, 8 and 16 units, and two layers of 4 units.
        * If two layers of 4 units are better than one, it widens two layers, otherwise one. The
          width is doubled while the evidence rises by more than 1 nat and ``n_samples *
          n_weights**2`` stays below 1e9.
        * No network has more weights than rows times (number of classes - 1).
        * Each network is trained from two starts. If there is a narrower network of the same depth,
          one start is that network with random units added.

        From 5,000 rows on, networks are compared by the log density of held-out rows (a tenth of
        them, at most 5,000): no hidden layer, one layer of 4, 8 and 16 units, two layers of 16,
        doubled widths while the density rises by 0.01 nats per row, and a third layer. The smallest
        network within 0.01 nats per row of the best is chosen.
    prior : str, array-like of shape (n_weights,), estimator or Prior, default="layer"
        Which weights share a precision: ``"single"``, ``"layer"``, ``"ard"``, or labels of the
        weights; ``prior="ard"`` gives every input its own. A fitted `EvidenceMLPClassifier` makes
        its posterior the prior, as ``partial_fit`` does. Precisions, means and hyperpriors are
        those of a `Prior`: ``prior=Prior("ard", precision={"output": 1.0})``.
    class_weight : None, "balanced" or dict, default=None
        Multiplies the weights of the rows.

        * A dict: by the number for the class of the row, or 1 if the dict does not name it.
        * ``"balanced"``: by a factor inversely proportional to the weight of the class, so that all
          classes count equally. The total weight stays the same.

        Do not compare evidences under different class weights.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights.
    max_time : float or None, default=None
        Seconds after which the fit stops, uses the best it has found, and warns. A fit may overrun
        by 50 % (at least 1 s). Results then depend on the speed of the machine.
    fit_intercept : bool, default=True
        Whether outputs have intercepts. Use ``False`` if the data are centred, or X has a constant
        column. X is then scaled, but not shifted. Hidden units keep their biases;
        the last of ``intercepts_`` is 0.
    standardize : bool, default=True
        Shift and scale inputs internally to mean 0 and standard deviation 1.
    n_restarts : int, default=5
        Number of random starts of searches for minima.
    combine : str, default="posterior"
        How predictions are combined.

        * ``"posterior"``: networks drawn from the posterior, if there are any
          (``measure_evidence``). Otherwise as ``"tempered"``.
        * ``"tempered"``: all minima of all networks that ``hidden_layer_sizes="auto"`` has tried.
          Their shares fall by a factor ``e`` for every 0.05 nats of log evidence per row.
        * ``"best"``: the minimum of highest evidence.
        * ``"evidence"``: the minima of the chosen network, weighted by their evidence.
        * ``"equal"``: these minima with equal weights.
        * ``"stacking"``: these minima with the weights that maximise the leave-one-out
          predictive density (see the warning at ``leave_one_out_log_density_``).

        All except ``"posterior"`` use the Gaussian around each minimum.
    measure_evidence : bool or "auto", default="auto"
        Draw networks from the posterior by sequential Monte Carlo. They predict, and measure the
        evidence. ``"auto"``: if that is predicted to take at most 10 s, or 2.5 s where there are
        two targets or more per weight. ``True``: always. ``False``: never; a Gaussian around each
        minimum approximates the posterior. The prior must have mean zero.
    solver : str or Solver, default="auto"
        Curvature at a minimum: ``"auto"``, ``"exact"`` or ``"gauss_newton"``. The limits of the
        training are those of a `Solver`: ``solver=Solver(max_iter=1000)``.
    n_jobs : int, optional
        Number of parallel processes for the starts (joblib).
    verbose : int, default=0
        1: print a line per network, start and noise model that is tried, with its log evidence,
        the time so far, and about how much is left. 2: the starts of every network that is tried,
        too, with method and memory. 0: a fit that will take more than 10 s logs one line with an
        estimate (logger ``"skbayesnn"``, level ``WARNING``).
    warm_start : bool, default=False
        Start from the minima of the previous fit, and from random starts up to ``n_restarts``. If
        networks are drawn from the posterior, they are drawn anew.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    log_evidence_ : float
        Logarithm of the evidence of the network with ``hidden_layer_sizes_``, in nats. Measured by
        sampling, or Laplace's approximation: ``logsumexp`` over the distinct minima. ``nan`` if
        not available.
    batch_log_evidences_ : tuple of float
        After `partial_fit`: the log evidence of every batch, given the earlier ones.
        ``log_evidence_`` is their sum. Batches that were fitted together count as one.
    log_evidence_std_ : float
        Standard error of ``log_evidence_``, in nats; ``nan`` if it was not measured, or if
        populations of networks have missed a narrow mode. ``log_evidence_`` is then Laplace's
        approximation.
    evidence_report_ : EvidenceReport
        Predictions of left-out rows, accuracy of the evidence, and every term of Laplace's
        approximation for each minimum.
    leave_one_out_log_density_ : ndarray of shape (n_samples,)
        Log predictive density of every training row if one unit of its weight is left out: by
        importance weights of drawn networks, or in closed form (Rasmussen & Williams 2006, 5.12, in
        the linearised posterior). It is ``nan`` where the weight is zero. With many weights the
        closed form is far too high, because the precisions and the linearisation depend on the row
        that is left out. For a row with class probabilities it is the mean over the classes.
    weight_precisions_ : ndarray of shape (n_groups,)
        ``alpha`` of every weight group (standardised units): geometric mean over drawn networks of
        highest evidence, or at the best minimum.
    weight_group_names_ : list of str
    n_effective_weights_ : float
        ``gamma``, the number of well-determined weights at the best minimum.
    feature_relevance_ : ndarray of shape (n_features,)
        Prior standard deviation of each input's weights (standardised units); with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the best minimum in the units of X. If networks were drawn, this attribute and
        all others of minima are computed on first use, under the model of highest evidence.
    coefs_std_, intercepts_std_ : list of ndarray
        Posterior standard deviations of these weights.
    hidden_layer_sizes_ : tuple of int
        Units of each hidden layer, as given or chosen; the minima may have fewer after pruning.
    candidates_ : tuple of Candidate
        Networks of ``hidden_layer_sizes="auto"``: those that predict together, if networks are
        drawn from the posterior, else those that were tried, in order. They have
        ``hidden_layer_sizes``, ``n_weights``, and, in nats, the measured ``log_evidence`` or the
        ``laplace_log_evidence`` of the best minimum. From 5,000 rows on they have
        ``held_out_log_density`` (nats per row) instead.
    networks_ : list of ClassificationNetwork
        All distinct minima. With ``combine="posterior"`` or ``"tempered"``, minima of other
        networks that were tried come last.
    posterior_ : sequence of GaussianPosterior
        The Gaussian around each minimum: mean, Hessian, covariance, well-determined directions,
        draws.
    n_iter_ : int
        Largest number of training steps of any start.
    n_outputs_ : int
        Activations of the network: 1 for two classes, else one per class.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

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
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSizes = "auto",
        *,
        prior: str | ArrayLike | Estimator | Prior = "layer",
        class_weight: Any = None,
        activation: str = "tanh",
        random_state: RandomState = None,
        max_time: float | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        n_restarts: int = 5,
        combine: str = "posterior",
        measure_evidence: bool | str = "auto",
        solver: str | Solver = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.prior = prior
        self.class_weight = class_weight
        self.activation = activation
        self.random_state = random_state
        self.max_time = max_time
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.n_restarts = n_restarts
        self.combine = combine
        self.measure_evidence = measure_evidence
        self.solver = solver
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

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

        A batch that determines nothing, such as one of a single class, gives a warning, and is
        fitted again together with the next batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
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

        Raises
        ------
        ValueError
            If parameters or data make no sense, or do not fit those of earlier batches.
        """
        known = {}
        if not self.__sklearn_is_fitted__():
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
