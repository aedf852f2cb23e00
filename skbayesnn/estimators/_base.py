"""What all estimators share: from user data to a problem in standardised units, and back."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, InconsistentVersionWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayesnn._data import canonical_rows, check_magnitudes, standardised
from skbayesnn.estimators._parameters import check_parameters, fixed_values
from skbayesnn.inference import (
    Deadline,
    Limits,
    Method,
    Problem,
    Workers,
    machine_memory,
    memory_of_search,
    readable,
)

TOO_EXTREME = (
    "The values of X, y or sample_weight differ by too many orders of magnitude. Use "
    "standardize=True, other units, or smaller weights."
)
AT_BOUND = 0.99  # share of the largest standard deviation from which one is said to be there


@dataclass(frozen=True)
class FittedNetwork:
    """One distinct minimum, or one draw, in the units of X and y.

    Attributes
    ----------
    coefs : list of ndarray of shape (fan_in, fan_out)
    intercepts : list of ndarray of shape (fan_out,)
    weight : float
        Its share in the predictions.
    log_evidence : float
        In nats, targets in their own units; ``nan`` where it is not available.
    """

    coefs: list
    intercepts: list
    weight: float
    log_evidence: float


@contextmanager
def _all_or_nothing(estimator):
    """Put an estimator back as it was if anything interrupts the block, Ctrl-C included."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def _overflow_is_told():
    """Steps that overflow are not taken, and need no warnings; what cannot go on is an error."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            yield
        except np.linalg.LinAlgError as error:
            raise ValueError(TOO_EXTREME) from error


def generator(random_state):
    """A NumPy generator from anything that scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


