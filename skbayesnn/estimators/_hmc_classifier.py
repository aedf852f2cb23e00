"""Classification by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators.predictions._categorical import TINY
from skbayesnn.estimators.reports._comparison import compare_classifiers
from skbayesnn.estimators.tasks._classification import Classification
from skbayesnn.predictive import class_probabilities


class HMCMLPClassifier(Classification, HMCMLP):
    """Classification that averages over networks drawn from the posterior.

    Weights and prior precisions are sampled by Hamiltonian Monte Carlo (Neal 1992, 1996). Use it to
    check the Gaussian approximation of `EvidenceMLPClassifier`. Class probabilities are averages
    over the sampled networks.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default=(16,)
        Units of each hidden layer; ``()`` is Bayesian logistic regression. ``"auto"`` takes those
        of the estimator given as ``init``. Without one it chooses them as `EvidenceMLPClassifier`
        does. With ``warm_start`` the choice of the last fit is kept.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    fit_intercept : bool, default=True
        Whether outputs have intercepts. ``False``: data are expected to be centred, or X to have a
        constant column. X is then scaled, but not shifted. Hidden units keep their biases;
        the last of ``intercepts_`` is 0.
    prior : str, array-like of shape (n_weights,) or estimator, default="layer"
        Which weights share a precision, as in `EvidenceMLPClassifier`. If it is a fitted
        `EvidenceMLPClassifier`, its posterior is the prior.
    weight_precision : "auto", "inferred", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): one number for all groups, one per
        group, or a dict by group name. Others are sampled; ``hyperprior`` is their prior. For
        groups with ``prior_precision``, and with an estimator as ``prior``, it is a factor of that
        precision: ``"auto"`` is 1, and ``"inferred"`` samples it.
    hyperprior : dict, default=None
        Priors of the precisions that are sampled: from names of weight groups to
        `~skbayesnn.posterior.LogUniform` (bounds of a standard deviation) or
        `~skbayesnn.posterior.Gamma` (of a precision), in standardised units. Groups you do
        not name keep the default, ``LogUniform(1e-3, 1e3)``.
    prior_mean : float or array-like of shape (n_weights,), default=None
        Prior means of the weights in the units of X, as in `EvidenceMLPClassifier`. With it or with
        ``prior_precision`` the evidence run begins at the prior alone.
    prior_precision : float, array-like of shape (n_weights,) or (n_weights, n_weights), or dict, \
            default=None
        Inverse prior covariance of the weights in the units of X, or its diagonal, as in
        `EvidenceMLPClassifier`.
    class_weight : None, "balanced" or dict, default=None
        Multiplies the weights of the rows.

        * A dict: by the number for the class of the row, or 1 if the dict does not name it.
        * ``"balanced"``: by a factor inversely proportional to the weight of the class, so that all
          classes count equally. The total weight stays the same.

        Do not compare evidences under different class weights.
    standardize : bool, default=True
        Shift and scale inputs internally to mean 0 and standard deviation 1. ``False`` keeps the
        units of the user.
    sampler : str, default="auto"
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
        * ``"metropolis"``: a random walk (Metropolis et al. 1953).

        If precisions are fixed, the positions of the last four are the weights themselves.
    step_size : float, optional
        Step size, only used by the classic samplers (``"hmc"``, ``"langevin"``,
        ``"stochastic_dynamics"``, ``"metropolis"``). By default the warm-up adapts it to 80 %
        acceptance (random walk: 25 %).
    n_steps : int or tuple of (int, int), optional
        Leapfrog steps per transition of the classic samplers except the random walk. By default 20
        for ``"hmc"`` and 1 for the others. If there are several, the step size varies by up to
        20 %. With a pair ``(low, high)`` the number is drawn for each chain and transition, and the
        step size stays.
    persistence : float, optional
        Share of the momentum that a transition of the classic samplers keeps, from 0 to below 1. By
        default 0.95 for ``"stochastic_dynamics"`` and 0 for the others. A rejection reverses the
        momentum, so that the posterior is sampled exactly (Horowitz 1991).
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

        * ``"modes"``: on small data, at draws of populations of networks, which sequential Monte
          Carlo carries from the prior to the posterior. Each chain then consists of 16 short ones
          from different draws, one after the other, which share its transitions (Margossian et al.
          2024). On larger data each chain starts at its own minimum.
        * ``"prior"``: the chains start at draws from the prior.
        * A fitted `EvidenceMLPClassifier`: the first chains start at its minima (see
          `from_evidence`).
    evidence : bool, default=True
        Estimate ``log_evidence_``: by the populations from which chains start, or by separate ones,
        whose time ``False`` saves.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    max_time : float or None, default=None
        Seconds after which the fit stops, uses the best it has found, and warns. The warm-up
        ends after half of the time that is left when it begins, and the chains keep at least four
        draws. Results then depend on the speed of the machine.
    n_jobs : int, optional
        Number of parallel processes for the chains (joblib). The draws do not depend on it.
    verbose : int, default=0
        If positive, print some ten lines while sampling, with the time so far and about how much is
        left, or one for every process; what is chosen before is told as by the evidence estimators.
    warm_start : bool, default=False
        Continue the chains of the last fit if only ``n_draws`` was raised, or if they had ended
        before, at ``max_time`` or by Ctrl-C. The result equals that of one longer fit. After any
        other change the fit starts again.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    log_evidence_ : float
        Logarithm of the evidence in nats, by sequential Monte Carlo (Del Moral et al. 2006; Dau &
        Chopin 2022). ``nan`` with ``evidence=False``, and if R-hat exceeds 1.5.
    log_evidence_std_ : float
        Standard error of ``log_evidence_``, from independent populations.
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
    networks_ : sequence of ClassificationNetwork
        All sampled networks, chain by chain.
    posterior_ : list of DrawnPosterior
        One item: the sampled weights with their names, mean and covariance.
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
    >>> few = {"n_chains": 2, "n_draws": 200, "evidence": False}
    >>> model = HMCMLPClassifier((), random_state=1, **few).fit(X, y)
    >>> model.predict_proba(X[:1]).shape
    (1, 2)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSizes = (16,),
        *,
        activation: str = "tanh",
        fit_intercept: bool = True,
        prior: str | ArrayLike = "layer",
        weight_precision: str | ArrayLike | dict[Any, float] = "auto",
        hyperprior: dict[str, Any] | None = None,
        prior_mean: float | ArrayLike | None = None,
        prior_precision: float | ArrayLike | dict[str, Any] | None = None,
        class_weight: Any = None,
        standardize: bool = True,
        sampler: str = "auto",
        step_size: float | None = None,
        n_steps: Any = None,
        persistence: float | None = None,
        n_chains: int = 4,
        n_warmup: int = 150,
        n_draws: int = 500,
        thin: int | str = "auto",
        dtype: str = "float64",
        init: str | Estimator = "modes",
        evidence: bool = True,
        random_state: RandomState = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.fit_intercept = fit_intercept
        self.prior = prior
        self.weight_precision = weight_precision
        self.hyperprior = hyperprior
        self.prior_mean = prior_mean
        self.prior_precision = prior_precision
        self.class_weight = class_weight
        self.standardize = standardize
        self.sampler = sampler
        self.step_size = step_size
        self.n_steps = n_steps
        self.persistence = persistence
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

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn classes and classes of some rows, by their numbers."""
        p = class_probabilities(f)
        observed = (y[:, 0] if y.shape[1] == 1 else np.argmax(y, axis=1)).astype(int)
        of_class = np.take_along_axis(p, observed[None, :, None], axis=-1)[..., 0]
        below = np.cumsum(p[..., :-1], axis=-1)
        drawn = np.sum(rng.uniform(size=(*p.shape[:-1], 1)) > below, axis=-1)
        return {"y": np.log(np.maximum(of_class, TINY))}, {"y": drawn}, {"y": observed}
