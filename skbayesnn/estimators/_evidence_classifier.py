"""Classification by a multilayer perceptron under MacKay's evidence framework."""

from skbayesnn.estimators._classification import Classification
from skbayesnn.estimators._evidence import EvidenceMLP


class EvidenceMLPClassifier(Classification, EvidenceMLP):
    """Bayesian neural network for classification that needs no validation set.

    The weights have Gaussian priors in groups whose precisions are inferred from the training data
    by maximising the evidence (MacKay 1992). Predicted probabilities are *moderated*: averaged
    over the posterior of the weights, hence less extreme where the data say little.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"``: no hidden
        layer, one of 2, 4, 8 and 16 units, and two of 4 are tried; then, if two of 4 are better
        than one, two layers, else one layer of doubled width as long as the evidence rises by more
        than 1 nat and ``n_samples * n_weights**2`` stays below 1e9. No network has more weights
        than there are rows, times the number of classes less one. Networks are compared from two
        starts; one is, if it exists, the narrower network of that depth with random units added.
        From 5,000 rows on networks are compared by the log density of rows that are held out (a
        tenth of them, 5,000 at most), from two starts: no hidden layer, one of 4, 8 and 16 units,
        two of 16, doubled widths as long as that rises by 0.01 nats per row, and a third layer. The
        smallest within 0.01 nats of the best is chosen.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Non-linearity of the hidden units.
    prior : {"single", "layer", "ard"} or array-like of shape (n_weights,), default="layer"
        Which weights share a precision: all; those of a layer (hidden weights and hidden biases
        apart); or, for automatic relevance determination, additionally one group per input. An
        array holds a group label for every weight, layer by layer, each layer's matrix of shape
        (inputs + 1, units) in row-major order with the biases in its last row.
    weight_precision : "auto", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): all, one per group, or those of the
        named groups.
    standardize : bool, default=True
        Shift and scale inputs to mean 0 and standard deviation 1 inside.
    n_restarts : int, default=5
        Random starts.
    combine : str, default="posterior"
        What predicts. ``"posterior"``: networks drawn from the posterior, which measuring the
        evidence leaves (see ``measure_evidence``), units that are pruned at the minima and all
        precisions included; where it was not measured to within 1 nat, as ``"tempered"``, but with
        each minimum of the network at several precisions. The others combine Gaussians around the
        distinct minima. ``"tempered"``: with weights that fall by a factor ``e`` for every 0.05
        nats of log evidence per row; the minima of all networks that ``hidden_layer_sizes="auto"``
        has tried take part. The rest take those of the chosen network: ``"best"``, the one of
        highest evidence; ``"evidence"``, weighted by it; ``"equal"``; ``"stacking"``, with the
        weights that maximise the leave-one-out predictive density, which trusts minima with many
        weights too much, see ``leave_one_out_log_density_``.
    hessian : {"auto", "exact", "gauss_newton"}, default="auto"
        Curvature at the minimum. ``"gauss_newton"`` is cheaper and makes the evidence approximate.
        ``"auto"``: exact, but from 5,000 rows on, with fewer than 50 rows for each weight, networks
        are trained on batches of the rows and have no evidence; error bars come from Gauss-Newton
        curvature in Kronecker factors. The two others ask for an evidence there, too, as long as
        there are no more than 3,000 weights and 1e10 rows times squared weights.
    measure_evidence : bool or "auto", default="auto"
        Whether the evidence is measured by annealing from the minima and from the prior, which
        takes seconds to minutes, and works under Gaussian noise and for classes. ``"auto"``: for
        up to 128 weights, if rows times weights are no more than 10,000.
    max_iter : int, default=300
        Training steps per start; the refinement at the minimum has limits of its own. With more
        than two classes, where the rows times the squared number of weights exceed 1e9, one step is
        a descent of up to 1000 quasi-Newton steps with the re-estimation of the precisions that
        follows it. So it is with more than 3000 weights, or more than 1e10 rows times squared
        weights, if weights are no more than rows times outputs; there is then no evidence.
    tol : float, default=1e-3
        Training ends when steps and re-estimations of the precisions gain less than this many nats
        (per 100 weights, for more than 100).
    random_state : int, RandomState instance or None, default=None
        Seeds the initial weights.
    max_time : float or None, default=None
        Seconds after which the fit ends with the best it has found, and warns. What has begun is
        brought to a usable end, so that it may take somewhat longer. Results then depend on the
        speed of the machine.
    n_jobs : int, optional
        Processes over which starts are spread (joblib).
    verbose : int, default=0
        If positive, print the method and the memory of every search, and a line per start and per
        network tried.
    warm_start : bool, default=False
        Start from the minima of the previous fit, besides random starts up to ``n_restarts``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    log_evidence_ : float
        Logarithm of the evidence of the network of ``hidden_layer_sizes_``, in nats: as measured
        by annealing, or ``logsumexp`` over the distinct minima in Laplace's approximation; ``nan``
        if not available.
    log_evidence_std_ : float
        Its standard error, in nats; ``nan`` where it was not measured.
    evidence_report_ : EvidenceReport
        Every term of Laplace's approximation, per minimum, what was measured, and a verdict.
    leave_one_out_log_density_ : ndarray of shape (n_samples,)
        Log predictive density of every training row without one unit of its weight, in closed form
        (Rasmussen & Williams 2006, 5.12, in the linearised posterior); ``nan`` where the weight is
        zero. Far too high where weights are many, as the precisions and the linearisation have
        seen the row that is left out.
    weight_precisions_ : ndarray of shape (n_groups,)
        ``alpha`` of every weight group at the best minimum (standardised units).
    weight_group_names_ : list of str
    n_effective_weights_ : float
        ``gamma``, the number of well-determined weights at the best minimum.
    feature_relevance_ : ndarray of shape (n_features,)
        Prior standard deviation of each input's weights (standardised units); with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the best minimum in the units of X.
    coefs_std_, intercepts_std_ : list of ndarray
        Their posterior standard deviations.
    hidden_layer_sizes_ : tuple of int
        Units of each hidden layer, as given or chosen; the minima may have fewer after pruning.
    growth_ : tuple of Candidate
        With ``hidden_layer_sizes="auto"``: the networks that were tried, in order, with
        ``hidden_layer_sizes``, ``log_evidence`` (of the best minimum) and ``n_weights``. From 5,000
        rows on with ``held_out_log_density`` (nats per row) instead of the evidence.
    networks_ : list of FittedNetwork
        All distinct minima; with ``combine="posterior"`` or ``"tempered"`` those of other networks
        tried come last.
    n_iter_ : int
        Most training steps that any start took.
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
        hidden_layer_sizes="auto",
        *,
        activation="tanh",
        prior="layer",
        weight_precision="auto",
        standardize=True,
        n_restarts=5,
        combine="posterior",
        hessian="auto",
        measure_evidence="auto",
        max_iter=300,
        tol=1e-3,
        random_state=None,
        max_time=None,
        n_jobs=None,
        verbose=0,
        warm_start=False,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior = prior
        self.weight_precision = weight_precision
        self.standardize = standardize
        self.n_restarts = n_restarts
        self.combine = combine
        self.hessian = hessian
        self.measure_evidence = measure_evidence
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
