"""The evidence engine of the estimators: several minima, each with a Gaussian around it."""

from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn.estimators._base import BayesianMLP, FittedNetwork
from skbayesnn.estimators._parameters import integer, one_of, positive
from skbayesnn.estimators._report import make_report
from skbayesnn.inference import Trouble, fit_evidence
from skbayesnn.predictive import combined

COMBINATIONS = ("posterior", "best", "evidence", "equal", "stacking", "tempered")
NOTHING = 1.5  # well-determined weights, the bias of the output among them
HESSIANS = ("auto", "exact", "gauss_newton")

ANOTHER_SEARCH = (
    "Try another random_state, more n_restarts, a larger max_iter, or fewer hidden units."
)
REMEDIES = {
    Trouble.STRUCTURED: "Use fewer hidden units, or compare models on held-out rows.",
    Trouble.ROTATION: "Use another activation, or hidden layers of one unit.",
}


class EvidenceMLP(BayesianMLP):
    """Common part of `EvidenceMLPRegressor` and `EvidenceMLPClassifier`."""

    def _check_engine_parameters(self):
        one_of(self, "combine", COMBINATIONS)
        one_of(self, "hessian", HESSIANS)
        if not isinstance(self.measure_evidence, bool | np.bool_ | str):
            raise TypeError(
                f"measure_evidence must be True, False or 'auto', got {self.measure_evidence!r}."
            )
        if isinstance(self.measure_evidence, str) and self.measure_evidence != "auto":
            raise ValueError(
                f"measure_evidence must be True, False or 'auto', got {self.measure_evidence!r}."
            )
        integer(self, "n_restarts", 1)
        integer(self, "max_iter", 1)
        positive(self, "tol")

    def _search_options(self):
        options = {"max_iter": self.max_iter, "tol": self.tol}
        if self.hessian != "auto":
            options["limits"] = self._limits._replace(batch_rows_per_weight=0)
        return options | {"exact": self.hessian != "gauss_newton"}

    def _infer(self, problem, hidden_layer_sizes, previous):
        """Train from several starts, infer all precisions, and evaluate the evidence."""
        return fit_evidence(
            problem,
            hidden_layer_sizes,
            self._entropy,
            self.n_restarts,
            self._noise_model(problem),
            previous,
            self._workers,
            self.measure_evidence,
        )

    def _keep(self, result, rows):
        """Set the fitted attributes."""
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
        if isinstance(self.prior, str) and self.prior == "ard":
            self.feature_relevance_ = best.hyper.alpha[: self.n_features_in_] ** -0.5
        self.networks_ = [
            FittedNetwork(
                *self._in_user_units(m.network, m.theta), float(share), m.log_evidence + scale
            )
            for m, share in zip(minima, shares, strict=True)
        ]
        self.coefs_, self.intercepts_ = self.networks_[0].coefs, self.networks_[0].intercepts
        self.coefs_std_, self.intercepts_std_ = self._error_bars(best)
        densities = predictors.leave_one_out + scale / np.sum(rows.weight)
        self.leave_one_out_log_density_ = np.append(densities, np.nan)[rows.index]  # -1: no weight
        self._result = result.without_matrices()
        units = [replace(m, terms=replace(m.terms, target_scale=scale)) for m in minima]
        self.evidence_report_ = make_report(result, units, shares, self._noise_std_of)

    def _error_bars(self, minimum):
        """Posterior standard deviations of `coefs_` and `intercepts_`, in their units."""
        network, precision = minimum.network, minimum.precision
        layers = [w.copy() for w in network.layers(np.sqrt(precision.variances()))]
        layers[0][:-1] /= self._X_scaling.scale[:, None]
        shifts = np.append(-self._X_scaling.shift / self._X_scaling.scale, 1.0)
        fan_in, units = network.shapes[0]
        to_bias = np.zeros((units, 1, network.n_weights))
        for unit in range(units):
            to_bias[unit, 0, np.arange(fan_in) * units + unit] = shifts
        layers[0][-1] = np.sqrt(precision.project(to_bias)[:, 0, 0])
        layers[-1] *= self._y_scaling.scale
        return [w[:-1] for w in layers], [w[-1] for w in layers]

    def _trouble(self):
        """A warning about the fit, with its category, or ``None``."""
        best = self._result.best
        as_planned = best.trouble is Trouble.BATCHES  # no evidence, which the report says
        if np.isnan(self.log_evidence_) and not as_planned:
            category = UserWarning if best.trouble is Trouble.ROTATION else ConvergenceWarning
            return (
                f"log_evidence_ is nan: {best.trouble.value}. Predictions remain usable. "
                f"{REMEDIES.get(best.trouble, ANOTHER_SEARCH)}"
            ), category
        if not best.converged and np.isnan(self.log_evidence_std_):
            return (
                "The hyperparameters of the best minimum did not converge, so log_evidence_ may be "
                "a few nats too low. Try more n_restarts or fewer hidden units, and a larger "
                "max_iter if n_iter_ has reached it."
            ), ConvergenceWarning
        hidden = self._result.posed.posterior.network.hidden_layer_sizes
        if len(hidden) > 2 and np.sum(best.gamma) < NOTHING:
            return (
                "The network has learnt nothing: its outputs are constant. Either y does not "
                "depend on X, or training has failed. Try another random_state, more n_restarts, "
                "fewer hidden layers, or hidden_layer_sizes='auto'."
            ), ConvergenceWarning
        return None

    def _noise_std_of(self, minimum):
        """Noise standard deviation of a minimum in units of y; classes have none."""
        return None
