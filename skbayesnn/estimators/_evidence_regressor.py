"""Regression by a multilayer perceptron under MacKay's evidence framework."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skbayesnn._typing import Estimator, LayerSizes, RandomState
from skbayesnn.estimators._evidence import EvidenceMLP, learns_in_batches
from skbayesnn.estimators.inputs._settings import Noise, Prior, Solver
from skbayesnn.estimators.tasks._regression_fit import RegressionFit
from skbayesnn.predictive import noise_variances_of


class EvidenceMLPRegressor(RegressionFit, EvidenceMLP):
    """Bayesian neural network for regression that needs no validation set.

    The weights have Gaussian priors in groups. The precision of each group and the noise level are
    inferred from the training data by maximising the evidence (MacKay 1992). On small data networks
    are drawn from the posterior of the weights; on larger data a Gaussian around each minimum
    approximates it. Predictions have error bars, and ``log_evidence_`` compares this model with
    others of the same targets.

    Most fits need no more than the first six parameters:
    ``EvidenceMLPRegressor((8, 4), prior="ard", noise="student_t", activation="silu",
    random_state=0, max_time=60)``.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian linear regression. With ``"auto"`` on small
        data, networks are drawn from the posterior (``measure_evidence``): one layer of 16 units
        and no hidden layer predict together, with shares that maximise the leave-one-out predictive
        density (``candidates_``). On larger data ``"auto"`` chooses the layers by the evidence:

        * It tries no hidden layer, one layer of 2, 4, 8 and 16 units, and two layers of 4 units.
        * If two layers of 4 units are better than one, it widens two layers, otherwise one. The
          width is doubled while the evidence rises by more than 1 nat and ``n_samples *
          n_weights**2`` stays below 1e9.
        * No network has more weights than there are targets.
        * Each network is trained from two starts, with constant noise. If there is a narrower
          network of the same depth, one start is that network with random units added.

        From 5,000 rows on, networks are compared by the log density of held-out rows (a tenth of
        them, at most 5,000): no hidden layer, one layer of 4, 8 and 16 units, two layers of 16,
        doubled widths while the density rises by 0.01 nats per row, and a third layer. The smallest
        network within 0.01 nats per row of the best is chosen.
    prior : str, array-like of shape (n_weights,), estimator or Prior, default="layer"
        Which weights share a precision: ``"single"``, ``"layer"``, ``"ard"``, or labels of the
        weights; ``prior="ard"`` gives every input its own. A fitted `EvidenceMLPRegressor` makes
        its posterior the prior, as ``partial_fit`` does. Precisions, means and hyperpriors are
        those of a `Prior`: ``prior=Prior("ard", precision={"output": 1.0})``.
    noise : str, float, array-like, dict or Noise, default="auto"
        Noise model: ``"auto"``, ``"constant"``, ``"shared"``, ``"correlated"``,
        ``"input_dependent"`` or ``"student_t"``; for counts ``"poisson"`` or
        ``"negative_binomial"``. A number is a known standard deviation, in units of y:
        ``noise=0.1``. Its network and hyperprior are those of a `Noise`:
        ``noise=Noise("input_dependent", hidden_layer_sizes=(4,))``.
    activation : {"tanh", "logistic", "relu", "identity", "silu", "gelu"}, default="tanh"
        Activation function of the hidden units.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights.
    max_time : float or None, default=None
        Seconds after which the fit stops, uses the best it has found, and warns. A fit may overrun
        by 50 % (at least 1 s). Results then depend on the speed of the machine.
    fit_intercept : bool, default=True
        Whether outputs have intercepts. Use ``False`` if the data are centred, or X has a constant
        column. X and y are then scaled, but not shifted. Hidden units keep their biases;
        the last of ``intercepts_`` is 0.
    standardize : bool, default=True
        Shift and scale inputs and targets internally to mean 0 and standard deviation 1, gross
        outliers left out under Student-t noise. ``False`` keeps the units of the user.
    n_restarts : int, default=5
        Number of random starts of searches for minima.
    combine : str, default="posterior"
        How predictions are combined.

        * ``"posterior"``: networks drawn from the posterior, if there are any
          (``measure_evidence``). Otherwise as ``"tempered"``; where the size was chosen and short
          chains take seconds, their networks, stacked over noise models, have half of the weight.
        * ``"tempered"``: all minima, also those of the networks that ``hidden_layer_sizes="auto"``
          has tried (unless the noise is ``"input_dependent"`` or ``"student_t"``) and of the noise
          models that ``noise="auto"`` has tried. Their shares fall by a factor ``e`` for every 0.05
          nats in the mean of the log evidence and the leave-one-out log density per row (which
          counts at most as much as that of the minimum of highest evidence).
        * ``"best"``: the minimum of highest evidence.
        * ``"evidence"``: the minima of the chosen network and noise model, weighted by their
          evidence.
        * ``"equal"``: these minima with equal weights.
        * ``"stacking"``: these minima with the weights that maximise the leave-one-out
          predictive density.

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
    log_evidence_ : float
        Logarithm of the evidence of the network with ``hidden_layer_sizes_`` and ``noise_model_``,
        in nats, as a density over y in its own units (MacKay 1992, equations 2.27, 3.8, 3.15).
        Measured by sampling, or Laplace's approximation: ``logsumexp`` over the distinct minima.
        ``nan`` if not available.
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
        the linearised posterior). It is ``nan`` where the weight is zero.
    weight_precisions_ : ndarray of shape (n_groups,)
        ``alpha`` of every weight group (standardised units): geometric mean over drawn networks of
        highest evidence, or at the best minimum.
    weight_group_names_ : list of str
    noise_std_ : float or ndarray of shape (n_outputs,)
        Noise standard deviation, in units of y: median over drawn networks, or at the best minimum.
        For input-dependent noise: its geometric mean over the training rows; ``predict_std(X,
        kind="aleatoric")`` gives it for each row.
    noise_model_ : str
        Noise model: the ``kind`` of `Noise`; with ``"auto"`` the model of highest evidence, or the
        model that was chosen.
    noise_log_evidences_ : dict
        Log evidence of each noise model that was fitted; only with ``noise="auto"``.
    noise_correlation_ : ndarray of shape (n_outputs, n_outputs)
        Correlation of the noise between outputs, at the best minimum; with correlated noise.
    dispersion_ : float
        Dispersion of negative binomial counts: mean over drawn networks, or at the best minimum.
    degrees_of_freedom_ : float
        Degrees of freedom of Student-t noise: geometric mean over drawn networks, or at the best
        minimum.
    noise_coefs_, noise_intercepts_ : list of ndarray
        Weights of the network of input-dependent noise at the best minimum, from X to the logarithm
        of the noise precision (one over the variance) in units of y.
    n_effective_weights_ : float
        ``gamma``, the number of well-determined weights at the best minimum.
    feature_relevance_ : ndarray of shape (n_features,)
        Prior standard deviation of each input's weights (standardised units); with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the best minimum in the units of X and y. If networks were drawn, this attribute
        and all others of minima are computed on first use, under the model of highest evidence.
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
    networks_ : list of RegressionNetwork
        All distinct minima. With ``combine="posterior"`` or ``"tempered"``, minima of other
        networks and noise models that were tried come last.
    posterior_ : sequence of GaussianPosterior
        The Gaussian around each minimum: mean, Hessian, covariance, well-determined directions,
        draws.
    n_iter_ : int
        Largest number of training steps of any start.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology; "A practical Bayesian framework for backpropagation networks", Neural
    Computation 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(3,), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5)) < 3 * std[0])
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSizes = "auto",
        *,
        prior: str | ArrayLike | Estimator | Prior = "layer",
        noise: str | ArrayLike | dict[Any, float] | Noise = "auto",
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
        self.noise = noise
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
        sample_weight: ArrayLike | None = None,
        measurement_std: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Learn from one more batch: the posterior of the earlier ones is its prior.

        The first batch is fitted as by `fit`, and fixes the network and the scaling of X and y.
        After it the weights have the prior ``N(w_MP, A^-1)`` of the best minimum, with the
        precisions that were inferred, and no unit is pruned. For linear models
        (``hidden_layer_sizes=()``) with known precisions and noise and ``standardize=False`` the
        result is that of one fit of all rows (Bishop 2006, section 3.3.1). For networks, a Gaussian
        at one minimum replaces the earlier posterior. From the second batch on, an inferred noise
        level has a Gamma prior that counts like the earlier targets. If these have a known
        ``measurement_std``, the prior matches earlier batches in mode and curvature.

        A batch that determines nothing, such as one of equal targets, gives a warning, and is
        fitted again together with the next batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.
        measurement_std : float or array-like of shape (n_samples,), optional
            Known errors of the targets of this batch, as for `fit`.
        exposure : float or array-like of shape (n_samples,), optional
            Exposures of the counts of this batch, as for `fit`.

        Returns
        -------
        self : object
            The fitted estimator; ``log_evidence_`` is that of all batches.

        Raises
        ------
        ValueError
            If parameters or data make no sense, or do not fit those of earlier batches.
        """
        earlier = self._before_batch()
        return self._learn(
            X, y, sample_weight, measurement_std, exposure, earlier=earlier, batch={}
        )

    @property
    def noise_std_(self):
        """Noise standard deviation in units of y: median over draws, or at the best minimum."""
        check_is_fitted(self)
        if self._counts:
            raise AttributeError("noise_std_ does not exist for counts.")
        if self._predicts_by_draws:
            sd = np.sqrt(np.median(noise_variances_of(self._result.drawn[0]), axis=0))
            noise = self._as_levels(sd * self._y_scaling.scale)
        else:
            noise = self._noise_std_of(self._best)
        return float(noise[0]) if self._y_is_1d else noise

    @property
    def noise_coefs_(self):
        """Weights of the noise network in the units of X and y."""
        return self._noise_weights()[0]

    @property
    def noise_intercepts_(self):
        """Biases of the noise network in the units of X and y."""
        return self._noise_weights()[1]

    def _noise_weights(self):
        check_is_fitted(self)
        noise = self._best.noise
        if noise is None:
            raise AttributeError(
                "noise_coefs_ and noise_intercepts_ exist only with input-dependent noise."
            )
        units = self._noise_units(noise.network)
        return units.split(units.weights(noise.theta))

    @property
    def noise_correlation_(self):
        """Correlation of correlated noise between outputs, at the best minimum."""
        check_is_fitted(self)
        if self.noise_model_ != "correlated":
            raise AttributeError("noise_correlation_ exists only with noise='correlated'.")
        return self._best.likelihood.correlation.copy()

    @property
    def degrees_of_freedom_(self):
        """Degrees of freedom of Student-t noise: mean over draws, or at the best minimum."""
        check_is_fitted(self)
        if self.noise_model_ != "student_t":
            raise AttributeError("degrees_of_freedom_ exists only with Student-t noise.")
        if self._predicts_by_draws:
            return float(np.exp(np.mean(np.log(self._result.drawn[0].state))))
        return self._best.likelihood.degrees_of_freedom

    @property
    def dispersion_(self):
        """Dispersion ``a`` of negative binomial counts: mean over draws, or at the best minimum."""
        check_is_fitted(self)
        if self.noise_model_ != "negative_binomial":
            raise AttributeError("dispersion_ exists only with noise='negative_binomial'.")
        if self._predicts_by_draws:
            return float(np.mean(1.0 / self._result.drawn[0].beta))
        return float(1.0 / self._best.hyper.beta[0])

    def _noise_std_of(self, minimum):
        likelihood = minimum.likelihood
        if self._counts:
            return None
        variance = likelihood.variance_factor / likelihood.precisions(minimum.hyper.beta)
        return self._as_levels(self._y_scaling.scale * np.sqrt(variance))

    def _drawn_facts(self):
        n_drawn, noise_std, degrees = super()._drawn_facts()
        if not self._counts:
            noise_std = np.atleast_1d(self.noise_std_)
        if self.noise_model_ == "student_t":
            degrees = self.degrees_of_freedom_
        return n_drawn, noise_std, degrees
