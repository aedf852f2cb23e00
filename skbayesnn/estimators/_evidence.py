"""Evidence engine of the estimators: drawn networks, or Gaussians around several minima.

Small data are predicted by networks drawn from the posterior. The minima of its energy, with a
Gaussian approximation around each, are then searched for only when something asks for them:
``coefs_``, ``posterior_``, the terms of the evidence, or a later fit that continues. That training
has the ``max_time`` and the ``n_jobs`` of a fit.
"""

import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbayesnn._threads import blas_threads
from skbayesnn.estimators._base import TOO_FEW, BayesianMLP, all_or_nothing
from skbayesnn.estimators._weights import GaussianPosterior, OnDemand
from skbayesnn.estimators.inputs._callbacks import reporting_to_callbacks, with_callbacks
from skbayesnn.estimators.inputs._parameters import (
    PARTIAL_FIT,
    check,
    check_parameters,
    refusal,
)
from skbayesnn.estimators.inputs._sequential import Earlier, Waiting, earlier_of_prior
from skbayesnn.estimators.inputs._settings import Solver
from skbayesnn.estimators.reports._candidates import (
    drawn_candidates,
    shares_of_sizes,
    tried_candidates,
)
from skbayesnn.estimators.reports._minimum import REMEDIES
from skbayesnn.estimators.reports._predictions import LeftOutScores
from skbayesnn.estimators.reports._report import EvidenceReport
from skbayesnn.inference import (
    METHODS,
    NOISE_MODELS,
    Deadline,
    Progress,
    Trouble,
    Workers,
    fit_evidence,
    gaussian_around,
    own_posterior,
)
from skbayesnn.predictive import combined, ensemble_of_models

UNDETERMINED = (
    "The posterior is numerically singular: neither the prior nor the data determine some weights. "
    "Use a larger prior.base_precision, other units, or smaller weights."
)
COMBINATIONS = ("posterior", "best", "evidence", "equal", "stacking", "tempered")


def learns_in_batches(estimator):
    """Return True if an estimator has ``partial_fit``; else raise `AttributeError`."""
    reason = refusal(estimator, PARTIAL_FIT)
    if reason is not None:
        raise AttributeError(reason)
    return True


