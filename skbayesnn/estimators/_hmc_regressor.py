"""Regression by networks drawn from their posterior with Hamiltonian Monte Carlo."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._hmc import HMCMLP
from skbayesnn.estimators.reports._comparison import compare_regressors
from skbayesnn.estimators.reports._inference_data import by_chain
from skbayesnn.estimators.tasks._regression_fit import RegressionFit


class HMCMLPRegressor(RegressionFit, HMCMLP):
    """Regression that averages over networks drawn from the posterior.

    Weights, prior precisions and noise levels are sampled by Hamiltonian Monte Carlo (Neal 1992,
    1996). Use it to check the Gaussian approximation of `EvidenceMLPRegressor`. The linear output
    layer is integrated out during sampling and drawn exactly afterwards.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian linear regression. ``"auto"`` takes those
        of the estimator given as ``init``. Without one it chooses them as `EvidenceMLPRegressor`
        does. With ``warm_start`` the choice of the last fit is kept.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    fit_intercept : bool, default=True
        Whether outputs have intercepts. ``False``: data are expected to be centred, or X to have a
        constant column. X and y are then scaled, but not shifted. Hidden units keep their biases;
        the last of ``intercepts_`` is 0.
    prior : str, array-like of shape (n_weights,) or estimator, default="layer"
        Which weights share a precision, as in `EvidenceMLPRegressor`. If it is a fitted
        `EvidenceMLPRegressor`, its posterior is the prior.
    weight_precision : "auto", "inferred", float, array-like or dict, default="auto"
        Fixes prior precisions ``alpha`` (standardised units): one number for all groups, one per
        group, or a dict by group name. Others are sampled; ``hyperprior`` is their prior. For
        groups with ``prior_precision``, and with an estimator as ``prior``, it is a factor of that
        precision: ``"auto"`` is 1, and ``"inferred"`` samples it.
    hyperprior : dict, default=None
        Priors of the precisions that are sampled: from names of weight groups, and ``"noise"`` for
        the noise, to `~skbayesnn.posterior.LogUniform` (bounds of a standard deviation) or
        `~skbayesnn.posterior.Gamma` (of a precision). ``"noise"`` takes one for all outputs, or a
        list of one per output. Groups you do not name keep the default, ``LogUniform(1e-3, 1e3)``.
        All values are in standardised units: those of the noise are fractions of the standard
        deviation of ``y`` (``"shared"`` noise: of the geometric mean over outputs), and those of
        Student-t noise belong to its scale. Neal's (1992) likelihood
        ``(s0 + sum |t - f|^2)^(-(m0 + N)/2)`` has ``Gamma(m0/2, s0/2)`` on the noise precision.
        With Gamma priors of the noise, ``noise="auto"`` is ``"constant"``.
    prior_mean : float or array-like of shape (n_weights,), default=None
        Prior means of the weights in the units of X and y, as in `EvidenceMLPRegressor`. With it or
        with ``prior_precision`` the output layer is sampled with the other weights, and the
        evidence run begins at the prior alone.
    prior_precision : float, array-like of shape (n_weights,) or (n_weights, n_weights), or dict, \
            default=None
        Inverse prior covariance of the weights in the units of X and y, or its diagonal, as in
        `EvidenceMLPRegressor`.
    noise_std : "auto", float, array-like or dict, default="auto"
        Fixes the noise standard deviation (units of y): one number for all outputs, one per output,
        or a dict by the number of the output. ``"auto"`` samples it.
        ``measurement_std`` of ``fit`` adds to it; with that it may be 0.
    noise : {"auto", "constant", "shared", "correlated", "input_dependent", "student_t"}, \
