"""Classification by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from skbayesnn.estimators._classification import Classification
from skbayesnn.estimators._comparison import compare_classifiers
from skbayesnn.estimators._hmc import HMCMLP


class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996). Use it to
    check the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are averages
    over the sampled networks.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default=(16,)
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"`` takes those
        of the estimator given as ``init``. Without one it chooses them by the evidence of Gaussian
        approximations, as `EvidenceMLPClassifier` does, and the first chains start at the minima
        that were found. With ``warm_start`` the choice of the last fit is kept.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    prior : str or array-like of shape (n_weights,), default="layer"
        Which weights share a precision, as in `EvidenceMLPClassifier`.
    weight_precision : "auto", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): one number for all groups, one per
        group, or a dict by group name. Others are sampled; the prior of their standard deviations
        is log-uniform.
    standardize : bool, default=True
        Shift and scale inputs internally to mean 0 and standard deviation 1. ``False`` keeps the
        units of the user.
    sampler : {"auto", "hmc", "langevin", "stochastic_dynamics"}, default="auto"
        * ``"auto"``: Hamiltonian Monte Carlo that tunes its step size during warm-up. All chains
          have the same step size. With hidden layers, trajectories have at most 64 steps; with 64
          to 1024 rows at most 256 steps: the number of rows, or 65,536 divided by it, whichever is
          less. Without hidden layers, and with at most 200 weights that may be large (classes that
          are nearly separable), every trajectory is followed by slice sampling along random lines
          (Neal 2003; Murray, Adams & MacKay 2010) and of the precisions.
        * ``"hmc"``: Hamiltonian Monte Carlo without metric (Duane et al. 1987; Neal 1992).
        * ``"langevin"``: the Langevin method (MacKay 2003, algorithm 41.4).
        * ``"stochastic_dynamics"``: Neal's (1992) stochastic dynamics, which keeps part of the
          momentum and has no Metropolis test.

        If precisions are fixed, the positions of the last three are the weights themselves.
    step_size : float, optional
        Of the classic samplers. By default it is adapted during warm-up to 80 % acceptance.
    n_steps : int, optional
        Leapfrog steps per transition of the classic samplers, by default 20, 1 and 1.
    n_chains : int, default=4
        Number of chains. They advance together, each with its own random numbers.
    n_warmup : int, default=150
        Transitions in which the chains tune themselves. They are not kept.
    n_draws : int, default=500
        Draws kept of every chain.
    thin : int or "auto", default="auto"
        Transitions per draw that is kept. ``"auto"``: with ``sampler="auto"`` up to 4 for networks
        with hidden units, if rows and weights are few enough for this to take only seconds;
        otherwise 1.
    dtype : {"float64", "float32"}, default="float64"
        Type in which drawn weights are stored.
    init : {"modes", "prior"} or fitted estimator, default="modes"
        Where the chains start.

        * ``"modes"``: each chain at a minimum of its own.
        * ``"prior"``: at draws from the prior.
        * A fitted `EvidenceMLPClassifier`: the first chains start at its minima (see
          `from_evidence`).
    evidence : bool, default=True
        Also estimate ``log_evidence_``, by a separate run. ``False`` saves its time.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    max_time : float or None, default=None
        Seconds after which the fit stops, uses the best it has found, and warns. Work in progress
        is brought to a usable end: the chains are warmed up and keep at least four draws. Results
        then depend on the speed of the machine.
    n_jobs : int, optional
        Number of parallel processes for the chains (joblib). The draws do not depend on it.
    verbose : int, default=0
        If positive, print progress.
    warm_start : bool, default=False
        Continue the chains of the last fit if only ``n_draws`` was raised. The result equals that
        of one longer fit. After any other change the fit starts again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    log_evidence_ : float
        Logarithm of the evidence in nats, by sequential Monte Carlo (Neal 2001; Del Moral et al.
        2006). ``nan`` with ``evidence=False``, and if R-hat exceeds 1.5.
    log_evidence_std_ : float
        Its standard error, from independent populations.
    hidden_layer_sizes_ : tuple of int
    growth_ : tuple of Candidate
        With ``hidden_layer_sizes="auto"``: the networks that were tried, as in evidence estimators.
    diagnostics_ : Diagnostics
        R-hat and effective sample sizes of the outputs and the precisions, acceptance, divergences.
    comparison_ : Comparison
        If ``init`` is a fitted estimator: its predictions, noise and evidence compared with those
        of the samples, and whether it is adequate.
    weight_precisions_ : ndarray of shape (n_groups,)
        Geometric posterior mean of ``alpha`` of every weight group (standardised units).
    weight_group_names_ : list of str
    feature_relevance_ : ndarray of shape (n_features,)
        Posterior mean of the prior standard deviation of each input's weights (standardised units);
        with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the draw of highest density in the units of X.
    networks_ : sequence of FittedNetwork
        All sampled networks, chain by chain.
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