class EvidenceMLP(BayesianMLP):
    """Base class of `EvidenceMLPRegressor` and `EvidenceMLPClassifier`."""

    _typical_noise = staticmethod(np.median)

    def _check_engine_parameters(self):
        check(self, combine=COMBINATIONS, n_restarts=1, method=METHODS)
        check(self._solver, hessian=("auto", "exact", "gauss_newton"), max_iter=1, tol=float)

    @property
    def _solver(self):
        return Solver._of(self.solver)

    def _infer(self, problem, hidden_layer_sizes, previous, in_batches=False):
        """Train from several starts, infer all precisions, and evaluate the evidence."""
        solver, limits = self._solver, problem.limits
        if solver.hessian != "auto":  # a Hessian at the minimum is wanted: no early stopping
            limits = limits._replace(batch_rows_per_weight=0)
        problem = replace(
            problem.under_constant_noise if in_batches else problem,
            exact=solver.hessian != "gauss_newton",
            max_iter=solver.max_iter,
            tol=solver.tol,
            limits=limits,
        )
        noise, entropy = self._noise_model(problem), self._entropy
        noise = "constant" if noise == "auto" and in_batches else noise
        workers = self._workers(problem)
        result = fit_evidence(
            problem,
            hidden_layer_sizes,
            entropy,
            self.n_restarts,
            noise,
            previous,
            workers,
            method="laplace" if in_batches else self.method,
            with_chains=self.combine == "posterior" and solver.hessian == "auto",
        )
        self._unsearched = result, entropy  # what `_laplace` needs, perhaps never
        vars(self).pop("_laplace", None)  # cached by an earlier fit
        if not (result.drawn and self.combine == "posterior"):
            self._laplace = self._searched(workers, problem.deadline)
        return result

    @with_callbacks
    def _fit_batch(self, X, y, *of_rows, attributes=None):
        """Fit one more batch, after the posterior of the earlier ones or together with their rows.

        Batches too small for a reliable fit are kept, and fitted again with the next one; a single
        row is not fitted at all. ``attributes``, such as classes, are set before rows are checked.
        """
        waiting, earlier = vars(self).get("_waiting"), None
        if self.__sklearn_is_fitted__() and waiting is None:
            earlier = Earlier.of(self)
            earlier.check(self)
        with reporting_to_callbacks(self, X, y), all_or_nothing(self):
            hidden_layer_sizes = check_parameters(self)
            earlier = earlier or earlier_of_prior(self, hidden_layer_sizes)
            previous = self._forget(earlier)
            if earlier is None:
                vars(self).update({} if waiting is None else waiting.attributes)
                vars(self).update(attributes or {})
            checked = self._check_rows(X, y, *of_rows)
            checked = checked if waiting is None else waiting.joined(checked)
            prepared = self._prepare(checked, hidden_layer_sizes, earlier)
            if prepared.is_undetermined and earlier is not None:
                raise ValueError(TOO_FEW)
            if not prepared.is_undetermined:
                self._infer_and_keep(prepared, previous, in_batches=True)
                before = () if earlier is None else earlier.log_evidences
                self.batch_log_evidences_ = (*before, self.log_evidence_)
            if earlier is not None:
                of_batch = earlier.warning(prepared.problem.X, prepared.problem.y)
            else:
                of_batch = self._wait(checked)
            self._warn([of_batch, *prepared.findings], in_batches=True)
        return self

    def _wait(self, checked):
        """Keep rows that settle too little, to be fitted again; return a warning, or ``None``."""
        waiting = Waiting.of(self, checked)
        if waiting is None:
            return None
        self._waiting = waiting
        return waiting.warning

    @property
    def log_evidence_(self):
        """Log evidence: measured, or by Laplace's approximation, after chains on first use."""
        check_is_fitted(self)
        batches = getattr(self, "batch_log_evidences_", None)
        if batches is not None:
            return float(np.sum(batches))  # chain rule
        known = not self._result.drawn or np.isfinite(self._result.log_evidence)
        return self._result.log_evidence if known else self._laplace.fit.log_evidence

    @property
    def method_(self):
        """Method that was used: one of those that ``method`` names."""
        check_is_fitted(self)
        if self._result.drawn:
            return "population" if np.isfinite(self._result.log_evidence) else "chains"
        return "early_stopping" if self._best.trouble is Trouble.EARLY else "laplace"

    @property
    def monte_carlo_error_(self):
        """Monte Carlo error of predictive means between two fits by chains."""
        check_is_fitted(self)
        return self._result.error if self._result.drawn else np.nan

    def _keep(self, result, rows):
        self._keep_common(result)
        self._predicts_by_draws = bool(result.drawn) and self.combine == "posterior"
        if self._predicts_by_draws:
            *predictions, shares = ensemble_of_models(result)
            self._candidates = drawn_candidates(result, shares)
            self.weight_group_names_ = list(result.posed.posterior.groups.names)
            n_groups = len(self.weight_group_names_)
            logs = np.log(result.drawn[0].alpha[:, :n_groups])  # groups of a noise network follow
            self.weight_precisions_ = np.exp(np.mean(logs, axis=0))
        else:
            predictions = self._gaussians, self._laplace.left_out
            self._candidates = tried_candidates(result, shares_of_sizes(self._laplace))
            self.weight_group_names_ = list(self._best.groups.names)
            self.weight_precisions_ = self._best.hyper.alpha.copy()
        self._ensemble, self._left_out = predictions
        if result.growth:
            self.candidates_ = self._candidates
        self._result = result if result.drawn else self._laplace.fit
        if result.problem.has_relevances:
            self._input_prior_std = self.weight_precisions_[: self.n_features_in_] ** -0.5
        densities = self._left_out.log_density + self._log_scales(rows, self._y_scaling)
        self.leave_one_out_log_density_ = rows.of_given(densities)
        self._predictions = LeftOutScores.of(
            self._left_out,
            result.problem.X,
            result.problem.y,
            result.problem.sample_weight,
            is_classifier(self),
            self._outliers,
            NOISE_MODELS[result.noise].heavy_tails,
        )

    # --- Laplace's approximation ------------------------------------------------------------------

    @cached_property
    def _laplace(self):
        """Laplace's approximation of the last fit, `Combined`.

        After a fit that draws networks the first access searches for the minima.
        """
        check_is_fitted(self)
        deadline = Deadline.after(self.max_time)
        progress = Progress(self.verbose, deadline)
        workers = Workers(self.n_jobs, self._announce, progress, self._result.problem.log_scale)
        laplace = self._searched(workers, deadline)
        if deadline.passed:
            warnings.warn(
                "The search for minima, which attributes such as coefs_ and evidence_report_ need "
                f"after networks were drawn, has reached max_time={self.max_time:g} seconds. They "
                "describe the best minima found until then. Raise max_time and fit again.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return laplace

    def _searched(self, workers, deadline):
        """Combine the minima of a fit; if networks were drawn, search for those of their model."""
        fit, entropy = self._unsearched
        network = fit.posed.posterior.network
        if fit.drawn:
            problem, sizes = replace(fit.problem, deadline=deadline), network.hidden_layer_sizes
            noise = fit.noise if NOISE_MODELS[fit.noise].has_minima else "constant"
            model = problem, sizes, entropy, self.n_restarts, noise
            fit = fit_evidence(*model, workers=workers)
        if any(minimum.precision is None for _, minimum in fit.pool):
            raise ValueError(UNDETERMINED)
        with blas_threads(network.n_weights):
            laplace = combined(fit, self.combine)
        del self._unsearched  # frees the precision matrices of all minima
        return laplace

    @property
    def _gaussians(self):
        """Gaussian approximations of the minima with a share in the predictions."""
        return self._laplace.gaussians

    @property
    def _best(self):
        return self._laplace.fit.best

    @property
    def n_effective_weights_(self):
        """Effective number of weights at the best minimum."""
        return float(np.sum(self._best.gamma))

    @property
    def n_iter_(self):
        """Largest number of training steps to a minimum."""
        return max(m.n_iter for m in self._laplace.fit.minima)

    @property
    def networks_(self):
        """Networks at all minima, in the units of X and y."""
        minima, scale = self._laplace.minima, self._result.problem.log_scale
        return [
            self._as_network(m.network, m.theta, float(share), m.log_evidence + scale)
            for m, share in zip(minima, self._laplace.shares, strict=True)
        ]

    @property
    def coefs_(self):
        """Weights of the best minimum, in the units of X and y."""
        return self._in_user_units(self._best.network, self._best.theta)[0]

    @property
    def intercepts_(self):
        """Biases of the best minimum, in the units of X and y."""
        return self._in_user_units(self._best.network, self._best.theta)[1]

    @property
    def coefs_std_(self):
        """Error bars of ``coefs_``, by Laplace's approximation."""
        return self._units(self._best.network).split(self._posterior_of(0).std)[0]

    @property
    def intercepts_std_(self):
        """Error bars of ``intercepts_``, by Laplace's approximation."""
        return self._units(self._best.network).split(self._posterior_of(0).std)[1]

    @property
    def evidence_report_(self):
        """Report on the evidence and the predictions, see `EvidenceReport`."""
        return self._report()

    def _report(self, log_slopes=None):
        """Make the report; ``log_slopes`` is the sum over the rows, if targets were transformed."""
        return EvidenceReport.of(self, log_slopes)

    @property
    def _gamma(self):
        return None if self._predicts_by_draws else self._best.gamma

    @property
    def posterior_(self):
        """Gaussian posteriors of the weights around all distinct minima."""
        return OnDemand(len(self._laplace.shares), self._posterior_of)

    def _posterior_of(self, index):
        fit = self._laplace.fit
        posterior, minimum = fit.pool[index]
        own, groups = own_posterior(posterior, minimum), minimum.groups
        precision, exact = gaussian_around(own, minimum, fit.posed.settings)
        return GaussianPosterior(
            self._weight_names(minimum.network),
            weight=float(self._laplace.shares[index]),
            log_evidence=minimum.log_evidence + self._result.problem.log_scale,
            user_units=self._units(minimum.network),
            theta=minimum.theta,
            gaussian=precision,
            prior=None if groups.coupled else groups.diagonal(minimum.hyper.alpha),
            exact=exact,
        )

    def _warning(self):
        if self._predicts_by_draws:
            return None
        best = self._best
        # training that stops early has no evidence by plan; the report says so
        stopped_early = best.trouble is Trouble.EARLY
        if np.isnan(self.log_evidence_) and not stopped_early:
            category = UserWarning if best.trouble is Trouble.ROTATION else ConvergenceWarning
            return category(
                f"log_evidence_ is nan: {best.trouble.value}. Predictions remain usable. "
                f"{REMEDIES[best.trouble]}"
            )
        if not best.converged and np.isnan(self.log_evidence_std_):
            return ConvergenceWarning(
                "The hyperparameters of the best minimum did not converge, so log_evidence_ may be "
                "a few nats too low. Try more n_restarts or fewer hidden units, and a larger "
                "solver.max_iter if n_iter_ has reached it."
            )
        return None

    def _warning_of_predictions(self):
        noise = getattr(self, "noise_model_", None)
        return self._predictions.warning(noise, bool(self._result.drawn))

    def _noise_std_of(self, minimum):
        """Noise standard deviation of a minimum in units of y; ``None`` for classifiers."""
        return None
