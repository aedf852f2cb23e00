"""Regression by a multilayer perceptron under MacKay's evidence framework."""

import numbers

import numpy as np
from scipy.special import logsumexp
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skbayesnn._data import Scaling
from skbayesnn.estimators._base import EvidenceMLP
from skbayesnn.estimators._parameters import fixed_values
from skbayesnn.posterior import Gaussian
from skbayesnn.predictive import log_normal_density, mixture_moments, mixture_quantile

KINDS = ("total", "epistemic", "aleatoric")


class EvidenceMLPRegressor(RegressorMixin, EvidenceMLP):
    """Bayesian neural network for regression that needs no validation set.

    The weights have Gaussian priors in groups. The precision of every group and the noise level are
    inferred from the training data by maximising the evidence (MacKay 1992); the posterior of the
    weights is approximated by a Gaussian around each minimum found. Predictions carry error bars,
    and
    ``log_evidence_`` compares this model with any other.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(16,)
        Units of each hidden layer; ``()`` is Bayesian linear regression.
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
    noise : {"constant", "shared"}, default="constant"
        One noise level per output, or one for all outputs, equal in units of y.
    standardize : bool, default=True
        Shift and scale inputs and targets to mean 0 and standard deviation 1 inside. ``False``
        keeps the user's units throughout.
    n_restarts : int, default=5
        Random starts.
    combine : {"best", "evidence", "equal", "stacking"}, default="stacking"
        How distinct minima predict together: the one of highest evidence; weighted by evidence;
        equally; or with the weights that maximise the leave-one-out predictive density.
    hessian : {"auto", "exact", "gauss_newton"}, default="auto"
        Curvature at the minimum. ``"gauss_newton"`` is cheaper and makes the evidence approximate.
    max_iter : int, default=300
        Training steps per start; the refinement at the minimum has limits of its own.
    tol : float, default=1e-3
        Training ends when steps and re-estimations of the precisions gain less than this many nats
        (per 100 weights, for more than 100).
    random_state : int, RandomState instance or None, default=None
        Seeds the initial weights.
    n_jobs : int, optional
        Processes over which starts are spread (joblib).
    verbose : int, default=0
        Print progress if positive.
    warm_start : bool, default=False
        Start from the minima of the previous fit, besides random starts up to ``n_restarts``.

    Attributes
    ----------
    log_evidence_ : float
        Logarithm of the evidence, in nats, as a density over y in its own units (MacKay 1992,
        equations 2.27, 3.8, 3.15): ``logsumexp`` over the distinct minima; ``nan`` if not
        available.
    evidence_report_ : EvidenceReport
        Every term of it, per minimum, with a verdict.
    weight_precisions_ : ndarray of shape (n_groups,)
        ``alpha`` of every weight group at the best minimum (standardised units).
    weight_group_names_ : list of str
    noise_std_ : float or ndarray of shape (n_outputs,)
        Noise standard deviation at the best minimum, in units of y.
    n_effective_weights_ : float
        ``gamma``, the number of well-determined weights at the best minimum.
    feature_relevance_ : ndarray of shape (n_features,)
        Prior standard deviation of each input's weights (standardised units); with ``prior="ard"``.
    coefs_, intercepts_ : list of ndarray
        Weights of the best minimum in the units of X and y.
    coefs_std_, intercepts_std_ : list of ndarray
        Their posterior standard deviations.
    networks_ : list of FittedNetwork
        All distinct minima.
    n_iter_ : int
        Most training steps that any start took.
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
    >>> model = EvidenceMLPRegressor(hidden_layer_sizes=(6,), random_state=0).fit(X, y)
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
        n_restarts=5,
        combine="stacking",
        hessian="auto",
        max_iter=300,
        tol=1e-3,
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
        self.n_restarts = n_restarts
        self.combine = combine
        self.hessian = hessian
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self):
        """Several outputs are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def predict(self, X, return_std=False, return_cov=False):
        """Predictive mean, with its standard deviation or covariance if wanted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Also return the total standard deviation, of weights and noise (Bishop 5.172-5.173).
        return_cov : bool, default=False
            Also return the covariance between rows, noise included on its diagonal.

        Returns
        -------
        y_mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Mean, in units of y.
        y_std : ndarray of the same shape
            Only with ``return_std``.
        y_cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            Only with ``return_cov``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std and return_cov can be requested.")
        X = self._check_X(X)
        if return_cov:
            return self._mean_and_joint_covariance(X)
        means, covariances = self._activations(X, need_covariance=return_std)
        if not return_std:
            mean = np.tensordot(self._member_weights, means, 1)
            return self._shaped(self._y_scaling.inverse(mean))
        mean, covariance = mixture_moments(self._member_weights, means, self._noisy(covariances))
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)) * self._y_scaling.scale
        return self._shaped(self._y_scaling.inverse(mean)), self._shaped(sd)

    def predict_std(self, X, kind="total"):
        """Predictive standard deviation, or one of its parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        kind : {"total", "epistemic", "aleatoric"}, default="total"
            Everything; what comes from the weights; what comes from the noise.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In units of y; the squares of the parts add up to that of the total.
        """
        covariance = self.predict_output_cov(X, kind)
        return self._shaped(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)))

    def predict_output_cov(self, X, kind="total"):
        """Covariance between the outputs of each row: error ellipses (MacKay 1992, figure 3.1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        kind : {"total", "epistemic", "aleatoric"}, default="total"
            As in `predict_std`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs, n_outputs)
            In units of y.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        means, covariances = self._activations(self._check_X(X))
        if kind == "aleatoric":
            means, covariances = 0.0 * means, self._noisy(0.0 * covariances)
        elif kind == "total":
            covariances = self._noisy(covariances)
        _, covariance = mixture_moments(self._member_weights, means, covariances)
        scale = self._y_scaling.scale
        return covariance * scale[:, None] * scale

    def predict_interval(self, X, coverage=0.95):
        """Central interval of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        coverage : float, default=0.95
            Probability inside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper end, in units of y.
        """
        if not (isinstance(coverage, numbers.Real) and 0 < coverage < 1):
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
        means, covariances = self._activations(self._check_X(X))
        sds = np.sqrt(np.diagonal(self._noisy(covariances), axis1=2, axis2=3))
        ends = [
            mixture_quantile(self._member_weights, means, sds, probability)
            for probability in (0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage))
        ]
        return np.stack([self._shaped(self._y_scaling.inverse(end)) for end in ends], axis=-1)

    def log_predictive_density(self, X, y):
        """Log density of targets under their predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats, y in its own units; joint over the outputs.
        """
        X = self._check_X(X)
        y = _numeric(np.asarray(y))
        check_consistent_length(X, y)
        if y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"y has {y.shape[1]} outputs, the model was fitted with {self.n_outputs_}."
            )
        means, covariances = self._activations(X)
        residuals = self._y_scaling.transform(y) - means
        density = log_normal_density(residuals, self._noisy(covariances))
        log_weights = np.log(self._member_weights)[:, None]
        return logsumexp(density + log_weights, axis=0) - np.sum(np.log(self._y_scaling.scale))

    def sample_y(self, X, n_samples=1, random_state=0):
        """Functions drawn from the posterior, without noise, linearised in the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions; each is drawn jointly over all rows.
        random_state : int, RandomState instance or None, default=0
            Seeds the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            In units of y.
        """
        X = self._check_X(X)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        chosen = rng.choice(len(self._members), size=n_samples, p=self._member_weights)
        draws = np.empty((n_samples, len(X), self.n_outputs_))
        for index, member in enumerate(self._members):
            mine = np.flatnonzero(chosen == index)
            draws[mine] = member.draw(X, rng, len(mine))
        return self._functions(draws)

    def sample_prior(self, X, n_samples=1, random_state=0):
        """Functions drawn from the prior at the inferred precisions.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=0
            Seeds the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            In units of y.
        """
        return self._functions(self._prior_functions(X, n_samples, random_state))

    @property
    def noise_std_(self):
        """Noise standard deviation at the best minimum, in units of y."""
        check_is_fitted(self)
        noise = self._noise_std_of(self._minima[0])
        return float(noise[0]) if self._y_is_1d else noise

    def _encode(self, y):
        self._y_is_1d = y.ndim == 1
        return _numeric(y)

    def _targets(self, rows):
        n_outputs = rows.y.shape[1]
        scaling = Scaling.none(n_outputs)
        if self.standardize:
            scaling = Scaling.standard(rows.y, rows.weight)
        likelihood = Gaussian.per_output(n_outputs)
        if self.noise == "shared":
            typical = np.exp(np.mean(np.log(scaling.scale)))
            likelihood = Gaussian(np.zeros(n_outputs, dtype=int), (scaling.scale / typical) ** 2)
        return scaling.transform(rows.y), scaling, likelihood

    def _noise_precisions(self, y_scaling, likelihood):
        """Free noise levels, and the precisions (standardised units) of the others."""
        names = list(range(likelihood.n_levels))
        free, values = fixed_values(self.noise_std, names, "noise_std")
        first = [int(np.flatnonzero(likelihood.levels == level)[0]) for level in names]
        scale = y_scaling.scale[first] / np.sqrt(likelihood.relative[first])
        return free, np.where(free, 1.0, (scale / values) ** 2)

    def _scale_term(self, problem):
        return -problem.posterior.n_rows * float(np.sum(np.log(problem.y_scaling.scale)))

    def _noise_std_of(self, minimum):
        return self._y_scaling.scale / np.sqrt(self._likelihood.precisions(minimum.hyper.beta))

    def _noisy(self, covariances):
        """Add every member's noise to covariances ``(m, n, n_outputs, n_outputs)``."""
        noise = np.stack([np.diag(member.noise_variance) for member in self._members])
        return covariances + noise[:, None]

    def _mean_and_joint_covariance(self, X):
        means, _ = self._activations(X, need_covariance=False)
        covariances = np.stack([member.joint_covariance(X) for member in self._members])
        noise = np.stack([member.noise_variance for member in self._members])
        covariances = covariances + noise[..., None, None] * np.eye(len(X))
        by_output = np.moveaxis(means, -1, 1)  # (m, n_outputs, n)
        mean, covariance = mixture_moments(self._member_weights, by_output, covariances)
        covariance = np.moveaxis(covariance, 0, -1) * self._y_scaling.scale**2
        if self._y_is_1d:
            covariance = covariance[..., 0]
        return self._shaped(self._y_scaling.inverse(mean.T)), covariance

    def _functions(self, draws):
        """From ``(size, n, n_outputs)`` in standardised units to the shape of `sample_y`."""
        values = np.moveaxis(self._y_scaling.inverse(draws), 0, -1)
        return values[:, 0] if self._y_is_1d else values

    def _shaped(self, values):
        """Drop the axis of outputs if y had none."""
        return values[:, 0] if self._y_is_1d else values


def _numeric(y):
    """Targets as finite numbers of shape (n, n_outputs)."""
    try:
        y = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold numbers; for class labels use EvidenceMLPClassifier."
        ) from error
    if not np.all(np.isfinite(y)):
        raise ValueError("Input y contains NaN or infinity.")
    return y[:, None] if y.ndim == 1 else y
