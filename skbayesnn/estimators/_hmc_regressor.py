"""Regression by networks drawn from their posterior with Hamiltonian Monte Carlo."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators._comparison import compare_regressors
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators._regression import Regression


class HMCMLPRegressor(Regression, HMCMLP):
    """Regression that averages over networks drawn from the posterior.

    Weights, prior precisions and noise levels are all sampled, by Hamiltonian Monte Carlo (Neal
    1992, 1996): the reference for the Gaussian approximation of `EvidenceMLPRegressor`. The linear
    output layer is integrated out while sampling and drawn exactly afterwards.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian linear regression. ``"auto"``: those of
        the estimator given as ``init``, else chosen by the evidence of Gaussian approximations as
        in `EvidenceMLPRegressor`, under constant noise; the first chains start at the minima found
        meanwhile. With ``warm_start`` the choice of the last fit stays.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Non-linearity of the hidden units.
    prior : {"single", "layer", "ard"} or array-like of shape (n_weights,), default="layer"
        Which weights share a precision, as in `EvidenceMLPRegressor`.
    weight_precision : "auto", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): all, one per group, or those of the
        named groups. Free ones are sampled; their standard deviations are log-uniform a priori.
    noise_std : "auto", float, array-like or dict, default="auto"
        Fixes the noise standard deviation (units of y): for all outputs, one per output, or by the
        number of the output.
    noise : {"auto", "constant", "shared", "input_dependent", "student_t"}, default="auto"
        ``"constant"``, ``"shared"``: Gaussian noise with one level per output, or with one for all
        outputs, equal in units of y.
        ``"input_dependent"``: the level is a function of the inputs, whose logarithm is the output
        of a second network; its weights are sampled with those of the first.
        ``"student_t"``: Student-t noise, for data with outliers, of 2.5, 5, 10, 20 or 40 degrees of
        freedom, which are sampled; a row is an outlier in all its outputs (Lange, Little & Taylor
        1989; Geweke 1993). ``"auto"``: that of the estimator given as ``init``, else chosen before
        sampling as `EvidenceMLPRegressor` does. With ``warm_start`` the choice of the last fit
        stays.
    noise_hidden_layer_sizes : tuple of int, default=(8,)
        Units of each hidden layer of the noise network; ``()`` makes the logarithm of the noise
        level linear in the inputs. Its activation and kind of prior are those of the first network.
    standardize : bool, default=True
        Shift and scale inputs and targets to mean 0 and standard deviation 1 inside. ``False``
        keeps the user's units throughout.
    sampler : {"auto", "hmc", "langevin", "stochastic_dynamics"}, default="auto"
        ``"auto"``: Hamiltonian Monte Carlo that tunes its steps and metric while warming up,
        the output layer integrated out. Step sizes are the same for all chains. With hidden layers
        trajectories have at most 64 steps, or up to 256 with 64 to 1024 rows: the number of rows
        or 65,536 divided by it, whichever is less.
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
        the minima of a fitted `EvidenceMLPRegressor` (see `from_evidence`).
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
    log_evidence_ : float
        Logarithm of the evidence in nats, as a density over y in its own
        units, by sequential Monte Carlo (Neal 2001;
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
        Those of a noise network come last.
    noise_std_ : float or ndarray of shape (n_outputs,)
        Posterior mean of the noise standard deviation, in units of y. If it depends on the inputs:
        of its geometric mean over the training rows; ``predict_std(X, kind="aleatoric")`` tells it
        for each row.
    noise_ : str
        The noise model: ``noise``, or what ``"auto"`` has chosen.
    noise_log_evidences_ : dict
        Log evidence of Gaussian approximations under each noise model that was fitted to choose
        one; with ``noise="auto"``.
    degrees_of_freedom_ : float
        Geometric posterior mean of those of Student-t noise.
    feature_relevance_ : ndarray of shape (n_features,)
        Posterior mean of the prior standard deviation of each input's weights (standardised units);
        with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the draw of highest density in the units of X and y.
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
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer. J. Geweke (1993),
    "Bayesian treatment of the independent Student-t linear model", Journal of Applied Econometrics
    8. K. L. Lange, R. J. A. Little & J. M. G. Taylor (1989), "Robust statistical modeling using the
    t distribution", Journal of the American Statistical Association 84.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import HMCMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (40, 1))
    >>> y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(40)
    >>> few = {"n_chains": 2, "n_warmup": 50, "n_draws": 100, "evidence": False}
    >>> model = HMCMLPRegressor((1,), random_state=0, **few).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.tanh(0.5)) < 3 * std[0])
    True
    """

    def __init__(
        self,
        hidden_layer_sizes="auto",
        *,
        activation="tanh",
        prior="layer",
        weight_precision="auto",
        noise_std="auto",
        noise="auto",
        noise_hidden_layer_sizes=(8,),
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
        self.noise_std = noise_std
        self.noise = noise
        self.noise_hidden_layer_sizes = noise_hidden_layer_sizes
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

    def _keep(self, result, rows):
        self._keep_noise(result)
        super()._keep(result, rows)

    @property
    def noise_std_(self):
        """Posterior mean of the noise standard deviation, in units of y."""
        check_is_fitted(self)
        variances = self._ensemble.typical_noise_variances
        noise = np.mean(np.sqrt(variances), axis=0) * self._y_scaling.scale
        return float(noise[0]) if self._y_is_1d else noise

    @property
    def degrees_of_freedom_(self):
        """Geometric posterior mean of the degrees of freedom of Student-t noise."""
        check_is_fitted(self)
        if self.noise_ != "student_t":
            raise AttributeError("degrees_of_freedom_ exists only with Student-t noise.")
        return float(np.exp(np.mean(np.log(self._result.draws.noise))))

    def _is_same_model(self, fitted):
        return fitted.noise_ == self.noise_

    def _compare(self, fitted, X):
        return compare_regressors(fitted, self, X)

    def _noise_to_inference_data(self):
        draws = self._result.draws
        named = {"noise_sd": draws.beta**-0.5}
        if self.noise_ == "student_t":
            nu = named["degrees_of_freedom"] = draws.noise[..., 0]
            named["noise_sd"] *= np.sqrt(nu / (nu - 2.0))[..., None]
        elif self.noise_ == "input_dependent":
            named["noise_weights"] = draws.noise
        return named
