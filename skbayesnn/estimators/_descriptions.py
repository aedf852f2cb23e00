"""Descriptions of the parameters and attributes that several of the four estimators share."""

ESTIMATORS = """All estimators.

Parameters
----------
prior : str, array-like of shape (n_weights,), estimator or Prior, default="auto"
    Groups of weights that share a precision: ``"single"``, ``"layer"``, ``"ard"``, or labels of the
    weights; ``prior="ard"`` gives every input its own precision, and ``"auto"`` is ``"layer"``, or,
    with many rows, ``"ard"`` if that predicts held-out rows better. A fitted evidence estimator of
    this task makes its posterior the prior, as its ``partial_fit`` does. A `Prior` also sets
    precisions, means and hyperpriors: ``prior=Prior("ard", precision={"output": 1.0})``.
noise : str, float, array-like, dict or Noise, default="auto"
    Noise model: ``"auto"``, ``"constant"``, ``"shared"``, ``"correlated"``, ``"input_dependent"``
    or ``"student_t"``; for counts ``"poisson"`` or ``"negative_binomial"``. A number is a known
    standard deviation, in units of y: ``noise=0.1``. A `Noise` also sets the network and
    the hyperprior: ``noise=Noise("input_dependent", hidden_layer_sizes=(4,))``.
class_weight : None, "balanced" or dict, default=None
    Factors of the weights of rows, by class: a dict (1 for classes that it does not name), or
    ``"balanced"``: inversely proportional to the weight of the class, so that all classes count
    equally and the total weight does not change. Probabilities are then those of data with these
    weights. Do not compare evidences under different factors.
activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
    Activation function of the hidden units: ``activation="relu"``.
random_state : int, RandomState instance or None, default=None
    Seed of all random numbers. With an integer, as ``random_state=0``, every fit of the same data
    on the same machine gives the same result. On other processors, whose arithmetic rounds
    differently, results agree as well as those of different seeds do.
max_time : float or None, default=None
    Seconds after which the fit stops, uses the best it has found, and warns: ``max_time=60``. It
    may overrun by 50 % (at least 1 s). Results then depend on the speed of the machine.
fit_intercept : bool, default=True
    Whether outputs have intercepts. Use ``False`` if the data are centred, or X has a constant
    column. X, and y of regressors, are then scaled, but not shifted. Hidden units keep their
    biases; the last of ``intercepts_`` is 0.
standardize : bool, default=True
    Shift and scale inputs, and targets of regressors, internally to mean 0 and standard deviation
    1 (gross outliers left out under Student-t noise). ``False`` keeps the units of the user.

Attributes
----------
weight_group_names_ : list of str
    Names of the groups of weights that share a precision.
weight_precisions_ : ndarray of shape (n_groups,)
    ``alpha`` of every weight group (standardised units): geometric mean over drawn networks (of
    highest evidence), or at the best minimum.
input_prior_std_ : ndarray of shape (n_features,)
    Prior standard deviation of each input's weights (standardised units), of samplers its posterior
    mean; with ``prior="ard"``, or if ``"auto"`` has chosen that. Unused inputs have about 0.001.
    It does not rank the others, as it is large for curved, not for large effects: rank by
    `skbayesnn.metrics.sobol_indices`.
hidden_layer_sizes_ : tuple of int
    Units of each hidden layer, as given or chosen; the minima may have fewer after pruning.
n_outputs_ : int
    Number of outputs; for classifiers of activations: 1 for two classes, else one per class.
n_features_in_ : int
    Number of inputs.
feature_names_in_ : ndarray of str
    Names of the inputs, if X is a data frame.
"""

REGRESSORS = """Regressors.

Attributes
----------
noise_std_ : float or ndarray of shape (n_outputs,)
    Noise standard deviation, in units of y: typical of drawn networks (evidence estimators: the
    median, samplers: the mean), or at the best minimum. For input-dependent noise: its geometric
    mean over the training rows; ``predict_std(X, kind="aleatoric")`` gives it for each row.
noise_model_ : str
    The ``kind`` of `Noise`; with ``"auto"`` the law that chains draw from, the model of highest
    evidence, or the chosen model.
noise_log_evidences_ : dict
    Log evidence of each noise model that was fitted (samplers: of a Gaussian approximation); only
    with ``noise="auto"``.
dispersion_ : float
    Dispersion of negative binomial counts: mean over drawn networks, or at the best minimum.
degrees_of_freedom_ : float
    Degrees of freedom of Student-t noise: geometric mean of drawn networks, or of the best minimum.
"""

