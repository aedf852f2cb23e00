"""Regression by a multilayer perceptron under MacKay's evidence framework."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators._evidence import EvidenceMLP
from skbayesnn.estimators._regression import Regression


class EvidenceMLPRegressor(Regression, EvidenceMLP):
    """Bayesian neural network for regression that needs no validation set.

    The weights have Gaussian priors in groups. The precision of every group and the noise level are
    inferred from the training data by maximising the evidence (MacKay 1992); the posterior of the
    weights is approximated by a Gaussian around each minimum found. Predictions carry error bars,
    and ``log_evidence_`` compares this model with any other.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default="auto"
        Units of each hidden layer; ``()`` is Bayesian linear regression. ``"auto"``: no hidden
        layer, one of 2, 4, 8 and 16 units, and two of 4 are tried; then, if two of 4 are better
        than one, two layers, else one layer of doubled width as long as the evidence rises by more
        than 1 nat and ``n_samples * n_weights**2`` stays below 1e9. No network has more weights
        than there are targets. Networks are compared from two starts, all under constant noise; one
        start is, if there is one, the narrower network of that depth with random units added.
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
    noise_std : "auto", float, array-like or dict, default="auto"
        Fixes the noise standard deviation (units of y): for all outputs, one per output, or by the
        number of the output.
    noise : {"auto", "constant", "shared", "input_dependent", "student_t"}, default="auto"
        ``"constant"``, ``"shared"``: Gaussian noise with one level per output, or with one for all
        outputs, equal in units of y.
        ``"input_dependent"``: the level is a function of the inputs, whose logarithm a second
        network learns (MacKay 1992, chapter 6). ``"student_t"``: Student-t noise, for data with
        outliers; its degrees of freedom are chosen by evidence from 2.5 to 40, and a row is an
        outlier in all its outputs (Lange, Little & Taylor 1989). ``"auto"``: constant, unless
        ``noise_std`` is given or a test of the residuals (p < 0.01, see `EvidenceReport`) speaks
        for input-dependent or Student-t noise. Then that is fitted, too, and the noise model of
        highest evidence is chosen; with ``combine="tempered"`` minima under the others predict
        with it. From 5,000 rows on, with hidden layers to be chosen or without evidence, that under
        which rows held out have the highest log density.
    noise_hidden_layer_sizes : tuple of int, default=(8,)
        Units of each hidden layer of the noise network; ``()`` makes the logarithm of the noise
        level linear in the inputs. Its activation and kind of prior are those of the first network.
    standardize : bool, default=True
        Shift and scale inputs and targets to mean 0 and standard deviation 1 inside. ``False``
        keeps the user's units throughout.
    n_restarts : int, default=5
        Random starts.
    combine : str, default="posterior"
        What predicts. ``"posterior"``: networks drawn from the posterior, which measuring the
        evidence leaves (see ``measure_evidence``), units that are pruned at the minima and all
        precisions included; where it was not measured to within 1 nat, as ``"tempered"``, but with
        each minimum of the network at several precisions. The others combine Gaussians around the
        distinct minima. ``"tempered"``: with weights that fall by a factor ``e`` for every 0.05
        nats in the mean of log evidence and leave-one-out log density per row (the latter up to
        that of highest evidence); the minima of all networks that ``hidden_layer_sizes="auto"`` has
        tried take part, unless ``noise`` is ``"input_dependent"`` or ``"student_t"``, and those of
        all noise models that ``noise="auto"`` has tried. The rest take those of the chosen network
        and noise: ``"best"``, the one of highest evidence; ``"evidence"``, weighted by it;
        ``"equal"``; ``"stacking"``, with the weights that maximise the leave-one-out predictive
        density.
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
        than 3000 weights, or more than 1e10 rows times squared weights, and no more weights
        than targets, one step is a descent of up to 1000 quasi-Newton steps with the re-estimation
        of the precisions that follows it, and there is no evidence.
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
    log_evidence_ : float
        Logarithm of the evidence, in nats, as a density over y in its own units (MacKay 1992,
        equations 2.27, 3.8, 3.15), of the network of ``hidden_layer_sizes_``: as measured by
        annealing, or ``logsumexp`` over the distinct minima in Laplace's approximation; ``nan`` if
        not available.
    log_evidence_std_ : float
        Its standard error, in nats; ``nan`` where it was not measured.
    evidence_report_ : EvidenceReport
        Every term of Laplace's approximation, per minimum, what was measured, and a verdict.
    leave_one_out_log_density_ : ndarray of shape (n_samples,)
        Log predictive density of every training row without one unit of its weight, in closed form
        (Rasmussen & Williams 2006, 5.12, in the linearised posterior); ``nan`` where the weight is
        zero.
    weight_precisions_ : ndarray of shape (n_groups,)
        ``alpha`` of every weight group at the best minimum (standardised units).
    weight_group_names_ : list of str
    noise_std_ : float or ndarray of shape (n_outputs,)
        Noise standard deviation at the best minimum, in units of y. If it depends on the inputs:
        its geometric mean over the training rows; ``predict_std(X, kind="aleatoric")`` tells it
        for each row.
    noise_ : str
        The noise model: ``noise``, or what ``"auto"`` has chosen.
    noise_log_evidences_ : dict
        Log evidence of each noise model that was fitted; with ``noise="auto"``.
    degrees_of_freedom_ : float
        Of Student-t noise at the best minimum.
    noise_coefs_, noise_intercepts_ : list of ndarray
        Weights of the noise network at the best minimum, from X to the logarithm of the noise's
        precision (one over the variance) in units of y; with input-dependent noise.
    n_effective_weights_ : float
        ``gamma``, the number of well-determined weights at the best minimum.
    feature_relevance_ : ndarray of shape (n_features,)
        Prior standard deviation of each input's weights (standardised units); with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the best minimum in the units of X and y.
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
        and noise models tried come last.
    n_iter_ : int
        Most training steps that any start took.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology; "A practical Bayesian framework for backpropagation networks", Neural
    Computation 4. K. L. Lange, R. J. A. Little & J. M. G. Taylor (1989), "Robust statistical
    modeling using the t distribution", Journal of the American Statistical Association 84.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(6,), random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5)) < 3 * std[0])
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
        self.noise_std = noise_std
        self.noise = noise
        self.noise_hidden_layer_sizes = noise_hidden_layer_sizes
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

    def _keep(self, result, rows):
        super()._keep(result, rows)
        self._keep_noise(result)

    @property
    def noise_std_(self):
        """Noise standard deviation at the best minimum, in units of y."""
        check_is_fitted(self)
        noise = self._noise_std_of(self._result.best)
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
        noise = self._result.best.noise
        if noise is None:
            raise AttributeError(
                "noise_coefs_ and noise_intercepts_ exist only with input-dependent noise."
            )
        layers = self._input_scaling_folded_in(noise.network, noise.theta)
        layers[-1][-1] -= 2.0 * np.log(self._y_scaling.scale)
        return [w[:-1] for w in layers], [w[-1] for w in layers]

    @property
    def degrees_of_freedom_(self):
        """Degrees of freedom of Student-t noise at the best minimum."""
        check_is_fitted(self)
        if self.noise_ != "student_t":
            raise AttributeError("degrees_of_freedom_ exists only with Student-t noise.")
        return self._result.best.likelihood.degrees_of_freedom

    def _noise_std_of(self, minimum):
        likelihood = minimum.likelihood
        variance = likelihood.variance_factor / likelihood.precisions(minimum.hyper.beta)
        return self._y_scaling.scale * np.sqrt(variance)
