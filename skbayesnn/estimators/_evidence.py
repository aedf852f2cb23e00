"""The evidence engine of the estimators: several minima, each with a Gaussian around it."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from skbayesnn._threads import blas_threads
from skbayesnn.estimators._base import FittedNetwork
from skbayesnn.estimators._growth import N_SCOUTS, Growing
from skbayesnn.estimators._parameters import integer, one_of, positive
from skbayesnn.estimators._report import make_report
from skbayesnn.inference import (
    distinct,
    is_repeated,
    own_posterior,
    well_determined,
)
from skbayesnn.posterior import LogUniform
from skbayesnn.predictive import (
    Member,
    NoiseFunction,
    evidence_weights,
    leave_one_out,
    stacking_weights,
    tempered_weights,
)

COMBINATIONS = ("best", "evidence", "equal", "stacking", "tempered")
HESSIANS = ("auto", "exact", "gauss_newton")
NEGLIGIBLE_WEIGHT = 1e-6  # share of a minimum below which it is left out of predictions


class EvidenceMLP(Growing):
    """Common part of `EvidenceMLPRegressor` and `EvidenceMLPClassifier`."""

    def _infer(self, rows, hidden_layer_sizes):
        """Train from several starts, infer all precisions, and evaluate the evidence."""
        hidden_layer_sizes, tried = self._grown(rows, hidden_layer_sizes)
        problem = self._pose(rows, hidden_layer_sizes)
        seeds = self._seeds(hidden_layer_sizes, self.n_restarts)
        problem, minima, others = self._minima_of(problem, seeds, tried)
        self._keep(problem, minima, others)
        self._warn_of_trouble(minima)

    def _minima_of(self, problem, seeds, tried):
        """The problem, its minima, and posteriors and minima of others that predict with them."""
        if not tried:
            return problem, self._search(problem, seeds), []
        chosen = problem.posterior.network.hidden_layer_sizes
        scouted = tried[chosen][1]
        minima = distinct([*scouted, *self._search(problem, seeds[self._n_scouts :])])
        rest = [pair for sizes, pair in tried.items() if sizes != chosen]
        return problem, minima, _unrepeated(minima, rest) if self.combine == "tempered" else []

    @property
    def _n_scouts(self):
        return min(N_SCOUTS, self.n_restarts)

    def _check_engine_parameters(self):
        one_of(self, "combine", COMBINATIONS)
        one_of(self, "hessian", HESSIANS)
        integer(self, "n_restarts", 1)
        integer(self, "max_iter", 1)
        positive(self, "tol")

    def _search_options(self):
        exact = self.hessian != "gauss_newton"
        return {"exact": exact, "max_iter": self.max_iter, "tol": self.tol}

    def _search(self, problem, seeds, further=()):
        """Distinct minima from random starts, the last fit with ``warm_start``, and others."""
        previous = self._usable(problem) if self.warm_start else []
        seeds = seeds[: max(0, len(seeds) - len(previous))]
        return self._find(problem, seeds, [*previous, *further])

    def _usable(self, problem):
        """Minima of the last fit from which this one can go on."""
        posterior, plan = problem.posterior, problem.settings.noise_plan
        return [
            old
            for old in getattr(self, "_minima", [])
            if fits(old, posterior.network, posterior.groups)
            and old.likelihood.linear == posterior.likelihood.linear
            and (old.noise is None if plan is None else fits(old.noise, *plan))
        ]

    def _keep(self, problem, minima, others=()):
        """Set the fitted attributes.

        ``others`` are posteriors and minima of other networks that predict together with this one.
        """
        posterior = problem.posterior
        pool = [(posterior, m) for m in minima] + list(others)
        scale_term = self._scale_term(problem)
        pool = [(p, replace(m, terms=replace(m.terms, target_scale=scale_term))) for p, m in pool]
        everything = [m for _, m in pool]
        minima = everything[: len(minima)]
        self._X_scaling, self._y_scaling = problem.X_scaling, problem.y_scaling
        self._likelihood = posterior.likelihood
        self.hidden_layer_sizes_ = posterior.network.hidden_layer_sizes
        member = cache(lambda i: self._member(*pool[i]))
        densities = cache(lambda i: self._leave_one_out(*pool[i], member(i)))
        self._mixture_weights = self._combination(posterior, everything, densities)
        used = self._mixture_weights > 0
        self._members = [member(i) for i in np.flatnonzero(used)]
        self._minima = [_without_gaussian(m) for m in minima]
        self._others = [_without_gaussian(m) for m in everything[len(minima) :]]
        self._member_weights = self._mixture_weights[used]
        self._keep_leave_one_out(problem, densities)

        self.log_evidence_ = total_log_evidence(minima)
        best = minima[0]
        self.weight_group_names_ = list(best.groups.names)
        self.weight_precisions_ = best.hyper.alpha.copy()
        self.n_effective_weights_ = float(np.sum(best.gamma))
        self.n_iter_ = max(m.n_iter for m in minima)
        vars(self).pop("feature_relevance_", None)  # of an earlier fit with another prior
        if isinstance(self.prior, str) and self.prior == "ard":
            self.feature_relevance_ = best.hyper.alpha[: self.n_features_in_] ** -0.5
        self._keep_networks(everything)
        self.evidence_report_ = make_report(
            everything,
            self.log_evidence_,
            self._mixture_weights,
            self._noise_std_of,
            posterior.n_rows * np.sum(posterior.likelihood.level_sizes()),
            getattr(self, "_noise_p_values", {}),
            getattr(self, "noise_log_evidences_", {}),
        )

    def _keep_networks(self, minima):
        """Weights in the units of X and y, and their error bars."""
        self.networks_ = [
            FittedNetwork(*self._in_user_units(m.network, m.theta), float(w), m.log_evidence)
            for m, w in zip(minima, self._mixture_weights, strict=True)
        ]
        self.coefs_, self.intercepts_ = self.networks_[0].coefs, self.networks_[0].intercepts
        self.coefs_std_, self.intercepts_std_ = self._error_bars(minima[0])

    def _keep_leave_one_out(self, problem, densities):
        """Leave-one-out log densities of the mixture, for the rows as they were given."""
        logs = np.stack([densities(i) for i in np.flatnonzero(self._mixture_weights)])
        mixed = logsumexp(logs + np.log(self._member_weights)[:, None], axis=0)
        mixed += self._scale_term(problem) / problem.posterior.n_rows
        mixed = np.append(mixed, np.nan)  # for index -1
        self.leave_one_out_log_density_ = mixed[problem.row_index]

    def _combination(self, posterior, minima, densities):
        """Shares of the minima in the predictions."""
        evidences = np.array([m.log_evidence for m in minima])
        known = ~np.isnan(evidences)
        free = np.array([not m.fits_everything for m in minima])
        for choice in (known & free, known, np.ones(len(minima), dtype=bool)):
            if np.any(choice):
                eligible = np.flatnonzero(choice)
                break
        weights, chosen = np.zeros(len(minima)), evidences[eligible]

        def stacked():
            return np.stack([densities(i) for i in eligible])

        if self.combine == "best" or len(eligible) == 1:
            weights[eligible[0]] = 1.0
        elif self.combine == "stacking":
            weights[eligible] = stacking_weights(stacked(), posterior.sample_weight)
        elif self.combine == "equal" or np.isnan(chosen).any():
            weights[eligible] = 1.0 / len(eligible)
        elif self.combine == "evidence":
            weights[eligible] = evidence_weights(chosen)
        else:  # leave-one-out densities of classes are far too high where weights are many
            logs = stacked() if posterior.likelihood.has_noise else None
            weights[eligible] = tempered_weights(chosen, posterior.sample_weight, logs)
        weights[weights < NEGLIGIBLE_WEIGHT] = 0.0
        return weights / weights.sum()

    def _member(self, posterior, minimum):
        """What one minimum of a posterior predicts."""
        return member_of(minimum)

    def _leave_one_out(self, posterior, minimum, member):
        """Leave-one-out log densities of the training rows for one minimum."""
        own = own_posterior(posterior, minimum)
        determined = well_determined(own, minimum.theta, minimum.hyper)
        if member.shift is None and determined is not None:
            member = replace(member, gaussian=determined.gaussian)
        with blas_threads(len(minimum.theta)):
            return leave_one_out(member, own.likelihood, minimum.hyper.beta, own.X, own.y)

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
                stacklevel=4,
            )
        elif not minima[0].converged:
            warnings.warn(
                "The precisions of the best minimum did not settle, so log_evidence_ may be too "
                "low by some nats. Try more n_restarts or fewer hidden units, and a larger "
                "max_iter if n_iter_ has reached it.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _activations(self, X, need_covariance=True):
        """Outputs of all members, ``(m, n, n_outputs)``, and their covariances (without noise)."""
        with blas_threads(max(len(member.theta) for member in self._members)):
            if not need_covariance:
                return np.stack([member.mean(X) for member in self._members]), None
            moments = [member.mean_and_covariance(X) for member in self._members]
        return np.stack([m for m, _ in moments]), np.stack([c for _, c in moments])

    def _doubles_per_row(self):
        """Memory that a row to predict takes, besides what the members bound themselves."""
        return len(self._members) * self.n_outputs_**2

    def _joint_covariances(self, X):
        """Covariance of every output between rows, ``(m, n_outputs, n, n)``, without noise."""
        return np.stack([member.joint_covariance(X) for member in self._members])

    @property
    def _noise_variances(self):
        """Of every member and output, standardised; typical ones if they depend on the input."""
        return np.stack([m.variance_factor * m.noise_variance for m in self._members])

    def _draw_functions(self, X, n_samples, rng):
        """Functions drawn from the linearised posterior, ``(n_samples, n, n_outputs)``."""
        chosen = rng.choice(len(self._members), size=n_samples, p=self._member_weights)
        draws = np.empty((n_samples, len(X), self.n_outputs_))
        for index, member in enumerate(self._members):
            mine = np.flatnonzero(chosen == index)
            draws[mine] = member.draw(X, rng, len(mine))
        return draws

    def _prior_of_weights(self, n_samples, rng):
        """A network, and prior sds of its weights for every sample, ``(n_samples, k)``."""
        best = self._minima[0]
        sd = best.groups.expand(best.hyper.alpha) ** -0.5
        return best.network, np.tile(sd, (n_samples, 1))


def member_of(minimum):
    """What one minimum predicts, with the Gaussian around it."""
    likelihood, function = minimum.likelihood, None
    noise = np.zeros(minimum.network.n_outputs)
    if likelihood.has_noise:
        noise = 1.0 / likelihood.precisions(minimum.hyper.beta)
    degrees = getattr(likelihood, "degrees_of_freedom", np.inf)
    if minimum.noise is not None:
        function = NoiseFunction(
            minimum.noise.network,
            minimum.noise.theta,
            minimum.noise.gaussian,
            -np.log(noise),
            LogUniform().log_range,
        )
    return Member(minimum.network, minimum.theta, minimum.gaussian, noise, degrees, function)


def total_log_evidence(minima):
    """``logsumexp`` over the minima that have an evidence; ``nan`` if none has."""
    evidences = np.array([m.log_evidence for m in minima])
    known = ~np.isnan(evidences)
    return float(logsumexp(evidences[known])) if known.any() else np.nan


def _unrepeated(minima, tried):
    """Pairs of posterior and minimum of other networks, repetitions left out."""
    kept = []
    for posterior, found in tried:
        for minimum in found:
            if not is_repeated(minimum, [*minima, *(m for _, m in kept)]):
                kept.append((posterior, minimum))
    return kept


def fits(minimum, network, groups):
    """Whether a minimum of an earlier fit can be continued in a network of this layout."""
    if minimum is None:
        return False
    theirs, sizes = minimum.network.layer_sizes, network.layer_sizes
    return (
        minimum.groups.names == groups.names
        and len(theirs) == len(sizes)
        and theirs[0] == sizes[0]
        and theirs[-1] == sizes[-1]
        and bool(np.all(np.less_equal(theirs, sizes)))
        and minimum.network.activation == network.activation
    )


def _without_gaussian(minimum):
    """A minimum without the large matrix of its posterior."""
    noise = minimum.noise and replace(minimum.noise, gaussian=None)
    return replace(minimum, gaussian=None, noise=noise)
