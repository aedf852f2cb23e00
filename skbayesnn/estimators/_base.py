"""What the evidence estimators share: from user data to minima, and back to user units."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayesnn._data import Scaling, canonical_rows
from skbayesnn._threads import blas_threads
from skbayesnn.estimators._parameters import check_parameters, fixed_values
from skbayesnn.estimators._report import make_report
from skbayesnn.inference import FreeHyperparameters, Settings, find_minima, well_determined
from skbayesnn.network import Network, outputs
from skbayesnn.posterior import Hyperparameters, LogUniform, Posterior, weight_groups
from skbayesnn.predictive import Member, evidence_weights, leave_one_out, stacking_weights

NEGLIGIBLE_WEIGHT = 1e-6  # share of a minimum below which it is left out of predictions


class _Problem(NamedTuple):
    """A fit in standardised units."""

    posterior: Posterior
    settings: Settings
    X_scaling: Scaling
    y_scaling: Scaling


@dataclass(frozen=True)
class FittedNetwork:
    """One distinct minimum, in the units of X and y.

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


class EvidenceMLP(BaseEstimator):
    """Common part of `EvidenceMLPRegressor` and `EvidenceMLPClassifier`."""

    def fit(self, X, y, sample_weight=None):
        """Train from several starts, infer all precisions, and evaluate the evidence.

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
            problem = self._pose(rows, hidden_layer_sizes)
            minima = self._search(problem)
            self._keep(problem, minima)
            self._warn_of_trouble(minima)
        return self

    def __sklearn_is_fitted__(self):
        """Whether `fit` was completed."""
        return hasattr(self, "networks_")

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
            exact=self.hessian != "gauss_newton",
            max_iter=self.max_iter,
            tol=self.tol,
        )
        X = X_scaling.transform(rows.X)
        posterior = Posterior(network, likelihood, groups, X, y, rows.weight)
        return _Problem(posterior, settings, X_scaling, y_scaling)

    def _search(self, problem):
        """Distinct minima from random starts, and from the last fit with ``warm_start``."""
        previous = getattr(self, "_minima", []) if self.warm_start else []
        sizes, labels = problem.posterior.network.layer_sizes, problem.posterior.groups
        previous = [
            old
            for old in previous
            if old.groups.names == labels.names
            and len(old.network.layer_sizes) == len(sizes)
            and old.network.layer_sizes[0] == sizes[0]
            and old.network.layer_sizes[-1] == sizes[-1]
            and np.all(np.less_equal(old.network.layer_sizes, sizes))
            and old.network.activation == problem.posterior.network.activation
        ]
        n_random = 1 if not sizes[1:-1] else self.n_restarts  # one minimum without hidden layer
        entropy = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        seeds = np.random.SeedSequence(entropy).spawn(max(0, n_random - len(previous)))
        return find_minima(
            problem.posterior,
            problem.settings,
            seeds,
            previous,
            self.n_jobs,
            print if self.verbose else None,
        )

    def _keep(self, problem, minima):
        """Set the fitted attributes."""
        posterior = problem.posterior
        scale_term = self._scale_term(problem)
        minima = [replace(m, terms=replace(m.terms, target_scale=scale_term)) for m in minima]
        self._X_scaling, self._y_scaling = problem.X_scaling, problem.y_scaling
        self._likelihood = posterior.likelihood
        self._mixture_weights = self._combination(problem, minima)
        used = self._mixture_weights > 0
        self._members = [
            self._member(posterior, m, m.gaussian) for m, u in zip(minima, used, strict=True) if u
        ]
        self._minima = [replace(m, gaussian=None) for m in minima]
        self._member_weights = self._mixture_weights[used]

        evidences = np.array([m.log_evidence for m in minima])
        known = ~np.isnan(evidences)
        self.log_evidence_ = float(logsumexp(evidences[known])) if known.any() else np.nan
        self.n_outputs_ = posterior.network.n_outputs
        best = minima[0]
        self.weight_group_names_ = list(best.groups.names)
        self.weight_precisions_ = best.hyper.alpha.copy()
        self.n_effective_weights_ = float(np.sum(best.gamma))
        self.n_iter_ = max(m.n_iter for m in minima)
        vars(self).pop("feature_relevance_", None)  # of an earlier fit with another prior
        if isinstance(self.prior, str) and self.prior == "ard":
            self.feature_relevance_ = best.hyper.alpha[: self.n_features_in_] ** -0.5
        self._keep_networks(minima)
        self.evidence_report_ = make_report(
            minima,
            self.log_evidence_,
            self._mixture_weights,
            self._noise_std_of,
            posterior.n_rows * np.sum(posterior.likelihood.level_sizes()),
        )

    def _keep_networks(self, minima):
        """Weights in the units of X and y, and their error bars."""
        self.networks_ = [
            FittedNetwork(*self._in_user_units(m), float(w), m.log_evidence)
            for m, w in zip(minima, self._mixture_weights, strict=True)
        ]
        self.coefs_, self.intercepts_ = self.networks_[0].coefs, self.networks_[0].intercepts
        self.coefs_std_, self.intercepts_std_ = self._error_bars(minima[0])

    def _combination(self, problem, minima):
        """Shares of the minima in the predictions."""
        evidences = np.array([m.log_evidence for m in minima])
        known = ~np.isnan(evidences)
        free = np.array([not m.fits_everything for m in minima])
        for choice in (known & free, known, np.ones(len(minima), dtype=bool)):
            if np.any(choice):
                eligible = np.flatnonzero(choice)
                break
        weights = np.zeros(len(minima))
        if self.combine == "best" or len(eligible) == 1:
            weights[eligible[0]] = 1.0
        elif self.combine == "evidence" and not np.isnan(evidences[eligible]).any():
            weights[eligible] = evidence_weights(evidences[eligible])
        elif self.combine == "stacking":
            densities = [self._leave_one_out(problem.posterior, minima[i]) for i in eligible]
            weights[eligible] = stacking_weights(
                np.array(densities), problem.posterior.sample_weight
            )
        else:
            weights[eligible] = 1.0 / len(eligible)
        weights[weights < NEGLIGIBLE_WEIGHT] = 0.0
        return weights / weights.sum()

    def _member(self, posterior, minimum, gaussian):
        noise = np.zeros(posterior.network.n_outputs)
        if posterior.likelihood.has_noise:
            noise = 1.0 / posterior.likelihood.precisions(minimum.hyper.beta)
        return Member(minimum.network, minimum.theta, gaussian, noise)

    def _leave_one_out(self, posterior, minimum):
        """Leave-one-out log densities of the training rows for one minimum."""
        own = posterior.with_network(minimum.network, minimum.groups.labels)
        determined = well_determined(own, minimum.theta, minimum.hyper)
        gaussian = minimum.gaussian if determined is None else determined.gaussian
        member = self._member(posterior, minimum, gaussian)
        with blas_threads(len(minimum.theta)):
            return leave_one_out(member, own.likelihood, minimum.hyper.beta, own.X, own.y)

    def _in_user_units(self, minimum):
        """``(coefs, intercepts)`` with the standardisation of X and y folded in."""
        layers = [w.copy() for w in minimum.network.layers(minimum.theta)]
        first, last = layers[0], layers[-1]
        first[:-1] /= self._X_scaling.scale[:, None]
        first[-1] -= self._X_scaling.shift @ first[:-1]
        last *= self._y_scaling.scale
        last[-1] += self._y_scaling.shift
        return [w[:-1] for w in layers], [w[-1] for w in layers]

    def _error_bars(self, minimum):
        """Posterior standard deviations of `coefs_` and `intercepts_`, in their units."""
        network, gaussian = minimum.network, minimum.gaussian
        layers = [w.copy() for w in network.layers(np.sqrt(gaussian.variances()))]
        layers[0][:-1] /= self._X_scaling.scale[:, None]
        shifts = np.append(-self._X_scaling.shift / self._X_scaling.scale, 1.0)
        fan_in, units = network.shapes[0]
        to_bias = np.zeros((units, 1, network.n_weights))
        for unit in range(units):
            to_bias[unit, 0, np.arange(fan_in) * units + unit] = shifts
        layers[0][-1] = np.sqrt(gaussian.project(to_bias)[:, 0, 0])
        layers[-1] *= self._y_scaling.scale
        return [w[:-1] for w in layers], [w[-1] for w in layers]

    def _warn_of_trouble(self, minima):
        """The one place where the states of the algorithms become a warning."""
        if np.isnan(self.log_evidence_):
            problem = minima[0].problem
            category = UserWarning if "rotated" in problem else ConvergenceWarning
            warnings.warn(
                f"log_evidence_ is nan: {problem}. Predictions remain usable. "
                "Try another random_state, more n_restarts, a larger max_iter, or fewer hidden "
                "units.",
                category,
                stacklevel=3,
            )
        elif not minima[0].converged:
            warnings.warn(
                "The precisions of the best minimum did not settle, so log_evidence_ may be too "
                "low by some nats. Try more n_restarts or fewer hidden units, and a larger "
                "max_iter if n_iter_ has reached it.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_X(self, X):
        """Rows to predict, standardised."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._X_scaling.transform(X)

    def _activations(self, X, need_covariance=True):
        """Outputs of all members, ``(m, n, n_outputs)``, and their covariances (without noise)."""
        with blas_threads(max(len(member.theta) for member in self._members)):
            if not need_covariance:
                return np.stack([member.mean(X) for member in self._members]), None
            moments = [member.mean_and_covariance(X) for member in self._members]
        return np.stack([m for m, _ in moments]), np.stack([c for _, c in moments])

    def _prior_functions(self, X, n_samples, random_state):
        """Outputs of networks drawn from the prior, ``(n_samples, n, n_outputs)``."""
        X = self._check_X(X)
        best = self._minima[0]
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        sd = best.groups.expand(best.hyper.alpha) ** -0.5
        theta = rng.standard_normal((n_samples, len(sd))) * sd
        return outputs(best.network, theta, X)
