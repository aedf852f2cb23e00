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
    hidden_layer_sizes : tuple of int, default=(16,)
        Units of each hidden layer; ``()`` is Bayesian linear regression.
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
    noise : {"constant", "shared"}, default="constant"
        One noise level per output, or one for all outputs, equal in units of y.
    standardize : bool, default=True
        Shift and scale inputs and targets to mean 0 and standard deviation 1 inside. ``False``
        keeps the user's units throughout.
    sampler : {"auto", "hmc", "langevin", "stochastic_dynamics"}, default="auto"
        ``"auto"``: Hamiltonian Monte Carlo that tunes its steps and metric while warming up,
        the output layer integrated out. Step sizes are the same for all chains. With hidden layers
        trajectories have at most as many steps as there are rows (at least 64, at most 512).
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
    thin : int, default=1
        Transitions per draw kept.
    dtype : {"float64", "float32"}, default="float64"
        In which drawn weights are stored.
    init : {"modes", "prior"} or fitted estimator, default="modes"
        Where chains start: each at a minimum of its own; at draws from the prior; or the first at
        the minima of a fitted `EvidenceMLPRegressor` (see `from_evidence`).
    evidence : bool, default=True
        Estimate ``log_evidence_`` as well, by a separate run. ``False`` saves its time.
    random_state : int, RandomState instance or None, default=None
        Seeds everything.
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
        Del Moral et al. 2006); ``nan`` with ``evidence=False``.
    log_evidence_std_ : float
        Its standard error, from independent populations.
    diagnostics_ : Diagnostics
        R-hat and effective sample sizes of the outputs and the precisions, acceptance, divergences.
    comparison_ : Comparison
        With a fitted estimator as ``init``: its predictions, noise and evidence beside those of the
        samples, and whether its Gaussian approximation is adequate.
    weight_precisions_ : ndarray of shape (n_groups,)
        Geometric posterior mean of ``alpha`` of every weight group (standardised units).
    weight_group_names_ : list of str
    noise_std_ : float or ndarray of shape (n_outputs,)
        Posterior mean of the noise standard deviation, in units of y.
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
    Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import HMCMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = HMCMLPRegressor((6,), evidence=False, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5)) < 3 * std[0])
    True
    """

    def __init__(
        self,
        hidden_layer_sizes=(16,),
        *,
        activation="tanh",
        prior="layer",
        weight_precision="auto",
        noise_std="auto",
        noise="constant",
        standardize=True,
        sampler="auto",
        step_size=None,
        n_steps=None,
        n_chains=4,
        n_warmup=150,
        n_draws=500,
        thin=1,
        dtype="float64",
        init="modes",
        evidence=True,
        random_state=None,
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
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    @property
    def noise_std_(self):
        """Posterior mean of the noise standard deviation, in units of y."""
        check_is_fitted(self)
        noise = np.mean(np.sqrt(self._noise_variances), axis=0) * self._y_scaling.scale
        return float(noise[0]) if self._y_is_1d else noise

    @property
    def _noise_variances(self):
        """Of every draw and output, standardised."""
        beta = self._sampled.draws.beta
        return 1.0 / self._likelihood.precisions(beta.reshape(-1, beta.shape[-1]))

    def _compare(self, fitted, X):
        return compare_regressors(fitted, self, X)

    def _mean_and_joint_covariance(self, X):
        """Moments over the draws, ``(n,)`` and ``(n, n)``, for every output."""
        f, _ = self._activations(X, need_covariance=False)
        mean = f.mean(axis=0)
        apart = np.moveaxis(f - mean, -1, 0)  # (n_outputs, m, n)
        covariance = np.swapaxes(apart, 1, 2) @ apart / len(f)
        covariance += self._noise_variances.mean(axis=0)[:, None, None] * np.eye(len(X))
        covariance = np.moveaxis(covariance, 0, -1) * self._y_scaling.scale**2
        if self._y_is_1d:
            covariance = covariance[..., 0]
        return self._shaped(self._y_scaling.inverse(mean)), covariance
