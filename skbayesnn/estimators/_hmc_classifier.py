"""Classification by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from skbayesnn.estimators._classification import Classification
from skbayesnn.estimators._comparison import compare_classifiers
from skbayesnn.estimators._hmc import HMCMLP


class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996): the
    reference for the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are
    means over the drawn networks, and therefore moderated.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default=(16,)
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"``: those of
        the estimator given as ``init``, else chosen by the evidence of Gaussian approximations as
        in `EvidenceMLPClassifier`; the first chains start at the minima found
        meanwhile. With ``warm_start`` the choice of the last fit stays.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Non-linearity of the hidden units.
    prior : {"single", "layer", "ard"} or array-like of shape (n_weights,), default="layer"
        Which weights share a precision, as in `EvidenceMLPClassifier`.
    weight_precision : "auto", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): all, one per group, or those of the
        named groups. Free ones are sampled; their standard deviations are log-uniform a priori.
    standardize : bool, default=True
        Shift and scale inputs to mean 0 and standard deviation 1 inside. ``False``
        keeps the user's units throughout.
    sampler : {"auto", "hmc", "langevin", "stochastic_dynamics"}, default="auto"
        ``"auto"``: Hamiltonian Monte Carlo that tunes its steps while warming up, one size for all
        chains. With hidden layers trajectories have at most 64 steps, or up to 256 with 64 to
        1024 rows: the number of rows or 65,536 divided by it, whichever is less. Without hidden
        layers, and with at most 200 weights that may be large (classes are nearly separable), slice
        sampling along random lines (Neal 2003; Murray, Adams & MacKay 2010) and of the precisions
        follows every trajectory.
        The others are the classics, without metric: Hamiltonian Monte Carlo (Duane et al. 1987;
        Neal 1992), the Langevin method (MacKay 2003, algorithm 41.4), and Neal's (1992) stochastic
        dynamics, which keeps part of the momentum and makes no Metropolis test. Where precisions
        are fixed their positions are the weights themselves.
    step_size : float, optional
        Of the classics; by default adapted during warm-up to 80 % acceptance.
    n_steps : int, optional
        Leapfrog steps per transition of the classics; by default 20, 1 and 1.
    n_chains : int, default=4
        Chains; they advance together as one batch, each with random numbers of its own.
    n_warmup : int, default=150
        Transitions in which chains tune themselves; not kept.
    n_draws : int, default=500
        Draws kept of every chain.
    thin : int or "auto", default="auto"
        Transitions per draw kept: with ``sampler="auto"`` up to 4 for networks with hidden units,
        where rows times weights are few enough for that to take seconds.
    dtype : {"float64", "float32"}, default="float64"
        In which drawn weights are stored.
    init : {"modes", "prior"} or fitted estimator, default="modes"
        Where chains start: each at a minimum of its own; at draws from the prior; or the first at
        the minima of a fitted `EvidenceMLPClassifier` (see `from_evidence`).
    evidence : bool, default=True
        Estimate ``log_evidence_`` as well, by a separate run. ``False`` saves its time.
    random_state : int, RandomState instance or None, default=None
        Seeds everything.
    max_time : float or None, default=None
        Seconds after which the fit ends with the best it has found, and warns. What has begun is
        brought to a usable end: chains are warmed up and leave four draws at least. Results then
        depend on the speed of the machine.
    n_jobs : int, optional
        Processes over which chains are spread (joblib); draws do not depend on it.
    verbose : int, default=0
        Print progress if positive.
    warm_start : bool, default=False
        Go on with the chains of the last fit if only ``n_draws`` was raised: the result equals that
        of one longer fit. After any other change the fit begins anew.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    log_evidence_ : float
        Logarithm of the evidence in nats, by sequential Monte Carlo (Neal 2001;
        Del Moral et al. 2006); ``nan`` with ``evidence=False``, and if R-hat exceeds 1.5.
    log_evidence_std_ : float
        Its standard error, from independent populations.
    hidden_layer_sizes_ : tuple of int
    growth_ : tuple of Candidate
        Networks tried with ``hidden_layer_sizes="auto"``, as of an evidence estimator.
    diagnostics_ : Diagnostics
        R-hat and effective sample sizes of the outputs and the precisions, acceptance, divergences.
    comparison_ : Comparison
        With a fitted estimator as ``init``: its predictions, noise and evidence beside those of the
        samples, and whether it is adequate.
    weight_precisions_ : ndarray of shape (n_groups,)
        Geometric posterior mean of ``alpha`` of every weight group (standardised units).
    weight_group_names_ : list of str
    feature_relevance_ : ndarray of shape (n_features,)
        Posterior mean of the prior standard deviation of each input's weights (standardised units);
        with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the draw of highest density in the units of X.
    networks_ : sequence of FittedNetwork
        All drawn networks, chain by chain.
    n_iter_ : int
        Transitions of each chain.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.

    R. M. Neal (2003), "Slice sampling", Annals of Statistics 31, 705-767.

    I. Murray, R. P. Adams & D. J. C. MacKay (2010), "Elliptical slice sampling", Proceedings of
    Machine Learning Research 9, 541-548.

    D. J. C. MacKay (2003), Information Theory, Inference, and Learning Algorithms, chapter 41,
    Cambridge University Press.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayesnn import HMCMLPClassifier
    >>> X, y = (part[50:] for part in load_iris(return_X_y=True))  # two of the species
    >>> few = {"n_chains": 2, "n_warmup": 50, "n_draws": 100, "evidence": False}
    >>> model = HMCMLPClassifier((), random_state=0, **few).fit(X, y)
    >>> model.predict_proba(X[:1]).shape
    (1, 2)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes=(16,),
        *,
        activation="tanh",
        prior="layer",
        weight_precision="auto",
        standardize=True,
        sampler="auto",
        step_size=None,
        n_steps=None,
        n_chains=4,
        n_warmup=150,
        n_draws=500,
        thin="auto",
        dtype="float64",
        init="modes",
        evidence=True,
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
        self.sampler = sampler
        self.step_size = step_size
        self.n_steps = n_steps
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.dtype = dtype
        self.init = init
        self.evidence = evidence
        self.random_state = random_state
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def _compare(self, fitted, X):
        return compare_classifiers(fitted, self, X)
