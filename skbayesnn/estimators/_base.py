"""What all estimators share: from user data to a posterior in standardised units, and back."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayesnn._data import Scaling, canonical_rows
from skbayesnn.estimators._parameters import check_parameters, fixed_values
from skbayesnn.inference import FreeHyperparameters, Settings
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import Hyperparameters, LogUniform, Posterior, weight_groups


class Problem(NamedTuple):
    """A fit in standardised units."""

    posterior: Posterior
    settings: Settings
    X_scaling: Scaling
    y_scaling: Scaling
    row_index: np.ndarray  # from rows as given to those of the posterior; -1 for zero weight


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


def generator(random_state):
    """A NumPy generator from anything that scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


class BayesianMLP(BaseEstimator):
    """Common part of all estimators.

    An engine (evidence, sampling) adds ``_infer`` and what the fit leaves; a task (regression,
    classification) adds what targets are and what is predicted.
    """

    def fit(self, X, y, sample_weight=None):
        """Infer the weights with all precisions and noise levels from training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; class labels for the classifier.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: weight 2 equals repeating the row, weight 0 leaving it out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data make no sense.
        """
        with _all_or_nothing(self):
            hidden_layer_sizes = check_parameters(self)
            X, y, sample_weight = self._check_rows(X, y, sample_weight)
            rows = canonical_rows(X, y, sample_weight)
            self._check_domain(rows)
            self._infer(rows, hidden_layer_sizes)
        return self

    def __sklearn_is_fitted__(self):
        """Whether `fit` was completed."""
        return hasattr(self, "_X_scaling")

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
        """Standardise, and gather everything that defines the posterior."""
        d = rows.X.shape[1]
        X_scaling = Scaling.standard(rows.X, rows.weight) if self.standardize else Scaling.none(d)
        y, y_scaling, likelihood = self._targets(rows)
        network = Network((d, *hidden_layer_sizes, y.shape[1]), self.activation)
        self.n_outputs_ = network.n_outputs
        names = getattr(self, "feature_names_in_", None)
        if not isinstance(self.prior, str) and np.shape(self.prior) != (network.n_weights,):
            raise ValueError(
                f"prior given as an array needs one group label for each of the "
                f"{network.n_weights} weights; got shape {np.shape(self.prior)}."
            )
        groups = weight_groups(network, self.prior, None if names is None else list(names))
        free_alpha, alpha = fixed_values(self.weight_precision, groups.names, "weight_precision")
        free_beta, beta = self._noise_precisions(y_scaling, likelihood)
        settings = Settings(
            free=FreeHyperparameters(free_alpha, free_beta, LogUniform()),
            fixed=Hyperparameters(alpha, beta),
            **self._search_options(),
        )
        X = X_scaling.transform(rows.X)
        posterior = Posterior(network, likelihood, groups, X, y, rows.weight)
        return Problem(posterior, settings, X_scaling, y_scaling, rows.index)

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
        return self._X_scaling.transform(X)

    def _draw_prior(self, X, n_samples, rng):
        """Outputs of networks drawn from the prior, ``(n_samples, n, n_outputs)``."""
        network, sd = self._prior_of_weights(n_samples, rng)
        return outputs(network, rng.standard_normal(sd.shape) * sd, X)