EVIDENCE = """Evidence estimators.

Parameters
----------
hidden_layer_sizes : tuple of int or "auto", default="auto"
    Units of each hidden layer, as in ``hidden_layer_sizes=(16, 8)``; ``()`` is a Bayesian linear
    (classifiers: logistic) regression. ``"auto"`` takes one or two layers of at most 16 units, by
    the number of targets, and with many rows those that predict held-out rows best. The user guide
    lists the sizes of every ``method``, and ``candidates_`` those that predict or were tried.
n_restarts : int, default=5
    Number of random starts of searches for minima.
combine : str, default="posterior"
    How predictions are combined; all but ``"posterior"`` use the Gaussian around each minimum.

    * ``"posterior"``: networks drawn from the posterior, if there are any, else ``"tempered"``.
    * ``"tempered"``: all minima; with many rows also those of the second-best network. Their
      shares fall slowly with the log evidence and the leave-one-out log density per row.
    * ``"best"``: the minimum of highest evidence.
    * ``"evidence"``: the minima of the chosen network and noise model, weighted by their evidence.
    * ``"equal"``: these minima with equal weights.
    * ``"stacking"``: these minima with the weights that maximise the leave-one-out predictive
      density (for classifiers see ``leave_one_out_log_density_``).
method : str, default="auto"
    How the posterior of the weights is represented; the one used is ``method_``.

    * ``"population"``: networks drawn by sequential Monte Carlo, which also measures the evidence.
    * ``"chains"``: networks drawn by independent chains of Hamiltonian Monte Carlo, with equal
      weights; more chains are drawn until ``monte_carlo_error_`` is small.
    * ``"laplace"``: a Gaussian around each minimum of the training (MacKay 1992). With
      ``combine="best"`` and a ``prior`` this is the estimator of the text.
    * ``"early_stopping"``: networks whose training ends where held-out rows are predicted best.
    * ``"auto"``: populations of few rows, mostly up to 150; chains up to some 5,000; early stopping
      beyond; and Laplace's approximation where none of these is possible. Fits with a given
      ``solver`` or another ``combine`` use no chains. Drawn networks need a prior of mean zero.
solver : str or Solver, default="auto"
    Curvature at a minimum: ``"auto"``, ``"exact"`` or ``"gauss_newton"``. A `Solver` also sets
    the limits of the training: ``solver=Solver(max_iter=1000)``.
n_jobs : int, optional
    Number of parallel processes for the starts (joblib).
verbose : int, default=0
    1: print a line per network, start and noise model that is tried, with its log evidence, the
    time so far, and about how much is left. 2: the starts of every network that is tried, too, with
    method and memory. 0: a fit that will take more than 10 s logs one line with an estimate (logger
    ``"skbayesnn"``, level ``WARNING``).
warm_start : bool, default=False
    Start from the minima of the previous fit, and from random starts up to ``n_restarts``. If
    networks are drawn from the posterior, they are drawn anew.

Attributes
----------
log_evidence_ : float
    Logarithm of the evidence (marginal likelihood) of the network with ``hidden_layer_sizes_``, for
    regressors with ``noise_model_`` and as a density over y in its own units, in nats (MacKay 1992,
    equations 2.27, 3.8, 3.15). Measured by a population, or Laplace's approximation: ``logsumexp``
    over the distinct minima; ``nan`` if not available. After chains the first use searches for
    minima, which are often no isolated ones, and have no evidence: compare models by
    ``method="laplace"`` then.
method_ : str
    The ``method`` that was used.
monte_carlo_error_ : float
    After chains, else ``nan``: root mean square difference of predictive means that another
    ``random_state`` would bring, in predictive standard deviations.
batch_log_evidences_ : tuple of float
    After `partial_fit`: the log evidence of every batch, given the earlier ones. ``log_evidence_``
    is their sum. Batches that were fitted together count as one.
log_evidence_std_ : float
    Standard error of ``log_evidence_``, in nats; ``nan`` if it was not measured, or if
    populations have missed a narrow mode. ``log_evidence_`` is then Laplace's approximation.
evidence_report_ : EvidenceReport
    Predictions of left-out rows, noise, method, networks and evidence; print it.
leave_one_out_log_density_ : ndarray of shape (n_samples,)
    Log predictive density of every training row if one unit of its weight is left out: by
    importance weights of drawn networks, or in closed form (Rasmussen & Williams 2006, 5.12, in the
    linearised posterior); ``nan`` where the weight is zero. For classifiers with many weights the
    closed form is far too high. For a row with class probabilities it is the mean over the classes.
n_effective_weights_ : float
    ``gamma``, the number of well-determined weights at the best minimum.
coefs_, intercepts_ : list of ndarray
    Weights of the best minimum in the units of X and y. If networks were drawn, this attribute and
    all others of minima are computed on first use, within ``max_time``: they do not predict.
coefs_std_, intercepts_std_ : list of ndarray
    Posterior standard deviations of these weights.
candidates_ : tuple of Candidate
    Models of ``hidden_layer_sizes="auto"`` that predict together, if networks are drawn from the
    posterior, or whose held-out rows were compared: ``hidden_layer_sizes``, ``noise``,
    ``n_weights``, ``share`` in the predictions, and the measured ``log_evidence`` (nats) or the
    ``held_out_log_density`` (nats per row).
networks_ : list of FittedNetwork
    All distinct minima. With ``combine="posterior"`` or ``"tempered"``, minima of other networks
    and noise models that were tried come last.
posterior_ : sequence of GaussianPosterior
    The Gaussian around each minimum: mean, Hessian, covariance, eigenvalues, draws.
n_iter_ : int
    Largest number of training steps of any start.

Returns
-------
self : object
    The fitted estimator; after `partial_fit` its ``log_evidence_`` is that of all batches.
"""

