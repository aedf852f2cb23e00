"""Evidence engine of the estimators: a Gaussian approximation around each of several minima."""

from dataclasses import replace

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbayesnn.estimators._base import BayesianMLP
from skbayesnn.estimators.inputs._combinations import PARTIAL_FIT, refusal
from skbayesnn.estimators.inputs._parameters import integer, one_of, positive
from skbayesnn.estimators.inputs._sequential import LEARNT, Earlier, Waiting, earlier_of_prior
from skbayesnn.estimators.inputs._settings import Solver
from skbayesnn.estimators.reports._predictions import Predictions
from skbayesnn.estimators.reports._report import make_report
from skbayesnn.estimators.reports._verdict import REMEDIES
from skbayesnn.estimators.tasks._networks import OnDemand
from skbayesnn.estimators.weights._posterior import GaussianPosterior
from skbayesnn.inference import (
    Trouble,
    fit_evidence,
    gaussian_around,
    noise_posterior,
    own_posterior,
)
from skbayesnn.predictive import combined

COMBINATIONS = ("posterior", "best", "evidence", "equal", "stacking", "tempered")
HESSIANS = ("auto", "exact", "gauss_newton")


def learns_in_batches(estimator):
    """Return True if an estimator has ``partial_fit``; else raise `AttributeError`."""
    words = refusal(estimator, PARTIAL_FIT)
    if words is not None:
        raise AttributeError(words)
    return True


