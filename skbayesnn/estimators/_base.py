"""Base class of all estimators: from user data to a problem in standardised units, and back."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbayesnn._data import Scaling, canonical_rows, check_magnitudes, standardised
from skbayesnn._docs import FITTED, documented
from skbayesnn._threads import blas_threads
from skbayesnn.estimators._weights import FittedNetwork, WeightUnits, weight_names
from skbayesnn.estimators.inputs._callbacks import (
    FRAMES,
    CallbackSupportMixin,
    progress_of,
    reporting_to_callbacks,
    with_callbacks,
)
from skbayesnn.estimators.inputs._memory import check_memory, readable
from skbayesnn.estimators.inputs._parameters import check_combinations, check_parameters
from skbayesnn.estimators.inputs._prior import check_hyperpriors, out_of_bounds, with_prior
from skbayesnn.estimators.inputs._rows import checked_weights, validated, warning_of_weights
from skbayesnn.estimators.inputs._sequential import earlier_of_prior
from skbayesnn.estimators.inputs._settings import Noise, Prior, opened
from skbayesnn.estimators.predictions._function import FittedFunction
from skbayesnn.inference import (
    Deadline,
    Limits,
    Method,
    Problem,
    Workers,
    memory_of_search,
)

TOO_EXTREME = (
    "The values of X, y or sample_weight differ by too many orders of magnitude. Use "
    "standardize=True, other units, or smaller weights."
)
TOO_FEW = (
    "Found 1 sample (distinct row of positive weight), while at least 2 are needed to infer "
    "precisions from the data."
)


@contextmanager
def _all_or_nothing(estimator):
    """Put an estimator back as it was if anything interrupts the block, Ctrl-C included.

    Steps that overflow are not taken, and need no warnings; what cannot go on is an error.
    """
    before = vars(estimator).copy()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            yield
        except BaseException as error:
            vars(estimator).clear()
            vars(estimator).update(before)
            if isinstance(error, np.linalg.LinAlgError):
                raise ValueError(TOO_EXTREME) from error
            raise


@documented(FITTED)
class BayesianMLP(CallbackSupportMixin, FittedFunction):
    """Common part of all estimators.

    An engine (evidence, sampling) adds ``_infer``, which makes a result of a problem, ``_keep``,
    which sets the fitted attributes, and ``_warning``, which returns one or ``None``. A task
    (regression, classification) adds checks of targets and methods that predict. A fitted estimator
    holds the scalings, the engine's result (``_result``), the ensemble that predicts
    (``_ensemble``), and one of networks with a Gaussian around each (``_gaussians``; drawn networks
    are Gaussians of no width), which have most probable weights and are linear in their deviations.

    Examples
    --------
    >>> from skbayesnn import HMCMLPClassifier
    >>> from skbayesnn.estimators import BayesianMLP
    >>> issubclass(HMCMLPClassifier, BayesianMLP)
    True
    """

    _limits = Limits()
    _gamma = None  # well-determined weights of every group, as far as they are known
    _outliers = None  # which rows of the problem have grossly wrong targets, if that was asked

    @property
    def _prior(self):
        return Prior._of(self.prior)

    @property
    def _noise(self) -> Noise:
        """Parameters of the noise; classifiers, which have no noise level, keep the simplest."""
        return Noise("constant")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also inside of ``prior`` and other settings.

        Parameters
        ----------
        **params
            Values by name. ``prior__precision`` is the ``precision`` of the `Prior` that ``prior``
            is, or is short for: ``"layer"`` is replaced by ``Prior("layer", precision=...)``. In
            this way ``noise``, ``solver`` and ``sampler`` may be set, too.

        Returns
        -------
        self : object
            The estimator.
        """
        return super().set_params(**opened(self, params))

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights, precisions and noise levels to training data.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. For classifiers class labels of shape (n_samples,), or class probabilities of
            shape (n_samples, n_classes), whose rows sum to 1: such a row equals the row repeated
            once per class, with the probabilities as weights (MacKay 1992, section 5.1). Classes
            are then the names of the columns of a data frame, sorted, or 0, 1, ...
        """
        return self._learn(X, y, sample_weight)

    @with_callbacks
    def _learn(self, X, y, *of_rows, batch=None):
        """Fit, perhaps after the data of an `Earlier` fit.

        ``of_rows`` are the further arguments of `fit`: sample weights, and known errors, exposures
        or limits. A call of `partial_fit` passes attributes to be set in ``batch``.
        """
        earlier = None if batch is None else self._before_batch()
        with reporting_to_callbacks(self, X, y), _all_or_nothing(self):
            check_hyperpriors(self._prior, self._noise)
            hidden_layer_sizes = check_parameters(self)
            check_combinations(self)
            if earlier is None and isinstance(self._prior.kind, BaseEstimator):
                earlier = earlier_of_prior(self, hidden_layer_sizes)
            previous = self._forget()
            attributes = dict(batch or {})
            if earlier is not None:
                hidden_layer_sizes = earlier.network.hidden_layer_sizes
                attributes, previous = attributes | earlier.attributes, None
            waiting = vars(self).pop("_waiting", None)  # rows of batches too small for a fit
            waiting = None if batch is None else waiting
            if waiting is not None:
                attributes = waiting.attributes | attributes
            vars(self).update(attributes)
            checked = self._check_rows(X, y, *of_rows)
            if waiting is not None:
                checked = waiting.joined(checked)
            rows = self._canonical(*checked)
            warning = warning_of_weights(checked[2], checked[1], len(rows.y))
            warning = warning or self._check_domain(rows, attributes)
            if rows.look is not None:
                only_linear = rows.look.hides_structure and hidden_layer_sizes == "auto"
                noise_is_chosen = self._noise.kind == "auto"
                warning = warning or rows.look.warning(rows.y, noise_is_chosen, only_linear)
                hidden_layer_sizes = () if only_linear else hidden_layer_sizes
            problem = self._pose(rows, hidden_layer_sizes, earlier)
            if earlier is None and self.standardize:
                warning = warning or self._warning_of_inputs(rows)
            if len(rows.X) == 1 and (
                hidden_layer_sizes == "auto"  # precisions have to be inferred
                or not np.all(problem.posed(hidden_layer_sizes).settings.free.priors.informative)
            ):
                if batch is None or earlier is not None:
                    raise ValueError(TOO_FEW)
                self._warn(self._wait(checked, problem, earlier), in_batches=True)
                return self
            self._infer_and_keep(problem, rows, hidden_layer_sizes, previous, batch is not None)
            revised = self._revised(problem, rows) if batch is None else None
            if revised is not None:
                self._infer_and_keep(revised, rows, hidden_layer_sizes, previous, False)
            if batch is not None:
                before = () if earlier is None else earlier.log_evidences
                self.batch_log_evidences_ = (*before, self.log_evidence_)
                warning = self._wait(checked, problem, earlier) or warning
            for part in self._ensemble.parts:
                if not np.all(np.isfinite(part.outputs(problem.X[:1]))):
                    raise ValueError(TOO_EXTREME)
            self._warn(warning, batch is not None)
        return self

    def _infer_and_keep(self, problem, rows, hidden_layer_sizes, previous, is_batch):
        result = self._infer(problem, hidden_layer_sizes, previous, is_batch)
        self._fingerprint = rows.fingerprint
        with blas_threads(result.posed.posterior.network.n_weights):
            self._keep(result, rows)

    def _revised(self, problem, rows):
        """Problem to be fitted instead if left-out rows contradict it, or ``None``."""
        return None

    def __getstate__(self):
        """Return the state, with the version that wrote it."""
        return {**super().__getstate__(), "_skbayesnn_version": version("skbayesnn")}

    def __setstate__(self, state):
        """Warn if another version has written the state."""
        state = dict(state)
        written, present = state.pop("_skbayesnn_version", "unknown"), version("skbayesnn")
        if written != present:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=present,
                    original_sklearn_version=written,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_ensemble")

    def _forget(self):
        """Delete fitted attributes; return the earlier result if this fit continues from it."""
        previous = vars(self).get("_result") if self.warm_start else None
        for name in list(vars(self)):
            if name == "_result" or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)
        return previous

    def _check_rows(self, X, y, sample_weight):
        """Check that arrays are finite and of the right shape, and weights not negative."""
        first = not hasattr(self, "n_features_in_")
        X, y = validated(self, X, y, reset=first, multi_output=True)
        return X, self._encode(y), checked_weights(sample_weight, len(X))

    def _canonical(self, X, y, sample_weight, known=None):
        """Merge equal rows, and sort them, so that their order does not affect the fit."""
        rows = canonical_rows(X, y, sample_weight, known)
        check_magnitudes(rows, self.standardize)
        return rows

    def _check_domain(self, rows, attributes):
        """Check targets, after ``attributes`` were set; return a warning or ``None``."""

    def _pose(self, rows, hidden_layer_sizes, earlier=None):
        """Standardise, and gather everything that defines the problem."""
        of_X, of_y = (None, None) if earlier is None else (earlier.X_scaling, earlier.y_scaling)
        X_scaling, X = standardised(
            rows.X, rows.weight, self.standardize, of_X, shifted=self.fit_intercept, robust=True
        )
        y, y_scaling, likelihood = self._targets(rows, of_y)
        names = getattr(self, "feature_names_in_", None)
        self._X_scaling, self._y_scaling = X_scaling, y_scaling
        self.n_outputs_ = y.shape[1]
        problem = Problem(
            X,
            y,
            rows.weight,
            likelihood,
            activation=self.activation,
            output_bias=bool(self.fit_intercept),
            prior="layer" if isinstance(self._prior.kind, BaseEstimator) else self._prior.kind,
            feature_names=None if names is None else list(names),
            **self._noise_options(y_scaling, likelihood, rows),
            limits=self._limits,
            deadline=Deadline.after(self.max_time),
        )
        return with_prior(self, problem, hidden_layer_sizes, earlier)

    def _log_scales(self, rows):
        """Log of the standardised over the given density of every row, here none."""
        return 0.0

    def _noise_model(self, problem):
        """One of `NOISE_MODELS`, or ``"auto"``."""
        return "constant"

    @property
    def _entropy(self):
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)

    def _workers(self, problem):
        """Joblib processes, and the receivers of progress reports."""
        progress = progress_of(self, problem.deadline)
        return Workers(self.n_jobs, self._announce, progress, problem.log_scale)

    def _announce(self, posterior, settings, n_starts):
        """Describe method and memory of a search; warn if the machine has less memory."""
        plan = str(Method.choose(posterior, settings))
        n_bytes = memory_of_search(posterior, settings, n_starts, self.n_jobs)
        remedies = "fewer hidden units, n_jobs=1, fewer n_restarts, or some of the rows"
        self._warn_of_memory(n_bytes, f"The fit ({plan})", remedies)
        return f"{plan}; about {readable(n_bytes)} of memory"

    def _warn_of_memory(self, n_bytes, what, remedies):
        try:
            check_memory(n_bytes, what, f"Use {remedies}.")
        except MemoryError as error:
            warnings.warn(str(error), UserWarning, stacklevel=2)

    def _keep_common(self, result):
        self.log_evidence_std_ = result.log_evidence_std
        self.hidden_layer_sizes_ = result.posed.posterior.network.hidden_layer_sizes

    def _warn(self, about_rows=None, in_batches=False):
        """Issue at most one warning about the fit, the first that applies.

        ``about_rows`` is a warning about the given rows. It comes first, as it explains whatever
        else is wrong. A finding, the first sentence, that an earlier batch gave with other numbers
        is not repeated.
        """
        warning = about_rows or self._warning_of_time() or self._warning()
        warning = warning or out_of_bounds(self) or self._warning_of_predictions()
        warned = getattr(self, "_warned", frozenset()) if in_batches else frozenset()
        if warning is not None:
            kind = re.sub(r"\S*\d\S*", "", str(warning).split(". ")[0])
            if kind not in warned:
                warnings.warn(warning, stacklevel=4 + FRAMES)
            warned |= {kind}
        self._warned = warned

    def _warning_of_time(self):
        """Warning that the fit was broken off, or ``None``."""
        if self.max_time is None or not self._was_cut_short():
            return None
        return ConvergenceWarning(
            f"The fit has reached max_time={self.max_time:g} seconds and uses the best it found "
            "until then. Raise max_time for more starts, networks, noise models or draws."
        )

    def _was_cut_short(self):
        """Return True if anything was left out for want of time."""
        return self._result.problem.deadline.passed

    def _warning_of_inputs(self, rows):
        """Warning that some rows have inputs far from all others, or ``None``."""
        standard = Scaling.standard(rows.X, rows.weight)
        far = np.flatnonzero(self._X_scaling.scale != standard.scale)
        if not len(far):
            return None
        names = getattr(self, "feature_names_in_", np.arange(rows.X.shape[1]))
        columns = ", ".join(str(names[i]) for i in far)
        return UserWarning(
            f"Few rows have values far from all others in these columns of X: {columns}. The other "
            "rows set the units. Check these values, or take logarithms if they span decades."
        )

    def _warning_of_predictions(self):
        return None

    @property
    def input_prior_std_(self):
        """Prior standard deviation of each input's weights (standardised units).

        It tells which inputs are not used. It does not rank the others: an input of large but
        linear effect may have small weights into the hidden units. Rank by
        `skbayesnn.metrics.sobol_indices`.
        """
        check_is_fitted(self)
        if not self._result.problem.has_relevances:
            raise AttributeError(
                "input_prior_std_ exists only where every input has a precision: set "
                "prior='ard', which 'auto' chooses with many rows alone. To rank inputs, after any "
                "fit, use sobol_indices or derivative_indices (skbayesnn.metrics)."
            )
        return self._input_prior_std

    def _units(self, network):
        """Conversion of weights from standardised units to those of X and y."""
        return WeightUnits(network, self._X_scaling, self._y_scaling)

    def _in_user_units(self, network, theta):
        """``(coefs, intercepts)`` with the standardisation of X and y folded in."""
        units = self._units(network)
        return units.split(units.weights(theta))

    def _as_network(self, network, theta, weight, log_evidence):
        """A `FittedNetwork` of weights in standardised units."""
        coefs, intercepts = self._in_user_units(network, theta)
        return FittedNetwork(coefs, intercepts, weight, log_evidence, network.activation)

    def _weight_names(self, network):
        inputs = getattr(self, "feature_names_in_", None)
        if inputs is None:
            inputs = [f"x{i}" for i in range(self.n_features_in_)]
        return weight_names(network, inputs, self._output_names(network.n_outputs))

    def _check_X(self, X):
        """Rows to predict, standardised."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return self._X_scaling.bounded(X)

    def _draw_prior(self, X, n_samples, rng):
        """Outputs of networks drawn from the prior, ``(n_samples, n, n_outputs)``."""
        return self._result.draw_prior(X, n_samples, rng)