default="auto"
        Noise model.

        * ``"constant"``: Gaussian, one level per output.
        * ``"shared"``: Gaussian, one level for all outputs, equal in units of y.
        * ``"correlated"``: Gaussian, with a covariance matrix between several outputs. A priori all
          correlation matrices are equally probable.
        * ``"input_dependent"``: Gaussian; the logarithm of the level is the output of a second
          network, whose weights are sampled with those of the first.
        * ``"student_t"``: Student-t noise, for data with outliers. The degrees of freedom (2.5, 5,
          10, 20 or 40; 1, too, where gross outliers are found) are sampled. A row is an outlier in
          all its outputs (Lange, Little & Taylor 1989; Geweke 1993).
        * ``"auto"``: the noise model of the estimator given as ``init``. Without one the fit
          chooses it before sampling, as `EvidenceMLPRegressor` does. With ``warm_start`` the fit
          keeps the choice of the last fit.
    noise_hidden_layer_sizes : tuple of int, default=(8,)
        Units of each hidden layer of the noise network. With ``()`` the logarithm of the noise
        level is linear in the inputs. The noise network has the activation and kind of prior of the
        first network.
    standardize : bool, default=True
        Shift and scale inputs and targets internally to mean 0 and standard deviation 1. ``False``
        keeps the units of the user.
    sampler : str, default="auto"
        * ``"auto"``: Hamiltonian Monte Carlo that tunes its step size and metric during warm-up,
          with the output layer integrated out. All chains have the same step size. With hidden
          layers, trajectories have at most 64 steps; with 64 to 1024 rows at most 256 steps: the
          number of rows, or 65,536 divided by it, whichever is less.
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
        Transitions per draw that is kept. ``"auto"``: with ``sampler="auto"`` and noise that is not
        constant up to 4 for networks with hidden units, if rows and weights are few enough for this
        to take only seconds; otherwise 1. Under constant noise transitions are longer instead.
    dtype : {"float64", "float32"}, default="float64"
        Type in which drawn weights are stored.
    init : {"modes", "prior"} or fitted estimator, default="modes"
        Where the chains start.

        * ``"modes"``: on small data, at draws of populations of networks, which sequential Monte
          Carlo carries from the prior to the posterior. Each chain then consists of 16 short ones
          from different draws, one after the other, which share its transitions (Margossian et al.
          2024). On larger data each chain starts at its own minimum.
        * ``"prior"``: the chains start at draws from the prior.
        * A fitted `EvidenceMLPRegressor`: the first chains start at its minima (see
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
    log_evidence_ : float
        Logarithm of the evidence in nats, as a density over y in its own units, by sequential Monte
        Carlo (Del Moral et al. 2006; Dau & Chopin 2022). ``nan`` with ``evidence=False``, and if
        R-hat exceeds 1.5.
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
        Groups of a noise network come last, or ``"noise_correlation"``, the standard normal
        coordinates of correlations, whose precision is 1.
    noise_std_ : float or ndarray of shape (n_outputs,)
        Posterior mean of the noise standard deviation, in units of y. For input-dependent noise: of
        its geometric mean over the training rows; ``predict_std(X, kind="aleatoric")`` gives it for
        each row.
    noise_ : str
        The noise model: ``noise``, or what ``"auto"`` has chosen.
    noise_log_evidences_ : dict
        Log evidence of a Gaussian approximation for each noise model that was fitted; only with
        ``noise="auto"``.
    noise_correlation_ : ndarray of shape (n_outputs, n_outputs)
        With correlated noise: posterior mean of its correlation between outputs.
    degrees_of_freedom_ : float
        Geometric posterior mean of the degrees of freedom of Student-t noise.
    feature_relevance_ : ndarray of shape (n_features,)
        Posterior mean of the prior standard deviation of each input's weights (standardised units);
        with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the draw of highest density in the units of X and y.
    networks_ : sequence of RegressionNetwork
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
        hidden_layer_sizes: LayerSizes = "auto",
        *,
        activation: str = "tanh",
        fit_intercept: bool = True,
        prior: str | ArrayLike = "layer",
        weight_precision: str | ArrayLike | dict[Any, float] = "auto",
        hyperprior: dict[str, Any] | None = None,
        prior_mean: float | ArrayLike | None = None,
        prior_precision: float | ArrayLike | dict[str, Any] | None = None,
        noise_std: str | ArrayLike | dict[Any, float] = "auto",
        noise: str = "auto",
        noise_hidden_layer_sizes: LayerSizes = (8,),
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
        self.noise_std = noise_std
        self.noise = noise
        self.noise_hidden_layer_sizes = noise_hidden_layer_sizes
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

    def _pose(self, rows, hidden_layer_sizes, earlier=None):
        problem = super()._pose(rows, hidden_layer_sizes, earlier)
        if self.noise == "correlated" and not isinstance(self.prior, str):
            posterior = problem.posed(hidden_layer_sizes).posterior
            last = posterior.network.layers(posterior.groups.labels)[-1]
            if np.any(last != last[:, :1]):
                raise ValueError(
                    "noise='correlated' can be sampled only if the weights from a unit to all "
                    "outputs are in one group; prior has several. Use EvidenceMLPRegressor, or "
                    "another prior."
                )
        return problem

    def _keep(self, result, rows):
        self._keep_noise(result)
        super()._keep(result, rows)

    @property
    def noise_std_(self):
        """Posterior mean of the noise standard deviation, in units of y."""
        check_is_fitted(self)
        variances = self._ensemble.typical_noise_variances
        noise = self._as_levels(np.mean(np.sqrt(variances), axis=0) * self._y_scaling.scale)
        return float(noise[0]) if self._y_is_1d else noise

    @property
    def noise_correlation_(self):
        """Correlation of correlated noise between outputs, posterior mean."""
        check_is_fitted(self)
        if self.noise_ != "correlated":
            raise AttributeError("noise_correlation_ exists only with noise='correlated'.")
        return np.mean(self._draws.noise.correlation, axis=0)

    @property
    def degrees_of_freedom_(self):
        """Geometric posterior mean of the degrees of freedom of Student-t noise."""
        check_is_fitted(self)
        if self.noise_ != "student_t":
            raise AttributeError("degrees_of_freedom_ exists only with Student-t noise.")
        return float(np.exp(np.mean(np.log(self._result.draws.noise))))

    def _is_same_model(self, fitted):
        return (fitted.noise_, fitted._result.noise) == (self.noise_, self._result.noise)

    def _compare(self, fitted, X):
        return compare_regressors(fitted, self, X)

    def _target_names(self, n_outputs):
        return ["y"] if n_outputs == 1 else [f"y{i}" for i in range(n_outputs)]

    def _noise_to_inference_data(self):
        draws, shape = self._result.draws, self._result.draws.energy.shape
        sds = np.sqrt(self._ensemble.typical_noise_variances) * self._y_scaling.scale
        named = {"noise_sd": by_chain(sds, shape)}
        if self.noise_ == "student_t":
            named["degrees_of_freedom"] = draws.noise[..., 0]
        elif self.noise_ == "input_dependent":
            named["noise_weights"] = draws.noise
        elif self.noise_ == "correlated":
            named["noise_correlation"] = draws.noise
        return named

    def _rows_to_inference_data(self, f, X, y, rng):
        """Log likelihood, drawn targets and targets of some rows; all in units of y."""
        noise, scaling, names = self._draws.noise, self._y_scaling, self._target_names(y.shape[1])
        log_likelihood = noise.log_density(y - f, None, X) - np.sum(np.log(scaling.scale))
        drawn = np.moveaxis(scaling.inverse(f + noise.draw(X, f.shape, rng)), -1, 0)
        return (
            {"y": log_likelihood},
            dict(zip(names, drawn, strict=True)),
            dict(zip(names, scaling.inverse(y).T, strict=True)),
        )