SAMPLERS = """Sampling estimators.

Parameters
----------
hidden_layer_sizes : tuple of int or "auto", default="auto", of classifiers (16,)
    Units of each hidden layer: ``(16, 8)``; ``()`` is Bayesian linear or logistic regression.
    ``"auto"`` takes those of the estimator given as ``init`` of the `Sampler`. Without one they
    are those of evidence estimators with ``method="population"``, if that takes seconds, else
    with ``"chains"``. With ``warm_start`` those of the last fit are kept.
n_chains : int, default=4
    Number of chains. They advance together, each with its own random numbers.
n_warmup : int, default=150
    Transitions in which the chains tune themselves. They are not kept.
n_draws : int, default=500
    Draws kept of every chain.
measure_evidence : bool, default=True
    Estimate ``log_evidence_``: by the populations from which chains start, or by separate ones,
    whose time ``False`` saves.
sampler : str or Sampler, default="auto"
    Method: ``"auto"``, ``"hmc"``, ``"langevin"``, ``"stochastic_dynamics"`` or ``"metropolis"``.
    Its steps, where chains start and which draws are kept are parameters of a `Sampler`:
    ``sampler=Sampler("hmc", n_steps=30, init="prior")``.
n_jobs : int, optional
    Number of parallel processes for the chains (joblib). The draws do not depend on it.
verbose : int, default=0
    If positive, print some ten lines while sampling, with the time so far and about how much is
    left, or one for every process. Networks and noise models that are tried before are reported as
    by the evidence estimators.
warm_start : bool, default=False
    Continue the chains of the last fit if only ``n_draws`` was raised, or if they had ended before,
    at ``max_time`` or by Ctrl-C. The result equals that of one longer fit. After any other change
    the fit starts again.

Attributes
----------
log_evidence_ : float
    Logarithm of the evidence in nats, for regressors as a density over y in its own units, by
    sequential Monte Carlo (Del Moral et al. 2006; Dau & Chopin 2022). ``nan`` with
    ``measure_evidence=False``, and if R-hat exceeds 1.5.
log_evidence_std_ : float
    Standard error of ``log_evidence_``, from the genealogy of the population.
candidates_ : tuple of Candidate
    Networks of ``hidden_layer_sizes="auto"`` that were tried, as in evidence estimators.
diagnostics_ : Diagnostics
    R-hat and effective sample sizes of the outputs and the precisions, acceptance, divergences.
comparison_ : Comparison
    Predictions, noise and evidence of a fitted estimator given as ``init`` of the `Sampler`,
    compared with those of the samples at training rows, between them, and in a margin around their
    range, with a verdict. `from_evidence` sets ``init``; without it there is no ``comparison_``. If
    both were fitted to different data, evidences are not compared, and the fit warns.
coefs_, intercepts_ : list of ndarray
    Weights of the draw of highest density in the units of X and y.
networks_ : sequence of FittedNetwork
    All sampled networks, chain by chain. ``to_inference_data`` has the weights with their names.
n_iter_ : int
    Transitions of each chain.

References
----------
R. M. Neal (1992), "Bayesian learning via stochastic dynamics", Advances in Neural Information
Processing Systems 5; (1996), Bayesian Learning for Neural Networks, Springer.
"""