class EvidenceMLP(BayesianMLP):
    """Base class of `EvidenceMLPRegressor` and `EvidenceMLPClassifier`."""

    def _check_engine_parameters(self):
        one_of(self, "combine", COMBINATIONS)
        one_of(self._solver, "hessian", HESSIANS)
        if not isinstance(self.measure_evidence, bool | np.bool_ | str):
            raise TypeError(
                f"measure_evidence must be True, False or 'auto', got {self.measure_evidence!r}."
            )
        if isinstance(self.measure_evidence, str) and self.measure_evidence != "auto":
            raise ValueError(
                f"measure_evidence must be True, False or 'auto', got {self.measure_evidence!r}."
            )
        integer(self, "n_restarts", 1)
        integer(self._solver, "max_iter", 1)
        positive(self._solver, "tol")

    @property
    def _solver(self):
        """Parameters of the training."""
        return Solver.of(self.solver)

    def _search_options(self):
        solver = self._solver
        options = {"max_iter": solver.max_iter, "tol": solver.tol}
        if solver.hessian != "auto":
            options["limits"] = self._limits._replace(batch_rows_per_weight=0)
        return options | {"exact": solver.hessian != "gauss_newton"}

    def _infer(self, problem, hidden_layer_sizes, previous, in_batches=False):
        """Train from several starts, infer all precisions, and evaluate the evidence."""
        problem = problem.under_constant_noise if in_batches else problem
        noise = self._noise_model(problem)
        if noise == "auto" and in_batches:
            noise = "constant"
        return fit_evidence(
            problem,
            hidden_layer_sizes,
            self._entropy,
            self.n_restarts,
            noise,
            previous,
            self._workers(problem),
            False if in_batches else self.measure_evidence,
        )

    def _earlier(self, hidden_layer_sizes):
        return earlier_of_prior(self, EvidenceMLP, hidden_layer_sizes)

    def _before_batch(self):
        """Posterior after the earlier calls of `partial_fit`, or ``None``."""
        if not self.__sklearn_is_fitted__() or hasattr(self, "_waiting"):
            return None
        earlier = Earlier.of(self)
        earlier.check(self)
        return earlier

    def _wait(self, rows, earlier):
        """Keep the rows of a first batch too small to fit; return a warning, or ``None``."""
        waiting = Waiting.after(self, rows) if earlier is None else None
        if waiting is None:
            return None
        self._waiting = waiting
        return str(waiting), ConvergenceWarning

    def _add_up(self, earlier):
        """Sum the log evidences of all batches (chain rule)."""
        before = () if earlier is None else earlier.log_evidences
        self.batch_log_evidences_ = (*before, self.log_evidence_)
        self.log_evidence_ = float(np.sum(self.batch_log_evidences_))

    def _keep(self, result, rows):
        """Set the fitted attributes."""
        if any(minimum.precision is None for _, minimum in result.pool):
            raise ValueError(
                "The posterior is numerically singular: neither the prior nor the data determine "
                "some weights. Use a larger prior.base_precision, other units, or smaller weights."
            )
        self._keep_common(result)
        predictors = combined(result, self.combine)
        self._ensemble, self._gaussians = predictors.ensemble, predictors.gaussians
        self._shares = predictors.shares
        minima, shares = predictors.minima, predictors.shares
        best, scale = result.best, result.problem.log_scale
        self.log_evidence_, self.log_evidence_std_ = result.log_evidence, result.log_evidence_std
        self.weight_group_names_ = list(best.groups.names)
        self.weight_precisions_ = best.hyper.alpha.copy()
        self.n_effective_weights_ = float(np.sum(best.gamma))
        self.n_iter_ = max(m.n_iter for m in result.minima)
        if self._prior._has_relevances:
            self.feature_relevance_ = best.hyper.alpha[: self.n_features_in_] ** -0.5
        self.networks_ = [
            self._as_network(m.network, m.theta, float(share), m.log_evidence + scale)
            for m, share in zip(minima, shares, strict=True)
        ]
        self.coefs_, self.intercepts_ = self.networks_[0].coefs, self.networks_[0].intercepts
        units = self._units(best.network)
        deviations = units.standard_deviations(best.precision)
        self.coefs_std_, self.intercepts_std_ = units.split(deviations)
        densities = predictors.leave_one_out + self._log_scales(rows)
        self.leave_one_out_log_density_ = rows.of_given(densities)
        self._result = result.without_matrices()
        units = [replace(m, terms=replace(m.terms, target_scale=scale)) for m in minima]
        self._left_out = predictors.left_out
        given = self._left_out, result.problem.y, result.problem.sample_weight
        given = *given, is_classifier(self), self._outliers
        predictions = Predictions.of(*given)
        self.evidence_report_ = make_report(result, units, shares, self._noise_std_of, predictions)

    @property
    def _gamma(self):
        return self._result.best.gamma

    @property
    def posterior_(self):
        """Gaussian posteriors of the weights around all distinct minima."""
        check_is_fitted(self)
        return OnDemand(len(self._shares), self._posterior_of)

    def _posterior_of(self, index):
        posterior, minimum = self._result.pool[index]
        settings, share = self._result.posed.settings, float(self._shares[index])
        own, noise = own_posterior(posterior, minimum), None
        if minimum.noise is not None:
            units = self._noise_units(minimum.noise.network)
            above = noise_posterior(own, minimum, settings)
            noise = self._gaussian_posterior(above, minimum.noise, units, share, np.nan)
        log_evidence = minimum.log_evidence + self._result.problem.log_scale
        units = self._units(minimum.network)
        return self._gaussian_posterior(own, minimum, units, share, log_evidence, noise)

    def _gaussian_posterior(self, own, minimum, units, share, log_evidence, noise=None):
        precision, exact = gaussian_around(own, minimum, self._result.posed.settings)
        names = self._weight_names(minimum.network)
        groups, alpha = minimum.groups, minimum.hyper.alpha
        prior = None if groups.coupled else groups.diagonal(alpha)
        given = names, share, log_evidence, noise, "user", units
        return GaussianPosterior(*given, minimum.theta, precision, prior, exact)

    def _trouble(self):
        """Warning about the fit, with its category, or ``None``."""
        best = self._result.best
        as_planned = best.trouble is Trouble.EARLY  # no evidence; the report says so
        if np.isnan(self.log_evidence_) and not as_planned:
            category = UserWarning if best.trouble is Trouble.ROTATION else ConvergenceWarning
            return (
                f"log_evidence_ is nan: {best.trouble.value}. Predictions remain usable. "
                f"{REMEDIES[best.trouble]}"
            ), category
        if not best.converged and np.isnan(self.log_evidence_std_):
            return (
                "The hyperparameters of the best minimum did not converge, so log_evidence_ may be "
                "a few nats too low. Try more n_restarts or fewer hidden units, and a larger "
                "solver.max_iter if n_iter_ has reached it."
            ), ConvergenceWarning
        hidden = self._result.posed.posterior.network.hidden_layer_sizes
        if len(hidden) > 2 and np.sum(best.gamma) < LEARNT:
            return (
                "The network has learnt nothing: its outputs are constant. Either y does not "
                "depend on X, or training has failed. Try another random_state, more n_restarts, "
                "fewer hidden layers, or hidden_layer_sizes='auto'."
            ), ConvergenceWarning
        return None

    def _trouble_with_predictions(self):
        words = self.evidence_report_.predictions.trouble
        return None if words is None else (words, ConvergenceWarning)

    def _noise_std_of(self, minimum):
        """Noise standard deviation of a minimum in units of y; ``None`` for classifiers."""
        return None
