"""Base class of all estimators: from user data to a problem in standardised units, and back."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbayesnn._data import Rows, Scaling, canonical_rows, check_magnitudes, standardised
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
from skbayesnn.estimators.inputs._parameters import check_parameters, layer_sizes
from skbayesnn.estimators.inputs._prior import out_of_bounds, with_prior
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
def all_or_nothing(estimator):
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


class Prepared(NamedTuple):
    """What a fit learns from: distinct rows, and the problem that they pose."""

    rows: Rows
    problem: Problem
    hidden_layer_sizes: tuple | str  # or ``"auto"``
    X_scaling: Scaling
    y_scaling: Scaling
    outliers: np.ndarray | None  # mask of the rows with grossly wrong targets, if that was asked
    findings: list  # warnings about the rows, or ``None``, the most important first
    summary: object  # `TargetSummary` of regressors

    @property
    def is_undetermined(self):
        """True for a single row if precisions are to be inferred from it."""
        if len(self.rows.X) > 1 or self.hidden_layer_sizes == "auto":
            return len(self.rows.X) == 1
        free = self.problem.posed(self.hidden_layer_sizes).settings.free
        return not np.all(free.priors.informative)


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
        return self._fit(X, y, sample_weight)

    @with_callbacks
    def _fit(self, X, y, *of_rows):
        """Fit all rows, perhaps after the data of an estimator given as ``prior``.

        ``of_rows`` are the further arguments of `fit`: sample weights, and known errors, exposures
        or limits.
        """
        with reporting_to_callbacks(self, X, y), all_or_nothing(self):
            hidden_layer_sizes = check_parameters(self)
            earlier = earlier_of_prior(self, hidden_layer_sizes)
            previous = self._forget(earlier)
            checked = self._check_rows(X, y, *of_rows)
            prepared = self._prepare(checked, hidden_layer_sizes, earlier)
            if prepared.is_undetermined:
                raise ValueError(TOO_FEW)
            self._infer_and_keep(prepared, previous)
            self._warn(prepared.findings)
        return self

    def _prepare(self, checked, hidden_layer_sizes, earlier=None):
        """Make the problem that checked rows pose, perhaps after an `Earlier` fit: `Prepared`."""
        rows = self._canonical(*checked)
        summary, about_targets = self._summary(rows)
        findings = [warning_of_weights(checked[2], checked[1], len(rows.y)), about_targets]
        of_X, of_y = (None, None) if earlier is None else (earlier.X_scaling, earlier.y_scaling)
        X_scaling, X = standardised(
            rows.X, rows.weight, self.standardize, of_X, shifted=self.fit_intercept, robust=True
        )
        targets = self._targets(rows, summary, of_y)
        if earlier is not None:
            hidden_layer_sizes = earlier.network.hidden_layer_sizes
        else:
            findings.append(self._warning_of_inputs(rows, X_scaling))
            if hidden_layer_sizes == "auto" and summary is not None and summary.hides_structure:
                hidden_layer_sizes = ()
        names = getattr(self, "feature_names_in_", None)
        problem = Problem(
            X,
            targets.y,
            rows.weight,
            targets.likelihood,
            activation=self.activation,
            output_bias=bool(self.fit_intercept),
            prior="layer" if isinstance(self._prior.kind, BaseEstimator) else self._prior.kind,
            feature_names=None if names is None else list(names),
            known=targets.known,
            noise_precision=targets.noise_precision,
            noise_hyperprior=targets.noise_hyperprior,
            noise_hidden_layer_sizes=layer_sizes(self._noise),
            laws=targets.laws,
            log_scale=targets.log_scale,
            limits=self._limits,
            deadline=Deadline.after(self.max_time),
        )
        units_of = partial(WeightUnits, X_scaling=X_scaling, y_scaling=targets.scaling)
        return Prepared(
            rows,
            with_prior(self, problem, hidden_layer_sizes, units_of, earlier),
            hidden_layer_sizes,
            X_scaling,
            targets.scaling,
            targets.outliers,
            findings,
            summary,
        )

    def _infer_and_keep(self, prepared, previous, in_batches=False):
        """Run the inference, and set what a fitted estimator holds."""
        problem, rows = prepared.problem, prepared.rows
        self._X_scaling, self._y_scaling = prepared.X_scaling, prepared.y_scaling
        self._outliers, self._fingerprint = prepared.outliers, rows.fingerprint
        self.n_outputs_ = problem.y.shape[1]
        result = self._infer(problem, prepared.hidden_layer_sizes, previous, in_batches)
        with blas_threads(result.posed.posterior.network.n_weights):
            self._keep(result, rows)
        for part in self._ensemble.parts:
            if not np.all(np.isfinite(part.outputs(problem.X[:1]))):
                raise ValueError(TOO_EXTREME)

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

    def _forget(self, earlier=None):
        """Delete fitted attributes, or replace them by those of an `Earlier` fit.

        Returns the last result if this fit continues from it.
        """
        previous = vars(self).get("_result") if self.warm_start and earlier is None else None
        for name in list(vars(self)):
            if name in ("_result", "_waiting") or (name.endswith("_") and name[0] != "_"):
                delattr(self, name)
        vars(self).update({} if earlier is None else earlier.attributes)
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

    def _warn(self, findings, in_batches=False):
        """Issue at most one warning about the fit, the most important one.

        ``findings`` are warnings about the rows, or ``None``. They come first, as they explain
        whatever else is wrong. A finding, the first sentence, that an earlier batch gave with other
        numbers is not repeated.
        """
        about_the_fit = (
            self._warning_of_time,
            self._warning,
            partial(out_of_bounds, self),
            self._warning_of_predictions,
        )
        found = chain(findings, (warning() for warning in about_the_fit))
        warning = next((one for one in found if one is not None), None)
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

    def _warning_of_inputs(self, rows, scaling):
        """Warning that some rows have inputs far from all others, or ``None``."""
        far = np.flatnonzero(scaling.scale != Scaling.standard(rows.X, rows.weight).scale)
        if not (self.standardize and len(far)):
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