class BayesianMLP(BaseEstimator):
    """Common part of all estimators.

    An engine (evidence, sampling) adds ``_infer``, which makes a result of a problem, ``_keep``,
    which sets the fitted attributes, and ``_trouble``, what to warn of. A task (regression,
    classification) adds what targets are and what is predicted. A fitted estimator holds the
    scalings, the engine's result (``_result``), the ensemble that predicts (``_ensemble``), and one
    of networks with a Gaussian around each (``_gaussians``; drawn networks are Gaussians of no
    width), which have most probable weights and are linear in their deviations.

    Examples
    --------
    >>> from skbayesnn import HMCMLPClassifier
    >>> from skbayesnn.estimators import BayesianMLP
    >>> issubclass(HMCMLPClassifier, BayesianMLP)
    True
    """

    _limits = Limits()

    def fit(self, X, y, sample_weight=None):
        """Fit the weights, precisions and noise levels to training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; class labels for the classifier.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts. Weight 2 repeats the row, weight 0 leaves it out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, *given):
        """`fit`, with what is given for every row: weights, and what else the task knows."""
        with _all_or_nothing(self), _overflow_is_told():
            hidden_layer_sizes = check_parameters(self)
            previous = self._forget()
            rows = canonical_rows(*self._check_rows(X, y, *given))
            self._check_domain(rows)
            check_magnitudes(rows, self.standardize)
            problem = self._pose(rows, hidden_layer_sizes)
            self._keep(self._infer(problem, hidden_layer_sizes, previous), rows)
            for part in self._ensemble.parts:
                if not np.all(np.isfinite(part.outputs(problem.X[:1]))):
                    raise ValueError(TOO_EXTREME)
            self._warn()
        return self

    def __getstate__(self):
        """The state, and the version that wrote it."""
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
        """Whether `fit` was completed."""
        return hasattr(self, "_ensemble")

    def _forget(self):
        """Delete what an earlier fit has left; its result is returned if this one goes on."""
        previous = vars(self).get("_result") if self.warm_start else None
        for name in list(vars(self)):
            if name == "_result" or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)
        return previous

    def _check_rows(self, X, y, sample_weight):
        """Second gate: arrays of the right shape, finite, with non-negative weights."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True)
        if sample_weight is None:
            sample_weight = np.ones(len(X))
        sample_weight = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        if sample_weight.shape != (len(X),):
            raise ValueError(
                f"sample_weight must have shape ({len(X)},), one weight per row; "
                f"got {sample_weight.shape}."
            )
        if np.any(sample_weight < 0):
            raise ValueError("sample_weight must not be negative: a weight counts repetitions.")
        if not np.any(sample_weight > 0):
            raise ValueError("All sample weights are zero; at least one must be positive.")
        return X, self._encode(y), sample_weight

    def _check_domain(self, rows):
        """Third gate: something to learn from."""
        if len(rows.X) < 2:
            raise ValueError(
                f"Found {len(rows.X)} sample (distinct row of positive weight), while at least 2 "
                "are needed to infer precisions from the data."
            )

    def _pose(self, rows, hidden_layer_sizes):
        """Standardise, and gather everything that defines the problem."""
        X_scaling, X = standardised(rows.X, rows.weight, self.standardize)
        y, y_scaling, likelihood = self._targets(rows)
        names = getattr(self, "feature_names_in_", None)
        self._X_scaling, self._y_scaling = X_scaling, y_scaling
        self.n_outputs_ = y.shape[1]
        problem = Problem(
            X,
            y,
            rows.weight,
            likelihood,
            activation=self.activation,
            prior=self.prior,
            feature_names=None if names is None else list(names),
            weight_precision=partial(fixed_values, self.weight_precision, what="weight_precision"),
            **self._noise_options(y_scaling, likelihood, rows),
            **{"limits": self._limits, **self._search_options()},
            deadline=Deadline.after(self.max_time),
        )
        if not isinstance(self.prior, str):
            n_weights = problem.network(hidden_layer_sizes).n_weights
            if np.shape(self.prior) != (n_weights,):
                raise ValueError(
                    f"prior given as an array needs one group label for each of the {n_weights} "
                    f"weights; got shape {np.shape(self.prior)}."
                )
        return problem

    def _search_options(self):
        """Parameters of the search for minima."""
        return {}

    def _noise_model(self, problem):
        """One of `NOISE_MODELS`, or ``"auto"``."""
        return "constant"

    @property
    def _entropy(self):
        """Of all random numbers of a fit."""
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max)

    @property
    def _workers(self):
        """Processes, and where progress is told."""
        return Workers(self.n_jobs, self._announce, print if self.verbose else None)

    def _announce(self, posterior, settings, n_starts):
        """Say what a search will take; warn if the machine has less memory."""
        plan = str(Method.choose(posterior, settings))
        n_bytes = memory_of_search(posterior, settings, n_starts, self.n_jobs)
        if self.verbose:
            print(f"{plan}; about {readable(n_bytes)} of memory")
        remedies = "fewer hidden units, n_jobs=1, fewer n_restarts, or some of the rows"
        self._warn_of_memory(n_bytes, f"The fit ({plan})", remedies)

    def _warn_of_memory(self, n_bytes, what, remedies):
        """Warn if the machine has less memory."""
        if n_bytes > machine_memory():
            warnings.warn(
                f"{what} needs about {readable(n_bytes)} of memory, and the machine has "
                f"{readable(machine_memory())}. Use {remedies}.",
                UserWarning,
                stacklevel=2,
            )

    def _keep_common(self, result):
        """Attributes that all estimators have; ``ard`` needs precisions to be set."""
        posterior = result.posed.posterior
        self.hidden_layer_sizes_ = posterior.network.hidden_layer_sizes
        if result.growth:
            self.growth_ = result.growth

    def _warn(self):
        """The one place where the states of the algorithms become a warning."""
        trouble = self._trouble_with_time() or self._trouble() or self._trouble_with_units()
        if trouble is not None:
            message, category = trouble
            warnings.warn(message, category, stacklevel=4)

    def _trouble_with_time(self):
        """A warning that the fit was broken off, or ``None``."""
        if not self._result.problem.deadline.passed:
            return None
        return (
            f"The fit has reached max_time={self.max_time:g} seconds and uses the best it found "
            "until then. Raise max_time for more starts, networks, noise models or draws."
        ), ConvergenceWarning

    def _trouble_with_units(self):
        """A warning that precisions would lie beyond their bounds, or ``None``."""
        if self.standardize:
            return None
        free, largest = self._result.posed.settings.free, 0.0
        if np.any(free.alpha):
            largest = np.max(self.weight_precisions_[free.alpha] ** -0.5)
        if np.any(free.beta):
            largest = max(largest, np.max(self.noise_std_))
        if largest < AT_BOUND * free.prior.upper:
            return None
        return (
            "The standard deviation of the noise or of the prior of some weights is at its bound "
            f"of {free.prior.upper:g}, because X and y are not standardised. Use standardize=True "
            "or other units."
        ), UserWarning

    def _input_scaling_folded_in(self, network, theta):
        """Layers of a network that takes X in the user's units."""
        layers = [w.copy() for w in network.layers(theta)]
        first = layers[0]
        first[:-1] /= self._X_scaling.scale[:, None]
        first[-1] -= self._X_scaling.shift @ first[:-1]
        return layers

    def _in_user_units(self, network, theta):
        """``(coefs, intercepts)`` with the standardisation of X and y folded in."""
        layers = self._input_scaling_folded_in(network, theta)
        last = layers[-1]
        last *= self._y_scaling.scale
        last[-1] += self._y_scaling.shift
        return [w[:-1] for w in layers], [w[-1] for w in layers]

    def _check_X(self, X):
        """Rows to predict, standardised."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._X_scaling.bounded(X)

    def _draw_prior(self, X, n_samples, rng):
        """Outputs of networks drawn from the prior, ``(n_samples, n, n_outputs)``."""
        return self._result.draw_prior(X, n_samples, rng)
